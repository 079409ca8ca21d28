"""What all tests share: audits that are made once, and Hypothesis, which draws the same examples every time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from numba.core.dispatcher import Dispatcher
from research.__main__ import app as research

from tests import shared
from unround.cli import app, voice
from unround.cli import run as run_unround

settings.register_profile(
    "unround",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("unround")


LONG = (
    "test_audit.py::test_every_real_file_is_audited",
    "test_audit.py::test_known_oddities_are_contradictions",
    "test_audit.py::test_new_zealand_sex_splits_give_proofs",
    "test_audit.py::test_totals_of_sparse_sums_are_calibrated",
    "test_browser.py::test_everybody_can_use_every_page[dark",
    "test_browser.py::test_everybody_can_use_every_page[light-320",
    "test_calibrate.py::test_an_audit_and_a_calibration",
    "test_calibrate.py::test_groups_split_the_cells",
    "test_calibrate.py::test_noise_is_calibrated_too",
    "test_calibrate.py::test_the_fitted_prior_is_calibrated",
    "test_calibrate.py::test_the_flat_prior_is_not_and_the_score_tells",
    "test_check.py::test_canada_rounds_total_men_and_women_not_independently",
    "test_cluster.py::test_a_worker_is_lost",
    "test_cluster.py::test_certificates_keep_others_out",
    "test_cluster.py::test_without_workers",
    "test_compare.py::test_dropping_invariants",
    "test_compare.py::test_errors_are_what_mechanisms_promise",
    "test_compare.py::test_seeds_agree",
    "test_compare.py::test_the_papers_point",
    "test_compare.py::test_the_same_seed_gives_the_same_numbers",
    "test_multiway.py::test_solve_answers_tables[3 × 3 × 3",
    "test_docs.py::test_generated_pages_are_up_to_date",
    "test_figure_verdicts.py::test_canada",
    "test_figures_census.py::test_figures_from_true_counts_prove_nothing_false",
    "test_figures_census.py::test_verify_compares_figures_with_what_was_published",
    "test_hostile_files.py::test_a_million_columns",
    "test_hostile_text.py::test_a_table_with_a_deep_hierarchy",
    "test_keyed.py::test_the_sums_of_keys_and_estimates_add_up_like_the_counts[all-False",
    "test_keyed.py::test_the_sums_of_keys_and_estimates_add_up_like_the_counts[all-True]",
    "test_keys.py::test_no_independent_table_is_called_keyed",
    "test_keys_audit.py::test_areas_of_the_same_records",
    "test_keys_audit.py::test_counts_that_sums_cannot_tie_together",
    "test_keys_elsewhere.py::test_a_seed_publishes_the_same_table_again",
    "test_linked.py::test_ages_by_sex_are_near_long_chains",
    "test_linked.py::test_the_distributions_of_a_family",
    "test_linked_tables.py::test_a_whole_audit_of_nested_areas",
    "test_load.py",
    "test_nesting.py::test_new_zealand_in_one_command",
    "test_notebooks.py",
    "test_packaging.py::test_it_works_once_installed",
    "test_paper.py::test_ten_seeds_lie_inside_the_prediction_from_the_sizes",
    "test_paper.py::test_the_page_is_what_the_code_writes",
    "test_prior.py::test_claims_hold_on_worlds_that_no_prior_assumes",
    "test_protect.py::test_a_release_that_audits_as_declared",
    "test_rate_steps.py::test_a_rate_that_is_not_printed_yet",
    "test_rate_steps.py::test_without_the_truth_plausible_counts_are_drawn",
    "test_read_census.py::test_the_real_areas_of_censusmapper",
    "test_read_statsnz.py::test_real_sums",
    "test_read_statsnz.py::test_real_tables[2013-individual-sa2]",
    "test_reconcile.py::test_the_error_is_less_in_worlds_that_no_prior_of_ours_assumes[deep-tree",
    "test_reconcile.py::test_the_error_is_less_in_worlds_that_no_prior_of_ours_assumes[one-even-part",
    "test_reconstruct.py::test_every_verified_claim_is_true_in_ten_thousand_areas",
    "test_reconstruct.py::test_memory_does_not_grow_with_areas",
    "test_report_browser.py::test_everybody_can_read_it",
    "test_resume.py::test_a_full_disk_stops_it_and_what_is_done_is_kept",
    "test_resume.py::test_killed_again_and_again",
    "test_resume.py::test_killed_at_the_last_step_at_reading_and_when_the_disk_is_full",
    "test_resume.py::test_where_what_was_read_is_damaged_it_starts_anew",
    "test_review.py::test_a_review_of_what_was_repaired_says_publish[ages-over-sex.ods",
    "test_review.py::test_draws_of_a_three_way_table_are_moved_until_all_sums_hold",
    "test_review.py::test_hiding_cells_and_their_complements_is_enough",
    "test_review.py::test_the_decision_agrees_with_the_policy[hopeless-2]",
    "test_review.py::test_the_decision_agrees_with_the_policy[large-2]",
    "test_review.py::test_the_decision_agrees_with_the_policy[large-3]",
    "test_review.py::test_the_decision_agrees_with_the_policy[large-4]",
    "test_review.py::test_the_decision_agrees_with_the_policy[sparse-2]",
    "test_review.py::test_the_decision_agrees_with_the_policy[sparse-3]",
    "test_review.py::test_the_decision_agrees_with_the_policy[sparse-4]",
    "test_review.py::test_the_decision_agrees_with_the_policy[sparse-5]",
    "test_review.py::test_the_decision_agrees_with_the_policy[together-2]",
    "test_review.py::test_the_decision_agrees_with_the_policy[wrong-2]",
    "test_review.py::test_the_same_numbers_as_before",
    "test_review.py::test_the_same_seed_gives_the_same_review",
    "test_structure.py::test_canada_has_five_and_ten_and_few_slips",
    "test_structure.py::test_new_zealand_rounds_alike",
    "test_structure.py::test_nothing_false_is_kept[all-150]",
    "test_suspects.py::test_suspects_do_not_depend_on_blocks",
    "test_tables.py::test_the_real_sums_are_documented_and_a_table_has_one_mechanism",
    "test_tree.py::test_one_count_published_very_often",
    "test_website.py",
)
"""What takes longest, and what compares documents with the program: `make test-all` runs these as well."""


@pytest.fixture(scope="session")
def census_data() -> Path:
    """Return the folder of real releases; skip where there is none."""
    folder = Path(os.environ.get("UNROUND_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real releases at {folder}; set UNROUND_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def foreign_truths() -> Path:
    """Return the folder of worlds with a truth that nothing here has drawn; skip where there is none."""
    folder = Path(os.environ.get("UNROUND_TRUTHS", Path(__file__).parents[2] / "shared" / "truths"))
    if not (folder / "foreign.py").is_file():
        pytest.skip(f"no worlds of others at {folder}; set UNROUND_TRUTHS to their folder")
    return folder


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]

SCRIPTS = ("calibrate", "paper", "world", "census", "variability")
"""What `python -m research` runs, not `unround`."""


def run_in(folder: Path, *arguments: str) -> int:
    """Run `unround` in a folder, in this process; return its exit code."""
    output = io.StringIO()
    with (
        patch.object(sys, "argv", ["unround", *arguments]),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            run_unround()
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 0
    return 0


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs `unround` with arguments, in this process."""

    def call(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["unround", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(voice, "EVERY", 3600.0)  # on a busy machine, signs of life would come between
        code = 0
        try:
            run_unround(research if arguments[:1] in (("calibrate",), ("paper",), ("world",), ("variability",)) else app)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def _root(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of this test run, which parallel workers share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have each kernel compiled by one of the parallel workers: the others wait, and load what it has kept.

    Otherwise all would compile the same kernels at the same time, a minute and more each. A kernel may wait for those that
    it calls, never the other way round, and one thread of a worker compiles at a time: so that no two wait for each other.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    root, one_thread, compile_now = _root(tmp_path_factory), threading.RLock(), Dispatcher.compile

    def compile_or_wait(self: Dispatcher, signature: object) -> object:
        if getattr(self._cache, "_cache_file", None) is None:  # it is not kept: nobody else can load it
            return compile_now(self, signature)
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        with one_thread, (root / f"compiling-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_now(self, signature)

    with patch.object(Dispatcher, "compile", compile_or_wait):
        yield


MakeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeOnce]:
    """Return a function that makes a folder once per test run, whichever of the parallel workers needs it first.

    Tests only read these folders, and copy what they want to change: the run fails if one was changed.
    """
    root = _root(tmp_path_factory)
    used: dict[Path, str] = {}

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, finished = root / f"shared-{name}", root / f"shared-{name}.digest"
        with (root / f"shared-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not finished.exists():
                shutil.rmtree(folder, ignore_errors=True)  # what a worker that failed left of it
                folder.mkdir()
                fill(folder)
                finished.write_text(_digest(folder))
        used[folder] = finished.read_text()
        return folder

    yield make
    changed = [folder.name for folder, digest in used.items() if _digest(folder) != digest]
    assert not changed, f"a test changed {', '.join(changed)}, which other tests read too"


def _digest(folder: Path) -> str:
    """Return what changes when any file in the folder does."""
    contents = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        contents.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            contents.update(path.read_bytes())
    return contents.hexdigest()


@pytest.fixture(scope="session")
def simulated_census(make_once: MakeOnce) -> Path:
    """Return a simulated census of 600 areas, ages by sex, in Statistics Canada's format."""
    return make_once("census", shared.simulate_census)


@pytest.fixture(scope="session")
def audited_census(make_once: MakeOnce, simulated_census: Path) -> Path:
    """Return its audit with estimates and pages, scored against the truth."""
    return make_once("audited", lambda folder: shared.audit_census(simulated_census, folder)) / "audit"


@pytest.fixture(scope="session")
def survey_audit(make_once: MakeOnce) -> Path:
    """Return the audit of the documentation's example, with its pages."""
    return make_once("survey", shared.audit_survey) / "audit"


@pytest.fixture(scope="session")
def hostile_audit(make_once: MakeOnce) -> Path:
    """Return the audit of a small table whose names would break a careless page."""
    return make_once("hostile", shared.audit_hostile_survey) / "audit"


@pytest.fixture(scope="session")
def census_audit(make_once: MakeOnce) -> Path:
    """Return the audit of a simulated census of 120 areas, as the tests of the explorer know it."""
    return make_once("explored", shared.audit_small_census) / "audit"


@pytest.fixture(scope="session")
def mapped_audit(make_once: MakeOnce) -> Path:
    """Return the audit of a small simulated census with boundaries; the census lies beside it."""
    return make_once("mapped", shared.audit_mapped_census) / "audit"


FIRST = (
    "docs",
    "hostile_text",
    "prior",
    "review",
    "audit",
    "browser",
    "resume",
    "compare",
    "calibrate",
    "cluster",
    "load",
    "report_browser",
    "keys_audit",
    "protect",
    "linked",
    "check",
    "nesting",
)
"""Files that take longest. They begin, so that at the end no processor waits long for another; those that run `unround` in
processes of its own come after those that compile its kernels."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark long tests, by where their names begin, and let long files begin."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(LONG):
            item.add_marker(pytest.mark.long)
    places = {f"test_{name}": place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(FIRST)))
