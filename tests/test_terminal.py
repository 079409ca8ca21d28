"""The terminal: groups of commands, --quiet and --json everywhere, completion, signs of life, one name for an option."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import unround
from tests.conftest import Run
from unround.cli import COMMANDS, GROUPS, voice
from unround.cli.build import summary

EXAMPLES = Path(__file__).parents[1] / "examples"
SURVEY = str(EXAMPLES / "survey.toml")
NAMES = [command.name for command in COMMANDS]


def test_help_lists_every_command_in_its_group_and_cuts_no_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("--help").out
    titles = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
    assert titles == ["Options", *GROUPS]
    places = [re.search(rf"^  {name} ", shown, re.MULTILINE) for name in NAMES]
    assert [place is not None for place in places] == [True] * len(NAMES)
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)
    words = " ".join(shown.split())
    for command in COMMANDS:
        assert summary(command) in words
    assert "..." not in shown.replace("[ARGS]...", "")
    monkeypatch.setenv("TERMINAL_WIDTH", "60")
    assert max(map(len, run("--help").out.splitlines())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_every_command_can_be_quiet_and_all_with_a_result_print_json(run: Run, name: str) -> None:
    shown = run(name, "--help").out
    assert re.search(r"^  -q, --quiet ", shown, re.MULTILINE)
    assert ("\n  --json " in shown) == (name != "serve")  # its pages are the result, and have JSON at their own addresses


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "87! = 35 + 45"),
        ("solve", "10 = 5 + 5", "--expect"),
        ("check", SURVEY),
        ("simulate", "-o", "census", "--areas", "5"),
        ("paper",),
        ("calibrate", "--list-worlds"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_quiet_prints_nothing_unless_json_is_asked_for(
    run: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loud, quiet = run(*arguments), run(*arguments, "--quiet")
    assert loud.out
    assert quiet == (0, "", "")
    ran = run(*arguments, "--quiet", "--json")
    assert json.loads(ran.out)
    assert ran.err == ""
    assert run(*arguments).out == loud.out  # it is for one run only


def test_errors_and_exit_codes_stay_when_quiet(run: Run, tmp_path: Path) -> None:
    assert run("solve", "100! = 20 + 20", "-q") == (1, "", "")
    ran = run("audit", str(tmp_path / "nowhere.csv"), "-o", str(tmp_path / "x"), "-q")
    assert ran.code == 2
    assert ran.err.startswith("error: there is no file")


# -- options ----------------------------------------------------------------------------------------------------------


def test_base_and_mechanism_are_called_so_wherever_there_is_a_mechanism() -> None:
    for command in COMMANDS:
        taken = {field.name for field in dataclasses.fields(command.function.group)}
        if command.name not in ("compare", "simulate"):  # several ways at once; worlds take any mechanism
            assert ("base" in taken) == ("mechanism" in taken), command.name
            assert ("mechanism" in taken) or "describe" not in taken, command.name
        assert ("sheet" in taken) or "nesting" not in taken, command.name


def test_a_base_on_the_command_line_is_used_where_the_file_says_nothing(run: Run, tmp_path: Path) -> None:
    text = (EXAMPLES / "survey.toml").read_text(encoding="utf-8")
    for name in ("survey.csv", "survey.hrc"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    silent = re.sub(r"(?m)^default = .*$", "", text)
    assert silent != text
    (tmp_path / "survey.toml").write_text(silent, encoding="utf-8")
    given = unround.read(tmp_path / "survey.toml")
    assert any(column.mechanism is None for column in given.columns)
    for arguments in (("--base", "3"), ("--mechanism", "rounding:3")):
        shown = run("check", str(tmp_path / "survey.toml"), "--json", *arguments)
        assert (shown.code, "declared" in shown.out) == (0, True)
    said = unround.read(tmp_path / "survey.toml", base=3)
    declared = [column.mechanism or column.documented[0] for column in said.columns]
    assert declared == [column.mechanism for column in unround.read(SURVEY).columns]
    ran = run("check", SURVEY, "--base", "5")
    assert ran.code == 2
    assert "is for counts of which nothing is declared, and here everything is (exact, rounding:3)" in ran.err
    assert run("check", SURVEY, "--base", "3", "--quiet").code == 0  # it says so itself


def test_a_list_has_commas_or_is_given_one_at_a_time(run: Run) -> None:
    same = ("--areas", "20", "--seeds", "1", "--json")
    old = run("compare", "--mechanism", "rounding:5,rounding:10", *same)
    new = run("compare", "--mechanism", "rounding:5", "--mechanism", "rounding:10", *same)
    assert (old.code, old.out) == (0, new.out)
    assert [mechanism["name"] for mechanism in json.loads(new.out)["mechanisms"]] == ["rounding:5", "rounding:10"]


# -- completion -------------------------------------------------------------------------------------------------------


def completed(words: str) -> str:
    environment = os.environ | {
        "_UNROUND_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    command = [sys.executable, "-c", "import sys; sys.argv = ['unround']; from unround.cli import main; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def test_shells_complete_commands_and_options(run: Run) -> None:
    assert set(completed("unround che").split()) == {"check"}
    assert "--threshold" in completed("unround audit --thr").split()
    assert set(completed("unround audit x.csv --prior f").split()) == {"fitted", "flat"}
    assert "--show-completion" in run("--help").out


# -- signs of life ----------------------------------------------------------------------------------------------------


def test_a_sign_of_life_comes_every_few_seconds_when_nobody_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(voice, "EVERY", 0.02)
    with voice.stages() as step:
        step("Inferring", 1, 4)
        deadline = time.monotonic() + 600
        while errors.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)  # without a word from the work itself
    lines = errors.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"Inferring: 25% \(\d+ s\)", line) for line in lines[1:])
    time.sleep(0.06)
    assert errors.getvalue().splitlines() == lines  # it ends with the work


def test_a_sign_of_life_says_that_functions_are_compiled_as_long_as_they_are() -> None:
    from numba.core import event

    from unround import jit
    from unround.cli.voice import compiling

    assert not jit.is_compiling()
    with event.trigger_event("numba:compile"):
        assert compiling() == ", compiling (only once on this machine)"
    assert compiling() == ""


def test_a_short_command_gives_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    with voice.stages() as step:
        step("Simulating", 10, 10)
    assert errors.getvalue() == ""
