"""The stages of a whole audit, each beside the least that it has to do: how much there would be to gain at most."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import unround
from bench.limits import bare_read, multiply_adds, peak
from bench.row import Row, Share, timed
from bench.scale import zipped
from unround.engines.messages import buffers_for
from unround.job.folder import RUN, AuditFolder
from unround.machine import processors
from unround.sums.compiled import forest_of

AREAS, LOOKED_AT, RUNS = 1_000, 40, 3
"""Areas of the audit, with rows of the short form; areas whose multiply-adds are counted; and how often all is done."""


def unzipped(file: Path) -> int:
    """Unpack a file, and do nothing with its bytes."""
    size = 0
    with zipfile.ZipFile(file) as packed:
        for name in packed.namelist():
            with packed.open(name) as bytes_of:
                while got := bytes_of.read(1 << 20):
                    size += len(got)
    return size


def messages(folder: AuditFolder, counts: np.ndarray) -> float:
    """Return how many multiply-adds the messages of an area consist of, under one prior, on average over some areas."""
    some = counts[:LOOKED_AT]
    found = folder.auditor.infer(some, np.zeros(len(some), dtype=np.bool_))
    forest, tight = forest_of(folder.auditor.model.compiled), found.probabilities.within
    holds = np.ones(len(folder.auditor.model.compiled.equations), dtype=np.bool_)
    needed = multiply_adds(forest, buffers_for(forest), tight.low.astype(np.int32), tight.high.astype(np.int32), holds)
    return needed / len(some)


def limits(file: Path, folder: AuditFolder) -> dict[str, tuple[str, Callable[[], float]]]:
    """Return for every stage what it has to do at least, in words, and what measures the time for that."""
    counts = folder.counts_of(np.arange(AREAS))
    needed = messages(folder, counts)
    written = [path for path in folder.path.iterdir() if path.is_file()]

    def copied(paths: list[Path]) -> None:
        with tempfile.TemporaryDirectory() as elsewhere:
            for path in paths:
                shutil.copy(path, elsewhere)

    def all_messages() -> float:
        return AREAS * needed / peak() / processors()

    return {
        "reading": ("unpacking the file", partial(timed, partial(unzipped, file))),
        "checking": ("copying all counts", partial(timed, counts.copy)),
        "preparing": ("multiply-adds alone, under one prior", all_messages),
        "auditing": ("multiply-adds alone, under one prior", all_messages),
        "writing": ("copying what was written", partial(timed, partial(copied, written))),
        "reporting": ("reading what was found", partial(timed, lambda: [bare_read(path) for path in written])),
    }


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    with tempfile.TemporaryDirectory() as work:
        made = unround.simulate(Path(work) / "census", areas=AREAS, rows="short", figures="published")
        file = zipped(made.files[0])
        pairs: dict[str, list[tuple[float, float]]] = {}
        words: dict[str, str] = {}
        for run in range(RUNS + 1):  # the first compiles
            out = Path(work) / f"audit-{run}"
            unround.audit(file, out)
            took = json.loads((out / RUN).read_text(encoding="utf-8"))["seconds"]
            for stage, (limit, least) in limits(file, AuditFolder.open(out)).items() if run else ():
                words[stage] = limit
                pairs.setdefault(stage, []).append((least(), took[stage]))
            shutil.rmtree(out)
        for stage, found in pairs.items():
            yield Share(f"audit of {AREAS:,} areas, short rows: {stage}", words[stage], found)


if __name__ == "__main__":
    for row in rows():
        print(row.to_json(), flush=True)
