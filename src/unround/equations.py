"""Equations as typed text, read into a System.

A statement is `operand` or `total = part + part + …`. It ends at the end of the line or at a semicolon; a line that ends
in `=` or `+` continues on the next. An operand is a name, a value, or `name: value`:

    value    meaning
    20       published, protected by the default mechanism
    48!      exact
    9 @3     rounded to base 3; any mechanism may follow the @, as in 20 @laplace:1.45
    10 ~5    within 5 of the true count
    ?        not published
    ?1..7    not published, but known to be from 1 to 7

Names are letters, digits and `_`, or anything in double quotes. `#` starts a comment.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Rounding, Suppressed, Unpublished, Within, mechanism
from unround.system import Cell, Sum, System, check_sum

TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\f\v\u00a0\u202f]+ | \#[^\n]*)
    | (?P<end>[\n;])
    | (?P<name>"[^"\n]*")
    | (?P<number>[-−]?(?:\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+|\d+)(?:\.\d+)?(?![\w.]|,\d)|[-−]?\d+(?=\.\.))
    | (?P<word>\w+)
    | (?P<at>@[ \t]*(?:graduated:[\d=,]+|[^\s+=;\#]*))
    | (?P<mark>\.\.|[!~?:=+])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of the text, and where it starts."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Value:
    """A published value as typed, with the mechanism that its marks name (None: the default)."""

    published: int | None
    mechanism: Mechanism | None
    token: Token


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a sum: a name, a value, or a name with its value."""

    name: str | None
    value: Value | None
    token: Token


class EquationReader:
    """Reads one text. Every error points at its cause."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.tokens = list(self._tokens())
        self.at = 0

    def error(self, message: str, position: int) -> InputError:
        """Make the error that points at a position of the text."""
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return InputError(message, source=self.text, line=line, column=column, where=self.where)

    def _tokens(self) -> Iterator[Token]:
        position = 0
        while position < len(self.text):
            match = TOKEN.match(self.text, position)
            if match is None:
                raise self.error(self._unreadable(position), position)
            kind = match.lastgroup or ""
            if kind != "space":
                yield Token(kind, match.group(), position)
            position = match.end()

    def _unreadable(self, position: int) -> str:
        rest = self.text[position:]
        if rest.startswith('"'):
            return "this name is missing its closing quote."
        if rest[0] in "-−":
            return "write sums with + only, and a negative published value as in -2."
        if rest[0] in "<≤":
            return f"unexpected {rest[0]!r}. Write a hidden count known to be under 5 as ?0..4."
        if re.match(r"[-−]?\d", rest) or (rest[0] in ",." and self.text[position - 1 : position].isdigit()):
            return "this is not a whole number. Write counts like 1234 or 1,234."
        return f"unexpected {rest[0]!r}. Put names with special characters in double quotes."

    def peek(self) -> Token | None:
        """Return the next token without taking it."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these marks."""
        token = self.peek()
        if token is not None and token.kind in ("mark", "end") and token.text in texts:
            self.at += 1
            return token
        return None

    def statements(self) -> Iterator[tuple[list[Operand], list[Operand] | None]]:
        """Go through the statements: the operands left of `=`, and those right of it (None without one)."""
        while True:
            while self.take("\n", ";"):
                pass
            if self.peek() is None:
                return
            left = self._operands()
            equals = self.take("=")
            right = self._operands() if equals else None
            token = self.peek()
            if token is not None and token.kind != "end":
                raise self.error(self._misplaced(token, right is not None), token.position)
            yield left, right

    @staticmethod
    def _misplaced(token: Token, has_equals: bool) -> str:
        if token.text == "=":
            return "a statement holds one sum: start a new line (or use ;) for the next."
        if token.text == ":":
            return "a name takes a single value."
        quotes = "Put names with spaces or symbols in double quotes."
        if token.kind in ("number", "word", "name"):
            if has_equals:
                return f"there is no + before {token.text}. {quotes}"
            return f"unexpected {token.text}. Write a cell as `name: value`. {quotes}"
        return f"unexpected {token.text!r}."

    def _operands(self) -> list[Operand]:
        operands = [self._operand()]
        while self.take("+"):
            operands.append(self._operand())
        return operands

    def _operand(self) -> Operand:
        if self.at and self.tokens[self.at - 1].text in ("=", "+"):
            while self.take("\n"):
                pass  # a line that ends in = or + continues
        token = self.peek()
        if token is None or token.kind == "end":
            raise self.error("a value or a name is missing here.", token.position if token else len(self.text))
        if token.kind in ("name", "word", "number"):
            self.at += 1
            if self.take(":"):
                return Operand(self._name(token), self._value(), token)
            if token.kind != "number":
                return Operand(self._name(token), None, token)
            self.at -= 1
        return Operand(None, self._value(), token)

    def _name(self, token: Token) -> str:
        name = token.text.strip('"') if token.kind == "name" else token.text
        if not name.strip():
            raise self.error("a name cannot be empty.", token.position)
        return name

    def _value(self) -> Value:
        token = self.peek()
        if token is None or not (token.kind == "number" or token.text == "?"):
            spot = token.position if token else len(self.text)
            raise self.error("a value is missing here: a whole number, or ? for one that was not published.", spot)
        self.at += 1
        if token.text == "?":
            following = self.peek()
            if following is None or following.kind != "number":
                return Value(None, Unpublished(), token)
            low = self._whole()
            if not self.take(".."):
                raise self.error("write a range as in ?1..7.", following.position)
            return Value(None, self._built(lambda: Suppressed(low, self._whole()), following), token)
        published = self._integer(token)
        following = self.peek()
        if self.take("!"):
            return Value(published, Exact(), token)
        if self.take("~"):
            assert following is not None
            return Value(published, self._built(lambda: Within(self._whole()), following), token)
        if following is not None and following.kind == "at":
            self.at += 1
            spec = following.text[1:].strip()
            spec = f"rounding:{spec}" if re.fullmatch(r"-?\d+", spec) else spec
            return Value(published, self._built(lambda: mechanism(spec), following), token)
        return Value(published, None, token)

    def _whole(self) -> int:
        token = self.peek()
        if token is None or token.kind != "number":
            raise self.error("a whole number is missing here.", token.position if token else len(self.text))
        self.at += 1
        return self._integer(token)

    def _integer(self, token: Token) -> int:
        if "." in token.text:
            raise self.error("counts must be whole numbers.", token.position)
        digits = re.sub(r"[,\u00a0\u202f\u2009]", "", token.text).replace("−", "-")
        if len(digits) > 16:
            raise self.error("this number is too large for a count.", token.position)
        return int(digits)

    def _built(self, build, token: Token) -> Mechanism:  # type: ignore[no-untyped-def] # a lambda, typed by its use
        try:
            made: Mechanism = build()
        except InputError as problem:
            raise (problem if problem.line else self.error(problem.message, token.position)) from None
        return made


