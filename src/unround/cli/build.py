"""The command line is built from what `options` declares: a command takes the options of its function."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import typer
from typer.core import TyperGroup

from unround.cli.voice import Quiet, quietly, stages, tell
from unround.errors import ArgumentError, InputError, renamed
from unround.options import Argument, Hook, Option, declaration, in_order, type_of

_Other = TypeVar("_Other")
_Result = TypeVar("_Result")


class Call(Generic[_Result]):
    """A function of `api` with what was typed; calling it runs the function, and shows how far it is."""

    def __init__(self, function: Callable[..., _Result], typed: Mapping[str, Any]) -> None:
        self._function = function
        self.typed = typed

    def __call__(self, **more: Any) -> _Result:
        """Run the function, with what a program has to add."""
        known = {field.name for field in fields(self._function.group)}  # type: ignore[attr-defined]
        command = {"command": shlex.join(["unround", *sys.argv[1:]])} if "command" in known else {}
        with stages() if "progress" in known else nullcontext() as progress:
            progressing = {} if progress is None else {"progress": progress}
            return self._function(**{**self.typed, **command, **progressing, **more})

    def of(self, function: Callable[..., _Other], asked: str) -> Call[_Other]:
        """Return the call of another function with what was typed beside the option that asks for it.

        Raises `InputError` where something was typed that it does not take.
        """
        known = {field.name for field in fields(function.group)}  # type: ignore[attr-defined]
        for field in fields(self._function.group):  # type: ignore[attr-defined]
            given = self.typed.get(field.name, field.default)
            is_typed = not isinstance(declaration(field), Argument | Hook) and given not in (field.default, None, [], ())
            if is_typed and field.name not in known:
                raise InputError(f"{option(field.name)} has no meaning with {asked}: leave out one of the two.")
        return Call(function, {name: value for name, value in self.typed.items() if name in known})


@dataclass(frozen=True)
class Command:
    """A command: the function that it calls, what it shows of the result, and examples for --help."""

    function: Callable[..., Any]
    show: Callable[..., None]
    examples: str

    @property
    def name(self) -> str:
        """What is typed."""
        return self.function.__name__


def command(function: Callable[..., Any], examples: str = "") -> Callable[[Callable[..., None]], Command]:
    """Make a command of a function that shows the result of another; its keywords are options of the command line alone.

    Its examples are those of its name in help.txt, unless they are given.
    """
    return lambda show: Command(function, show, inspect.cleandoc(examples) or _examples()[function.__name__])


@cache
def _examples() -> dict[str, str]:
    """Return the text of help.txt by command."""
    sections = Path(__file__).with_name("help.txt").read_text(encoding="utf-8").split("\n== ")[1:]
    return {name: text.strip() for name, _, text in (section.partition("\n") for section in sections)}


def option(name: str) -> str:
    """Return an option as it is typed."""
    return f"--{name.replace('_', '-')}"


def one_of(words: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what a shell asks for the words that may follow an option."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


_GO_ON = ("clamped", "js=", "pstay=", "repeat=")
"""Words that are not a mechanism of their own, but belong to the one before."""


def listed(text: str) -> list[str]:
    """Split a list at its commas, except those within the parameters of a mechanism; "none" is an empty list."""
    names: list[str] = []
    for piece in (part.strip() for part in text.split(",")):
        # A piece that starts with a number, or is not a name of its own, continues the parameters of the one before.
        if names and ":" in names[-1] and (piece[:1].isdigit() or piece[:1] in "+-." or piece.startswith(_GO_ON)):
            names[-1] += f",{piece}"
        elif piece:
            names.append(piece)
    return names if names != ["none"] else []


def _parameter(name: str, declared: Option, kind: Any, default: Any) -> inspect.Parameter:
    """Return an option as typer wants it."""
    words = renamed(declared.text, option)
    several = kind == Sequence[str] or (declared.metavar or "").endswith("...")
    shell = declared.shell or (kind if kind in (int, float, bool, str) else str if kind == Sequence[str] else Path)
    needed = default is MISSING
    if isinstance(declared, Argument):
        placed = typer.Argument(metavar=declared.metavar, help=words)
    else:
        spelled = f"{option(name)}/--no-{name}" if default is True else option(name)
        placed = typer.Option(
            *([declared.short] if declared.short else []),
            spelled,
            metavar=declared.metavar,
            help=words,
            show_default=declared.shown or not (several or needed or any(default is empty for empty in (None, False, ""))),
            autocompletion=one_of(declared.choices) if declared.choices else None,
        )
    typed = list[shell] if several else shell  # type: ignore[valid-type]
    if not needed and (several or default is None):
        typed, default = typed | None, None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if needed else default,
        annotation=Annotated[typed, placed],
    )


def _of_field(field: Field[Any]) -> inspect.Parameter:
    return _parameter(field.name, declaration(field), type_of(field)[0], field.default)


def _as_given(field: Field[Any], value: Any) -> Any:
    """Return what was typed as the function takes it."""
    if value in (None, []) and field.default is not MISSING:
        return field.default
    if not declaration(field).split:
        return value
    names = listed(",".join(value))
    if not names and "none" not in value:
        raise ArgumentError(f"{{{field.name}}} is empty: name at least one.")
    return names


def typed_command(made: Command) -> Callable[..., None]:
    """Return a command as a function for typer: its parameters are the options of both functions, and --quiet."""
    of_function = [field for field in in_order(made.function.group) if not isinstance(declaration(field), Hook)]  # type: ignore[attr-defined]
    of_shell = [
        parameter.replace(annotation=eval(parameter.annotation, made.show.__globals__))
        for parameter in inspect.signature(made.show).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    quietness = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)

    def run(*, quiet: bool = False, **typed: Any) -> None:
        shown = {parameter.name: typed.pop(parameter.name) for parameter in of_shell}
        given = {field.name: _as_given(field, typed[field.name]) for field in of_function}
        try:
            with quietly(quiet):
                made.show(Call(made.function, given), **shown)
        except KeyboardInterrupt as stop:  # typer would end without a word
            tell(str(stop) or "interrupted: nothing was written", err=True)
            raise typer.Exit(130) from None

    asked = [*map(_of_field, of_function), *of_shell, quietness]
    run.__name__ = made.name
    run.__doc__ = f"{summary(made)}\n\n{_kept_apart(made.examples)}"
    run.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in asked}
    return run


def summary(made: Command) -> str:
    """Return the first sentence of what a function says about itself."""
    return inspect.cleandoc(made.function.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _kept_apart(text: str) -> str:
    """Mark paragraphs whose lines are to stay as they are: those with an indented line."""
    return "\n\n".join(f"\b\n{piece}" if "\n  " in piece else piece for piece in text.split("\n\n"))


class Groups(TyperGroup):
    """All commands, listed in groups by --help."""

    titles: Mapping[str, Sequence[str]]
    """The names of the commands of every group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click passes it
        """List the commands, a section for each group."""
        width = max(map(len, self.commands))
        for title, names in self.titles.items():
            with formatter.section(title):
                # Names are padded alike, so that the sections line up.
                formatter.write_dl([(f"{name:{width}}", self.commands[name].get_short_help_str()) for name in names])


def built(name: str, help_text: str, epilog: str, groups: Mapping[str, Sequence[Command]]) -> typer.Typer:
    """Return a command line with these commands, listed by --help in groups."""
    titles = {title: tuple(made.name for made in commands) for title, commands in groups.items()}
    app = typer.Typer(
        name=name,
        cls=type("Listing", (Groups,), {"titles": titles}),
        help=help_text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: it starts in half the time, and examples keep their lines
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog,
    )
    for single in (made for commands in groups.values() for made in commands):
        # Given as short_help, the first line is shown whole; it would be cut after 45 letters.
        app.command(short_help=summary(single))(typed_command(single))
    return app
