"""Every option, declared once: its name, type, default, help and limits, as a field of a frozen class.

A public function takes the fields of its class as parameters (`takes`), the command line is built from the same class
(`cli.build`), and so are the reference of the command line, the docstrings, and the errors. To add an option, add a field.
What applies to several functions is a group of its own: `Opening` and `Reading` say how a table is read, `AuditOptions`
how it is audited.

In help texts and errors, a name in braces is shown as it is spelled there: `{base}` as --base, or as `base` in Python.

No `from __future__ import annotations` here: the fields are evaluated, because they are looked at.
"""

import functools
import importlib
import inspect
import numbers
import operator
import os
import shlex
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, MISSING, Field, dataclass, fields, replace
from dataclasses import field as declared_field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from unround.errors import ArgumentError, renamed

if TYPE_CHECKING:
    from unround.job import AuditFolder
    from unround.mechanisms import Mechanism
    from unround.reconciliation import Reconciled
    from unround.reviews import Policy
    from unround.system import System
    from unround.tables import Question

AnyPath = str | os.PathLike[str]
Table = Any
"""A path, several paths in a list, a polars or pandas frame, or a `Release`."""
Stage = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and out of how much."""

THRESHOLD = 0.66
"""The default minimum probability to report a count as likely."""
POPULATIONS = ("exact", "within5")
VERIFIED, NO_FIGURES = "verified", "off"
MEANS, DISTRIBUTIONS = "means", "distributions"
"""What estimates hold: mean, deviation and likeliest count; or the probability of every possible count as well."""


# -- what a declaration says ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of an option, besides its name, its type and its default.

    - `help`: One or two sentences.
    - `metavar`: What stands for its value on the command line.
    - `shown`: The default in words, where it is not the value itself.
    - `choices`: The values that it takes; `least`, `most`: the range of a number; `above`: what it must exceed.
    - `short`: A spelling of one letter.
    - `needs`: Options, one of which must be given too; `excludes`: those that must not.
    - `split`: Whether a list may be given with commas in between; "none" is then an empty one.
    - `shell`: The type on the command line, where it cannot be told from the annotation.
    """

    help: str
    metavar: str | None = None
    shown: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    short: str | None = None
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    split: bool = False
    shell: type | None = None

    @property
    def text(self) -> str:
        """The help, with what the option goes together with."""
        return f"With {' or '.join(f'{{{name}}}' for name in self.needs)}: {self.help}" if self.needs else self.help


class Argument(Option):
    """An option that is given by its place, not by its name."""


class Hook(Option):
    """A parameter for programs alone: a function that is called, or what a program says about itself."""


_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    int: ((numbers.Integral,), "a whole number"),
    float: ((numbers.Real,), "a number"),
    bool: ((bool,), "True or False"),
    str: ((str,), "text"),
    os.PathLike[str]: ((str, os.PathLike), "a path"),
    Sequence[str]: ((str,), "a list of strings"),
    Sequence[int]: ((numbers.Integral,), "a list of whole numbers"),
    Mapping: ((Mapping,), "a mapping"),
}
"""What a value, or what is in a list, must be, by what its annotation names; nothing else is looked at."""

_CLASSES = {
    "AuditFolder": "unround.job",
    "Mechanism": "unround.mechanisms",
    "Policy": "unround.reviews",
    "Reconciled": "unround.reconciliation",
    "System": "unround.system",
}
"""Where the classes are that annotations name in quotes; they are loaded when a value is nothing else."""


def option(text: str | Option, metavar: str | None = None, *, default: Any = MISSING, **more: Any) -> Any:
    """Declare an option: its help, and whatever else `Option` has to say of it; or one that is declared already."""
    declared = text if isinstance(text, Option) else Option(text, metavar, **more)
    return declared_field(default=default, metadata={"option": declared})


def argument(text: str | Option, metavar: str | None = None, *, default: Any = MISSING, **more: Any) -> Any:
    """Declare an option that is given by its place."""
    return option(text if isinstance(text, Option) else Argument(text, metavar, **more), default=default)


