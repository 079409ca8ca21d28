"""Files as they come: packings, encodings, damage; cells and labels as they stand in them; which format is which."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unround.errors import InputError
from unround.release import (
    ABSENT,
    LARGEST,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNREADABLE,
    UNRELIABLE,
    Column,
    Proposal,
)
from unround.tables import FORMATS, read, source
from unround.tables.profile import by_sex, indented, kind_of, kinds_of, profile_lines, universes
from unround.tables.source import Source
from unround.tables.symbols import as_counts

TABLE = "area,name,count\r\n1,Montréal,15\r\n2,“Trois” – Rivières,20\r\n"


def text_of(path: Path, size: int = 7) -> str:
    return b"".join(Source(path).chunks(size=size)).decode("utf-8")


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


# Packings and encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("packing", ["plain", "gzip", "zip"])
def test_every_packing_and_encoding_gives_the_same_text(tmp_path: Path, encoding: str, packing: str) -> None:
    content = TABLE.encode(encoding)
    # The name says nothing: what a file is, its first bytes tell.
    path = tmp_path / "table.csv"
    if packing == "plain":
        path.write_bytes(content)
    elif packing == "gzip":
        path.write_bytes(gzip.compress(content))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("inside.csv", content)
    for size in (5, 11, 1 << 20):
        assert text_of(path, size) == TABLE
    opened = Source(path)
    assert opened.head() == TABLE
    assert opened.head(20).startswith("area,name,count")
    assert opened.encoding == encoding.removesuffix("-sig")
    assert opened.delimiter == ","
    assert opened.name == ("inside.csv" if packing == "zip" else "table.csv")


def test_accents_may_come_after_the_head(tmp_path: Path) -> None:
    lines = "1,plain\n" * 20_000
    path = put(tmp_path / "a.csv", (lines + "2,Québec\n").encode("latin-1"))
    assert text_of(path, 10_000).endswith("2,Québec\n")
    assert text_of(put(path, (lines + "2,Québec\n").encode()), 10_000).endswith("2,Québec\n")


def test_undecoded_pieces_decode_by_themselves(tmp_path: Path) -> None:
    opened = Source(put(tmp_path / "a.csv", TABLE.encode("cp1252")))
    raw = b"".join(opened.chunks(decode=False))
    assert raw == TABLE.encode("cp1252")
    assert opened.as_text(raw) == TABLE


@pytest.mark.parametrize(
    ("text", "mark"), [("a,b\n1,2\n", ","), ("a\tb\n1\t2\n", "\t"), ('"x, y";b\n1;2\n', ";"), ("a\n1\n", ",")]
)
def test_the_delimiter_is_found(tmp_path: Path, text: str, mark: str) -> None:
    assert Source(put(tmp_path / "a.csv", text.encode())).delimiter == mark


def test_chunks_are_whole_lines_even_within_quotes(tmp_path: Path) -> None:
    text = 'a,b\n1,"two\nlines"\n2,"an ""inner"" quote\n"\n3,plain'
    for size in range(1, 30):
        chunks = list(Source(put(tmp_path / "a.csv", text.encode())).chunks(size=size))
        assert b"".join(chunks).decode() == text + "\n"
        assert all(chunk.count(b'"') % 2 == 0 and chunk.endswith(b"\n") for chunk in chunks)


def test_lone_carriage_returns_end_lines(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"a,b\r1,2\r3,4\r\n5,6")
    for size in range(1, 8):
        assert text_of(path, size) == "a,b\n1,2\n3,4\n5,6\n"


def test_progress_ends_at_the_size_on_disk(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv.gz", gzip.compress("".join(f"{n},{n * n}\n" for n in range(50_000)).encode()))
    steps: list[int] = []
    for _ in Source(path).chunks(steps.append, size=50_000):
        pass
    assert steps == sorted(steps)
    assert len(set(steps)) > 3
    assert steps[-1] == path.stat().st_size


# Zips


def zipped(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name.replace("__", "."), text)
    return path


def test_a_zip_gives_its_table_and_not_its_companions(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.zip", x_meta__txt="notes " * 99, README_meta__txt="r" * 999, x_Geo_starting_row__CSV="g\n1\n" * 99,
        small__csv="c,d\n1,2\n", x_data__csv="a,b\n1,2\n3,4\n",
    )  # fmt: skip
    opened = Source(path)
    assert opened.members == ("x_data.csv",)
    assert "x_data.csv" in opened.notes[0]
    assert "small.csv" in opened.notes[0]
    assert text_of(path) == "a,b\n1,2\n3,4\n"


def test_parts_with_the_same_first_line_are_one_table(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", east__csv="a,b\n1,2\n", west__csv="a,b\n3,4\n5,6\n", north__csv="a,b\n7,8")
    assert Source(path).members == ("east.csv", "west.csv", "north.csv")
    for size in (1, 3, 100):
        assert text_of(path, size) == "a,b\n1,2\n3,4\n5,6\n7,8\n"


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", a__csv="a,b\n1,2\n")
    content = bytearray(path.read_bytes())
    for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(sign) + flags] |= 1
    with pytest.raises(InputError, match="encrypted; unzip it with its password"):
        Source(put(path, bytes(content)))


# What cannot be read


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        for _ in Source(path).chunks(size=1000):
            pass
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "no file" in refused(tmp_path / "missing.csv")
    assert "is a folder; give the file in it" in refused(tmp_path)
    assert "is empty; download it again" in refused(put(tmp_path / "a.csv", b""))
    assert "empty once decompressed" in refused(put(tmp_path / "a.gz", gzip.compress(b"\n")))
    assert "is not text" in refused(put(tmp_path / "a.csv", bytes(range(256)) * 10))
    assert "is not text" in refused(put(tmp_path / "a.csv", b"a,b\n" + b"\x01\x02\x03\x04" * 30))
    assert "Parquet file; describe it in a release.toml" in refused(put(tmp_path / "a.csv", b"PAR1...."))
    assert "called .zip but is not compressed that way" in refused(put(tmp_path / "a.zip", b"a,b\n1,2\n"))
    assert "Office document; save the sheet as CSV" in refused(
        zipped(tmp_path / "a.xlsx", **{"[Content_Types]__xml": "<x/>", "sheet__xml": "<x/>"})
    )
    assert "contains notes.md but no table (.csv or .tab)" in refused(zipped(tmp_path / "b.zip", notes__md="hello"))
    assert "c.zip is an empty zip file: there is no table (.csv or .tab) in it" in refused(zipped(tmp_path / "c.zip"))


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_files_cut_short(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(1)
    text = "".join(f"{n}\n" for n in rng.integers(0, 1 << 60, 20_000))
    packed = gzip.compress(text.encode())
    assert "damaged or cut short" in refused(put(tmp_path / "a.csv.gz", packed[: int(len(packed) * share)]))
    content = zipped(tmp_path / "a.zip", a__csv=text).read_bytes()
    assert "damaged or cut short" in refused(put(tmp_path / "a.zip", content[: int(len(content) * share)]))


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    text = "".join(f"{n}\n" for n in rng.integers(0, 1 << 60, 20_000))
    for path in (zipped(tmp_path / "a.zip", a__csv=text), put(tmp_path / "a.gz", gzip.compress(text.encode()))):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        assert "damaged or cut short" in refused(put(path, bytes(content)))


def test_a_marked_file_that_breaks_its_word(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"\xef\xbb\xbfa,b\n" + b"1,2\n" * 30_000 + "é,1\n".encode("latin-1"))
    assert "is marked as UTF-8 but contains other bytes" in refused(path)


def test_endless_lines_and_tight_packing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE", 5000)
    assert "has a line of over 5,000 bytes" in refused(put(tmp_path / "a.csv", b"1" * 20_000))
    monkeypatch.setattr(source, "SUSPICIOUS", 1 << 16)
    bomb = gzip.compress(b"1,1\n" * 1_000_000)
    assert len(bomb) * 500 < 4_000_000
    assert "unpacks to over 500 times its size" in refused(put(tmp_path / "a.gz", bomb))


# Cells


CELLS = {
    "15": 15, " 15 ": 15, '"15"': 15, "+15": 15, "-15": -15, "−15": -15, "0": 0, "007": 7,
    "1,234": 1234, "12,345,678": 12345678, "1 234": 1234, "1\u00a0234": 1234, "1\u202f234 567": 1234567,
    "1\u202f234\u202f567": 1234567, "1,23": UNREADABLE, "12,34,567": UNREADABLE, "1,234 567": UNREADABLE,
    "1e+06": 1_000_000, "1E6": 1_000_000, "1.5e+03": 1500, "1.5e0": UNREADABLE, "1000000000": LARGEST,
    "1000000001": UNREADABLE, "-2147483648": UNREADABLE, "99999999999": UNREADABLE, "1e300": UNREADABLE,
    "12.0": 12, "12.": 12, "12.5": UNREADABLE, ".5": UNREADABLE, "1,234.0": 1234,
    "x": SUPPRESSED, "X": SUPPRESSED, "..C": SUPPRESSED, "...": NOT_APPLICABLE, "..": NOT_AVAILABLE, "NA": NOT_AVAILABLE,
    "N/A": NOT_AVAILABLE, "nan": NOT_AVAILABLE, "null": NOT_AVAILABLE, "-": NOT_AVAILABLE, "F": UNRELIABLE,
    " f ": UNRELIABLE,
    "": NOT_APPLICABLE, "   ": NOT_APPLICABLE, "inf": UNREADABLE, "twelve": UNREADABLE, "12 persons": UNREADABLE,
    "0x10": UNREADABLE, "1_000": UNREADABLE, "١٢": UNREADABLE, ".": UNREADABLE, "1e": 1, "21*": 21, "(3)": 3, "**7": 7,
    "1,234 r": 1234, "1'234": 1234, "12 p)": 12, "5 [note 1]": 5, "9,999,999,999*": UNREADABLE, "12.5r": UNREADABLE,
    "1,23*": UNREADABLE, "-4*": UNREADABLE, "(3)*": UNREADABLE, "***7": UNREADABLE,
}  # fmt: skip


def test_cells_are_read_as_they_are_meant() -> None:
    # A blank is given another meaning here than `..`, to tell them apart.
    counts, _ = as_counts(pl.Series([*CELLS, None]), blank=NOT_APPLICABLE)
    assert dict(zip(CELLS, counts.tolist(), strict=False)) == CELLS
    assert counts[-1] == NOT_APPLICABLE
    assert counts.dtype == np.int32
    for cell, count in CELLS.items():
        assert as_counts(pl.Series([cell]), blank=NOT_APPLICABLE)[0].tolist() == [count]


def test_decimals_are_shown_by_a_point_or_a_fraction() -> None:
    cells = {
        "12.0": True,
        "12.5": True,
        "1e+06": False,
        "15e-1": True,
        "1.5e3": False,
        "12": False,
        "..": False,
        "a.b": False,
    }
    assert dict(zip(cells, as_counts(pl.Series(list(cells)))[1].tolist(), strict=True)) == cells


def test_numbers_that_were_parsed_already() -> None:
    counts, decimals = as_counts(pl.Series([1.0, 2.5, None, float("nan"), 3e9, float("inf"), -4.0]))
    assert counts.tolist() == [1, UNREADABLE, NOT_AVAILABLE, NOT_AVAILABLE, UNREADABLE, UNREADABLE, -4]
    assert decimals.tolist() == [False, True, False, False, False, False, False]
    for kind in (pl.Int64, pl.UInt64):
        assert as_counts(pl.Series([1, 3_000_000_000, None], dtype=kind))[0].tolist() == [1, UNREADABLE, NOT_AVAILABLE]
    assert as_counts(pl.Series([None, None]), blank=SUPPRESSED)[0].tolist() == [SUPPRESSED] * 2


def test_signs_beside_cells() -> None:
    rows = [
        ("", "x", SUPPRESSED), (None, "...", NOT_APPLICABLE), ("", "..", NOT_AVAILABLE), ("", "F", UNRELIABLE),
        ("", "", NOT_AVAILABLE), ("", None, NOT_AVAILABLE), ("15", "", 15), ("15", None, 15), ("15", "E", 15),
        ("15", "r", 15), ("0", "x", SUPPRESSED), ("15", "x", UNREADABLE), ("15", "...", UNREADABLE), ("x", "", SUPPRESSED),
        ("", "E", NOT_AVAILABLE),
        ("twelve", "x", UNREADABLE), ("", " x ", SUPPRESSED), ("0", "E", 0), ("  ", "x", SUPPRESSED),
    ]  # fmt: skip
    text = pl.Series([cell for cell, _, _ in rows], dtype=pl.String)
    symbol = pl.Series([sign for _, sign, _ in rows], dtype=pl.String)
    assert as_counts(text, symbol)[0].tolist() == [count for _, _, count in rows]
    assert as_counts(pl.Series([5, 0, None]), pl.Series(["E", "x", "F"]))[0].tolist() == [5, SUPPRESSED, UNRELIABLE]


@given(st.integers(-LARGEST, LARGEST), st.sampled_from(["{}", " {} ", '"{}"', "{:,}", "{}.0", "{:+}"]))
def test_any_count_survives_being_written(count: int, written: str) -> None:
    assert as_counts(pl.Series([written.format(count)]))[0].tolist() == [count]


@given(st.text(max_size=8))
def test_nothing_is_taken_for_a_count_that_has_no_digit(cell: str) -> None:
    count = int(as_counts(pl.Series([cell]))[0][0])
    assert count <= ABSENT or re.search("[0-9]", cell)


# Labels


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Population, 2021", "count"),
        ("Population percentage change, 2016 to 2021", "percentage"),
        ("Land area in square kilometres", "area"),
        ("Population density per square kilometre", "density"),
        ("Total - Income statistics in 2020 for private households - 100% data (26)", "count"),
        ("Number of total income recipients aged 15 years and over - 25% sample data", "count"),
        ("    Median total income in 2020 among recipients ($)", "median"),
        ("Average size of census families", "average"),
        ("Market income (%) (18)", "percentage"),
        ("Under $10,000 (including loss)", "count"),
        ("Aggregate amount ($)", "amount"),
        ("Prevalence of low income based on the Low-income measure (%)", "percentage"),
        ("P90/P10 ratio on adjusted household after-tax income", "ratio"),
        ("Gini index on adjusted household total income", "index"),
        ("Total - Households by shelter-cost-to-income ratio - 25% sample data", "count"),
        ("Shelter-cost-to-income ratio", "count"),
        ("30% to less than 100%", "count"),
        ("% in core housing need", "percentage"),
        ("Unemployment rate", "rate"),
        ("Multigenerational households", "count"),
        ("05. Area, ethnic, cultural, gender, and group studies", "count"),
        ("total_personal_income_median", "median"),
        ("proportions_of_males", "percentage"),
        ("Standard error of average income", "standard error"),
    ],
)
def test_kinds(label: str, kind: str) -> None:
    assert kind_of(label) == kind


def test_lines_below_percentages_are_percentages() -> None:
    labels = ["Total - Distribution (%)", "0 to 14", "65 and over", "85 and over", "Total - Ages", "0 to 14"]
    assert kinds_of(labels, [0, 1, 1, 2, 0, 1]) == ["percentage"] * 4 + ["count"] * 2


def test_every_line_of_the_real_profile_is_of_the_right_kind(census_data: Path) -> None:
    lines = (census_data / "canada-2021-characteristics.txt").read_text(encoding="cp1252").splitlines()
    lines_of_profile = profile_lines((number, label) for number, label in (line.split("\t") for line in lines))
    kinds = [line.kind for line in lines_of_profile]
    page = (census_data / "canada-2021-vancouver-profile-page.csv").read_bytes().decode("cp1252").splitlines()[4:]
    cells = [re.findall(r'("[^"]*"|[^,]*)(?:,|$)', line)[3].strip(' "') for line in page[: len(lines_of_profile)]]
    counts, decimals = as_counts(pl.Series(cells))
    for line, kind, count, decimal in zip(lines_of_profile, kinds, counts.tolist(), decimals, strict=True):
        if kind == "count":
            # Of one large city every count is there; all are multiples of 5 but those published as they are.
            assert not decimal, line
            assert count > ABSENT, line
            assert count % 5 == 0 or line.id in ("1", "2", "4", "5"), line
    assert kinds.count("count") == 2502
    tables = [line.table for line in lines_of_profile]
    assert tables[:7] == ["Population and dwellings"] * 7
    assert tables[9] == "Total - Age groups of the population - 100% data"


# Sums that a layout suggests


def column(key: str, sex: str, depth: int = 0, label: str = "") -> Column:
    return Column(f"{key}/{sex}", (key, sex), label or key, depth=depth)


def test_indentation_gives_sums_for_each_sex() -> None:
    lines = [("1", 0), ("2", 1), ("3", 2), ("4", 2), ("5", 1), ("6", 0), ("7", 3), ("8", 2)]
    columns = [column(key, sex, depth) for key, depth in lines for sex in ("total", "men")]
    sums = {(columns[sum_.total].key, *(columns[part].key for part in sum_.parts)) for sum_ in indented(columns)}
    for sex in ("total", "men"):
        assert {sum_ for sum_ in sums if sum_[0].endswith(sex)} == {
            (f"1/{sex}", f"2/{sex}", f"5/{sex}"), (f"2/{sex}", f"3/{sex}", f"4/{sex}"), (f"6/{sex}", f"7/{sex}", f"8/{sex}")
        }  # fmt: skip


def test_totals_are_men_and_women_where_both_are_there() -> None:
    columns = [column("1", "total"), column("1", "men"), column("1", "women"), column("2", "total"), column("2", "men")]
    assert by_sex(columns) == [Proposal(0, (1, 2), "sex")]


def test_tables_over_the_same_people_and_households() -> None:
    labels = [
        "Population, 2021", "Population, 2016", "Private dwellings occupied by usual residents",
        "Total - Age groups of the population - 100% data", "Total - Private households by household size - 100% data",
        "Total - Private households by tenure - 25% sample data",
    ]  # fmt: skip
    columns = [column(str(at), "total", label=label) for at, label in enumerate(labels)]
    assert universes(columns, "2021") == [Proposal(0, (3,), "universe"), Proposal(2, (4,), "universe")]


# Which format


def test_unknown_layouts_are_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(put(tmp_path / "a.csv", b"this;that\n1;2\n"))
    said = str(caught.value)
    assert "separated by semicolons, is\n    this;that" in said
    assert all(layout in said for layout in FORMATS)


def test_a_named_format_must_fit(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"this,that\n1,2\n")
    with pytest.raises(InputError, match=r"is not in the format statcan, which is (?s:.)*this,that"):
        read(path, "statcan")
    with pytest.raises(InputError, match="there is no format 'excel'; choose auto, statcan, profile-page"):
        read(path, "excel")
    with pytest.raises(InputError, match="a TOML file describes a tidy table"):
        read(path, "statcan", toml=tmp_path / "release.toml")
    for layout in FORMATS:
        if layout != "tidy":
            with pytest.raises(InputError, match="there is no file"):
                read(tmp_path / "missing.csv", layout)


def test_descriptions_beside_a_table_are_found(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"this,that\n1,2\n")
    (tmp_path / "release.toml").write_text('data = "other.csv"', encoding="utf-8")
    with pytest.raises(InputError, match="matches none of the formats"):
        read(path)
    for about in ('data = "a.csv"\n', 'data = "a.csv\n'):
        (tmp_path / "release.toml").write_text(about, encoding="utf-8")
        with pytest.raises(InputError, match=r"release\.toml"):
            read(path)
    (tmp_path / "release.toml").unlink()
    (tmp_path / "a.toml").write_text('value = "count"', encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.toml"):
        read(path)
