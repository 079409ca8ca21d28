"""Every reader and parser, as a function of bytes, with inputs to start from."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote

from fuzz.oracle import Fault, compare, count_of, rows_of
from fuzz.target import LONGEST, Run, Target, as_file, gone_through, place
from fuzz.written import WRITTEN
from unround.release import ABSENT

BULK_HEAD = (
    "CENSUS_YEAR,DGUID,ALT_GEO_CODE,GEO_LEVEL,GEO_NAME,CHARACTERISTIC_ID,CHARACTERISTIC_NAME,C1_COUNT_TOTAL,SYMBOL,"
    "C2_COUNT_MEN+,SYMBOL,C3_COUNT_WOMEN+,SYMBOL\r\n"
)
_LINES = (
    '1,"Population, 2021",{n},,,...,,...', "8,Total - Age groups,{n},,50,,50,", "9,  0 to 14 years,20,,10,,10,",
    "13,  15 years and over,80,,40,,,x",
)  # fmt: skip
BULK = BULK_HEAD + "".join(
    f"2021,2021S05123599{n},3599{n},Dissemination area,Aé {n},{line.format(n=n)}\r\n"
    for n in (100, 105, 110)
    for line in _LINES
)
WIDE = (
    'GeoUID,Type,Region Name,Population,"v_CA21_8: Total - Age, - Total","v_CA21_9: Total - Age, - Men+",'
    "v_CA21_10: 0 to 14 years\n"
    "35,PR,A,100,100,50,20\n48,PR,B,90,90,45,x\n"
)
TIDY = "region,characteristic_id,sex,published\n1,10,total,15\n1,10,men,10\n2,10,total,20\n2,10,men,x\n"
STATSNZ = (
    "code,name,variable,variable_group,count\n1,A,sex,total_curp,10\n1,A,age,01_0_to_4_years_curp,3\n2,B,sex,total_curp,7\n"
    "2,B,age,by_sex_01_0_to_4_years_1_male_curp,..C\n"
)
NAMES = "FIRST_NAME,GENDER_TOTAL_COUNT,GENDER_TOTAL_SYMBOL,MEN+_COUNT,WOMEN+_COUNT\nAda,20,,5,15\nBob,30,,30,...\n"
INDICATORS = "geo_name,indicator_1,indicator_8,indicator_9\nA1A,100,100,20\nB1B,50,50,10.5\n"
# Parts of two tables that count the same people, and the total of neither.
DOCUMENTED = (
    "geo_name," + ",".join(f"indicator_{n}" for n in (9, 13, 24, 34, 42, 43, 44, 45, 46)) + "\nA1A" + ",10" * 9 + "\n"
)
PAGE = (
    '"Census Profile, 2021 Census of Population"\n,,,"A [Dissemination area], Ontario",\n,,,Counts,\n'
    'Topic,Characteristic,Note,Total,Total_Flag\nPopulation,"Population, 2021",,100,\nPopulation,"  0 to 14 years",,20,\n'
    'Symbols:\n"Source: Statistics Canada, 2021 Census."\n'
)
TOML = (
    'value = "n"\nmissing = "suppressed"\ndefault = "rounding:5"\nsymbols = { "-" = 0, x = "suppressed" }\n[axes.town]\n'
    'name = "town_name"\n[axes.age]\nsums = [{ total = "all", parts = ["young", "old"] }]\n[[exact]]\nage = ["all"]\n'
    '[[mechanisms]]\nmechanism = "nearest:5"\nwhere = { age = ["old"] }\n'
)
TIDY_OF_TOML = "town,town_name,age,n\n1,A,all,20\n1,A,young,5\n1,A,old,10\n2,B,all,x\n2,B,young,-\n2,B,old,15\n"
HRC = "all\n@young\n@@0-4\n@@5-9\n@old\n"
PAIRS = "parent,child\nall,young\nall,old\nyoung,0-4\nyoung,5-9\n"
PLAN = (
    '[[mechanisms]]\nmechanism = "rounding:5"\ncolumns = ["8", "9"]\n[[sums]]\nuse = true\ntotal = "8"\n'
    'parts = ["9", "13"]\naxis = "characteristic_id"\nwhere = { sex = ["total", "men"] }\n[[repeats]]\nuse = true\n'
    'alike = false\ncolumns = ["8", "41"]\n[[keys]]\ntable = "Age"\nconstant = 0.31\n'
    '[[keys]]\ntable = "Sex"\n[[match]]\nfile = "b.csv"\ncolumns = { a = "8" }\ncharacteristics = { "9" = "13" }\n'
)
AREAS = "SA2_2018_CODE,TA_2018_CODE,REGC_2018_CODE\n1,10,100\n2,10,100\n"
NUMBERS = '1\n-1\n1,234\n1e3\n12.0\nx\n..\n…\n\u22125\n 7 \n"8"\n1 234\n12.5\n'
EQUATIONS = (
    "48! = 20 + 20 + 20", "87! = men: 35 + women: 45", "110! = young: 30 + 65 + 10\nyoung = a: 10 + b: 10 @3; c: ?1..7\n",
    "10 ~5 = ? + 1,234 # no\n20 @laplace:1.45 =\n -2 + \"a b\": 5",
)  # fmt: skip
SPECS = (
    "rounding:5", "sample:5", "graduated:0=3,19=2,20=5", "residues:0,1/3,2/3", "nearest-even:10", "digits:4", "within:5",
    "suppressed:1..7,nearest:5", "laplace:1.45,clamped", "gaussian:2", "transition:0=1|-1=1/4,0=1/2,1=1/4", "unpublished",
)  # fmt: skip
QUERIES = (
    "/area/35~2F1?sort=risk&page=2",
    "/areas?q=Montr%C3%A9al&few=1",
    "/findings.json?kind=proved&page=-1",
    "/try?system=6=6%2B6",
)


def _table(name: str = "a.csv", **more: bytes) -> Run:
    def run(data: bytes) -> None:
        from unround.tables import read

        path = as_file(name, data)
        rest = {key: as_file(f"{key}.csv", value) for key, value in more.items()}
        gone_through(read(path, **rest))  # type: ignore[arg-type]

    return run


def _bulk(data: bytes) -> None:
    from unround.tables import read
    from unround.tables.source import Source

    path = as_file("a.csv", data)
    release = read(path, "statcan")
    source = Source(path)
    rows = rows_of(data, source.delimiter, source.encoding)
    if not rows:
        gone_through(release)
        return
    header = [name.strip() for name in rows[0]]
    sexes = ("C1_COUNT_TOTAL", "C2_COUNT_MEN+", "C3_COUNT_WOMEN+")

    def cells(row: list[str]) -> Iterator[tuple[str, str, str]]:
        for name, ending in zip(sexes, ("", "/men", "/women"), strict=True):
            if name in header and len(row) > header.index(name) and row[header.index("CHARACTERISTIC_ID")].isdigit():
                key = f"{int(row[header.index('CHARACTERISTIC_ID')])}{ending}"
                yield row[header.index("DGUID")], key, row[header.index(name)]

    compare(release, rows, cells)


def _packed(data: bytes) -> None:
    """Read the same as a zip and gzipped: they say the same, and damage to them is noticed."""
    _table()(data)
    _table("a.csv.gz")(gzip.compress(data, 1))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a.csv", data)
    _table("a.zip")(packed.getvalue())


def _tidy(data: bytes) -> None:
    from unround.tables import read
    from unround.tables.source import Source

    path = as_file("a.csv", data)
    release = read(path, "tidy")
    source = Source(path)
    rows = rows_of(data, source.delimiter, source.encoding)
    if not rows or len(release.areas) != 1 or release.areas[0] != "region" or release.axes != ("characteristic_id", "sex"):
        gone_through(release)
        return
    at = {name.strip(): place for place, name in reversed(list(enumerate(rows[0])))}
    value = next(name for name in ("published", "true", "count", "value") if name in at)
    code = "characteristic_id" if "characteristic_id" in at else "characteristic"

    def cells(row: list[str]) -> Iterator[tuple[str, str, str]]:
        if len(row) > max(at["region"], at[code], at["sex"], at[value]):
            sex = row[at["sex"]].strip()
            key = row[at[code]].strip()
            yield row[at["region"]], key if sex == "total" else f"{key}/{sex}", row[at[value]]

    compare(release, rows, cells)


def _tidy_toml(data: bytes) -> None:
    from unround.tables import read

    gone_through(read(as_file("t.csv", TIDY_OF_TOML.encode()), "tidy", toml=as_file("t.toml", data)))


def _described(data: bytes) -> None:
    from unround.tables import read

    gone_through(read(as_file("t.csv", data), "tidy", toml=as_file("t.toml", TOML.encode())))


def _hierarchy(name: str) -> Run:
    def run(data: bytes) -> None:
        from unround.tables.hierarchy import fit, read_hierarchy

        codes = ("all", "young", "old", "0-4", "5-9")
        fit(read_hierarchy(as_file(name, data), codes, None), codes, name)

    return run


def _numbers(data: bytes) -> None:
    import polars as pl

    from unround.tables.symbols import as_counts

    cells = data.decode("utf-8", errors="replace").split("\n")
    counts, _ = as_counts(pl.Series(cells, dtype=pl.String))
    for cell, count in zip(cells, counts.tolist(), strict=True):
        expected = count_of(cell)
        if (expected if expected is not None else None) != (count if count > ABSENT else None):
            raise Fault(f"{cell!r} is read as {count}, and is {expected}")


def _areas(data: bytes) -> None:
    _table(areas=data)(STATSNZ.encode())


def _frame(data: bytes) -> None:
    """Make a frame of whatever JSON says, and a release of that."""
    import polars as pl

    from unround.errors import InputError
    from unround.tables.frames import from_frame

    try:
        given = json.loads(data)
        frame = pl.DataFrame(given["columns"], strict=False)
        keys = dict(given["keys"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError("this is no frame.") from error
    gone_through(from_frame(frame, keys))


def _described_on_the_way(name: str) -> Run:
    """Describe a table that nobody described, and read it as its own description says."""

    def run(data: bytes) -> None:
        from unround.tables import describe, read

        path, toml = as_file(name, data), place() / "drafted.toml"
        found = describe(path)
        toml.write_text(found.toml(toml), encoding="utf-8")
        gone_through(read(path, toml=toml))

    return run


PEOPLE = "Table 3: persons by age;;;\nRegion;Total;Men;Women\nAarau;1.200;600;600\nBern;21;9;12\nChur;15;x;9\nDavos;-;0;0\n"
SDMX = (
    "DATAFLOW,REF_AREA,SEX,TIME_PERIOD,OBS_VALUE,OBS_STATUS\nX:F(1.0),A,_T,2021,21,\nX:F(1.0),A,M,2021,9,\n"
    "X:F(1.0),A,F,2021,12,\nX:F(1.0),B,_T,2021,,c\nX:F(1.0),B,M,2021,6,\nX:F(1.0),B,F,2021,3,\n"
)
PX = (
    'CHARSET="ANSI";\nAXIS-VERSION="2013";\nMATRIX="a";\nSTUB="region";\nHEADING="sex";\nVALUES("region")="A","B";\n'
    'VALUES("sex")="Total","Men","Women";\nDATA=\n21 9 12\n15 6 "..";\n'
)


def _workbook() -> bytes:
    import polars as pl

    written = io.BytesIO()
    frame = pl.DataFrame({"Region": ["A", "B", "C"], "Total": [21, 15, 9], "Men": [9, 6, 3], "Women": [12, 9, 6]})
    frame.write_excel(written)
    return written.getvalue()


FRAME = json.dumps(
    {
        "columns": {"town": ["a", "b"], "all": [20, 15], "young": [5, None], "old": [10, 10.0]},
        "keys": {"area": "town", "sums": {"all": ["young", "old"]}, "mechanism": "rounding:5", "exact": ["all"]},
    }
)


def _plan(data: bytes) -> None:
    from unround.small_files import parsed_toml
    from unround.tables.description import make_description

    text = data.decode("utf-8", errors="replace")
    make_description(parsed_toml(text, "plan.toml"), text=text)


def _equations(data: bytes) -> None:
    from unround import parse

    system = parse(data.decode("utf-8", errors="replace"))
    if not system.cells:
        raise Fault("a system without cells")


def _spec(data: bytes) -> None:
    from unround.mechanisms import mechanism

    text = data.decode("utf-8", errors="replace")
    if text.strip().lower().startswith("transition:") and "=" not in text:
        return  # a file, which is not ours to read
    made = mechanism(text)
    if mechanism(made.name) != made:
        raise Fault(f"{made.name} names another mechanism than {text!r}")


def _addresses(data: bytes) -> None:
    from unround.web.claims import plain
    from unround.web.page import key_meant, meant, segment

    text = data.decode("utf-8", errors="replace")
    if meant(segment(text)) != text:
        raise Fault(f"{text!r} does not come back from its address")
    meant(text), key_meant(text), plain(text)


CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
EXAMPLES = Path(__file__).parents[1] / "examples"
AUDIT_FILES = {
    "audit-summary": "summary.json", "audit-model": "model/model.json", "audit-proofs": "proofs.jsonl.gz",
    "audit-areas": "model/areas.parquet", "audit-published": "model/published.parquet", "audit-findings": "findings.parquet",
    "audit-prior": "model/prior.npz",
}  # fmt: skip


@cache
def audit_folder() -> Path:
    """Return an audit of the example of the documentation."""
    from unround.job import audit
    from unround.tables import read

    audit(read(EXAMPLES / "survey.toml"), place() / "audit")
    return place() / "audit"


@cache
def _damaged() -> Path:
    return Path(shutil.copytree(audit_folder(), place() / "damaged"))


def _object(line: str) -> dict[str, object]:
    """Return a line of JSON, as whoever checks certificates would read it."""
    from unround.errors import InputError

    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("this is no JSON.") from error
    if not isinstance(found, dict):
        raise InputError("this is no certificate.")
    return found


def _of_audit(name: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: ((_certificates() if name.endswith(".gz") else (audit_folder() / name).read_bytes())[:LONGEST],)


@cache
def _certificates() -> bytes:
    return gzip.decompress((audit_folder() / "proofs.jsonl.gz").read_bytes())


def _audit(name: str) -> Run:
    """Put an input in place of one file of an audit, and look through all of it."""

    def run(data: bytes) -> None:
        from unround.audits.certificates import proofs_in, read_proof
        from unround.explanation.cell import explain_at
        from unround.job import AuditFolder
        from unround.job.folder import OURS, seal
        from unround.proofs import check_proof
        from unround.tables.delimited import FATAL, fault_in

        file = _damaged() / name
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        try:
            if name.endswith(".parquet") and fault_in(file, len(data)) == FATAL.format(file):
                return  # files from elsewhere are tried out by another process, those of an audit are not
            if not name.endswith(".json"):
                seal(_damaged(), OURS)  # or nobody would look further than the hashes
            folder = AuditFolder.open(_damaged())
            _ = folder.model, folder.areas, folder.prior, folder.findings.height
            if name == "proofs.jsonl.gz":
                for line in proofs_in(file):
                    check_proof(*read_proof(_object(line)))
            else:
                explain_at(folder, 0, 0)
        finally:
            for one in (name, "summary.json"):
                shutil.copyfile(audit_folder() / one, _damaged() / one)

    return run


@cache
def _arrays() -> dict[str, bytes]:
    with zipfile.ZipFile(audit_folder() / "model/prior.npz") as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def _array_seeds() -> tuple[bytes, ...]:
    return tuple(bytes([at]) + content for at, content in enumerate(_arrays().values()) if len(content) < 2_000)


def _prior_arrays(data: bytes) -> None:
    """Put an input in place of one array of a prior, where no checksum tells: the first byte says which."""
    which = list(_arrays())[(data[0] if data else 0) % len(_arrays())]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, content in _arrays().items():
            file.writestr(name, data[1:] if name == which else content)
    _audit("model/prior.npz")(packed.getvalue())


def _verified(data: bytes) -> None:
    """Verify an audit whose certificates somebody changed together with their hashes."""
    from unround.job.folder import OURS, seal
    from unround.job.verify import verify

    names = ("proofs.jsonl.gz", "summary.json")
    (_damaged() / names[0]).write_bytes(gzip.compress(data))
    try:
        seal(_damaged(), OURS)
        told = verify(_damaged())
        if told.holds and data.split() != _certificates().split():
            _same_certificates(data)
    finally:
        for one in names:
            shutil.copyfile(audit_folder() / one, _damaged() / one)


def _same_certificates(data: bytes) -> None:
    """Raise where certificates that hold are not those of the audit: written another way, perhaps, but the same."""
    ours = [json.loads(line) for line in _certificates().splitlines()]
    proved = sorted((str(one["cell"]), one["value"]) for one in ours)
    changed = [json.loads(line) for line in data.splitlines() if line.strip()]
    if sorted((str(one["cell"]), one["value"]) for one in changed) != proved:
        raise Fault("certificates hold that the audit did not write, or some are missing")


@cache
def _site() -> Callable[[str], int]:
    """Return what asks the explorer for an address, without a server."""
    import asyncio

    from unround.web.app import explorer_app
    from unround.web.guard import LOCAL

    app = explorer_app(audit_folder(), LOCAL)
    loop = asyncio.new_event_loop()

    def get(target: str) -> int:
        path, _, query = target.partition("?")
        status = 0

        asked = False

        async def receive() -> dict[str, object]:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, object]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(str(message["status"]))

        raw = quote(path, safe="/%~")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": unquote(raw), "raw_path": raw.encode(), "query_string": query.encode("utf-8", "replace"),
            "root_path": "", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 0), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        loop.run_until_complete(app(scope, receive, send))  # type: ignore[arg-type]
        return status

    return get


def _web(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    if "try" in text:
        return  # what is typed there is the target `equations`, and a worker of its own
    status = _site()("/" + text.lstrip("/"))
    if status >= 500 or status == 0:
        raise Fault(f"{text!r} is answered by {status}")


def _zip(**files: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(f"{name}.csv", content)
    return packed.getvalue()


def _parquet() -> bytes:
    import polars as pl

    written = io.BytesIO()
    pl.read_csv(TIDY.encode(), infer_schema=False).write_parquet(written)
    return written.getvalue()


_CSV = (",", '"', '""', "\r\n", "\t", ";", "\ufeff", "...", "1e3", "-")
_KEYS = ("[[", "]]", "=", '"', "[[sums]]", "total", "parts", "columns", "axes.", "use = true", "{", "}", "0x")

TARGETS: tuple[Target, ...] = (
    Target("bulk", (BULK.encode(), BULK.encode("cp1252"), BULK.replace(",", "\t").encode()), _bulk, (*_CSV, "SYMBOL"), 3),
    Target("packed", (TIDY.encode(), BULK.encode()), _packed, _CSV, 1),
    Target(
        "zip", (_zip(a=TIDY), _zip(a=TIDY, b=TIDY, readme="x")), _table("a.zip"), ("PK\3\4", "PK\1\2", "PK\5\6", ".csv"), 2
    ),
    Target("gzip", (gzip.compress(TIDY.encode(), mtime=0),), _table("a.csv.gz"), ("\x1f",), 2),
    Target("profile-page", (PAGE.encode(),), _table(), (*_CSV, "Topic", "Counts", "[", "]"), 3),
    Target("censusmapper", (WIDE.encode(),), _table(), (*_CSV, "v_CA21_", ": ", "- Men+"), 3),
    Target("statsnz", (STATSNZ.encode(),), _table(), (*_CSV, "curp", "by_sex_", "level_", "_1_male"), 3),
    Target("areas", (AREAS.encode(),), _areas, (*_CSV, "_CODE"), 2),
    Target("first-names", (NAMES.encode(),), _table(), (*_CSV, "DGUID"), 3),
    Target("indicators", (INDICATORS.encode(), DOCUMENTED.encode()), _table(), (*_CSV, "indicator_"), 3),
    Target("tidy", (TIDY.encode(),), _tidy, _CSV, 3),
    Target("tidy-toml", (TOML.encode(), f"{TOML}{PLAN}".encode()), _tidy_toml, _KEYS, 4),
    Target("tidy-described", (TIDY_OF_TOML.encode(),), _described, _CSV, 2),
    Target("parquet", (_parquet(),), _table("a.parquet"), ("PAR1",), 2),
    Target(
        "any-format", tuple(text.encode() for text in (BULK, WIDE, PAGE, NAMES, STATSNZ, TOML)), _table("b.txt"), _CSV, 2
    ),
    Target(
        "describe",
        (PEOPLE.encode(), SDMX.encode(), TIDY_OF_TOML.encode()),
        _described_on_the_way("d.csv"),
        (*_CSV, "Total", "Men", "0-14", "_T"),
        1,
    ),
    Target("px", (PX.encode(),), _described_on_the_way("d.px"), ('"', ";", "=", "DATA", "VALUES(", "STUB"), 1),
    Target("xlsx", (_workbook(),), _described_on_the_way("d.xlsx"), ("PK\3\4", "PK\5\6", "<c r=", "<v>"), 1),
    Target("frames", (FRAME.encode(),), _frame, ('"', "[", "]", "{", "}", "null", "1e400"), 4),
    Target("hrc", (HRC.encode(),), _hierarchy("a.hrc"), ("@", "\n"), 30),
    Target("pairs", (PAIRS.encode(),), _hierarchy("a.csv"), _CSV, 20),
    Target("numbers", (NUMBERS.encode(),), _numbers, ("e", ".", "-", ",", "\u00a0", "\u202f", "0", "x"), 10),
    Target("plan", (PLAN.encode(),), _plan, _KEYS, 40),
    Target(
        "equations",
        tuple(text.encode() for text in EQUATIONS),
        _equations,
        ("=", "+", "@", "?", "..", "~", "!", ":", "\n"),
        100,
    ),
    Target("mechanisms", tuple(text.encode() for text in SPECS), _spec, (":", ",", "..", "|", "=", "/", "1e9"), 100),
    Target("addresses", tuple(text.encode() for text in QUERIES), _addresses, ("~", "%", "/"), 60),
    Target(
        "web",
        tuple(text.encode() for text in QUERIES),
        _web,
        ("/area/", "/structure/", ".json", ".csv", "?page=", "&", "%"),
        1,
    ),
    *(
        Target(name, _of_audit(of), _audit(of), ("PAR1",) if of.endswith("parquet") else ('"', "{", "}", "null", "PK"), 1)
        for name, of in AUDIT_FILES.items()
    ),
    Target("audit-arrays", _array_seeds, _prior_arrays, ("'shape': (", "'descr': '", "<f8", "|O", ",), }", "-1"), 1),
    Target("audit-verify", _of_audit("proofs.jsonl.gz"), _verified, ('"', "{", "}", "null", "-1"), 1),
    *WRITTEN,
)
BY_NAME = {target.name: target for target in TARGETS}


def seeds(target: Target) -> tuple[bytes, ...]:
    """Return the inputs to start from; those of an audit are its own files, and what broke once is kept in tests/corpus."""
    kept = sorted((CORPUS / target.name).glob("*")) if (CORPUS / target.name).is_dir() else []
    own = target.seeds() if callable(target.seeds) else target.seeds
    return (*own, *(path.read_bytes() for path in kept))
