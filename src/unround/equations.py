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

A statement may also be a figure, computed from true counts and rounded:

    x / T = 12.4%                                               a rate; also 0.124, or 124 per 1000
    mean age of N (young 0..14, middle 15..64, old 65..) = 38.2   of units in groups, with the edges of each
    median age (young 0..14, middle 15..64, old 65..) = 40.5      of whatever total the groups add up to

It was rounded to the last digit that is shown, unless `step 0.2`, say, follows.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind, Group
from unround.mechanisms import Exact, Mechanism, Rounding, Suppressed, Unpublished, Within
from unround.mechanisms import mechanism as mechanism_named
from unround.system import Cell, PublishedFigure, Sum, System, check_sum

TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\f\v\u00a0\u202f]+ | \#[^\n]*)
    | (?P<end>[\n;])
    | (?P<name>"[^"\n]*")
    | (?P<number>[-−]?(?:\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+|\d+)(?:\.\d+)?(?![\w.]|,\d)|[-−]?\d+(?:\.\d+)?(?=\.\.))
    | (?P<word>\w+)
    | (?P<at>@[ \t]*(?:graduated:[\d=,]+|[^\s+=;\#]*))
    | (?P<mark>\.\.|[!~?:=+/%()]|,(?!\d))
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


@dataclass(frozen=True, slots=True)
class GroupEdges:
    """A group of a mean or a median: its cell, and the values of its units; None where a group is open."""

    cell: Operand
    low: Fraction | None
    high: Fraction | None


@dataclass(frozen=True, slots=True)
class FigureText:
    """A figure as typed."""

    kind: FigureKind  # rate, mean or median
    name: str  # what a mean or a median is called; "" where it has no name of its own
    operands: tuple[Operand, ...]  # of a rate, numerator and universe; of the others the universe, where it is named
    groups: tuple[GroupEdges, ...]  # of a mean or a median
    value: Fraction  # as published, and the step that it was rounded to; what a rate of one is printed as
    step: Fraction
    per: Fraction
    token: Token  # where it begins


Statement = tuple[list[Operand], list[Operand] | None] | FigureText
"""The operands left of `=`, and those right of it (None without one); or a figure."""


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

    def statements(self) -> Iterator[Statement]:
        """Go through the statements."""
        while True:
            while self.take("\n", ";"):
                pass
            if self.peek() is None:
                return
            statement = self._statement()
            token = self.peek()
            if token is not None and token.kind != "end":
                has_equals = isinstance(statement, tuple) and statement[1] is not None
                raise self.error(self._misplaced(token, has_equals), token.position)
            yield statement

    def _statement(self) -> Statement:
        begin = self.peek()
        average = self._average()
        if average is not None:
            return average
        left = self._operands()
        if len(left) == 1 and self.take("/"):
            assert begin is not None
            operands = (left[0], self._operand())
            unnamed = next((operand.token for operand in operands if operand.name is None), None)
            if unnamed is not None:
                raise self.error("a rate is of named cells, as in `x: 60; T: 500; x / T = 12.4%`.", unnamed.position)
            return FigureText(FigureKind.RATE, "", operands, (), *self._figure_value(rate=True), begin)
        return left, self._operands() if self.take("=") else None

    def _average(self) -> FigureText | None:
        """Read `mean age of N (young 0..14, …) = 38.2`; None if a statement is neither a mean nor a median."""
        begin = self.peek()
        if begin is None or begin.kind != "word" or begin.text not in (FigureKind.MEAN, FigureKind.MEDIAN):
            return None
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if following is None or not (following.kind in ("word", "name") or following.text == "("):
            return None  # a cell with this name
        self.at += 1
        name, universe = "", list[Operand]()
        if following.text != "of" and following.text != "(":
            self.at += 1
            name = self._name(following)
        of = self.peek()
        if of is not None and of.kind == "word" and of.text == "of":
            self.at += 1
            universe.append(self._named_cell("the total that the groups make up"))
        self._expect("(", "the groups are missing here, as in (young 0..14, middle 15..64, old 65..).")
        groups = [self._group()]
        while self.take(","):
            groups.append(self._group())
        self._expect(")", "a comma or ) is missing here.")
        value = self._figure_value(rate=False)
        return FigureText(FigureKind(begin.text), name, tuple(universe), tuple(groups), *value, begin)

    def _group(self) -> GroupEdges:
        while self.take("\n"):
            pass  # groups may stand on lines of their own
        cell = self._named_cell("a group, as in young 0..14,")
        spot = self.peek()
        low = self._edge()
        high = self._edge() if self.take("..") else low
        while self.take("\n"):
            pass
        if low is None and high is None:
            raise self.error("the values of this group are missing, as in 0..14, 65.. or 3.", self._spot(spot))
        if low is not None and high is not None and low > high:
            raise self.error("the lower edge of a group is not above the upper one.", self._spot(spot))
        return GroupEdges(cell, low, high)

    def _number(self, missing: str) -> Token:
        """Take the next token if it is a number."""
        token = self.peek()
        if token is None or token.kind != "number":
            raise self.error(missing, self._spot(token))
        self.at += 1
        return token

    def _edge(self) -> Fraction | None:
        token = self.peek()
        return None if token is None or token.kind != "number" else self._decimal(self._number(""))

    def _named_cell(self, what: str) -> Operand:
        token = self.peek()
        if token is None or token.kind not in ("word", "name"):
            raise self.error(f"the name of {what} is missing here.", self._spot(token))
        self.at += 1
        return Operand(self._name(token), None, token)

    def _expect(self, mark: str, message: str) -> None:
        if not self.take(mark):
            raise self.error(message, self._spot(self.peek()))

    def _spot(self, token: Token | None) -> int:
        return token.position if token else len(self.text)

    def _figure_value(self, rate: bool) -> tuple[Fraction, Fraction, Fraction]:
        """Read `= 12.4%`: the value, the step, and what a rate of one is printed as."""
        self._expect("=", "= and the published value are missing here.")
        token = self._number("the published value is missing here, as in 12.4%.")
        value, step, per = self._decimal(token), Fraction(1, 10 ** len(token.text.partition(".")[2])), Fraction(1)
        if rate and self.take("%"):
            per = Fraction(100)
        elif rate and self._word("per"):
            per = self._positive("what a rate of one is printed as, such as 1000,")
        if self._word("step"):
            step = self._positive("the step that it was rounded to")
        return value, step, per

    def _word(self, text: str) -> bool:
        token = self.peek()
        taken = token is not None and token.kind == "word" and token.text == text
        self.at += taken
        return taken

    def _positive(self, what: str) -> Fraction:
        missing = f"{what} is missing here: a number above 0."
        token = self._number(missing)
        if self._decimal(token) <= 0:
            raise self.error(missing, token.position)
        return self._decimal(token)

    def _decimal(self, token: Token) -> Fraction:
        return Fraction(self._digits(token, "this number has too many digits."))

    def _digits(self, token: Token, too_long: str) -> str:
        digits = re.sub(r"[,\u00a0\u202f\u2009]", "", token.text).replace("−", "-")
        if len(digits) > 16:
            raise self.error(too_long, token.position)
        return digits

    @staticmethod
    def _misplaced(token: Token, has_equals: bool) -> str:
        if token.text == "=":
            return "a statement holds one sum: start a new line (or use ;) for the next."
        if token.text == ":":
            return "a name takes a single value."
        if token.text == ",":
            return "this is not a whole number. Write counts like 1234 or 1,234."
        if token.text == "/":
            return "a rate is one cell divided by another, as in x / T = 12.4%."
        quotes = "Put names with spaces or symbols in double quotes."
        if token.kind in ("number", "word", "name"):
            if has_equals:
                return f"there is no + before {token.text}. {quotes}"
            return f"unexpected {token.text}. Write a cell as `name: value`. {quotes}"
        if token.text in "%()":
            return f"unexpected {token.text!r}. Put names with special characters in double quotes."
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
            raise self.error("a value or a name is missing here.", self._spot(token))
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
            message = "a value is missing here: a whole number, or ? for one that was not published."
            raise self.error(message, self._spot(token))
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
            return Value(published, self._built(lambda: mechanism_named(spec), following), token)
        return Value(published, None, token)

    def _whole(self) -> int:
        return self._integer(self._number("a whole number is missing here."))

    def _integer(self, token: Token) -> int:
        if "." in token.text:
            raise self.error("counts must be whole numbers.", token.position)
        return int(self._digits(token, "this number is too large for a count."))

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
    if not isinstance(text, str):
        raise InputError(f'a system is text, such as "48! = 20 + 20 + 20", not {text!r}.')
    reader = EquationReader(text, where)
    statements = list(reader.statements())
    default = Rounding(5) if mechanism is None else mechanism_named(mechanism)
    cells: dict[str, Cell] = {}

    # 1. Every named value is a cell, wherever it is: names may be used before the line that declares them.
    for statement in statements:
        for operand in _operands_of(statement):
            if operand.name is not None and operand.value is not None:
                if operand.name in cells:
                    raise reader.error(f"{operand.name!r} already has a value.", operand.token.position)
                cells[operand.name] = _cell(reader, operand.name, operand.value, default)

    # 2. Sums: names are looked up, bare values become cells of their own.
    unnamed = _Unnamed(reader, cells, default)
    sums, order = [], dict[str, None]()  # cells are listed as they first appear
    for statement in statements:
        if isinstance(statement, FigureText):
            order |= dict.fromkeys(str(operand.name) for operand in statement.operands)
            continue
        left, right = statement
        if right is None:
            if len(left) > 1 or left[0].value is None or left[0].name is None:
                spot = left[0].token
                raise reader.error("this line is neither `name: value` nor a sum with =.", spot.position)
            order.setdefault(left[0].name)
            continue
        if len(left) > 1 and len(right) > 1:
            raise reader.error("one side of a sum must be a single total.", left[0].token.position)
        (head,), parts = (left, right) if len(left) == 1 else (right, left)
        names = [unnamed.resolve(head, True), *(unnamed.resolve(part, False) for part in parts)]
        unnamed.end_sum()
        order |= dict.fromkeys(names)
        stated = Sum(names[0], tuple(names[1:]))
        try:
            check_sum(stated, cells)
        except InputError as problem:
            raise reader.error(problem.message, head.token.position) from None
        sums.append(stated)
    if not cells:
        raise reader.error('there is nothing to solve. Try "48! = 20 + 20 + 20".', 0)
    # 3. Figures, which name cells.
    figures: dict[str, PublishedFigure] = {}
    for statement in statements:
        if isinstance(statement, FigureText):
            published = _figure(statement, unnamed, sums)
            if figures.setdefault(published.figure.name, published) is not published:
                raise reader.error(f"there is already a figure called {published.figure.name!r}.", statement.token.position)
    return System((cells[name] for name in order), sums, figures.values())


def _operands_of(statement: Statement) -> Iterator[Operand]:
    if isinstance(statement, FigureText):
        yield from statement.operands
        return
    left, right = statement
    yield from left
    yield from right or []


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


def _figure(text: FigureText, unnamed: _Unnamed, sums: list[Sum]) -> PublishedFigure:
    """Make a figure of its text, once all cells and sums are known."""
    names = [unnamed.resolve(typed, False) for typed in text.operands]
    groups = tuple(Group(unnamed.resolve(typed.cell, False), typed.low, typed.high) for typed in text.groups)
    grid = FigureGrid.of(text.step)
    if text.kind is FigureKind.RATE:
        figure = Figure(f"{names[0]} / {names[1]}", text.kind, names[1], names[0], grid=grid, per=text.per)
        return PublishedFigure(figure, text.value)
    totals = names or [stated.total for stated in sums if set(stated.parts) == {group.count for group in groups}]
    if not totals:
        raise unnamed.reader.error(
            f"no sum has these groups as its parts. Say what they add up to, as in `{text.kind} age of N (…)`.",
            text.token.position,
        )
    return PublishedFigure(Figure(text.name or text.kind.value, text.kind, totals[0], groups=groups, grid=grid), text.value)


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
