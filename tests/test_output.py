"""Results are written whole or not at all, replace nothing but older ones, and survive being killed at any moment."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import unround
from unround.api import write_result
from unround.errors import InputError
from unround.job.work import safe_for_spreadsheets
from unround.output import (
    KEPT,
    LOCK,
    MOVING,
    NotWritten,
    OutputFolder,
    Stopped,
    array_on_disk,
    output_folder,
    write_whole,
)
from unround.show import page
from unround.show.parts import Document, Text
from unround.small_files import SpecialFile

NAMES = ("note", "part", "folder", "seal")
"""What a result consists of here; `folder` is one, and an older result may have an `extra` file."""


def older(out: Path) -> list[str]:
    there = [name for name in (*NAMES, "extra") if (out / name).exists()]
    if there and not (out / "note").exists():
        raise InputError(f"{there[0]} is not ours")
    return [*NAMES, "extra"]


def make(folder: Path, text: str) -> None:
    for name in NAMES:
        if name == "folder":
            (folder / name).mkdir(parents=True)
            (folder / name / "inside").write_text(text)
        else:
            (folder / name).write_text(text)


def write(out: Path, text: str) -> None:
    with output_folder(out, "try", older) as output:
        make(output.done, text)
        output.publish(NAMES)


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


WHOLE = {text: dict.fromkeys(("folder/inside", "note", "part", "seal"), text) for text in ("old", "new")}
MOVES = 9
"""Four older files and the extra one are moved away, four new ones into place."""


def moves(monkeypatch: pytest.MonkeyPatch, stop_at: int, stop: BaseException | None) -> list[str]:
    """Count what is moved out or in; at one of these moves, stop."""
    rename, seen = Path.replace, list[str]()

    def replace(path: Path, target: Path) -> Path:
        if path.parent.name == "done" or Path(target).parent.name == "older":
            seen.append(path.name)
            if len(seen) == stop_at and stop is not None:
                raise stop
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    return seen


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with an older result that has one file more, and something of the user's."""
    write(tmp_path / "out", "old")
    (tmp_path / "out" / "extra").write_text("old")
    (tmp_path / "out" / "mine").write_text("mine")
    return tmp_path / "out"


def test_an_older_result_is_replaced_as_a_whole(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = moves(monkeypatch, 0, None)
    write(out, "new")
    assert contents(out) == WHOLE["new"] | {"mine": "mine"}
    assert seen == ["seal", "folder", "part", "note", "extra", *NAMES]
    assert len(seen) == MOVES


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), PermissionError("no"), SystemExit(143)], ids=repr)
@pytest.mark.parametrize("at", range(1, MOVES + 1))
def test_an_older_result_comes_back_whenever_moving_fails(
    out: Path, monkeypatch: pytest.MonkeyPatch, at: int, stop: BaseException
) -> None:
    before = contents(out)
    with monkeypatch.context() as patch:
        moves(patch, at, stop)
        with pytest.raises((type(stop), Stopped)):
            write(out, "new")
    assert contents(out) == before


def test_killed_while_moving_nothing_looks_complete_and_the_next_run_completes_it(out: Path) -> None:
    """At every move; one process forks those that are killed, because each start would take a second."""
    places = [Path(shutil.copytree(out, out.with_name(f"killed{at}"))) for at in range(1, MOVES + 1)]
    code = f"""
import os, signal
from pathlib import Path
from tests.test_output import write
rename, seen = Path.replace, []
def replace(path, target):
    if path.parent.name == "done" or Path(target).parent.name == "older":
        seen.append(path.name)
        if len(seen) == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)
Path.replace = replace
for at, place in enumerate({[str(place) for place in places]}, start=1):
    child = os.fork()
    if child == 0:
        write(Path(place), "new")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
"""
    root = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    for place in places:
        left = {name: text for name, text in contents(place).items() if not name.startswith(".")}
        if "seal" in left:
            assert left == WHOLE["old"] | {"extra": "old", "mine": "mine"}, place
        with pytest.raises(RuntimeError), output_folder(place, "try", older):
            raise RuntimeError  # the next run fails for a reason of its own
        assert contents(place) == WHOLE["new"] | {"mine": "mine"}, place


def test_a_failure_while_the_older_result_comes_back_loses_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if (path.parent.name, path.name) in (("done", "seal"), ("older", "part")):
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            write(out, "new")
    assert (out / ".try" / MOVING).exists()
    assert not (out / "seal").exists()
    write(out, "newer")
    assert set(contents(out).values()) == {"newer", "mine"}


