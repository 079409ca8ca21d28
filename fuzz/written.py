"""What people write besides tables: policies, decisions, priors, keys, specifications, and descriptions of sheets."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from fuzz.oracle import Fault
from fuzz.target import Run, Target, as_file, gone_through, place

POLICY = """\
name = "Ours"
[[limit]]
claims = ["proved", "conditional"]
counts = ["1-2"]
at_most = 0
[[limit]]
claims = "likely"
probability = 0.8
per_10000 = 2.5
[check]
contradicts = "stop"
departs = "revise"
"""
DECISION = json.dumps(
    {"what": "accepted", "table": "9f", "cell": "A:young", "because": "known", "claim": "likely", "value": 3, "by": "x"}
)
PRIOR = json.dumps({"men": {"12": 0.5, "13": 0.5}, "women": {"0": 1, "7": 1e-3}})
KEY_SUMS = "region,age,key\n1,all,0.25\n1,young,1.75\n1,old,0.5\n2,all,0.7\n2,young,0.1\n2,old,1e-9\n"
TABLE = "region,age,n\n1,all,20\n1,young,5\n1,old,15\n2,all,9\n2,young,4\n2,old,5\n"
TABLE_TOML = 'value = "n"\n[axes.region]\n[axes.age]\nsums = [{ total = "all", parts = ["young", "old"] }]\n'
KEYS = json.dumps(
    {
        "rounding": "auto",
        "tables": [{"table": "sex", "constant": 0.31, "error": 0.01, "why": "the check"}],
        "repeats": [{"columns": ["all", "young"], "constants": [0.1, 0.2], "errors": [0.01, 0.02]}],
    }
)
PROTECTIONS = ("controlled:5", "keyed:5", "alike", "rounding:3", "laplace:1.45", "suppressed:1..7,nearest:5")
TRANSITION = "i,v,p\n0,0,1\n1,0,1/3\n1,1,2/3\n2,1,0.25\n2,2,0.5\n2,3,0.25\n"

PTABLE = (
    '"","i","j","p","v","p_int_lb","p_int_ub","type"\n"1",0,0,1,0,0,1,"all"\n"2",1,0,0.4,-1,0,0.4,"all"\n'
    '"3",1,2,0.6,1,0.4,1,"all"\n'
)
KEY_TABLE = "pcv,ckey,pvalue\n0,0,0\n0,1,0\n1,0,-1\n1,1,1\n2,0,0\n2,1,0\n"
JJ = (
    "0\n4\n0 60 60 s 0 100 0 0 0\n1 20 20 u 0 100 5 5 0\n2 30 30 s 0 100 0 0 0\n3 10 10 m 0 90 0 0 0\n1\n"
    "0 4 : 0 (-1) 1 (1) 2 (1) 3 (1)\n"
)
ACRO_LIST = json.dumps(
    {
        "version": "1.0.2",
        "results": {
            "one": {
                "type": "table",
                "status": "pass",
                "files": [{"name": "a.csv"}],
                "properties": {"mitigation": "none"},
                "fair": {"independent": ["sex", "age"], "dependent": "unknown"},
            },
            "two": {"type": "regression", "status": "review", "files": [{"name": "b.csv"}], "exception": "known"},
        },
    }
)
ACRO_TABLE = "sex,young,old,All\nm,12,30,42\nf,,25,37\nAll,24,55,79\n"

STATUSES = """\
region,sex,freq,sdcStatus
Total,Total,100,s
Total,M,60,s
Total,F,40,s
A,Total,50,s
A,M,23,u
A,F,27,x
B,Total,50,s
B,M,37,z
B,F,13,w
"""
GEOJSON = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"code": code, "name": "A"},
                "geometry": {"type": "Polygon", "coordinates": [[[at, 0], [at + 1, 0], [at + 1, 1], [at, 0]]]},
            }
            for at, code in enumerate(("D01", "D02"))
        ],
    }
)
TOPOJSON = json.dumps(
    {
        "type": "Topology",
        "transform": {"scale": [0.1, 0.1], "translate": [0, 0]},
        "arcs": [[[0, 0], [9, 0], [0, 9]], [[9, 9], [-9, 0], [0, -9]]],
        "objects": {"a": {"type": "Polygon", "arcs": [[0, 1]], "properties": {"code": "D01"}}},
    }
)
AREA_LEVELS = "SA2_CODE,TA_CODE\n1,north\n2,north\n"
NESTED = "child,parent\n1,north\n2,north\n"

# A sheet with a title above its header, and its description; then one whose header has two rows.
HEADED = """\
Table 3: persons by age;;;;
Region;Total;Men;Women;Note
Aarau;1.200;600;600;
Bern;21;9;12;a
Chur;15;x;9;
Davos;-;0;0;
"""
HEADED_TOML = """\
header = [2]
rows = [3, 6]
thousands = "."
decimal = ","
symbols = { x = "suppressed", "-" = 0 }
default = "rounding:3"
[[ignore]]
column = "Note"
because = "remarks"
[axes.Region]
[axes.sex]
sums = [{ total = "Total", parts = ["Men", "Women"] }]
[counts.Total]
sex = "Total"
[counts.Men]
sex = "Men"
[counts.Women]
sex = "Women"
"""
TWO_ROWS = "town,young,,old,\n,men,women,men,women\nA,5,10,15,0\nB,10,x,5,5\n"
TWO_ROWS_TOML = """\
header = [1, 2]
areas = ["town"]
[axes.town]
fill = "down"
[axes.age]
header = 1
[axes.sex]
header = 2
"""
PX = """\
CHARSET="ANSI";
AXIS-VERSION="2013";
MATRIX="a";
STUB="region","age";
HEADING="sex";
VALUES("region")="A","B";
CODES("region")="01","02";
VALUES("age")="all","young";
VALUES("sex")="Total","Men",
"Women";
DATASYMBOL1="c";
NOTE="one "
"two";
DATA=
21 9 12
15 6 ".."
9 3 6 1 "." "..";
"""

# Spreadsheets without compression, of the fewest parts.
_CELLS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SHEET = f"""<?xml version="1.0"?><worksheet xmlns="{_CELLS}"><dimension ref="A1:C3"/><sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>Region</t></is></c><c r="B1" t="inlineStr"><is><t>Total</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>A</t></is></c><c r="B2"><v>21</v></c><c r="C2"><v>9.0</v></c></row>
<row r="3"><c r="A3" t="s"><v>0</v></c><c r="B3"><f>1+1</f><v>15</v></c><c r="C3" t="e"><v>#N/A</v></c></row>
</sheetData><mergeCells count="1"><mergeCell ref="A1:A1"/></mergeCells></worksheet>"""
XLSX_PARTS = {
    "[Content_Types].xml": "<Types/>",
    "_rels/.rels": f"""<Relationships xmlns="{_PACKAGE}">
