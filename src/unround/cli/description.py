"""The command about tables of one's own: describe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unround import api
from unround.cli.common import Json, Sheet, console, print_json, say, tell
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.tables import Question


def describe(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The table: XLSX, ODS, CSV, Parquet or PX.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="TOML", help="Write the description into a file, which must not exist yet."),
    ] = None,
    sheet: Sheet = None,
    header: Annotated[
        str | None,
        typer.Option(metavar="ROWS", help="Rows of the header, such as 4 or 4-5.", show_default="looked for"),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of counts, if several columns hold numbers.")
    ] = None,
    base: Annotated[
        int | None,
        typer.Option(help="Base to which counts were randomly rounded.", show_default="inferred from the counts"),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="How counts were published, such as sample:5; in place of --base.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; take the default answers.")] = False,
    json: Json = False,
) -> None:
    """Look at a table of your own, say what is taken for what, and draft its description.

    \b
    Examples:
      unround describe draft.xlsx                        what its rows, columns, totals and signs are taken for
      unround describe draft.xlsx -o draft.toml          the same, written down, to be read and corrected
      unround audit draft.xlsx --describe draft.toml -o audit
      unround describe draft.xlsx --sheet "Table 2" --header 4-5
      unround describe table.csv --value persons         if several columns hold numbers

    Sums are suggested by names (Total, Both sexes, _T, Insgesamt; ages that make up another age), and each is verified on
    the counts. What cannot be known is asked if a person is at the terminal, and assumed otherwise. Other commands take
    such a file directly and describe it on the way; a description beside the table, under the same name, is found by itself.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    interactive = not yes and not json and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    found = api.describe(
        file,
        output,
        sheet=sheet,
        header=_rows(header),
        value=value,
        base=base,
        mechanism=mechanism,
        ask=_ask if interactive else None,
    )
    if json:
        print_json(found.to_json())
        return
    from unround.show.terminal.describe import show_description

    show_description(found, console(), draft=output is None)
    if output is not None:
        say(f"Description written: {output}. Read it, then run: unround audit {output} -o audit", err=True)


def _rows(text: str | None) -> list[int] | None:
    """Return the rows of a header as they are typed: 4, 4-5 or 4,5."""
    if text is None:
        return None
    first, dash, last = (part.strip() for part in text.partition("-"))
    pieces = [part.strip() for part in text.split(",")] if not dash else [first, last]
    if not all(piece.isdigit() and 0 < int(piece) < 10_000 for piece in pieces) or (dash and int(first) > int(last)):
        raise InputError(f"--header must be rows, counted from 1, such as 4 or 4-5; not {text!r}.")
    return list(range(int(first), int(last) + 1)) if dash else sorted({int(piece) for piece in pieces})


def _ask(question: Question) -> str:
    """Ask at the terminal: the number of an answer, or nothing for the default."""
    tell(question.text)
    for number, choice in enumerate(question.choices, start=1):
        tell(f"  {number}  {choice}")
    default = str(question.choices.index(question.default) + 1) if question.default in question.choices else ""
    while True:
        typed = typer.prompt("Number", default=default, show_default=bool(default)).strip()
        if typed.isdigit() and 1 <= int(typed) <= len(question.choices):
            return question.choices[int(typed) - 1]
        if typed in question.choices:
            return str(typed)
