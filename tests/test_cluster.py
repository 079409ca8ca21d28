"""An audit on a Dask cluster: a real scheduler and two workers on this machine, one of them killed half-way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import Run, run_in
from tests.test_resume import FOLDER, contents
from unround import simulate
from unround.job import cluster as audits_cluster
from unround.job.work import PARTS

dask = pytest.importorskip("dask", reason="the extra unround[cluster] is not installed")
distributed = pytest.importorskip("distributed", reason="the extra unround[cluster] is not installed")

COMMAND = ("audit", "census/98-401-X2021006_English_CSV_data.csv", "-o", "out", "--block", "8")
QUICKLY = (*COMMAND, "--prior", "flat")
STARTING = 600


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path, protocol: str = "tcp") -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        options = ("--port", "0", "--scheduler-file", str(self.file), "--no-dashboard", "--protocol", protocol)
        self.scheduler = self._start("scheduler", *options)
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            self.address = self._address()
        except BaseException:
            self.close()
            raise

    def _address(self) -> str:
        """Wait until the scheduler has written where it is; its file is there before it is whole."""
        until = time.monotonic() + STARTING
        while time.monotonic() < until:
            assert self.scheduler.poll() is None, "the scheduler does not start"
            with suppress(FileNotFoundError, json.JSONDecodeError):
                return str(json.loads(self.file.read_text())["address"])
            time.sleep(0.05)
        raise AssertionError("the scheduler does not start")

    def _start(self, *command: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=self.folder,
            env=os.environ | (env or {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add_worker(self) -> None:
        """Start a worker, and wait until the scheduler knows it, however long that takes."""
        number = len(self.workers)
        command = ("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"worker{number}")
        self.workers.append(self._start(*command, "--local-directory", str(self.folder / f"local{number}")))
        with distributed.Client(self.address, timeout=STARTING, set_as_default=False) as client:
            client.wait_for_workers(number + 1, timeout=STARTING)

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    simulate(tmp_path / "census", areas=160, rows="age", seed=6)
    return tmp_path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


@contextmanager
def killed_on_the_way(process: subprocess.Popen[bytes], job: Path) -> Iterator[None]:
    """Kill a worker or the scheduler as soon as two blocks of a job are done; it must come to that."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            if len(list((job / PARTS).glob("0*"))) >= 2:
                process.send_signal(signal.SIGKILL)
                return

    watching = threading.Thread(target=watch)
    watching.start()
    yield
    over.set()
    watching.join()
    assert process.wait(STARTING) == -signal.SIGKILL


def test_a_worker_is_lost_and_the_result_is_that_of_one_machine(place: Path, cluster: Cluster) -> None:
    cluster.add_worker()
    cluster.add_worker()
    out = place / "out"
    with killed_on_the_way(cluster.workers[0], out / FOLDER):
        assert run_in(place, *COMMAND, "--cluster", cluster.address) == 0
    run = json.loads((out / "run.json").read_text())
    assert run["cluster"] == cluster.address
    assert run["blocks"] >= 10
    distributed = contents(out)
    shutil.rmtree(out)
    assert run_in(place, *COMMAND) == 0
    alone = contents(out)
    # What was typed is in the summary, and nothing else may differ.
    summaries = [json.loads(files.pop("summary.json")) for files in (distributed, alone)]
    commands = [summary.pop("command") for summary in summaries]
    for summary in summaries:  # the reports show what was typed, too
        del summary["seal"], summary["files"]["report.html"], summary["files"]["report-public.html"]
    assert "--cluster" in commands[0]
    assert summaries[0] == summaries[1]
    assert distributed.keys() == alone.keys()
    assert {name for name in alone if distributed[name] != alone[name]} <= {"report.html", "report-public.html"}


def test_without_workers_or_scheduler_it_says_what_to_do(
    run: Run, place: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(audits_cluster, "PATIENCE", "1s")
    ran = run(*COMMAND, "--cluster", "tcp://127.0.0.1:9", "--threshold", "0.7")
    assert ran.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in ran.err
    assert "dask scheduler" in ran.err
    assert not (place / "out").exists()
    monkeypatch.setattr(audits_cluster, "PATIENCE", "5s")  # long enough for a scheduler on a busy machine to answer
    ran = run(*COMMAND, "--cluster", cluster.address)
    assert ran.code == 2
    assert "the cluster has no workers" in ran.err
    assert not (place / "out").exists()


def test_a_scheduler_that_dies_ends_it_with_words_and_the_work_is_kept(
    run: Run, place: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(audits_cluster, "PATIENCE", f"{STARTING}s")
    cluster.add_worker()
    with killed_on_the_way(cluster.scheduler, place / "out" / FOLDER):
        ended = run(*QUICKLY, "--cluster", cluster.address)
    assert ended.code == 2, ended.err
    assert "run the same command again to continue" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    # The log of the cluster is not for the reader of an audit.
    assert not [record.getMessage() for record in caplog.records if record.name.startswith(("distributed", "tornado"))]
    assert run_in(place, *QUICKLY) == 0


def test_certificates_keep_others_out(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates with")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True)
    comm = "DASK_DISTRIBUTED__COMM__"
    settings = {f"{comm}REQUIRE_ENCRYPTION": "true", f"{comm}TLS__CA_FILE": str(certificate)}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings |= {f"{comm}TLS__{role}__CERT": str(certificate), f"{comm}TLS__{role}__KEY": str(key)}
    with monkeypatch.context() as patched:
        for name, value in settings.items():
            patched.setenv(name, value)
        dask.config.refresh()  # for the client of this process, which asks the scheduler for its workers
        cluster = Cluster(tmp_path, "tls")
        try:
            assert cluster.address.startswith("tls://")
            cluster.add_worker()
            command = [sys.executable, "-m", "unround", *QUICKLY, "--cluster", cluster.address]
            subprocess.run(command, cwd=place, check=True, capture_output=True)
            stranger = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
            again = [*command[:-2], "--threshold", "0.7", *command[-2:]]
            refused = subprocess.run(again, cwd=place, check=False, capture_output=True, text=True, env=stranger)
        finally:
            cluster.close()
    dask.config.refresh()
    assert json.loads((place / "out" / "run.json").read_text())["cluster"] == cluster.address
    assert refused.returncode == 2
    assert "asks for certificates, and Dask's configuration names none" in refused.stderr
    assert "Traceback" not in refused.stderr