def test_what_is_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "seal").write_text("another's")
    with pytest.raises(InputError, match="seal is not ours"):
        write(tmp_path, "new")
    assert contents(tmp_path) == {"seal": "another's"}


def test_what_appears_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    with output_folder(tmp_path, "try", older) as output:
        make(output.done, "new")
        (tmp_path / "part").write_text("another's")
        with pytest.raises(InputError, match="part is not ours"):
            output.publish(NAMES)
    assert contents(tmp_path) == {"part": "another's"}


def _fail(out: Path, failure: BaseException) -> None:
    with output_folder(out, "try", older) as output:
        make(output.done, "half")
        raise failure


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), RuntimeError(), InputError("no"), SystemExit()], ids=repr)
def test_a_failure_leaves_nothing_behind(tmp_path: Path, failure: BaseException) -> None:
    with pytest.raises(type(failure)):
        _fail(tmp_path / "deep" / "out", failure)
    assert list(tmp_path.iterdir()) == []


def _leave(out: Path, stop: BaseException, key: str = "question", checkpoint: bool = True) -> None:
    with output_folder(out, "try", older, key=key, checkpoint="ready") as output:
        (output.work / "half").write_text("half")
        if checkpoint:
            (output.work / "ready").write_text("")
        raise stop


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), InputError("no"), MemoryError(), SystemExit(143)], ids=repr)
def test_work_is_kept_for_the_same_question_alone(tmp_path: Path, stop: BaseException) -> None:
    for again, kept in (("question", True), ("another", False), ("", False)):
        with pytest.raises(type(stop)) as stopped:
            _leave(tmp_path / "out", stop)
        if isinstance(stop, KeyboardInterrupt):
            assert KEPT in str(stopped.value)
        with output_folder(tmp_path / "out", "try", older, key=again, checkpoint="ready") as output:
            assert (output.work / "half").exists() == kept
            assert output.done.is_dir()
        assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("stop", "key", "checkpoint"),
    [(KeyboardInterrupt(), "", True), (KeyboardInterrupt(), "question", False), (RuntimeError(), "question", True)],
)
def test_work_is_not_kept_without_key_or_checkpoint_or_after_a_fault(
    tmp_path: Path, stop: BaseException, key: str, checkpoint: bool
) -> None:
    with pytest.raises(type(stop)) as stopped:
        _leave(tmp_path / "out", stop, key, checkpoint)
    assert KEPT not in str(stopped.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("key", "kept"), [("question", True), ("", False)])
def test_a_full_disk_is_said_and_work_is_called_kept_only_where_it_is(tmp_path: Path, key: str, kept: bool) -> None:
    with pytest.raises(Stopped, match=r"`unround try` cannot continue writing to .*out: No space left") as stopped:
        _leave(tmp_path / "out", OSError(28, "No space left on device"), key)
    assert (KEPT in str(stopped.value)) == kept == (tmp_path / "out").exists()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[OutputFolder]:
    with output_folder(tmp_path / "out", "try", older) as output:
        yield output


def test_two_runs_into_one_folder_do_not_mix(held: OutputFolder) -> None:
    busy = r"another `unround try` is writing to .*out: wait until it has finished, or choose"
    with pytest.raises(InputError, match=busy):
        write(held.path, "new")
    assert (held.work / LOCK).exists()
    assert held.done.is_dir()


def test_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"cannot write to .*file: it is a file, not a folder. Choose another folder"):
        write(tmp_path / "file", "new")


def test_no_field_or_header_is_a_formula_to_a_spreadsheet() -> None:
    """Also where lines are split at semicolons, and where the sign is the wide one of Chinese and Japanese keyboards."""
    frame = pl.LazyFrame(
        {
            "=cmd()": ["plain", "=1+1", "  =1+1", "＝1+1", "-5", "\tx", "\nx"],
            "a;=b": ["a;=1", "a; @x", "a;b", None, "", ";", "+"],
        }
    )
    safe = safe_for_spreadsheets(frame).collect()
    assert safe.columns == ["'=cmd()", "a;'=b"]
    assert safe["'=cmd()"].to_list() == ["plain", "'=1+1", "'  =1+1", "'＝1+1", "'-5", "'\tx", "'\nx"]
    assert safe["a;'=b"].to_list() == ["a;'=1", "a;' @x", "a;b", None, "", ";", "'+"]
    assert safe_for_spreadsheets(pl.LazyFrame({"n": [-1]})).collect()["n"].to_list() == [-1]


# -- nothing outside of the folder, and nothing that is read -------------------------------------------------------------