def parse(text: str, mechanism: Mechanism | str | None = None, where: str = "<text>") -> System:
    """Read equation text into a System.

    Parameters
    ----------
    text : str
        Statements as this module's docstring describes them.
    mechanism : Mechanism or str, optional
        How values without a mark of their own are protected, as an object or by name ("laplace:1.45"); by default random
        rounding to base 5.
    where : str
        What errors call the text, such as a file's name.

    Raises
    ------
    InputError
        With the line and column that could not be read.

    Examples
    --------
    >>> system = parse("87! = men: 35 + women: 45")
    >>> [(cell.name, cell.published) for cell in system.cells]
    [('total', 87), ('men', 35), ('women', 45)]
    """
    reader = EquationReader(text, where)
    statements = list(reader.statements())
    default = _default(mechanism)
    cells: dict[str, Cell] = {}

    # 1. Every named value is a cell, wherever it is: names may be used before the line that declares them.
    for left, right in statements:
        for operand in [*left, *(right or [])]:
            if operand.name is not None and operand.value is not None:
                if operand.name in cells:
                    raise reader.error(f"{operand.name!r} already has a value.", operand.token.position)
                cells[operand.name] = _cell(reader, operand.name, operand.value, default)

    # 2. Sums: names are looked up, bare values become cells of their own.
    unnamed = _Unnamed(reader, cells, default)
    sums = []
    for left, right in statements:
        if right is None:
            if len(left) > 1 or left[0].value is None or left[0].name is None:
                spot = left[0].token
                raise reader.error("this line is neither `name: value` nor a sum with =.", spot.position)
            continue
        if len(left) > 1 and len(right) > 1:
            raise reader.error("one side of a sum must be a single total.", left[0].token.position)
        (head,), parts = (left, right) if len(left) == 1 else (right, left)
        names = [unnamed.resolve(head, True), *(unnamed.resolve(part, False) for part in parts)]
        unnamed.end_sum()
        one = Sum(names[0], tuple(names[1:]))
        try:
            check_sum(one, cells)
        except InputError as problem:
            raise reader.error(problem.message, head.token.position) from None
        sums.append(one)
    if not cells:
        raise reader.error('there is nothing to solve. Try "48! = 20 + 20 + 20".', 0)
    return System(_as_written(cells, sums, statements), sums)


