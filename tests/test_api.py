"""The one door: every command as a function, given a path, a frame or a Release; and what it says to wrong arguments."""

import asyncio
import dataclasses
import inspect
import json
import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from research import commands as research
from typer.testing import CliRunner

import unround
from unround import InputError, options
from unround.cli import COMMANDS, build
from unround.release import UNREADABLE, Release

SURVEY = Path(__file__).parents[1] / "examples" / "survey.toml"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> unround.AuditFolder:
    return unround.audit(str(SURVEY), tmp_path_factory.mktemp("audit") / "audit")


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return unround.simulate(tmp_path_factory.mktemp("census"), areas=120, seed=3, format="tidy")


def wide() -> pl.DataFrame:
    """Counts of 40 towns, as a frame with one row per town: men and women under an exact total."""
    men = [3 * (n % 7) + 9 for n in range(40)]
    women = [3 * (n % 5) + 6 for n in range(40)]
    total = [a + b + (-4, -2, 0, 1, 3)[n % 5] for n, (a, b) in enumerate(zip(men, women, strict=True))]
    return pl.DataFrame({"town": [f"T{n:02}" for n in range(40)], "all": total, "men": men, "women": women})


KEYS: dict[str, Any] = {"area": "town", "sums": {"all": ["men", "women"]}, "mechanism": "rounding:3", "exact": ["all"]}

GIVEN: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "path": lambda: (SURVEY, {}),
    "text": lambda: (str(SURVEY), {}),
    "list": lambda: ([SURVEY], {}),
    "release": lambda: (unround.read(SURVEY), {}),
    "polars": lambda: (wide(), {"describe": KEYS}),
    "pandas": lambda: (pytest.importorskip("pandas").DataFrame(wide().to_dict(as_series=False)), {"describe": KEYS}),
}


@pytest.mark.parametrize("how", GIVEN)
def test_a_table_is_a_path_a_frame_or_a_release(how: str, tmp_path: Path) -> None:
    table, keys = GIVEN[how]()
    assert isinstance(unround.read(table, **keys), Release)
    seen = unround.check(table, **keys)
    folder = unround.audit(table, tmp_path / "audit", **keys)
    assert seen.areas == seen.fit.areas == folder.summary["areas"] == 40
    assert (len(seen.structure.sums), folder.summary["proved"] > 0) == (1 if keys else 18, True)
    assert unround.AuditFolder.open(tmp_path / "audit").summary == folder.summary
    assert (tmp_path / "audit" / "report.html").exists()


def test_all_ways_lead_to_the_same_findings(tmp_path: Path) -> None:
    frames = []
    for how in ("path", "release", "list"):
        table, _ = GIVEN[how]()
        frames.append(pl.read_parquet(unround.audit(table, tmp_path / how, prior="flat").path / "findings.parquet"))
    assert frames[0].height > 20
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_the_functions_about_an_audit(audited: unround.AuditFolder) -> None:
    for folder in (audited, audited.path, str(audited.path)):
        assert unround.explain(folder, "D08", "30-44/men").to_json()["value"] == 11
        (audited.path / "report.html").unlink()
        assert unround.audit(folder).summary == audited.summary
        assert (audited.path / "report.html").exists()
        status, content = unround.view(folder, "/findings.json?kind=proved")
        assert (status, json.loads(content)["total"]) == (200, audited.summary["proved"])
    assert unround.diff(audited, audited.path).to_json()["newly"] is not None


def test_the_draft_of_a_plan_is_a_plan(tmp_path: Path) -> None:
    seen = unround.check(SURVEY)
    plan = tmp_path / "plan.toml"
    plan.write_text(seen.toml(plan).replace('"women"] }', '"women"], use = false }', 1), encoding="utf-8")
    left_out = unround.check(plan)
    assert len(left_out.structure.sums) < len(seen.structure.sums)
    assert any("does not say why" in entry.why for entry in left_out.release.account)


