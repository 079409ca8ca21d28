"""The equation text: what is read, and how every complaint points at its spot."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unround.equations import parse
from unround.errors import InputError, UnroundError
from unround.figures import Figure, FigureGrid, FigureKind, Group
from unround.mechanisms import Exact, Graduated, Laplace, Rounding, Suppressed, Unpublished, Within
from unround.system import Cell, Sum, System

FILE = """\
# one cell a line, then the sums
population: 110!        # exact
age_0_14:   30          # rounded like the whole run
age_15_64:  65
age_65:     9 @3        # this cell: base 3
under_5:    10
under_10:   ?           # not published
under_15:   10 ~5       # within 5 of the truth
population = age_0_14 + age_15_64 + age_65
age_0_14 = under_5 + under_10 + under_15
"""


def test_a_line_of_numbers() -> None:
    assert parse("48! = 20 + 20 + 20") == System(
        [Cell("total", 48, Exact()), *(Cell(f"part{i}", 20, Rounding(5)) for i in (1, 2, 3))],
        [Sum("total", ("part1", "part2", "part3"))],
    )


def test_a_file_of_named_cells() -> None:
    assert parse(FILE) == System(
        [
            Cell("population", 110, Exact()),
            Cell("age_0_14", 30, Rounding(5)),
            Cell("age_15_64", 65, Rounding(5)),
            Cell("age_65", 9, Rounding(3)),
            Cell("under_5", 10, Rounding(5)),
            Cell("under_10", None, Unpublished()),
            Cell("under_15", 10, Within(5)),
        ],
        [
            Sum("population", ("age_0_14", "age_15_64", "age_65")),
            Sum("age_0_14", ("under_5", "under_10", "under_15")),
        ],
    )


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a: 1,234!", Cell("a", 1234, Exact())),
        ("a: 1\u00a0234\u202f567!", Cell("a", 1_234_567, Exact())),
        ("a: 12 @ 4", Cell("a", 12, Rounding(4))),
        ("a: -3 @laplace:1.45", Cell("a", -3, Laplace(1.45))),
        ("a: −3 @laplace:1.45", Cell("a", -3, Laplace(1.45))),
        ("a: ?1..7", Cell("a", None, Suppressed(1, 7))),
        ("a: 20 @graduated:0=3,20=5", Cell("a", 20, Graduated(((0, 3), (20, 5))))),
        ("a: ? 1 .. 7", Cell("a", None, Suppressed(1, 7))),
        ('"0 to 14 years; both + sexes": 15', Cell("0 to 14 years; both + sexes", 15, Rounding(5))),
        ("2021: 15", Cell("2021", 15, Rounding(5))),
        ("0_à_4: 15", Cell("0_à_4", 15, Rounding(5))),
        ("\t a :15;", Cell("a", 15, Rounding(5))),
    ],
)
def test_values_and_names(text: str, cell: Cell) -> None:
    assert parse(text).cells == (cell,)


def test_names_inside_sums_numbers_as_names_and_lines_that_go_on() -> None:
    system = parse("t: 60 = 1996 +\n\n # still\n 1997 + 20; 1996: 20; 1997: 20")
    assert system.sums == (Sum("t", ("1996", "1997", "part1")),)
    assert [cell.name for cell in system.cells] == ["t", "1996", "1997", "part1"]


def test_the_total_may_stand_on_either_side() -> None:
    assert parse("20 + 20 + 20 = 48!") == parse("48! = 20 + 20 + 20")


def test_unnamed_cells_of_several_sums_are_numbered_on() -> None:
    system = parse("48! = 20 + 20; part3: 5; 60 = 30 + 35")
    assert [cell.name for cell in system.cells] == [
        "total",
        "part1",
        "part2",
        "part3",
        "total2",
        "part4",
        "part5",
    ]


def test_the_mechanism_of_the_run_is_for_bare_values_only() -> None:
    system = parse("a: 9; b: 10 @5; c: 7!", Rounding(3))
    assert [cell.mechanism for cell in system.cells] == [Rounding(3), Rounding(5), Exact()]


def test_where_small_counts_are_hidden_a_missing_count_is_one_of_them() -> None:
    system = parse("40 = 20 + 15 + ?", "suppressed:1..7,nearest:5")
    assert list(system.cells[3].mechanism.window(None)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_sum_that_is_repeated_counts_once() -> None:
    assert len(parse("a: 5; b: 5; a = b; a = b").sums) == 1


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("48! = ", 1, 7, "a value or a name is missing"),
        ("48! = 20 + + 20", 1, 12, "a value is missing"),
        ("48! = 20 20", 1, 10, "there is no \\+ before 20"),
        ("48! = 20 = 20", 1, 10, "a statement holds one sum"),
        ("1 + 2 = 3 + 4", 1, 1, "one side of a sum must be a single total"),
        ("a: 5\nb: 5\nc = a + d", 3, 1, "there is no cell named 'c'"),
        ("age: 5\nt: 10 = age + agr", 2, 15, "Did you mean 'age'"),
        ("a: 5; a: 10", 1, 7, "'a' already has a value"),
        ("a: 5; b: 5; a = b + b", 1, 13, "uses 'b' twice"),
        ("a: 7", 1, 4, "7 cannot come from rounding to base 5"),
        ("a: 8 @3", 1, 4, "8 cannot come from rounding to base 3"),
        ("a: 5 @0", 1, 6, "base"),
        ("a: 5 @magic:3", 1, 6, "magic"),
        ("a: 5 ~", 1, 7, "a whole number is missing"),
        ("a: 5 ~ -1", 1, 6, "0 or more"),
        ("a: ?7..1", 1, 5, "7"),
        ("a: ?7", 1, 5, "write a range as in"),
        ("a: 5.5", 1, 4, "whole numbers"),
        ("a: 5 # fine\nb: $", 2, 4, "unexpected '\\$'"),
        ('a: 5\n"b: 5', 2, 1, "missing its closing quote"),
        ('"": 5', 1, 1, "cannot be empty"),
        ("a: 5; a", 1, 7, "neither"),
        ("5", 1, 1, "neither"),
        ("a: b: 5", 1, 4, "a value is missing"),
        ("a: 99999999999999999999", 1, 4, "too large"),
        ("a: 12,34", 1, 6, "not a whole number"),
        ("a: 1234,567", 1, 8, "not a whole number"),
        ("", 1, 1, "nothing to solve"),
        ("# only a comment", 1, 1, "nothing to solve"),
        ("110! = 30 + 65 + 10; 30 = 10 + 10 + 10", 1, 22, "30 is in two sums"),
        ("30 = 10 + 10 + 10; 110! = 30 + 65 + 10", 1, 27, "30 is in two sums"),
        ("60 = 20 + 20; 60 = 30 + 35", 1, 15, "60 is in two sums"),
        ("a: 50 - 2", 1, 7, "with \\+ only"),
        ("a: <5", 1, 4, "as \\?0..4"),
        ("population 110", 1, 12, "Write a cell as `name: value`"),
        ("t: 10 = under five: 5 + b: 5", 1, 15, "double quotes"),
    ],
)
def test_every_complaint_points_at_its_spot(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_an_error_shows_the_line_with_a_caret() -> None:
    with pytest.raises(InputError) as caught:
        parse("a: 5\n\tb: 7\n", where="table.txt")
    assert str(caught.value).splitlines() == [
        "table.txt, line 2, column 5: 7 cannot come from rounding to base 5. If it was published unrounded, write 7!; "
        "if it has another base, write 7 @BASE.",
        "    \tb: 7",
        "    \t   ^",
    ]


@given(st.text(alphabet='ab1230,.!?@~:=+; \n"#-×é', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        said = repr(parse(text))
    except UnroundError as problem:
        said = str(problem)
    assert said


@pytest.mark.parametrize(
    ("cells", "sums", "message"),
    [
        ([], [], "no cell"),
        ([Cell("a", 5, Rounding(5)), Cell("a", 5, Rounding(5))], [], "two cells are named 'a'"),
        ([Cell("a", 5, Rounding(5))], [Sum("a", ())], "no parts"),
        ([Cell("a", 5, Rounding(5))], [Sum("a", ("b",))], "no such cell"),
        ([Cell("a", 5, Rounding(5))], [Sum("a", ("a",))], "'a' twice"),
    ],
)
def test_a_system_checks_itself(cells: list[Cell], sums: list[Sum], message: str) -> None:
    with pytest.raises(InputError, match=message):
        System(cells, sums)


# -- figures ----------------------------------------------------------------------------------------------------------

AGES = "N: 100; young: 20; middle: 60; old: 20; N = young + middle + old\n"


@pytest.mark.parametrize(
    ("text", "value", "step", "per"),
    [
        ("x / T = 12.4%", "12.4", "1/10", 100),
        ("x / T = 12%", "12", "1", 100),
        ("x / T = 12.40 %", "12.4", "1/100", 100),
        ("x / T = 0.124", "0.124", "1/1000", 1),
        ("x / T = 124 per 1000", "124", "1", 1000),
        ("x / T = 12.4% step 0.2", "12.4", "1/5", 100),
    ],
)
def test_rates(text: str, value: str, step: str, per: int) -> None:
    (figure,) = parse(f"x: 60; T: 500; {text}").figures
    assert figure.figure == Figure("x / T", FigureKind.RATE, "T", "x", grid=FigureGrid.of(Fraction(step)), per=Fraction(per))
    assert figure.value == Fraction(value)


def test_cells_may_get_their_values_in_a_rate() -> None:
    system = parse('"in low income": 60 / T: 500 = 12.4%')
    assert [cell.name for cell in system.cells] == ["in low income", "T"]
    assert system.figures[0].figure.name == "in low income / T"


def test_means_and_medians() -> None:
    groups = "(young 0..14, middle 15..64,\n old 65..)"
    system = parse(f"{AGES}mean age of N {groups} = 38.2; median {groups} = 40.5 step 0.5")
    mean, median = system.figures
    expected = (
        Group("young", Fraction(0), Fraction(14)),
        Group("middle", Fraction(15), Fraction(64)),
        Group("old", Fraction(65), None),
    )
    assert mean.figure == Figure("age", FigureKind.MEAN, "N", groups=expected, grid=FigureGrid.of(Fraction(1, 10)))
    assert median.figure == Figure("median", FigureKind.MEDIAN, "N", groups=expected, grid=FigureGrid.of(Fraction(1, 2)))
    (size,) = parse("a: 5; b: 5; N: 10; mean size of N (a 0.5..1.5, b 2) = 1.9").figures
    assert size.figure.groups == (Group("a", Fraction(1, 2), Fraction(3, 2)), Group("b", Fraction(2), Fraction(2)))


def test_cells_may_still_be_called_mean_or_median() -> None:
    system = parse("mean: 10 = median: 5 + 5; mean = of: 5 + step: 5")
    assert [cell.name for cell in system.cells] == ["mean", "median", "part1", "of", "step"]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("x: 60; T: 500; x / t = 12%", 1, 20, "there is no cell named 't'"),
        ("x: 60; T: 500; x / T", 1, 21, "= and the published value are missing"),
        ("x: 60; T: 500; x / T = x", 1, 24, "the published value is missing here"),
        ("x: 60; T: 500; x / T = 12% per 100", 1, 28, "unexpected per"),
        ("x: 60; T: 500; x / T = 12% step 0", 1, 33, "the step that it was rounded to is missing here"),
        ("x: 60; T: 500; x / T = 12 per -5", 1, 31, "what a rate of one is printed as"),
        ("x: 60; T: 500; 60 / T = 12%", 1, 16, "a rate is of named cells"),
        ("x: 60; T: 500; x + T / T = 12%", 1, 22, "a rate is one cell divided by another"),
        ("x: 60; T: 500; x / T = 12%; x / T = 13%", 1, 29, "there is already a figure called 'x / T'"),
        ("x: 60; T: 500; x / T = 0.12345678901234567", 1, 24, "too many digits"),
        (AGES + "mean age (young 0..14, old 65..) = 38", 2, 1, "no sum has these groups as its parts"),
        (AGES + "mean age of (young 0..14) = 38", 2, 13, "the name of the total that the groups make up is missing"),
        (AGES + "mean age of N = 38", 2, 15, "the groups are missing here"),
        (AGES + "mean age of N (young 0..14 old 65..) = 38", 2, 28, "a comma or \\) is missing"),
        (AGES + "mean age of N (young, old 65..) = 38", 2, 21, "the values of this group are missing"),
        (AGES + "mean age of N (young 14..0, old 65..) = 38", 2, 22, "the lower edge of a group"),
        (AGES + "median age of N (young 0..14, 5) = 38", 2, 31, "the name of a group"),
        ("a: 5 % b", 1, 6, "unexpected '%'"),
    ],
)
def test_errors_in_figures_point_at_the_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