def outside(tmp_path: Path) -> Path:
    """Return somebody's folder beside ours, with a file that nobody may touch."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    return folder


@pytest.mark.parametrize(
    "told",
    [
        '{"new": [], "leaving": {"../beside/thesis.txt": [1, 2, 3]}}',
        '{"new": ["../beside/thesis.txt"], "leaving": {}}',
        '{"new": [".."], "leaving": {}}',
        '{"new": [], "leaving": ["thesis.txt"]}',
        '{"new": [], "leaving": {"thesis.txt": 3}}',
        '{"new": 1, "leaving": {}}',
        "[]",
        "{",
        "[" * 100_000,
    ],
)
def test_a_list_of_moves_names_nothing_outside_of_the_folder(tmp_path: Path, told: str) -> None:
    beside, work = outside(tmp_path), tmp_path / "out" / ".try"
    work.mkdir(parents=True)
    (work / "done").mkdir()
    (work / "moving.json").write_text(told)
    with pytest.raises(InputError, match=r"moving\.json, which an earlier run left, is damaged: remove the folder"):
        write(tmp_path / "out", "new")
    assert contents(beside) == {"thesis.txt": "years of work"}


@pytest.mark.parametrize("told", ['{"new": [], "leaving": {"mine": [1, 4, 3]}}', '{"new": ["mine"], "leaving": {}}'])
def test_nor_anything_inside_that_is_not_what_the_run_was_about_to_replace(tmp_path: Path, told: str) -> None:
    work = tmp_path / ".try"
    (work / "done").mkdir(parents=True)
    (work / "done" / "mine").write_text("theirs")
    (tmp_path / "mine").write_text("years of work")
    (work / "moving.json").write_text(told)
    with pytest.raises(InputError, match="mine was put there since a run was stopped that would have replaced it"):
        write(tmp_path, "new")
    assert (tmp_path / "mine").read_text() == "years of work"


def test_a_new_result_replaces_no_file_that_is_no_older_one(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("years of work")
    with output_folder(tmp_path, "try", older) as output:
        (output.done / "mine").write_text("new")
        with pytest.raises(InputError, match="already contains mine, which is not an older result"):
            output.publish(["mine"])
    assert contents(tmp_path) == {"mine": "years of work"}


def test_what_a_summary_calls_a_result_is_not_replaced_unless_it_is(tmp_path: Path) -> None:
    table = pl.DataFrame({"town": ["a", "b"], "all": [20, 15], "men": [10, 10], "women": [5, 10]})
    table.write_csv(tmp_path / "table.csv")
    out = tmp_path / "out"
    unround.reconcile(tmp_path / "table.csv", out, mechanism="rounding:5")
    (out / "table.csv").write_text("years of work")
    (out / "thesis.txt").write_text("years of work")
    told = (out / "summary.json").read_text().replace('"hashes": {', '"hashes": {"thesis.txt": "0", "../table.csv": "0", ')
    (out / "summary.json").write_text(told)
    with pytest.raises(InputError, match=r"already contains table\.csv, which is not an older result"):
        unround.reconcile(tmp_path / "table.csv", out, mechanism="rounding:5")
    assert {(out / name).read_text() for name in ("table.csv", "thesis.txt")} == {"years of work"}
    (out / "summary.json").write_text("{")
    with pytest.raises(InputError, match=r"no summary\.json written by"):
        unround.reconcile(tmp_path / "table.csv", out, mechanism="rounding:5")


def test_no_name_at_all_is_not_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="out is empty: name a folder"):
        unround.simulate("", areas=3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [".try", ".try/done", ".try/older", ".try/lock", ".try/parts/000001", ".try/key"])
def test_links_in_the_working_folder_are_not_followed(tmp_path: Path, place: str) -> None:
    beside, link = outside(tmp_path), tmp_path / "out" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(beside)
    with pytest.raises(InputError, match="is a link"):
        write(tmp_path / "out", "new")
    link.unlink()
    link.symlink_to(beside / "thesis.txt")
    with pytest.raises(InputError, match="is a link"):
        write(tmp_path / "out", "new")
    assert contents(beside) == {"thesis.txt": "years of work"}


@pytest.mark.parametrize("name", ["lock", "key", "moving.json", "done"])
def test_a_pipe_in_the_working_folder_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / ".try").mkdir(parents=True)
    os.mkfifo(tmp_path / "out" / ".try" / name)
    with pytest.raises(InputError, match="a pipe or a device, which no run leaves there"):
        write(tmp_path / "out", "new")


def test_files_are_written_through_no_link(tmp_path: Path) -> None:
    beside = outside(tmp_path)
    for name in ("a.txt", "a.txt.half"):
        (tmp_path / name).symlink_to(beside / "thesis.txt")
    write_whole(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert contents(beside) == {"thesis.txt": "years of work"}


def test_what_a_command_reads_is_not_replaced_by_it(tmp_path: Path) -> None:
    made = unround.simulate(tmp_path / "c", areas=3, format="tidy", seed=1)
    before = made.files[0].read_bytes()
    protected = unround.protect(made.truth, base=5, out=tmp_path / "p")
    for table in (protected.about, protected.table):
        with pytest.raises(InputError, match="is read by this command, and would be replaced by it"):
            unround.protect(table, base=3, out=tmp_path / "p" / ".." / "p")
    assert made.files[0].read_bytes() == before
    assert (tmp_path / "p" / "release.toml").exists()


def test_a_path_through_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It would be made, and removed in the end; and with it the way to what was written."""
    made = unround.simulate(tmp_path / "new" / ".." / "census", areas=3, seed=1)
    assert made.truth.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["census"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_a_run_while_it_moves_files_is_heard_when_all_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    rename, stopped = Path.replace, list[int]()
    before = signal.signal(number, lambda sign, _: stopped.append(sign))

    def replace(path: Path, target: Path) -> Path:
        if path.parent.name == "done":
            signal.raise_signal(number)
            assert not stopped
        return rename(path, target)

    try:
        monkeypatch.setattr(Path, "replace", replace)
        write(tmp_path / "out", "new")
    finally:
        signal.signal(number, before)
    assert stopped
    assert contents(tmp_path / "out") == WHOLE["new"]


def test_a_result_and_its_page_are_both_there_or_neither(tmp_path: Path) -> None:
    """Where the disk is full after the first of them, and a page of its own is not cut short either."""
    document = Document("A page", [Text("x" * 900)])
    write_result(tmp_path / "out", "compare", {"a": 1}, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        for folder in ("out", "new"):
            with pytest.raises(InputError, match=r"cannot continue writing to .*File too large"):
                write_result(tmp_path / folder, "compare", {"a": 2}, "x" * 5_000)
        with pytest.raises(InputError, match="cannot be written: File too large"):
            page.write(tmp_path / "page.html", document)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["compare.html", "compare.json", "out"]
    assert '"a": 1' in (tmp_path / "out" / "compare.json").read_text()
    write_result(tmp_path / "out", "compare", {"a": 2}, "new")
    assert (tmp_path / "out" / "compare.html").read_text() == "new"


def test_an_array_on_disk_has_room_for_all_of_it(tmp_path: Path) -> None:
    """Otherwise the system ends the program, without a word, when it writes where the disk has no room."""
    made = array_on_disk(tmp_path / "a.bin", (1_000, 1_000), "i4")
    assert (made == 0).all()
    assert (tmp_path / "a.bin").stat().st_blocks * 512 >= made.nbytes
    made[7] = 7
    assert array_on_disk(tmp_path / "a.bin", (1_000, 1_000), "i4")[7, 0] == 7
    assert (array_on_disk(tmp_path / "a.bin", (1_000, 10), "i4") == 0).all()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            array_on_disk(tmp_path / "b.bin", (1_000, 1_000), "i4")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_why_something_was_not_written_is_said_by_the_command_that_was_asked_for(tmp_path: Path) -> None:
    def fails(problem: Exception) -> str:
        with (
            pytest.raises(Stopped) as stopped,
            output_folder(tmp_path / "out", "try", older, key="a", checkpoint="key"),
            output_folder(tmp_path / "out" / ".try" / "done" / "inner", "inner", older),
        ):
            raise problem
        return str(stopped.value)

    many = shutil.Error([("from", "to", "[Errno 28] No space left on device: 'to'")])
    for problem in (OSError(28, "No space left on device"), NotWritten("x cannot be written to", "No space left"), many):
        said = fails(problem)
        assert "`unround try` cannot continue writing to " in said
        assert "No space left" in said
        assert said.endswith(f"Is the disk full? {KEPT}")
        assert "inner" not in said
        assert said.count("Is the disk full?") == 1
    with pytest.raises(InputError, match=r"^x is a pipe$"), output_folder(tmp_path / "out", "try", older):
        raise SpecialFile("x is a pipe")


def test_a_folder_whose_name_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    """Polars cannot be given such a path."""
    with (
        pytest.raises(InputError, match="its name is not text in UTF-8"),
        output_folder(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")), "audit", older),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
