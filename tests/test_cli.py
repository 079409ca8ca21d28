"""The command line: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

from tests.conftest import Run
from unround import __version__
from unround.jit import kernel


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"unround {__version__}\n"
    shown = run("--help")
    assert shown.code == 0
    assert "solve" in shown.out
    assert "tell the agency" in " ".join(shown.out.split())


def test_a_file_and_standard_input_say_the_same(run: Run, tmp_path: Path) -> None:
    text = '\ufeffa: 5\r\n"b c": 10 # é\r\nt: 15\r\nt = a + "b c"\r\n'
    path = tmp_path / "system.txt"
    path.write_bytes(text.encode())
    from_file = run("solve", str(path), "--json")
    from_input = run("solve", "-", "--json", stdin=text.encode())
    assert from_file.code == from_input.code == 0
    assert from_file.out == from_input.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "48! = "], "line 1, column 7"),
        (["solve", "48 = 20 + 20"], "48 cannot come from rounding to base 5"),
        (["solve", "no/such/file"], "there is no file no/such/file. To type equations, use ="),
        (["solve", "."], "is a folder; give the file in it"),
        (["solve", "a: 5 = 5", "--base", "3", "--mechanism", "exact"], "give one of them"),
        (["solve", "a: 5 = 5", "--base", "0"], "base"),
        (["solve", "a: 5 = 5", "--mechanism", "lapace:1"], "laplace"),
        (["solve", "a: 5 = 5", "--engine", "magic"], "--engine must be auto, tree,"),
        (["solve", "a: 5 = 5", "--prior", "nowhere.json"], "there is no file nowhere.json"),
        (["solve", "a: 5 = 5", "--threshold", "2"], "threshold"),
        (["solve", "a: 5 = 5", "--page", "x.gif"], "written as .html"),
        (["solve", "a: 5 = 5", "--page", "/no/such/folder/x.html"], "there is no folder /no/such/folder"),
        (["solve", ""], "nothing to solve"),
        (["paper", "--areas", "5"], "--areas goes with --simulate"),
        (["solve", "a: 5 = 5", "--top", "-1"], "--top"),
        (["solve"], "SYSTEM"),
        (["simulate", "-o", "x", "--areas", "0"], "at least 1 area"),
        (["simulate", "-o", "x", "--format", "excel"], "--format must be statcan, censusmapper or tidy, not 'excel'"),
        (["solve", "a: 10 = 5 + 5; a = b: 10", "--expect"], "is told of one sum"),
    ],
)
def test_what_cannot_be_used_exits_with_2_and_says_why(
    run: Run, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_no_utf8_is_refused(run: Run) -> None:
    ran = run("solve", "-", stdin=b"caf\xe9: 5")
    assert (ran.code, ran.err) == (2, "error: standard input is not UTF-8 text.\n")


def test_a_prior_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    path.write_text('{"part1": {"12": 1, "11": 1}}')
    data = json.loads(run("solve", "30 = 15 + 15 + 15", "--prior", str(path), "--json").out)
    assert data["prior"] == "given"
    assert data["solutions"] == 4
    path.write_text('{"part1": [1, 2]}')
    ran = run("solve", "30 = 15 + 15 + 15", "--prior", str(path))
    assert ran.code == 2
    assert "cannot be used as a prior" in ran.err


def test_a_mechanism_for_the_whole_run(run: Run) -> None:
    data = json.loads(run("solve", "12 = -2 + 15", "--mechanism", "laplace:1.45", "--json").out)
    assert data["cells"][1]["published"] == -2
    assert any("1e-12" in sentence for sentence in data["assumptions"])
    assert json.loads(run("solve", "6 = 6 + 6", "--base", "3", "--json").out)["solutions"] == 1


def test_pages(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = run("solve", "110! = a: 30 + 65 + 10; a = 10 + 10 + 10", "--page", str(path))
    content = path.read_text(encoding="utf-8")
    assert ran.code == 0
    assert f"Page written: {path}" in " ".join(ran.err.split())
    assert content.startswith("<!doctype html>")
    assert all(name in content for name in ("part1", "part5", "published 65"))
    assert 'src="http' not in content  # everything is inside


def test_names_from_outside_are_shown_as_they_are(run: Run) -> None:
    """Square brackets are markup to the library that draws tables."""
    out = run("solve", '10! = "[red]x[/red]": 5 + "[/]": 5').out
    assert "[red]x[/red]" in out
    assert "[/]" in out


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m unround solve '? = {' + '.join(['20'] * 60)}' --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == '{"feasible'
    assert done.stderr == ""


def test_an_interrupt_is_one_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unround.solution.solve", interrupted)
    ran = run("solve", "48! = 20 + 20 + 20")
    assert ran.code == 130
    assert ran.err == "interrupted: nothing was written\n"


def test_a_fault_of_our_own_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from unround.errors import InternalError

    def broken(*_: object, **__: object) -> None:
        raise InternalError("two and two made five")

    monkeypatch.setattr("unround.solution.solve", broken)
    ran = run("solve", "48! = 20 + 20 + 20")
    assert ran.code == 3
    assert "Please report it" in ran.err


def test_output_that_cannot_be_written_is_no_clash() -> None:
    """Exit code 1 says that no true counts fit; nothing else may use it."""
    command = f"{sys.executable} -m unround solve '87! = 35 + 45'"
    environment = {name: options for name, options in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for env in (environment, environment | {"PYTHONUNBUFFERED": "1"}):
        options = {"capture_output": True, "text": True, "check": False, "env": env}
        done = subprocess.run(["bash", "-c", f"{command} > /dev/full"], **options)
        assert done.returncode == 2
        assert done.stderr.startswith("error: the output cannot be written")
        assert done.stderr.count("\n") == 1
    closed = subprocess.run(["bash", "-c", f"{command} >&-"], **options)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_streams_that_the_caller_closed_are_no_clash_and_no_file_takes_their_place(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town,all,young,old\nAa,20,10,15\nBo,30,15,10\nCe,25,10,10\n")
    command = f"{sys.executable} -m unround describe towns.csv --yes -o towns.toml"
    for number, closed in enumerate(("<&-", "2>&-", "<&- >&- 2>&-")):
        (tmp_path / "towns.toml").unlink(missing_ok=True)
        ran = subprocess.run(
            ["bash", "-c", f"{command} {closed}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
        assert ("towns.csv" in ran.stdout, "Description written" in ran.stderr) == (number < 2, number < 1)
        assert "[axes." in (tmp_path / "towns.toml").read_text()


def test_kernels_are_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed by another user, and without a home: as in many containers."""
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert kernel(_twice)(21) == 42


def _twice(number: int) -> int:
    return 2 * number


def test_a_terminal_that_knows_few_signs_gets_question_marks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unround", "solve", "87! = 35 + 45"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"38?39" in done.stdout


def test_stopped_while_it_is_being_loaded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from unround.__main__ import main

    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "unround.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "unround.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_stopped_while_it_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from unround.__main__ import main

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unround.cli.tell", interrupted)
    monkeypatch.setattr(sys, "argv", ["unround", "verify", "nowhere"])
    before = [(number, signal.getsignal(number)) for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP)]
    ends = []
    try:
        for hangup in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(signal.SIGHUP, hangup)
            with pytest.raises(SystemExit) as end:
                main()
            ends.append(signal.getsignal(signal.SIGHUP))
        with pytest.raises(SystemExit, match="129"):  # so that half-written files are cleaned up
            ends[0](signal.SIGHUP, None)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert (end.value.code, capsys.readouterr().err) == (130, "interrupted\n" * 2)
    assert ends[1] is signal.SIG_IGN  # by `nohup`, say
