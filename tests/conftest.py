"""What all tests share: Hypothesis draws the same examples every time, and writes nothing."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from unround.cli import run as run_unround

settings.register_profile(
    "unround",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("unround")


@pytest.fixture(scope="session")
def census_data() -> Path:
    """Return the folder of real releases; skip where there is none."""
    folder = Path(os.environ.get("UNROUND_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real releases at {folder}; set UNROUND_DATA to their folder")
    return folder


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs `unround` with arguments, in this process."""

    def call(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["unround", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("COLUMNS", "120")
        code = 0
        try:
            run_unround()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def hostile_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the audit of a small table whose names would break a careless page."""
    from tests.explorer import survey

    return survey(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="session")
def census_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the audit of a simulated census."""
    from tests.explorer import census

    return census(tmp_path_factory.mktemp("simulated"))