def hook(text: str, *, default: Any = MISSING) -> Any:
    """Declare a parameter for programs alone."""
    return option(Hook(text), default=default)


@typing.dataclass_transform(frozen_default=True, field_specifiers=(option, argument, hook))
def group(*, kw_only: bool = False) -> Callable[[type["_Group"]], type["_Group"]]:
    """Make a frozen class of options; `kw_only` where none has a place."""
    return dataclass(frozen=True, kw_only=kw_only)


def declaration(field: Field[Any]) -> Option:
    """Return what is declared of a field."""
    return typing.cast(Option, field.metadata["option"])


def type_of(field: Field[Any]) -> tuple[Any, bool]:
    """Return the type of a field, and whether it may be None as well."""
    members = _members(field.type)
    rest = [member for member in members if member not in (types.NoneType, "None")]
    if len(rest) == len(members) or isinstance(field.type, str):
        return field.type, len(rest) < len(members)
    return functools.reduce(operator.or_, rest), True


def _members(kind: Any) -> list[Any]:
    """Return the types that an annotation names."""
    if isinstance(kind, str):
        return [os.PathLike[str] if name == "AnyPath" else str if name == "str" else name for name in kind.split(" | ")]
    members = list(typing.get_args(kind)) if isinstance(kind, types.UnionType) else [kind]
    origins = [Mapping if typing.get_origin(member) is Mapping else member for member in members]
    return [member for member in origins if member is not str or os.PathLike[str] not in origins]


def _is(value: Any, member: Any) -> bool:
    if member in _CLASSES:
        return isinstance(value, getattr(importlib.import_module(_CLASSES[member]), member))
    if isinstance(value, bool):
        return member is bool
    if typing.get_origin(member) is Sequence:
        return isinstance(value, tuple) and all(isinstance(item, _KINDS[member][0]) for item in value)
    return isinstance(value, _KINDS[member][0])


def _plain(field: Field[Any], value: Any) -> Any:
    """Return a value as plain data: numbers of other libraries as numbers, what can be gone through only once as a list.

    What is quoted in results is text: signs that are none, as in the name of a file that is none, become question marks.
    """
    kind, _ = type_of(field)
    try:
        if kind is str and isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if kind in (int, float) and isinstance(value, _KINDS[kind][0]) and not isinstance(value, bool):
            return kind(value)
        if any(typing.get_origin(member) is Sequence for member in _members(kind)) and not isinstance(value, str):
            return tuple(value) if isinstance(value, Iterable) else value
    except (TypeError, OverflowError):  # an array without axes; a fraction that no float can hold
        pass
    return value


def _check(field: Field[Any], value: Any) -> None:
    """Raise if a value is not what its option takes."""
    name, declared, (kind, optional) = f"{{{field.name}}}", declaration(field), type_of(field)
    if value is None and optional:
        return
    members = [member for member in _members(kind) if member != "None"]
    known = all(member in _KINDS or member in _CLASSES for member in members)
    if known and not any(_is(value, member) for member in sorted(members, key=lambda member: member in _CLASSES)):
        words = [
            f"{'an' if member[0] in 'AEIOU' else 'a'} {member}" if member in _CLASSES else _KINDS[member][1]
            for member in members
        ]
        raise ArgumentError(f"{name} must be {_or(words)}, not {value!r}.")
    if declared.choices and value not in declared.choices:
        raise ArgumentError(f"{name} must be {_or(declared.choices)}, not {value!r}.")
    if declared.split and (twice := sorted({item for item in value if list(value).count(item) > 1})):
        raise ArgumentError(f"{name} names {', '.join(twice)} more than once.")
    least, most, above = declared.least, declared.most, declared.above
    if (
        (least is not None and value < least)
        or (most is not None and not value <= most)
        or (above is not None and not value > above)
    ):
        limits = [f"above {above:g}"] if above is not None else [] if least is None else [f"at least {least:g}"]
        limits += [] if most is None else [f"at most {most:g}"]
        raise ArgumentError(f"{name} must be {' and '.join(limits)}, not {value}.")


