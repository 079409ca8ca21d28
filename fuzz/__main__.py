"""Fuzz everything: `python -m fuzz`, or `make fuzz`.

    python -m fuzz --inputs 1000000 --seconds 1200     about so many inputs in all, within so many seconds
    python -m fuzz --target equations                  one target only

Half of the time goes to inputs that are drawn (Hypothesis, and the same changes without it), half to those that atheris
breeds, where it is installed. What was tried is counted; the first fault ends the run, with the input that led to it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from fuzz.drawn import run_drawn, run_plain
from fuzz.target import PLACE, SHARED, Target
from fuzz.targets import TARGETS

DRAWN = 200
"""Inputs a target that Hypothesis draws, which makes a fault small; changes without it are many times as fast."""
BATCH = 200


def plainly(target: Target, inputs: int, seconds: float, rng: random.Random) -> tuple[int, int]:
    """Return how many inputs were tried, and how many of them were read."""
    start, tried, read = time.monotonic(), 0, 0
    while tried < inputs and time.monotonic() - start < seconds:
        told = run_plain(target, min(BATCH, inputs - tried), rng)
        tried += sum(told.values())
        read += told["read"]
    return tried, read


def bred(target: Target, inputs: int, seconds: float) -> int:
    """Return how many inputs atheris tried."""
    command = [sys.executable, "-m", "fuzz.guided", target.name, str(inputs), str(max(2, round(seconds)))]
    with tempfile.TemporaryDirectory(prefix="unround-fuzz-", dir=SHARED if SHARED.is_dir() else None) as place:
        ran = subprocess.run(command, capture_output=True, check=False, env={**os.environ, PLACE: place})
    said = ran.stderr.decode(errors="replace")
    found = re.search(r"stat::number_of_executed_units: *(\d+)", said) or re.search(r"Done (\d+) runs", said)
    if ran.returncode or not found:
        print(said[-6_000:], file=sys.stderr)
        raise SystemExit(f"{target.name}: atheris found a fault; the input is in fuzz-{target.name}-*")
    return int(found[1])


def main() -> None:
    """Run, and say how many inputs every target had."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz every reader and parser.")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="about so many inputs in all (1,000,000)")
    parser.add_argument("--seconds", type=float, default=1_800, help="so many seconds at most, or a little more (1,800)")
    parser.add_argument("--seed", type=int, default=None, help="of the changes to inputs; by default another every time")
    parser.add_argument("--target", action="append", choices=[target.name for target in TARGETS], help="only this one")
    asked = parser.parse_args()
    chosen = [target for target in TARGETS if not asked.target or target.name in asked.target]
    weights = sum(target.weight for target in chosen)
    guided = importlib.util.find_spec("atheris") is not None
    if not guided:
        print("atheris is not installed: inputs are drawn only.")
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    rng, total = random.Random(seed), 0
    print(f"{'':16}{'Hypothesis':>12}{'changed':>12}{'read':>8}{'bred':>12}{'seconds':>10}   (seed {seed})")
    for target in chosen:
        start = time.monotonic()
        share = target.weight / weights
        # Who can take many inputs gets more time, though not as much more: slow readers need theirs.
        inputs, seconds = round(asked.inputs * share), asked.seconds * (0.5 * share + 0.5 / len(chosen))
        drawn = sum(run_drawn(target, min(DRAWN, inputs)).values())
        each = max(0, inputs - drawn) // (2 if guided else 1)
        changed, read = plainly(target, each, seconds / 2, rng)
        breed = bred(target, max(1, inputs - drawn - changed), seconds / 2) if guided else 0
        total += drawn + changed + breed
        took = time.monotonic() - start
        print(f"{target.name:16}{drawn:12,}{changed:12,}{read / max(1, changed):8.0%}{breed:12,}{took:10.0f}", flush=True)
    print(f"{total:,} inputs in all: each was read, or refused with words. No fault was found.")


if __name__ == "__main__":
    main()
