"""Masks: formats of cells that show a text in place of the number that is in the file."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[0-9.]+)\]")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_NUMBER = re.compile(r"[0#?@ymdhsge/]|general", re.IGNORECASE)
_NIL = frozenset(("", "-", "–", "—", "0", "nil"))
"""What a nought may well be shown as."""
_ODF = "{urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0}"


def masks(code: str, value: float) -> bool:
    """Return whether a number format shows a number as a text, or not at all.

    Examples
    --------
    >>> masks('[<5]"<5";0', 3), masks('[<5]"<5";0', 7), masks(";;;", 3), masks('#,##0;-#,##0;"-"', 0), masks("General", 3)
    (True, False, True, False, False)
    """
    sections = re.split(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", code)
    conditions = [_CONDITION.search(section) for section in sections]
    if any(conditions):
        at = next((at for at, one in enumerate(conditions) if one and _holds(one[1], value, float(one[2]))), -1)
        if at < 0:
            at = next((at for at, one in enumerate(conditions) if one is None), len(sections) - 1)
    else:
        at = 0 if value > 0 or len(sections) < 2 else 1 if value < 0 else 2 if len(sections) > 2 else 0
    section = sections[at]
    shown = "".join(re.findall(r'"([^"]*)"', section)).strip()
    return not _NUMBER.search(_LITERAL.sub("", section)) and not (value == 0 and shown in _NIL)


def _holds(sign: str, value: float, bound: float) -> bool:
    below, above = "<" in sign and value < bound, ">" in sign and value > bound
    return below or above or ("=" in sign and value == bound)


def masking_styles(content: bytes) -> tuple[str, ...]:
    """Return the texts that the number styles of an ODS file show in place of any number."""
    found = []
    for style in ElementTree.fromstring(content).iter(f"{_ODF}number-style"):
        texts = "".join(text for part in style.iter(f"{_ODF}text") for text in part.itertext()).strip()
        digits = any(part.tag != f"{_ODF}text" and part.tag.startswith(_ODF) for part in style)
        if not digits and texts not in _NIL:
            found.append(texts)
    return tuple(dict.fromkeys(found))
