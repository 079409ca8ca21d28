"""The shape of the command line: commands in groups, no line cut short, and spellings that still work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from unround.cli.voice import may_be_quiet

Commands = Mapping[str, Sequence[Callable[..., None]]]
"""The commands of every group, by its title, in the order of --help."""

OLD_NAMES: Mapping[str, str] = {"--mechanisms": "--mechanism"}
"""Options by the names they had before."""

BARE: Mapping[str, tuple[str, tuple[str, ...]]] = {"--estimates": ("means", ("means", "distributions"))}
"""Options that may be given without a value: what that means, and the values they take."""


class Command(TyperCommand):
    """A command that also understands options as they were called before, and options with a value that may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed."""
        return super().parse_args(ctx, as_spelt_today(args, self._spellings()))

    def _spellings(self) -> set[str]:
        return {spelling for one in self.params for spelling in one.opts}


def as_spelt_today(args: Sequence[str], known: set[str]) -> list[str]:
    """Return the words of a command line in today's spelling; `known` are the options of the command.

    Examples
    --------
    >>> as_spelt_today(["--mechanisms", "rounding:5"], {"--mechanism"})
    ['--mechanism', 'rounding:5']
    >>> as_spelt_today(["--estimates", "-o", "audit"], {"--estimates", "-o"})
    ['--estimates', 'means', '-o', 'audit']
    """
    end = list(args).index("--") if "--" in args else len(args)
    spelt: list[str] = []
    for at, word in enumerate(args[:end]):
        name, equals, value = word.partition("=")
        if OLD_NAMES.get(name) in known and name not in known:
            name = OLD_NAMES[name]
        spelt.append(f"{name}{equals}{value}")
        if word in BARE and word in known and (at + 1 == end or args[at + 1] not in BARE[word][1]):
            spelt.append(BARE[word][0])
    return [*spelt, *args[end:]]


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


def listing(groups: Commands) -> type[Groups]:
    """Return the class that lists these groups of commands."""
    titles = {title: tuple(command.__name__ for command in commands) for title, commands in groups.items()}
    return type("Listing", (Groups,), {"titles": titles})


def add_commands(app: typer.Typer, groups: Commands) -> None:
    """Add all commands to the command line, each with --quiet."""
    for commands in groups.values():
        for command in commands:
            # Given as short_help, the first line is shown whole; it would be cut after 45 letters.
            first = (command.__doc__ or "").strip().partition("\n")[0]
            app.command(cls=Command, short_help=first)(may_be_quiet(command))