def test_solve_takes_text_a_file_or_a_system(tmp_path: Path) -> None:
    text = "48! = 20 + 20 + 20"
    path = tmp_path / "system.txt"
    path.write_text(text)
    answers = [unround.solve(given).to_json() for given in (text, path, str(path), unround.parse(text))]
    assert all(answer == answers[0] for answer in answers)
    assert [cell["kind"] for cell in answers[0]["cells"]] == ["given", "proved", "proved", "proved"]
    assert unround.solve("6 = 6 + 6", base=3).solutions == unround.solve("6 = 6 + 6", mechanism="rounding:3").solutions == 1
    assert unround.solve("87! = a: 35 + b: 45", prior={"a": {38: 1.0}}).to_json()["prior"] == "given"
    assert unround.expect("40! = 15 + 20").to_json() == unround.expect(unround.parse("87! = 35 + 45")).to_json()


def test_the_functions_about_publishing(census: Any, tmp_path: Path) -> None:
    truth = unround.read(census.truth)
    compared = unround.compare(tmp_path / "compare", mechanism=["rounding:5", "rounding:10"], truth=truth, seeds=1)
    assert json.loads((tmp_path / "compare" / "compare.json").read_text(encoding="utf-8")) == compared.to_json()
    release = next(path for path in census.files if path.suffix == ".toml")
    scored = research.calibrate(release=release, truth=truth)
    assert scored.to_json()["mechanism"]
    with pytest.raises(InputError, match="given twice"):
        unround.review(release, earlier=release)
    again = unround.read(wide().with_columns(pl.col("men") - 3), describe=KEYS)
    added = unround.review(again, earlier=unround.read(wide(), describe=KEYS), repairs=[])
    assert added.to_json()["repairs"] == []
    assert len(research.paper()) > 30
    searched, compound = research.paper(simulate=True, areas=200, rows="age")
    assert searched.to_json()
    assert compound.proved_wrong == 0


