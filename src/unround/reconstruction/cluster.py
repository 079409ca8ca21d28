"""Blocks of a task done by the workers of a Dask cluster, as those of an audit are."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from unround.audits.cluster import work_on_cluster
from unround.errors import InternalError
from unround.reconstruction.inquiry import Elsewhere, Task


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder that a task lies in, which all workers see under the same path."""

    folder: Path


def on_cluster(address: str) -> Elsewhere:
    """Return what has blocks done by the cluster of a scheduler."""

    def done_there(task: Task, numbers: Sequence[int], step: Callable[[int], None]) -> None:
        if not numbers:
            return
        folder = task.parts.resolve()
        # Dask itself sends work about in this form; the file spares every block from carrying the whole task along.
        (folder / f"{task.name}.task").write_bytes(pickle.dumps(task))
        try:
            work_on_cluster(address, TaskFolder(folder), task.name, numbers, step, work_on_task)
        finally:
            (folder / f"{task.name}.task").unlink()
        if not all(task.path(number).exists() for number in numbers):
            raise InternalError("some blocks of areas were not reconstructed")

    return done_there


@lru_cache(maxsize=1)
def _opened(folder: str, key: str) -> Task:
    task = pickle.loads((Path(folder) / f"{key.rpartition('-')[0]}.task").read_bytes())
    assert isinstance(task, Task)
    return Task(task.inquiry, task.question, task.areas, Path(folder), task.keep_guesses)


def work_on_task(folder: str, key: str, number: int) -> int:
    """Do one block of a task; what workers elsewhere are sent. The key begins with the name of the task."""
    return _opened(folder, key).work(number)
