"""A page, before it becomes HTML, JSON or CSV; and addresses: every area and cell has one, whatever its code holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.datastructures import QueryParams

from unround.errors import InputError
from unround.show.parts import Links, Part
from unround.show.site import with_query

if TYPE_CHECKING:
    from unround.web.explorer import Explorer
    from unround.web.trial import Bench

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+,:")
"""Characters that stand for themselves. Others become ~ and two hexadecimal digits a byte: percent signs would not do,
because servers turn %2F back into a slash before anybody can tell it from one that separates."""


@lru_cache(maxsize=2048)  # the same codes and keys stand in hundreds of addresses of a page
def segment(text: str) -> str:
    """Return a text as one segment of a path; `meant` turns it back.

    >>> segment("65+/men"), meant(segment("65+/men"))
    ('65+~2Fmen', '65+/men')
    """
    return (
        "".join(
            character if character in PLAIN else "".join(f"~{byte:02X}" for byte in character.encode()) for character in text
        )
        or "~"
    )


def meant(path: str) -> str:
    """Return the text that a segment stands for. What nobody could have written so stands for itself."""
    if path == "~":
        return ""
    turned = re.sub(rb"~([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), path.encode())
    return turned.decode(errors="replace")


def area_address(code: str) -> str:
    """Return where an area is shown."""
    return f"/area/{segment(code)}"


def cell_address(code: str, key: str, under: str = "area") -> str:
    """Return where a cell is shown: the parts of its key keep their slashes."""
    return f"/{under}/{segment(code)}/{'/'.join(map(segment, key.split('/')))}"


def key_meant(path: str) -> str:
    """Return the key that the end of a cell's address stands for."""
    return "/".join(map(meant, path.split("/")))


PER_PAGE = 50
"""Rows of a long list that are shown at a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a visitor asks for: the audit, the parts of the path, the parameters, and where systems are solved.

    `whole` says that a list is wanted for an export, and not by the page.
    """

    explorer: Explorer
    path: Mapping[str, str]
    query: QueryParams
    bench: Bench
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """What a view answers with.

    - `title`, `parts`: Of the page.
    - `data`: What the JSON twin says.
    - `table`: Returns what the CSV export holds, a row each; None where there is nothing to export.
    - `status`: The HTTP status of the JSON twin: what is wrong with a text being typed is an error for a program, but for
      people it is an answer like any other.
    - `wide`: Whether the page needs all the room that there is.
    """

    title: str
    parts: Sequence[Part]
    data: Any
    table: Callable[[], list[dict[str, Any]]] | None = None
    status: int = 200
    wide: bool = False


class Missing(InputError):  # noqa: N818 - it says what is so, like `Infeasible`
    """There is nothing at this address."""


def whole(text: str) -> int | None:
    """Return the whole number that a text is; None where it is something else, or longer than any that we have.

    >>> whole("12"), whole("x"), whole("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


@dataclass(frozen=True, slots=True)
class ListPart:
    """The part of a long list that is shown: its number, out of how many, and its rows."""

    number: int
    pages: int
    first: int
    last: int
    total: int

    @classmethod
    def of(cls, query: QueryParams, total: int, size: int = PER_PAGE) -> ListPart:
        """Read which part is wanted."""
        text = query.get("page") or "1"
        pages = max(1, -(-total // size))
        number = whole(text) or 0
        if not 1 <= number <= pages:
            raise Missing(f"there is no page {text}: this list has {pages:,}.")
        return cls(number, pages, (number - 1) * size, min(number * size, total), total)

    def to_json(self) -> dict[str, int]:
        """Return it as plain data."""
        return {"page": self.number, "pages": self.pages, "total": self.total}


def pager(part: ListPart, path: str, parameters: Mapping[str, object]) -> Links:
    """Lead to the pages before and after one of a long list."""
    if part.pages == 1:
        return Links([])
    before = with_query(path, {**parameters, "page": part.number - 1}) if part.number > 1 else ""
    after = with_query(path, {**parameters, "page": part.number + 1}) if part.number < part.pages else ""
    shown = f"{part.first + 1:,}–{part.last:,} of {part.total:,}"
    return Links([("← Previous", before), (shown, ""), ("Next →", after)], "pager", "Pages", " ")


def crumbs(items: Sequence[tuple[str, str]]) -> Links:
    """Lead back to what a page belongs to."""
    return Links(items, "crumbs", "Where you are", " › ")