<Relationship Id="r1" Type="{_RELATED}/officeDocument" Target="xl/workbook.xml"/></Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{_CELLS}" xmlns:r="{_RELATED}">
<sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{_PACKAGE}">
<Relationship Id="r1" Type="{_RELATED}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="r2" Type="{_RELATED}/sharedStrings" Target="sharedStrings.xml"/></Relationships>""",
    "xl/sharedStrings.xml": f'<sst xmlns="{_CELLS}" count="1" uniqueCount="1"><si><t>B</t></si></sst>',
}
SHEET_TOML = 'value = "Total"\n[axes.Region]\n'
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
CONTENT = f"""<?xml version="1.0"?><office:document-content xmlns:office="{_OASIS}:office:1.0"
xmlns:table="{_OASIS}:table:1.0" xmlns:text="{_OASIS}:text:1.0"><office:body><office:spreadsheet><table:table table:name="s">
<table:table-row><table:table-cell office:value-type="string"><text:p>Region</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>Total</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><text:p>A</text:p></table:table-cell>
<table:table-cell office:value-type="float" office:value="21" table:number-columns-repeated="1"><text:p>21</text:p>
</table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2"/></table:table-row>
</table:table></office:spreadsheet></office:body></office:document-content>""".replace(">\n<", "><")
ODS_PARTS = {
    "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
    "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{_OASIS}:manifest:1.0"/>',
}