def _or(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@group(kw_only=True)
class Options:
    """A group of options; a value that cannot be used is refused as soon as it is given."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _plain(field, getattr(self, field.name))
            object.__setattr__(self, field.name, value)
            _check(field, value)
            if field.name == "out" and value == "":
                raise ArgumentError("{out} is empty: name a folder; . is the one that you are in.")
            if field.name == "out" and isinstance(value, str | os.PathLike) and ".." in Path(value).parts:
                object.__setattr__(self, "out", Path(value).resolve())  # it must not depend on folders that come and go
        chosen = {field.name: declaration(field) for field in fields(self) if self._differs(field)}
        for name, declared in chosen.items():
            if clash := next((other for other in declared.excludes if other in chosen), None):
                raise ArgumentError(f"{{{name}}} and {{{clash}}} exclude each other: give one of them.")
            if declared.needs and not any(other in chosen for other in declared.needs):
                needed = " or ".join(f"{{{other}}}" for other in declared.needs)
                raise ArgumentError(f"{{{name}}} goes with {needed}: give both, or neither.")

    def _differs(self, field: Field[Any]) -> bool:
        """Return whether an option is not at its default; a frame cannot be compared with anything."""
        value = getattr(self, field.name)
        return value is not field.default and not (isinstance(value, str | int | float | tuple) and value == field.default)

    def typed(self, *always: str) -> str:
        """Return what to type for the same: these options, and all others that are not at their default."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            chosen = field.name in always or (field.default is not MISSING and self._differs(field))
            if chosen and not isinstance(declaration(field), Hook):
                words.append(f"--{field.name.replace('_', '-')}")
                listed = [str(item) for item in value] if isinstance(value, tuple) else [getattr(value, "name", str(value))]
                words += [] if value is True else [shlex.quote(",".join(listed))]
        return " ".join(words)

    def part(self, group: Callable[..., "_Group"]) -> "_Group":
        """Return the options of one of the groups that these are made of."""
        return group(**{field.name: getattr(self, field.name) for field in fields(typing.cast(Any, group))})


inputs: ContextVar[Sequence[Path]] = ContextVar("inputs", default=())
"""The files that the function at work was given to read."""


def _files_given(given: Any) -> list[Path]:
    """Return the files and folders among the values of options, but for the folder to write into."""
    values = [getattr(given, field.name) for field in fields(given) if field.name != "out"]
    flat = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    return [Path(item) for item in flat if isinstance(item, str | os.PathLike) and os.path.exists(item)]


_Given = TypeVar("_Given")
_Group = TypeVar("_Group")
_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")


def takes(
    group: Callable[_Parameters, _Given],
) -> Callable[[Callable[[_Given], _Result]], Callable[_Parameters, _Result]]:
    """Turn a function of a group of options into one that takes each of them as a parameter.

    Editors, type checkers and `inspect.signature` see these parameters; its docstring lists them.
    """

    def decorate(function: Callable[[_Given], _Result]) -> Callable[_Parameters, _Result]:
        signature = inspect.signature(group)
        name = f"unround.{function.__name__}"

        @functools.wraps(function)
        def call(*arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
            try:
                signature.bind(*arguments, **keywords)
            except TypeError as problem:
                known = ", ".join(signature.parameters)
                raise ArgumentError(f"{name}: {problem}. Its arguments are {known}.") from None
            given = group(*arguments, **keywords)
            token = inputs.set(_files_given(given))
            try:
                return function(given)
            finally:
                inputs.reset(token)

        returned = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
        call.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{parameters(group)}"
        call.group = group  # type: ignore[attr-defined]
        return call

    return decorate


def in_order(group: Any) -> list[Field[Any]]:
    """Return the options of a group as they are listed: by place, its own, of other groups, of reading a table."""
    classes = [kind for kind in group.__mro__ if "__annotations__" in vars(kind)]
    classes.sort(key=lambda kind: kind in (Reading, Opening, Progress))
    where = {name: at for at, kind in reversed(list(enumerate(classes))) for name in vars(kind)["__annotations__"]}
    return sorted(fields(group), key=lambda field: (field.kw_only, where[field.name]))


def parameters(group: Any) -> str:
    """Return the section of a docstring that lists the options of a group."""
    lines = ["Parameters", "----------"]
    for field in in_order(group):
        declared = declaration(field)
        default = f" By default {declared.shown}." if declared.shown else ""
        is_said = all(choice in declared.text for choice in declared.choices)
        choices = "" if is_said else f" {_or([repr(choice) for choice in declared.choices])}."
        lines += [field.name, f"    {renamed(declared.text, '`{}`'.format)}{choices}{default}"]
    return "\n".join(lines)


# -- groups of options ------------------------------------------------------------------------------------------------

BASE = Option("Base of random rounding; short for {mechanism} rounding:BASE.", excludes=("mechanism",))
MECHANISM = Option(
    "How counts were published, where nothing declares it, such as laplace:1.45; inferred by default.",
    "NAME:PARAMETER",
    shell=str,
)
SHEET = Option("Which sheet of a spreadsheet.", "NAME", shown="the one with the largest table")
RATES = Option(
    "Columns of rates, separated by commas; “NUMERATOR of UNIVERSE” for one that is not printed yet; or all.",
    "LIST",
    split=True,
)


def _quiet(*_: object) -> None:
    """Show nothing."""


@group(kw_only=True)
class Progress(Options):
    """What a program may ask of a function that takes long."""

    progress: Stage = hook("Called with what is being done, how much of it is done, and out of how much.", default=_quiet)
    command: str = hook("What was typed, to be quoted in the results.", default="")


@group(kw_only=True)
class Opening(Options):
    """How a table is opened."""

    format: str = option(
        "Format of the file: auto, statcan, profile-page, censusmapper, indicators, first-names, data-table, statsnz, "
        "datapack or tidy.",
        "NAME",
        default="auto",
    )
    describe: AnyPath | Mapping[str, Any] | None = option(
        "The description of the table: what its columns are, and what you decide on its sums, figures and mechanisms; "
        "`describe` and `check` draft one. For a frame, its keys and values.",
        "TOML",
        default=None,
    )
    sheet: str | None = option(replace(SHEET, excludes=("describe",)), default=None)
    nesting: AnyPath | None = option(
        "Which area lies within which: columns child and parent, or one column per level.", "FILE", default=None
    )


@group(kw_only=True)
class Reading(Opening, Progress):
    """How a table is opened, and how its counts were protected."""

    base: int | None = option(BASE, default=None)
    mechanism: "Mechanism | str | None" = option(MECHANISM, default=None)
    exact: Sequence[str] = option(
        "Counts that were published as they are: a column's key, label or code. May be repeated.", "NAME", default=()
    )


LIKELY = Option(
    "Minimum probability to report a count as likely; the lowest of all priors tried must reach it.", above=0, most=1
)


@group(kw_only=True)
class AuditOptions(Options):
    """What the user decides about an audit."""

    threshold: float = option(LIKELY, default=THRESHOLD)
    prior: str = option(
        "What true counts are like: fitted to this release, or flat, as in the paper.",
        choices=("fitted", "flat"),
        default="fitted",
    )
    population: str = option(
        "Unrounded populations: exact, or within5 to allow for adjustments of up to 5 in small areas.",
        choices=POPULATIONS,
        default="exact",
    )
    rounding: str = option(
        "Whether random numbers of roundings are independent, or, with auto, add up as counts do where the data show it.",
        choices=("auto", "independent"),
        default="auto",
    )
    figures: str = option(
        "Rates, means and medians: verified uses those that the data show to be computed from true counts; off, none.",
        choices=(VERIFIED, NO_FIGURES),
        default=VERIFIED,
    )
    link: bool = option("Infer areas within areas together, not each area alone.", default=True)
    estimates: str | None = option(
        "Also write an estimate of every count: means, or distributions for the probability of every possible count, too.",
        "means|distributions",
        choices=(MEANS, DISTRIBUTIONS),
        default=None,
    )
    zeros: bool = option(
        "List likely zeros that were published as 0, too: there are many, and otherwise they are only counted.",
        default=False,
    )
    doubtful: bool = option("List conditional claims even if the data contradict the mechanism.", default=False)
    bom: bool = option("Begin CSV files with a byte-order mark, so that Excel shows accents.", default=False)
    block: int | None = option(
        "How many areas to work on at a time.", "AREAS", shown="as many as fit into memory", least=1, default=None
    )

    @property
    def exact_population(self) -> bool:
        """Whether probabilities and conditional claims treat counts as exact that the agency may have adjusted."""
        return self.population == "exact"


TRUTH = Option("The true counts, if you have them; every claim is scored.", "FILE")
FOLDER = Argument("A folder that audit wrote.", "DIR")
FILES = Argument("The table: CSV, TAB, Parquet, XLSX, ODS or PX; CSV also zipped. Several files are read as one.", "FILE...")
OUT = Option("The folder to write into.", "DIR", short="-o")
BOUNDARIES = Option("Shapes of the areas, for a map: GeoJSON or TopoJSON, or gzipped.", "FILE")
CLUSTER = Option("A Dask scheduler, `tcp://host:8786`, whose workers share the work.", "ADDRESS")
SEED = Option("Seed of all random draws: the same seed gives the same numbers.", least=0)


# -- the options of each function -------------------------------------------------------------------------------------


@group()
class OneSystem(Options):
    """A system, and how its counts were published."""

    system: "System | str | AnyPath" = argument(
        'Equations if it contains "=", else a file; "-" is standard input.', "SYSTEM", shell=str
    )
    _: KW_ONLY
    base: int | None = option(replace(BASE, shown="5"), default=None)
    mechanism: "Mechanism | str | None" = option(
        "How counts were published, such as laplace:1.45.", "NAME:PARAMETER", shell=str, default=None
    )
    threshold: float = option("Minimum probability to report a count as likely.", above=0, most=1, default=THRESHOLD)


@group()
class Solve(OneSystem):
    """The options of `solve`."""

    _: KW_ONLY
    engine: str = option(
        "auto, tree, cutset, chains, cp-sat, z3 or brute.",
        choices=("auto", "tree", "cutset", "chains", "cp-sat", "z3", "brute"),
        default="auto",
    )
    top: int = option("How many of the best solutions to list.", least=0, default=5)
    prior: Mapping[str, Mapping[int, float]] | AnyPath = option(
        'flat, or weights of the true counts of cells: a JSON file, {"cell": {"12": 0.5, "13": 0.5}, …}.',
        "flat|FILE",
        shell=str,
        default="flat",
    )


@group()
class Expect(OneSystem):
    """The options of `expect`."""

    _: KW_ONLY
    areas: int | None = option("In how many areas the sum is published.", least=0, default=None)


@group()
class Read(Reading):
    """The options of `read`."""

    table: Table = argument(FILES)


@group()
class Describe(Options):
    """The options of `describe`."""

    table: Table = argument("The table: XLSX, ODS, CSV, Parquet or PX.", "FILE")
    out: AnyPath | None = option(
        "Write the description into a file, which must not exist yet.", "TOML", short="-o", default=None
    )
    _: KW_ONLY
    sheet: str | None = option(SHEET, default=None)
    header: Sequence[int] | str | None = option(
        "Rows of the header, counted from 1, such as 4 or 4-5.", "ROWS", shown="looked for", shell=str, default=None
    )
    columns: str | None = option(
        "First and last column, such as F-I, where tables stand side by side.", "LETTERS", shown="all", default=None
    )
    value: str | None = option("The column of counts, if several columns hold numbers.", "COLUMN", default=None)
    base: int | None = option(BASE, default=None)
    mechanism: str | None = option(MECHANISM, default=None)
    ask: "Callable[[Question], str] | None" = hook(
        "Called with each question that the table leaves open; returns the answer.", default=None
    )


@group()
class Audit(Reading, AuditOptions):
    """The options of `audit`."""

    table: Table = argument(FILES)
    out: AnyPath | None = option(
        "The folder. Files appear in it when all are complete, and replace those of an older audit.",
        "DIR",
        short="-o",
        default=None,
    )
    _: KW_ONLY
    truth: Table | None = option(TRUTH, default=None)
    boundaries: AnyPath | None = option(BOUNDARIES, default=None)
    cluster: str | None = option(CLUSTER, default=None)


@group()
class ReviewRequest(Reading):
    """The options of `review`."""

    table: Table | None = argument(
        "The draft: any table that audit reads, every sheet of it. Several are decided on together.", "FILE...", default=None
    )
    out: AnyPath | None = option(
        "Write review.html, cells.xlsx, review.json and the audit there.", "DIR", short="-o", default=None
    )
    _: KW_ONLY
    policy: "Policy | AnyPath | None" = option("What may be published.", "TOML", shown="the default policy", default=None)
    truth: Table | None = option("The true counts, if you have them: repairs are published from them.", "FILE", default=None)
    earlier: Table | None = option(
        "A release that is out already: the decision is on what the draft adds to it. May be repeated.",
        "FILE...",
        default=None,
    )
    repairs: Sequence[str] | None = option(
        "Repairs to try, separated by commas: hide, redraw, round-totals, base, base=N, drop-totals, drop, drop=KEY, "
        "merge, merge=A+B, controlled, same-numbers, drop-repeats; or none.",
        "LIST",
        shown="all",
        split=True,
        default=None,
    )
    apply: str = option(
        "write the draft back with this repair, as it came: DIR/repaired/FILE.", "REPAIR", needs=("out",), default=""
    )
    accept: Sequence[str] = option(
        "accept a cell as it is: AREA:KEY, as in cells.xlsx. May be repeated.", "CELL", needs=("because",), default=()
    )
    ignore: Sequence[str] = option(
        "leave aside what is not settled, such as a column that does not matter. May be repeated.",
        "PLACE",
        needs=("because",),
        default=(),
    )
    because: Sequence[str] = option(
        "the reason: one for all, or one for each, accepted cells first.", "TEXT", needs=("accept", "ignore"), default=()
    )
    reviewer: str = option("Who accepts or leaves aside.", "NAME", default="")
    seed: int = option(SEED, default=0)
    draws: int | None = option(
        "How many times to publish a repair that draws random numbers.",
        shown="5, fewer in large tables",
        least=1,
        most=100,
        default=None,
    )


@group()
class Explain(Options):
    """The options of `explain`."""

    folder: "AuditFolder | AnyPath" = argument(FOLDER)
    area: str = argument("An area's code, the end of it, or its name.", "AREA")
    characteristic: str = argument("Its ID, its key or its name.", "CHARACTERISTIC")
    sex: str | None = option("total, men or women.", shown="total", default=None)


@group()
class Verify(Progress):
    """The options of `verify`."""

    folder: "AuditFolder | AnyPath" = argument(FOLDER)


@group()
class Serve(Options):
    """The options of `serve`."""

    folder: "AuditFolder | Reconciled | AnyPath" = argument(FOLDER)
    _: KW_ONLY
    host: str = option("The address to listen on; with any but 127.0.0.1, other machines can connect.", default="127.0.0.1")
    port: int = option("The port; 0 takes any that is free.", least=0, most=65535, default=8765)
    open: bool = option("Open the page in a browser.", default=False)
    boundaries: AnyPath | None = option(BOUNDARIES, default=None)
    started: Callable[[str], None] = hook("Called with the page's address once it answers.", default=_quiet)


@group()
class View(Options):
    """The options of `view`."""

    folder: "AuditFolder | Reconciled | AnyPath" = argument(FOLDER)
    address: str = argument("The address of a page, such as /findings.json.", "PATH")
    _: KW_ONLY
    boundaries: AnyPath | None = option(BOUNDARIES, default=None)


@group()
class DiffRequest(Progress):
    """The options of `diff`."""

    before: "AuditFolder | AnyPath" = argument("A folder that audit wrote.", "BEFORE")
    after: "AuditFolder | AnyPath" = argument("Another one, about the same people.", "AFTER")
    _: KW_ONLY
    report: bool = option("Write the reports in AFTER again, with a section on what changed.", default=False)


@group()
class Rates(Reading):
    """The options of `rate_steps`."""

    table: Table = argument("What is published: any table that audit reads.", "RELEASE")
    rates: Sequence[str] = option(RATES)
    _: KW_ONLY
    truth: Table | None = option("The true counts: rates are published from them.", "FILE", default=None)
    seed: int = option(SEED, default=0)


@group()
class Protect(Opening, Progress):
    """The options of `protect`."""

    table: Table = argument("The true counts: any table that audit reads.", "TRUTH")
    out: AnyPath = option(OUT)
    mechanism: str | None = option(
        "How to protect counts: rounding:5, controlled:5, laplace:1.45, gaussian:2, or any other mechanism.",
        "NAME:PARAMETER",
        default=None,
    )
    _: KW_ONLY
    base: int | None = option(BASE, default=None)
    seed: int | None = option(
        "Draw the same random numbers again; without it, they come from the operating system.", least=0, default=None
    )
    clamp: bool = option("Publish negative counts as 0.", default=False)
    additive: bool = option("Afterwards, move counts to the nearest whole numbers that add up.", default=False)
    exact: Sequence[str] = option(
        "Publish exactly: population, dwellings, or a column's key or name. May be repeated.", "NAME", default=()
    )
    keys: bool = option(
        "Round or change counts by the keys of their records (and, where they are rounded, a constant of the table), not "
        "independently.",
        default=False,
    )
    constant: float | None = option(
        "With {keys}: the constant of rounding, from 0 to 1.", "NUMBER", shown="drawn", least=0, most=1, default=None
    )
    key_sums: AnyPath | None = option(
        "With {keys}: sums of your records' keys, one row per count.", "FILE", shown="drawn", default=None
    )


@group()
class Reconcile(Reading):
    """The options of `reconcile`."""

    table: Table = argument(FILES)
    out: AnyPath | None = option(
        "Write the table, reconciled.parquet and summary.json there.", "DIR", short="-o", default=None
    )
    _: KW_ONLY
    truth: Table | None = option("The true counts, if you have them: errors are measured.", "FILE", default=None)
    format: str = option(
        "How to write the table: as the input, or as csv, parquet or xlsx.",
        choices=("input", "csv", "parquet", "xlsx"),
        default="input",
    )
    real: bool = option("Write means with decimals, which add up too, in place of whole numbers.", default=False)
    round: int | None = option(
        "Write multiples of this number, which add up too: where nobody may hold finer numbers than were published.",
        "N",
        least=2,
        most=1_000_000_000,
        excludes=("real",),
        default=None,
    )


@group()
class Compare(Opening, Progress):
    """The options of `compare`."""

    out: AnyPath | None = option("Write compare.json and compare.html there.", "DIR", short="-o", default=None)
    _: KW_ONLY
    mechanism: Sequence[str] | None = option(
        "Ways of publishing, separated by commas or one at a time; the others are compared with the first.",
        "LIST",
        shown="rounding:5,controlled:5,rounding:10,nearest:5,laplace:1.45,gaussian:2",
        split=True,
        default=None,
    )
    what_if: Sequence[str] | None = option(
        "Changes to today's practice, in place of {mechanism}: drop-invariants, same-seed, base=N, no-totals, "
        "controlled, keyed, alike, any mechanism, or all.",
        "LIST",
        split=True,
        excludes=("mechanism",),
        default=None,
    )
    designs: str | None = option(
        "Tables of cell keys by their parameters, in place of {mechanism}: all, or ranges such as “D=1-4 V=1,2 js=0,2”.",
        "RANGES",
        excludes=("mechanism", "what_if"),
        default=None,
    )
    areas: int | None = option("How many areas to simulate.", shown="2000", excludes=("truth",), default=None)
    rows: str | None = option(
        "Which rows to simulate: age, short or income.", shown="age", excludes=("truth",), default=None
    )
    seed: int = option(SEED, default=11)
    seeds: int = option("How many times to publish in each way.", default=5)
    threshold: float = option(LIKELY, default=THRESHOLD)
    truth: Table | None = option("True counts of your own, in place of simulated ones.", "FILE", default=None)
    exact: Sequence[str] | None = option(
        "what is published exactly today. May be repeated.",
        "NAME",
        shown="population and dwellings, if there are any",
        needs=("truth",),
        default=None,
    )


FORMATS = ("statcan", "censusmapper", "tidy")
"""The layouts that `simulate` writes a census in."""


@group()
class Simulate(Progress):
    """The options of `simulate`."""

    out: AnyPath = option(OUT)
    _: KW_ONLY
    areas: int = option("How many areas, of all levels; the census of 2021 has 61,029.", default=1000)
    seed: int = option("The same seed gives the same census.", least=0, default=1)
    format: str | None = option(
        "statcan (bulk CSV), censusmapper (wide) or tidy.", "NAME", shown="statcan", choices=FORMATS, default=None
    )
    rows: str | None = option(
        "age (33 rows), short (462), income (140), sample (150) or all (2,631).",
        shown="age",
        excludes=("persons",),
        default=None,
    )
    levels: str | None = option(
        "Levels to write, such as da,csd,cd,province; also writes areas.csv.", "LIST", excludes=("persons",), default=None
    )
    figures: str = option(
        "Rates, averages and medians: from true or published counts, or none.",
        "SOURCE",
        choices=("true", "published", "none"),
        excludes=("persons",),
        default="true",
    )
    boundaries: bool = option(
        "Also write made-up shapes of all areas, for a map of the audit.", excludes=("persons",), default=False
    )
    mechanism: "Mechanism | str | None" = option(
        "how to publish counts.", "NAME:PARAMETER", shown="rounding:5", shell=str, needs=("persons",), default=None
    )
    persons: bool = option("Records, one row per person, and tables published from them.", default=False)
    keys: bool = option(
        "Round by the keys of records and a constant of every table; with {persons}, also cell keys.",
        default=False,
    )
    constant: float | None = option(
        "the constant of all tables, from 0 to 1.", "NUMBER", shown="drawn", least=0, most=1, needs=("keys",), default=None
    )
    people: int | None = option(
        "people in a typical area.", shown="400", least=1, most=100_000, needs=("persons",), default=None
    )
    tables: Sequence[str] | None = option(
        "profile, age_sex, age_sex_marital, age_sex_education, birthplace_language_religion, age_household_birthplace.",
        "LIST",
        shown="all",
        split=True,
        needs=("persons",),
        default=None,
    )


WAYS = ("exact", "rounding:3", "rounding:5", "rounding:10", "laplace:1.45", "controlled:5")
"""The ways of publishing that `reconstruct` compares."""


@group(kw_only=True)
class ReconstructOptions(Options):
    """What the user decides about a reconstruction."""

    attributes: Sequence[str] = option(
        "What a record consists of, such as age,sex,marital.", "LIST", shown="all in the tables", split=True, default=()
    )
    kind: Sequence[str] = option(
        "Attributes by which people are of the same kind.",
        "LIST",
        shown="birthplace, language, religion and the like",
        split=True,
        default=(),
    )
    seed: int = option(SEED, default=1)
    seeds: int = option("How many times to begin anew in every area.", least=1, default=3)
    worlds: int = option("How many fitting worlds to keep each time.", least=2, default=32)
    sample: int = option(
        "Areas in which ways of publishing are compared, tables left out, and claims proved.", least=0, default=40
    )
    ways: Sequence[str] = option(
        "Ways of publishing to compare there; or none.", "LIST", shown=",".join(WAYS), split=True, default=WAYS
    )


@group()
class Reconstruct(Reading, ReconstructOptions):
    """The options of `reconstruct`."""

    table: Table = argument("Tables over the same people: any that audit reads.", "RELEASE...")
    out: AnyPath = option(OUT)
    _: KW_ONLY
    truth: AnyPath | None = option(
        "The records behind the tables, one row per person: CSV or Parquet.", "PERSONS", default=None
    )
