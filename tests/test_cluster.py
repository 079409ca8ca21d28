"""An audit on a Dask cluster: a real scheduler and two workers on this machine, one of them killed half-way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_resume import FOLDER, contents
from unround.audits.work import PARTS
from unround.simulation import simulate

pytest.importorskip("distributed", reason="the extra unround[cluster] is not installed")

RELEASE = "census/98-401-X2021006_English_CSV_data.csv"
STARTING = 60


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file), "--no-dashboard")
        self.workers: list[subprocess.Popen[bytes]] = []
        until = time.monotonic() + STARTING
        while not self.file.exists():
            assert time.monotonic() < until, "the scheduler does not start"
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address: str = json.loads(self.file.read_text())["address"]

    def _start(self, *command: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=self.folder,
            env=os.environ | (env or {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add_worker(self) -> None:
        """Start a worker."""
        number = len(self.workers)
        command = ("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"worker{number}")
        self.workers.append(self._start(*command, "--local-directory", str(self.folder / f"local{number}")))

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("cluster")
    simulate(where / "census", areas=160, rows="age", seed=6)
    return where


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


def _audit(where: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "unround", "audit", RELEASE, "-o", "out", "--block", "8", *more]
    return subprocess.Popen(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_worker_is_lost_and_the_result_is_that_of_one_machine(place: Path, cluster: Cluster) -> None:
    cluster.add_worker()
    cluster.add_worker()
    parts = place / "out" / FOLDER / PARTS
    process = _audit(place, "--cluster", cluster.address)
    while process.poll() is None and (not parts.exists() or len(list(parts.glob("0*"))) < 4):
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()[1].decode()
    cluster.workers[0].send_signal(signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == 0, told.decode()
    run = json.loads((place / "out" / "run.json").read_text())
    assert run["cluster"] == cluster.address
    assert run["blocks"] >= 10
    distributed = contents(place / "out")
    shutil.rmtree(place / "out")
    process = _audit(place)
    process.communicate()
    alone = contents(place / "out")
    shutil.rmtree(place / "out")
    # What was typed is in the summary, and nothing else may differ.
    summaries = [json.loads(files.pop("summary.json")) for files in (distributed, alone)]
    commands = [summary.pop("command") for summary in summaries]
    assert "--cluster" in commands[0]
    assert summaries[0] == summaries[1]
    assert distributed.keys() == alone.keys()
    assert {name for name in alone if distributed[name] != alone[name]} <= {"report.html", "report-public.html"}


def test_without_workers_or_scheduler_it_says_what_to_do(place: Path, cluster: Cluster) -> None:
    process = _audit(place, "--cluster", "tcp://127.0.0.1:9", "--threshold", "0.7")
    _, told = process.communicate()
    assert process.returncode == 2
    assert b"no Dask scheduler answers at tcp://127.0.0.1:9" in told
    assert b"dask scheduler" in told
    assert not (place / "out").exists()
    process = _audit(place, "--cluster", cluster.address)
    _, told = process.communicate()
    assert process.returncode == 2
    assert b"the cluster has no workers" in told
    assert not (place / "out").exists()