def _packed(parts: Mapping[str, str | bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return written.getvalue()


def _sheet(name: str, part: str, others: dict[str, str]) -> Run:
    """Put an input in place of the part of a spreadsheet that holds its cells: damage within, where no checksum tells."""

    def run(data: bytes) -> None:
        from unround.tables.spreadsheet import read_grid

        grid = read_grid(as_file(name, _packed({**others, part: data})))
        if not grid.cells.height:
            raise Fault("a sheet without rows")

    return run


def _policy(data: bytes) -> None:
    from unround.reviews.policy import policy_of

    policy = policy_of(as_file("policy.toml", data))
    if not policy.limits or min(limit.allowed(1_000) for limit in policy.limits) < 0:
        raise Fault("a policy without limits")
    json.dumps(policy.to_json())


def _decisions(data: bytes) -> None:
    from unround.reviews.record import read_decisions, written

    as_file("decisions.jsonl", data)
    found = read_decisions(place())
    as_file("decisions.jsonl", written(found).encode())
    if read_decisions(place()) != found:
        raise Fault("decisions change when they are written again")


@cache
def _cells() -> tuple[bytes, ...]:
    """Return a workbook of a review, with what a reviewer wrote into it."""
    from unround.reviews.record import write_workbook

    cells: list[Any] = [
        SimpleNamespace(cell="A:young", accept="yes", comment="known"),
        SimpleNamespace(cell="B:old", probability_high=0.9),
    ]
    path = place() / "seed.xlsx"
    write_workbook(path, cells, "9f", [("policy", "Ours")])
    return (path.read_bytes(),)


def _entries(data: bytes) -> None:
    from unround.reviews.record import read_entries

    as_file("cells.xlsx", data)
    read_entries(place())


def _prior(data: bytes) -> None:
    from unround.api import prior_of

    prior_of(as_file("prior.json", data))


def _key_sums(data: bytes) -> None:
    import numpy as np

    from unround.protection.key_sums import GivenKeys
    from unround.tables import read
    from unround.tables.spool import Spool

    release = read(as_file("k.csv", TABLE.encode()), "tidy", toml=as_file("k.toml", TABLE_TOML.encode()))
    spool = Spool(place() / "k.bin", len(release.columns))
    blocks = list(release.blocks())
    for block in blocks:
        spool.add(block)
    spool.close(release.areas)
    GivenKeys(as_file("keys.csv", data), release, spool, frozenset()).of(0, blocks[0].counts.astype(np.int64))


def _keys(data: bytes) -> None:
    """Read the keys of an audit, as whoever explains its counts would."""
    from fuzz.targets import audit_folder
    from unround.audits.block import Auditor
    from unround.audits.keys import FILE, Keys
    from unround.job import AuditFolder

    as_file(FILE, data)
    keys = Keys.load(place())
    folder = AuditFolder.open(audit_folder())
    Auditor(folder.model, folder.prior, keys=keys)


def _protection(data: bytes) -> None:
    from unround.protection import parse_protection

    text = data.decode("utf-8", errors="replace")
    if "transition" in text.lower():
        return  # it may name a file, which is not ours to read
    made = parse_protection(text)
    if parse_protection(made.name).name != made.name:
        raise Fault(f"{made.name} names another protection than {text!r}")


def _transition(data: bytes) -> None:
    from unround.mechanisms import mechanism

    mechanism(f"transition:{as_file('p.csv', data)}")


def _jj(data: bytes) -> None:
    from unround.tables import read

    gone_through(read(as_file("a.jj", data)))


def _acro(name: str) -> Run:
    """Read a folder that ACRO finalised; an input replaces one of its files."""

    def run(data: bytes) -> None:
        from unround.tables.acro import read_acro

        folder = place() / "acro"
        folder.mkdir(exist_ok=True)
        for own, content in (("results.json", ACRO_LIST), ("a.csv", ACRO_TABLE), ("b.csv", ACRO_TABLE)):
            (folder / own).write_bytes(data if own == name else content.encode())
        found = read_acro(folder)
        gone_through(found.together())
        for release in found.releases():
            gone_through(release)

    return run


def _described(table: str, toml: str, *, alter_table: bool) -> Run:
    """Read a sheet with a header of its own by its description; an input replaces one of the two."""

    def run(data: bytes) -> None:
        from unround.tables import read

        texts = (data, toml.encode()) if alter_table else (table.encode(), data)
        gone_through(read(as_file("h.csv", texts[0]), "tidy", toml=as_file("h.toml", texts[1])))

    return run


def _statuses(data: bytes) -> None:
    """Describe a table of suppressed counts, and read it so."""
    from unround.tables import describe, read

    path, toml = as_file("s.csv", data), place() / "s.toml"
    toml.write_text(describe(path).toml(toml), encoding="utf-8")
    gone_through(read(path, toml=toml))


def _nested(data: bytes) -> None:
    from unround.tables import read
    from unround.tables.hierarchy import with_areas

    release = read(as_file("k.csv", TABLE.encode()), "tidy", toml=as_file("k.toml", TABLE_TOML.encode()))
    gone_through(with_areas(release, as_file("nested.csv", data)))


def _shapes(data: bytes) -> None:
    """Read shapes, and match them with the areas of an audit, as a map would."""
    from fuzz.targets import audit_folder
    from unround.boundaries import boundaries_of
    from unround.job import AuditFolder

    boundaries_of(AuditFolder.open(audit_folder()), as_file("shapes.json", data))


def _written_back(name: str, part: str, others: Mapping[str, str], toml: str) -> Run:
    """Write every count of a draft back one higher: a second reading finds what was to be written, or it is refused."""

    def run(data: bytes) -> None:
        from unround.release import ABSENT
        from unround.reviews.layout import Origin, counts_by_name, write_back
        from unround.tables import read

        path = as_file(name, _packed({**others, part: data}) if part else data)
        described = as_file("w.toml", toml.encode())
        release = read(path, "tidy", toml=described)
        before = counts_by_name(release)
        wanted = {cell: count + 1 for cell, count in before.items() if count > ABSENT}
        target = write_back(Origin(path, described), release, wanted, place() / "back")
        after = counts_by_name(read(target, "tidy", toml=described))
        if any(after.get(cell) != count for cell, count in wanted.items()):
            raise Fault("what was written back is not what was to be written")

    return run


def _grid(data: bytes) -> None:
    from unround.tables.spreadsheet import read_grid

    read_grid(as_file("g.csv", data))


def _px(data: bytes) -> None:
    from unround.tables.delimited import read_px

    table = read_px(as_file("g.px", data))
    if len(table.header[0]) != table.cells.width:
        raise Fault(f"{len(table.header[0])} names for {table.cells.width} columns")


_TOML = ("[[", "]]", "=", '"', "{", "}", "0x", "true", "[", "]", "\n", "1e400")
_JSON = ('"', "{", "}", "[", "]", "null", "1e400", "true", ":")
_XML = ("<", ">", "/>", '"', "&#0;", "]]>", "<!DOCTYPE", "&x;", "999999999", "r=", "t=")

WRITTEN: tuple[Target, ...] = (
    Target("policy", (POLICY.encode(),), _policy, (*_TOML, "[[limit]]", "claims", "at_most", "per_10000"), 20),
    Target("decisions", (f"{DECISION}\n{DECISION}\n".encode(),), _decisions, (*_JSON, "\u2028"), 10),
    Target("cells-xlsx", _cells, _entries, ("PK\3\4", "PK\5\6", "<v>"), 1),
    Target("prior-json", (PRIOR.encode(),), _prior, _JSON, 20),
    Target("key-sums", (KEY_SUMS.encode(),), _key_sums, (",", '"', "\n", "nan", "inf", "-1"), 1),
    Target("audit-keys", (KEYS.encode(),), _keys, _JSON, 1),
    Target("protections", tuple(text.encode() for text in PROTECTIONS), _protection, (":", ",", "..", "keyed", "1e9"), 20),
    Target(
        "transition-file",
        tuple(text.encode() for text in (TRANSITION, PTABLE, KEY_TABLE)),
        _transition,
        (",", "/", "\n", "1e-400", "i,v,p", "ckey", "p_int_ub"),
        10,
    ),
    Target("jj", (JJ.encode(),), _jj, (" ", "\n", ":", "(-1)", "(1)", " u ", "inf", "1e400"), 10),
    Target("acro-list", (ACRO_LIST.encode(),), _acro("results.json"), (*_JSON, "../", "a.csv"), 4),
    Target("acro-table", (ACRO_TABLE.encode(),), _acro("a.csv"), (",", "\n", '"', "All", "inf", "-1"), 4),
    Target(
        "headed-toml",
        (HEADED_TOML.encode(),),
        _described(HEADED, HEADED_TOML, alter_table=False),
        (*_TOML, "rows", "header"),
        4,
    ),
    Target(
        "headed-table", (HEADED.encode(),), _described(HEADED, HEADED_TOML, alter_table=True), (";", "\n", "1.2", "x"), 2
    ),
    Target(
        "two-rows-toml",
        (TWO_ROWS_TOML.encode(),),
        _described(TWO_ROWS, TWO_ROWS_TOML, alter_table=False),
        (*_TOML, "fill"),
        4,
    ),
    Target("two-rows-table", (TWO_ROWS.encode(),), _described(TWO_ROWS, TWO_ROWS_TOML, alter_table=True), (",", "\n"), 2),
    Target("grid", (HEADED.encode(), TWO_ROWS.encode()), _grid, (";", ",", "\t", '"', "\n", "\ufeff"), 5),
    Target("pcaxis", (PX.encode(), PX.encode("cp1252")), _px, ('"', ";", "=", "DATA=", "VALUES(", "STUB", "KEYS"), 10),
    Target("statuses", (STATUSES.encode(),), _statuses, (",", "\n", "u", "x", "sdcStatus", "freq"), 3),
    Target("nesting", (NESTED.encode(), AREA_LEVELS.encode()), _nested, (",", "\n", "parent", "1", "2"), 3),
    Target("shapes", (GEOJSON.encode(), TOPOJSON.encode()), _shapes, (*_JSON, "null", "1e308", "arcs", "D02"), 4),
    Target("back-csv", (HEADED.encode(),), _written_back("w.csv", "", {}, HEADED_TOML), (";", "\n", "1.2", "x", '"'), 2),
    Target(
        "back-xlsx",
        (SHEET.encode(),),
        _written_back("w.xlsx", "xl/worksheets/sheet1.xml", XLSX_PARTS, SHEET_TOML),
        _XML,
        3,
    ),
    Target("back-ods", (CONTENT.encode(),), _written_back("w.ods", "content.xml", ODS_PARTS, SHEET_TOML), _XML, 3),
    Target("xlsx-cells", (SHEET.encode(),), _sheet("p.xlsx", "xl/worksheets/sheet1.xml", XLSX_PARTS), _XML, 4),
    Target("ods-cells", (CONTENT.encode(),), _sheet("p.ods", "content.xml", ODS_PARTS), _XML, 4),
)
