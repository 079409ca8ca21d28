"""Addresses: every area and every cell has one, whatever signs its code holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+,:")
"""Signs that stand for themselves. Others become ~ and two hexadecimal digits a byte: percent signs would not do, because
servers turn %2F back into a slash before anybody can tell it from one that separates."""


def segment(text: str) -> str:
    """Return a text as one segment of a path; `meant` turns it back.

    Examples
    --------
    >>> segment("65+/men"), meant(segment("65+/men"))
    ('65+~2Fmen', '65+/men')
    """
    return "".join(sign if sign in PLAIN else "".join(f"~{byte:02X}" for byte in sign.encode()) for sign in text) or "~"


def meant(path: str) -> str:
    """Return the text that a segment stands for. What nobody could have written so stands for itself."""
    if path == "~":
        return ""
    turned = re.sub(rb"~([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), path.encode())
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


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return an address with parameters; those that say nothing are left out."""
    pairs = [(name, value) for name, value in query.items() if value not in (None, "", (), [])]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path
