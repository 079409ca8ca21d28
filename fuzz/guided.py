"""Inputs bred by atheris: those that reach new code are kept and changed further. A process a target, for it never returns.

python -m fuzz.guided equations 100000 60     a target, so many inputs at most, so many seconds at most
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

WATCHED = (
    "unround.tables", "unround.equations", "unround.mechanisms", "unround.structure", "unround.system", "unround.web",
    "unround.job.folder", "unround.job.verify", "unround.audits.keys", "unround.reviews",
    "unround.protection.key_sums", "unround.simulation.counts", "unround.api", "unround.small_files",
)  # fmt: skip
MEGABYTES = 3_000
"""Of memory, all in all; the libraries take a few hundred."""
SECONDS = 60
"""For one input, by the clock."""


def main(name: str, runs: str, seconds: str) -> None:
    """Breed inputs for a target until something breaks, or the time is over."""
    import atheris

    # What is compiled must not be watched, for then it no longer compiles.
    import unround.audits
    import unround.explanation.cell
    import unround.tables.line_scan  # noqa: F401

    with atheris.instrument_imports(include=list(WATCHED)):
        from fuzz import targets
        from fuzz.oracle import judged
        from fuzz.target import LONGEST, PLACE

        target = targets.BY_NAME[name]
        for seed in targets.seeds(target):  # what is imported late is imported now, to be watched
            judged(target.run, seed)

    def one(data: bytes) -> None:
        judged(target.run, data)

    place = Path(os.environ.get(PLACE) or tempfile.mkdtemp(prefix="unround-breed-"))
    folder = place / "corpus"
    folder.mkdir()
    for number, seed in enumerate(targets.seeds(target)):
        (folder / str(number)).write_bytes(seed)
    words = folder.with_suffix(".words")
    words.write_text("".join(f'"{"".join(f"{chr(92)}x{byte:02x}" for byte in word.encode())}"\n' for word in target.words))
    options = (
        f"-runs={runs}", f"-max_total_time={seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={LONGEST}", f"-dict={words}", f"-artifact_prefix={Path.cwd() / f'fuzz-{name}-'}", "-print_final_stats=1",
    )  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(folder)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:4])