def test_a_frame_of_true_counts_is_protected(tmp_path: Path) -> None:
    truth = wide().with_columns(all=pl.col("men") + pl.col("women"))
    about = {"area": "town", "sums": {"all": ["men", "women"]}}
    for name, keys in {"keys": about, "description": {**about, "mechanism": "exact"}}.items():
        made = unround.protect(truth, tmp_path / name, "rounding:3", seed=1, describe=keys)
        assert (made.areas, made.columns, made.sums, made.declared) == (40, 3, 1, "rounding:3")
    one, other = (pl.read_parquet(tmp_path / name / "release.parquet") for name in ("keys", "description"))
    assert one.equals(other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unround.audit(), "unround.audit: missing a required argument: 'table'. Its arguments are table, out, "),
        (lambda: unround.audit(SURVEY, "x", thresold=0.9), "got an unexpected keyword argument 'thresold'"),
        (lambda: unround.audit(SURVEY, "x", threshold="high"), "threshold must be a number, not 'high'"),
        (lambda: unround.audit(SURVEY, 5), "out must be a path, not 5"),
        (lambda: unround.audit(SURVEY, "x", link="no"), "link must be True or False, not 'no'"),
        (lambda: unround.read(), "unround.read: missing a required argument: 'table'"),
        (lambda: unround.read(5), "int is not a table"),
        (lambda: unround.read(None), "NoneType is not a table"),
        (lambda: unround.read([]), "the list is empty"),
        (lambda: unround.read("nowhere.csv"), "there is no file nowhere.csv"),
        (lambda: unround.read(SURVEY, describe={"value": "n"}), "a file is described by a TOML file"),
        (lambda: unround.read(wide(), describe="x.toml"), "a frame is described by keys and values"),
        (lambda: unround.read(wide(), format="tidy"), "format is for files"),
        (lambda: unround.read(unround.read(SURVEY), describe=SURVEY), "not of a Release"),
        (
            lambda: unround.read(SURVEY, base=7),
            "mechanism is for counts of which nothing is declared",
        ),
        (lambda: unround.read(SURVEY, base=3, mechanism="exact"), "base and mechanism exclude each other"),
        (lambda: unround.check(SURVEY, describe=5), "describe must be a path or a mapping, not 5"),
        (lambda: unround.check(SURVEY, describe="nowhere.toml"), "there is no file nowhere.toml"),
        (lambda: unround.explain(5, "a", "b"), "folder must be an AuditFolder or a path, not 5"),
        (lambda: unround.explain("nowhere", "a", "b"), "there is no folder nowhere"),
        (lambda: unround.explain("nowhere", 5, "b"), "area must be text, not 5"),
        (lambda: unround.view("nowhere", "findings"), "an address starts with a slash"),
        (lambda: unround.solve(48), "system must be a System, text or a path, not 48"),
        (
            lambda: unround.solve("a: 5 = 5", base=3, mechanism="exact"),
            "base and mechanism exclude each other: give one of them",
        ),
        (lambda: unround.solve(unround.parse("a: 5 = 5"), base=3), "already say how they were published"),
        (lambda: unround.solve("a: 5 = 5", top=True), "top must be a whole number, not True"),
        (lambda: unround.solve("a: 5 = 5", prior=5), "prior must be a mapping or a path, not 5"),
        (lambda: unround.solve("a: 5 = 5", mechanism=5), "mechanism must be a Mechanism or text, not"),
        (lambda: unround.AuditFolder.open(), "AuditFolder.open: give the folder that an audit was written to, not None"),
        (lambda: unround.AuditFolder.open(5), "give the folder that an audit was written to, not 5"),
        (lambda: unround.read(""), "the name of the file is empty"),
        (lambda: unround.read(SURVEY, describe=5), "describe must be a path or a mapping, not 5"),
        (lambda: unround.read(SURVEY, mechanism=3), "mechanism must be a Mechanism or text, not"),
        (lambda: research.calibrate(world=5), "world must be a list of strings, not 5"),
        (lambda: unround.expect("9 @3 = 3 @3 + 5"), "rounded to one base"),
        (lambda: unround.simulate("x", areas=0.5), "areas must be a whole number, not 0.5"),
        (lambda: unround.protect(SURVEY, "x"), "say how to protect the counts: mechanism, such as rounding:5"),
        (lambda: unround.protect(SURVEY, "x", "rounding:5", exact="population"), "exact must be a list of strings"),
        (lambda: unround.protect(SURVEY, "x", "rounding:5", base=5), "base and mechanism exclude each other"),
        (lambda: unround.compare(mechanism=["exact"], what_if=["all"]), "what_if and mechanism exclude each other"),
        (lambda: unround.compare(mechanism=["rounding:5", "rounding:5"], areas=50), "rounding:5 more than once"),
        (lambda: unround.compare(exact=["population"]), "exact goes with truth: give both, or neither."),
        (lambda: research.calibrate(release=SURVEY), "release goes with truth"),
        (lambda: research.paper(areas=5), "areas goes with simulate: give both, or neither."),
        (lambda: unround.parse(5), "a system is text"),  # type: ignore[arg-type]
        (lambda: unround.parse("6 = 3 + 3", 5), "a mechanism is named by text, such as rounding:5, not 5"),  # type: ignore[arg-type]
        (lambda: unround.read(wide(), exact=np.array(1)), "exact must be a list of strings"),
        (lambda: unround.describe(wide(), header=np.array(1)), "header must be a list of whole numbers or text"),
        (lambda: unround.review([]), "no table is given"),
        (lambda: unround.diff("nowhere"), "missing a required argument: 'after'"),
    ],
)
def test_wrong_arguments_are_input_errors(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as problem:
        call()
    assert message in str(problem.value)
    assert list(tmp_path.iterdir()) == []


def test_commands_take_the_options_of_their_functions() -> None:
    """What is declared is all there is: in Python, on the command line and in the docstring."""
    for command in COMMANDS:
        function = getattr(unround, command.name)
        assert function is command.function
        declared = {field.name: field for field in dataclasses.fields(function.group)}
        signature = inspect.signature(function).parameters
        assert set(signature) == set(declared)
        typed = inspect.signature(build.typed_command(command)).parameters
        for name, field in declared.items():
            made = options.declaration(field)
            assert f"\n{name}\n    " in function.__doc__
            assert (name in typed) != isinstance(made, options.Hook)
            assert made.help[-1] in ".…}?", f"{command.name} {name}"
            assert signature[name].default in (field.default, inspect.Parameter.empty)
            assert {*made.needs, *made.excludes} <= set(declared), f"{command.name} {name}"


def test_an_option_is_one_edit() -> None:
    """A field makes a parameter with its type, default and checks, an option of the command line, and its reference."""

    @options.group()
    class Greeting(options.Options):
        name: str = options.argument("Who is greeted.", "NAME")
        _: dataclasses.KW_ONLY
        times: int = options.option("How often, at most {limit}.", least=1, default=1)
        limit: int | None = options.option("The most.", shown="none", needs=("times",), default=None)
        tone: str = options.option("How.", choices=("warm", "cool"), default="warm")
        titles: Sequence[str] = options.option("Titles.", "LIST", split=True, default=())

    @options.takes(Greeting)
    def greet(given: Greeting) -> str:
        """Greet somebody."""
        return f"{' '.join([*given.titles, given.name])}! " * given.times

    assert greet("Ada", times=2) == "Ada! Ada! "
    assert str(inspect.signature(greet)).startswith("(name: str, *, times: int = 1, limit: int | None = None, ")
    assert "How often, at most `limit`." in str(greet.__doc__)
    for wrong, message in (
        ({"times": 0}, "times must be at least 1, not 0."),
        ({"times": True}, "times must be a whole number, not True."),
        ({"tone": "flat"}, "tone must be warm or cool, not 'flat'."),
        ({"limit": 3}, "limit goes with times: give both, or neither."),
        ({"titles": "Dr"}, "titles must be a list of strings, not 'Dr'."),
        ({"titles": ["Dr", "Dr"]}, "titles names Dr more than once."),
        ({"tune": "flat"}, "unround.greet: got an unexpected keyword argument 'tune'. Its arguments are name, times, "),
    ):
        with pytest.raises(InputError) as problem:
            greet("Ada", **wrong)  # type: ignore[arg-type]
        assert str(problem.value).startswith(message)
    shown: list[str] = []
    made = build.command(greet, "Examples:\n  greet Ada")(lambda call: shown.append(call()))
    app = build.built("greet", "Greet.", "", {"All": [made]})
    app.callback()(lambda: None)
    assert CliRunner().invoke(app, ["greet", "Ada", "--titles", "Dr,Prof"]).exit_code == 0
    assert shown == ["Dr Prof Ada! "]
    said = " ".join(CliRunner().invoke(app, ["greet", "--help"]).output.split())
    for words in ("Greet somebody.", "greet Ada", "How often, at most --limit. [default: 1]", "With --times: The most."):
        assert words in said


# -- what people do in notebooks, and on clusters -------------------------------------------------------------------------


def test_a_page_can_be_viewed_within_a_running_loop(audited: unround.AuditFolder) -> None:
    async def cell() -> tuple[int, bytes]:
        return unround.view(audited, "/about.json")

    status, content = asyncio.run(cell())
    assert status == 200
    assert content.startswith(b"{")


def test_what_was_read_can_be_sent_to_another_process() -> None:
    release = unround.read(SURVEY)
    again = pickle.loads(pickle.dumps(release))
    assert again.columns == release.columns
    for block, other in zip(release.blocks(), again.blocks(), strict=True):
        assert block.areas.equals(other.areas)
        assert (block.counts == other.counts).all()
    described = unround.describe(SURVEY.with_suffix(".csv"))
    assert pickle.loads(pickle.dumps(described)).draft.keys == described.draft.keys
    inspection = unround.check(SURVEY)
    assert pickle.loads(pickle.dumps(inspection)).to_json() == inspection.to_json()
    audited = unround.audit(SURVEY)
    posterior = audited.posterior("D08")
    again = pickle.loads(pickle.dumps(posterior))
    assert again.folder == audited
    assert again["30-44/men"].distribution == posterior["30-44/men"].distribution
    reconciled = unround.reconcile(SURVEY)
    again = pickle.loads(pickle.dumps(reconciled))
    assert again.to_json() == reconciled.to_json()
    assert {name: table.equals(reconciled.tables[name]) for name, table in again.tables.items()} == {"survey.csv": True}


def test_columns_that_have_no_text_in_polars_are_described() -> None:
    odd = {
        "lasts": pl.lit(timedelta(days=2)),
        "large": pl.lit(2**63 + 5, dtype=pl.UInt64),
        "several": pl.lit([1, 2]),
        "bytes": pl.lit(b"\xff"),
        "fields": pl.struct(pl.lit(1).alias("a")),
    }
    described = unround.describe(pl.read_csv(SURVEY.with_suffix(".csv")).with_columns(**odd))
    assert "lasts" in " ".join(entry.place for entry in described.release.account)


def test_counts_of_kinds_that_hold_fractions_or_far_more_than_counts() -> None:
    """A decimal is no whole number without its fraction, and a number beyond all counts no missing one."""
    plain = pl.DataFrame({"area": ["a", "b", "c"], "all": [20, 15, 10], "men": [10, 10, 5], "women": [10, 5, 5]})
    cases = [
        (pl.Series([2**63 + 5, 10, 5], dtype=pl.UInt64), [UNREADABLE, 10, 5]),
        (pl.Series([2**100, 10, 5], dtype=pl.Int128), [UNREADABLE, 10, 5]),
        (pl.Series([2**31, 10, 5], dtype=pl.UInt32), [UNREADABLE, 10, 5]),
    ]
    for column, counts in cases:
        release = unround.read(plain.with_columns(column.alias("men")))
        (block,) = release.blocks()
        at = [heading.key for heading in release.columns].index("men")
        assert block.counts[:, at].tolist() == counts, column.dtype
    decimals = pl.Series("men", ["1.5", "10", "5"]).cast(pl.Decimal(10, 1))
    assert [heading.key for heading in unround.read(plain.with_columns(decimals)).columns] == ["all", "women"]


@pytest.mark.parametrize("path", [".", "/", ".."])
def test_a_folder_is_no_table(path: str) -> None:
    for function in (unround.check, unround.review, unround.describe):
        with pytest.raises(InputError, match="is a folder"):
            function(path)


def test_numbers_of_other_libraries_and_lists_that_can_be_gone_through_once() -> None:
    about: dict[str, Any] = {"area": "town", "sums": {"all": ["men", "women"]}}
    once, listed, without = (
        str(unround.check(wide(), describe=about, mechanism="rounding:3", exact=names))
        for names in ((name for name in ["all"]), ["all"], [])  # type: ignore[arg-type]
    )
    assert once == listed != without
    done = unround.audit(wide(), describe=KEYS, threshold=Fraction(2, 3), block=np.int64(2), command="unround \ud800")
    assert done.summary["threshold"] == 2 / 3
    assert done.summary["command"] == "unround ?"


def test_an_earlier_table_may_be_a_frame() -> None:
    frame = pl.DataFrame({"town": ["a", "b"], "Total": [20, 15], "Men": [10, 5], "Women": [10, 10]})
    assert str(unround.review(frame, earlier=frame, repairs=[])) == str(unround.review(frame, earlier=[frame], repairs=[]))


def test_no_column_of_a_frame_hides_another_of_its_name() -> None:
    pandas = pytest.importorskip("pandas")
    for names in (["town", "men", "men"], ["town", 1, "1"]):
        with pytest.raises(InputError, match=r"the frame has several columns called '(men|1)'"):
            unround.read(pandas.DataFrame([["a", 5, 10], ["b", 10, 10]], columns=names), describe={"area": "town"})


def test_text_of_a_frame_that_is_none_is_refused_in_words() -> None:
    pandas = pytest.importorskip("pandas")
    for odd in (pandas.DataFrame({"town": ["\ud800"], "all": [5]}), pandas.DataFrame({"town": ["a"], "\ud800": [5]})):
        with pytest.raises(InputError, match=r"the frame has text that is none in UTF-8: '\\ud800'"):
            unround.read(odd, describe={"area": "town"})


def test_lazy_frames_are_collected_or_refused_in_words(recwarn: pytest.WarningsRecorder) -> None:
    assert str(unround.describe(wide().lazy())) == str(unround.describe(wide()))
    assert not recwarn.list
    for lazy in (wide().lazy().with_columns(pl.col("none")), pl.scan_csv("nowhere.csv")):
        for use in (unround.read, unround.describe):
            with pytest.raises(InputError, match="the lazy frame cannot be collected"):
                use(lazy)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\ud800"])
def test_what_can_be_the_name_of_no_file(name: str, tmp_path: Path) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: unround.verify(name), lambda: unround.view(name, "/"), lambda: unround.diff(SURVEY, name),
        lambda: unround.audit(name), lambda: unround.review(name), lambda: unround.read(wide(), nesting=name),
        lambda: unround.describe(tmp_path / "t.csv", tmp_path / name), lambda: unround.audit(SURVEY, tmp_path / name),
        lambda: unround.solve("6 = 3 + 3", mechanism=f"transition:{name}"), lambda: unround.simulate(tmp_path / name),
        lambda: unround.read(wide(), describe={**KEYS, "mechanism": f"transition:{name}"}),
    )  # fmt: skip
    (tmp_path / "t.csv").write_text("town,all,men\na,20,10\nb,10,10\n")
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
