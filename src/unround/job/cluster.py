"""Who does the blocks: the processors of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround._version import __version__
from unround.errors import InputError
from unround.job.work import Job, work_on
from unround.machine import threads
from unround.output import KEPT, Stopped

if TYPE_CHECKING:
    from distributed import Client

AT_ONCE = 2
"""Blocks in work on this machine: one is inferred, by all processors, while another is written down."""

PATIENCE = "10s"
"""How long to try to reach a scheduler."""

Done = Callable[[int], None]
"""Is told of every block that is done how many areas it has."""


def work_here(job: Job, numbers: Sequence[int], done: Done) -> None:
    """Do blocks on this machine; stop at the first that fails."""
    ahead = iter(numbers)
    with threads(AT_ONCE) as pool:
        running = {pool.submit(job.work, number) for number in islice(ahead, AT_ONCE)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for one in finished:
                done(one.result())
                running |= {pool.submit(job.work, number) for number in islice(ahead, 1)}


def work_on_cluster(address: str, job: Job, key: str, numbers: Sequence[int], done: Done) -> None:
    """Have blocks done by the workers of a Dask cluster; those of a worker that is lost are given to others.

    Raises `InputError` if there is no such cluster; `try_cluster` finds out before there is anything to do. Raises
    `Stopped` if a block failed on the cluster.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    with cluster(address) as client:
        folder = job.folder.resolve()
        opened = f"{key}-{uuid.uuid4().hex}"  # a worker must not take the job for one that it had open before
        futures = client.map(work_on, [str(folder)] * len(numbers), [opened] * len(numbers), numbers, pure=False, retries=1)
        try:
            for future in as_completed(futures, loop=client.loop):
                done(future.result())
        except KilledWorker as lost:
            raise Stopped(
                f"several workers in turn died while working on the same block of areas ({lost.task}): give them more "
                f"memory, or use smaller blocks (--block). {KEPT}"
            ) from None
        except (OSError, CancelledError) as problem:  # futures are cancelled where the scheduler is lost
            raise Stopped(f"the cluster {address} stopped working: {problem}. {KEPT}") from problem
        finally:
            client.cancel(futures)


@contextmanager
def cluster(address: str) -> Iterator[Client]:
    """Connect to a scheduler."""
    try:
        from distributed import Client, Security
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is an extra: pip install 'unround[cluster]' here and on all workers."
        ) from None
    if address.startswith("tls://") and Security().get_connection_args("client").get("ssl_context") is None:
        raise InputError(
            f"{address} asks for certificates, and Dask's configuration names none: set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the others; docs/scale.md has an example."
        )
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as problem:
        raise InputError(
            f"no Dask scheduler answers at {address}: {problem}. `dask scheduler` starts one and prints its address, such "
            "as tcp://scheduler:8786; `dask worker ADDRESS` starts a worker."
        ) from None
    with _silence(), client:
        yield client


@contextmanager
def _silence() -> Iterator[None]:
    """Keep Dask from printing tracebacks of its own where a scheduler or a worker is lost: we say what happened."""
    logs = [
        logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.core", "tornado", "asyncio")
    ]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def try_cluster(address: str, folder: Path) -> None:
    """See that there are workers, that they run this version, and that they see a folder: before anybody has waited long."""
    with cluster(address) as client:
        _try_workers(client, folder.resolve())


def _try_workers(client: Client, folder: Path) -> None:
    if not client.scheduler_info()["workers"]:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError("the cluster has no workers: start some with `dask worker ADDRESS`.") from None
    token = folder / f"seen-{uuid.uuid4().hex}"
    token.touch()
    try:
        told: dict[str, Any] = client.run(_look, str(token), on_error="return")
    finally:
        token.unlink()
    for worker, seen in told.items():
        if isinstance(seen, ModuleNotFoundError):
            raise InputError(f"the worker {worker} does not have unround: install unround=={__version__} there.")
        if isinstance(seen, BaseException):
            raise InputError(f"the worker {worker} cannot take part: {seen!r}.")
        version, sees = seen
        if version != __version__:
            raise InputError(f"the worker {worker} has unround {version}, and this is {__version__}: they must be the same.")
        if not sees:
            raise InputError(
                f"the worker {worker} cannot read and write {folder}: results must go into storage that all workers see "
                "under the same path. Choose another folder with -o."
            )


def _look(token: str) -> tuple[str, bool]:
    """Say, on a worker, which version runs there and whether it sees a file that was just made, and may write beside it."""
    path = Path(token)
    return __version__, path.exists() and os.access(path.parent, os.W_OK)
