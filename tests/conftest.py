"""What all tests share: Hypothesis draws the same examples every time, and writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