def _default(given: Mechanism | str | None) -> Mechanism:
    if given is None:
        return Rounding(5)
    return mechanism(given) if isinstance(given, str) else given


def _cell(reader: EquationReader, name: str, value: Value, default: Mechanism) -> Cell:
    how = value.mechanism or default
    if isinstance(how, Unpublished) and isinstance(default, Suppressed):
        how = default  # where small counts are hidden, a missing count is one of them
    cell = Cell(name, value.published, how)
    try:
        cell.mechanism.window(cell.published)
    except InputError as problem:
        raise reader.error(problem.message, value.token.position) from None
    return cell


def _as_written(
    cells: dict[str, Cell], sums: list[Sum], statements: list[tuple[list[Operand], list[Operand] | None]]
) -> Iterator[Cell]:
    """Return cells in the order in which they first appear, whether declared separately or inside a sum."""
    pending = iter(sums)
    order: dict[str, None] = {}
    for left, right in statements:
        if right is None:
            order.setdefault(str(left[0].name))
        else:
            one = next(pending)
            order.update(dict.fromkeys((one.total, *one.parts)))
    return (cells[name] for name in order)


Typed = tuple[int | None, Mechanism | None]
"""A bare value as it was typed, marks included: 10 and 10! cannot be the same cell."""


class _Unnamed:
    """Names cells without a name: total, total2 and so on; part1, part2 and so on."""

    def __init__(self, reader: EquationReader, cells: dict[str, Cell], default: Mechanism) -> None:
        self.reader = reader
        self.cells = cells
        self.default = default
        self.anywhere: set[Typed] = set()
        self.as_total: set[Typed] = set()
        self.current: list[Typed] = []
        self.has_total = False
        self.totals = 0
        self.parts = 0

    def resolve(self, operand: Operand, is_total: bool) -> str:
        """Return the name of the cell that an operand stands for, making the cell if it is a bare value."""
        if operand.name is not None:
            if operand.name not in self.cells:
                raise self.reader.error(self._unknown(operand.name), operand.token.position)
            return operand.name
        assert operand.value is not None
        value = operand.value
        bare = value.mechanism is None
        if bare and operand.token.text in self.cells:
            return operand.token.text  # a cell whose name is a number
        published = value.published
        typed = (published, value.mechanism)
        if typed in (self.anywhere if is_total else self.as_total):
            raise self.reader.error(
                f"{published} is in two sums, and it is unclear whether both mean the same cell. Name it where it first "
                f"appears, as in `a: {published}`, and use the name here.",
                operand.token.position,
            )
        name = self._next(is_total)
        self.cells[name] = _cell(self.reader, name, value, self.default)
        if published is not None:
            self.current.append(typed)
            self.has_total |= is_total  # a total is resolved before its parts
        return name

    def end_sum(self) -> None:
        """Remember the bare values of the sum just read: a repeated one could be the same cell."""
        self.anywhere.update(self.current)
        self.as_total.update(self.current[: self.has_total])
        self.current, self.has_total = [], False

    def _next(self, is_total: bool) -> str:
        while True:
            if is_total:
                self.totals += 1
                name = "total" if self.totals == 1 else f"total{self.totals}"
            else:
                self.parts += 1
                name = f"part{self.parts}"
            if name not in self.cells:
                return name

    def _unknown(self, name: str) -> str:
        # Among a million names, finding a similar one would take minutes.
        near = difflib.get_close_matches(name[:80], list(islice(self.cells, 5_000)), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"there is no cell named {name!r}.{hint} Give it a value, as in `{name}: 30`."
