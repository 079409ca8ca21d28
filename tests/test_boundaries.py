"""Maps: shapes are read, matched with areas, simplified and drawn; and the made-up ones tile their parents."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

import unround
from tests.conftest import Run
from tests.shared import BULK, IMAGE
from unround import simulate
from unround.boundaries import (
    Boundaries,
    Shape,
    boundaries_of,
    kept_boundaries,
    match,
    matched_in_words,
    projected,
    read_shapes,
    scaled,
)
from unround.errors import InputError
from unround.job import AuditFolder
from unround.show.maps import UNITS, WORST, draw, map_of_report, rate_classes, worst_classes
from unround.simulation.geography import area_of, plan, shapes_of
from unround.web.app import explorer_app
from unround.web.guard import hosts_for

SQUARE = [[0, 0], [0, 1], [1, 1], [1, 0], [0, 0]]


def feature(code: Any, ring: list[list[float]] = SQUARE, **more: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {"code": code, **more},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def collection(*features: dict[str, Any]) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


# -- reading ----------------------------------------------------------------------------------------------------------


def test_geojson_is_read_packed_or_not(tmp_path: Path) -> None:
    several = feature("b")
    several["geometry"] = {"type": "MultiPolygon", "coordinates": [[SQUARE], [[[5, 5], [5, 6], [6, 6]], SQUARE]]}
    point = feature("p") | {"geometry": {"type": "Point", "coordinates": [0, 0]}}
    features = collection(feature(101.0, name=None), several, point, feature("n") | {"geometry": None})
    plain = read_shapes(written(tmp_path / "a.geojson", features))
    assert [shape.properties["code"] for shape in plain] == ["101", "b"]  # a code that was saved as a number is one again
    assert [len(shape.rings) for shape in plain] == [1, 3]
    (tmp_path / "a.geojson.gz").write_bytes(gzip.compress(json.dumps(features).encode()))
    packed = read_shapes(tmp_path / "a.geojson.gz")
    assert [ring.tolist() for shape in packed for ring in shape.rings] == [
        ring.tolist() for shape in plain for ring in shape.rings
    ]


def test_topojson_says_the_same_as_geojson(tmp_path: Path) -> None:
    """Two neighbours that share an arc, which one of them follows backwards; in whole numbers with a transform."""
    topology = {
        "type": "Topology",
        "transform": {"scale": [0.5, 0.5], "translate": [10, 20]},
        "arcs": [[[2, 0], [0, 2]], [[2, 2], [-2, 0], [0, -2], [2, 0]], [[2, 2], [2, 0], [0, -2], [-2, 0]]],
        "objects": {
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "arcs": [[0, 1]], "properties": {"code": "left"}},
                    {"type": "Polygon", "arcs": [[2, 0]], "properties": {"code": "right"}},
                    {"type": "MultiPolygon", "arcs": [[[-1, 2]]], "id": "back"},
                ],
            }
        },
    }
    left, right, back = read_shapes(written(tmp_path / "t.json", topology))
    assert left.rings[0].tolist() == [[11, 20], [11, 21], [10, 21], [10, 20], [11, 20]]
    assert right.rings[0].tolist()[0] == right.rings[0].tolist()[-1] == [11, 21]
    assert back.properties == {"id": "back"}
    assert back.rings[0].tolist()[:2] == [[11, 21], [11, 20]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"code,name\n1,a\n", "is not JSON"),
        (b"[1, 2]", "neither GeoJSON nor TopoJSON"),
        (b'{"type": "Feature"}', "neither GeoJSON"),
        (b'{"type": "FeatureCollection"}', "not written as GeoJSON"),
        (
            b'{"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon", "coordinates": [[1,2,3]]}}]}',
            "not written",
        ),
        (
            b'{"type": "FeatureCollection", "features": '
            b'[{"geometry": {"type": "Polygon", "coordinates": [[[1%s, 1], [2, 2], [3, 1]]]}}]}' % (b"0" * 400),
            "not written",
        ),
        (b'{"type": "FeatureCollection", "features": []}', "no areas in it"),
        (b'{"type": "Topology", "arcs": [], "objects": {"a": {"type": "Polygon", "arcs": [[7]]}}}', "not written"),
        (b"\x1f\x8bnonsense", "cannot be read"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_file_of_shapes_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.geojson").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_shapes(tmp_path / "x.geojson")


def test_a_file_that_is_too_detailed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unround.boundaries.MOST", 100)
    with pytest.raises(InputError, match="mapshaper"):
        read_shapes(written(tmp_path / "x.geojson", collection(feature("a"), feature("b"))))


# -- matching ---------------------------------------------------------------------------------------------------------


def shape(**properties: str) -> Shape:
    return Shape(properties, (np.array(SQUARE, dtype=float),))


def test_the_property_with_the_codes_is_found() -> None:
    shapes = [shape(n="1", DAUID="10010001"), shape(n="2", DAUID="10010002"), shape(n="9", DAUID="99999999")]
    names = [("2021S051210010001", "10010001"), ("2021S051210010002", "10010002"), ("2021S051210010003", "10010003")]
    rows, matched = match(shapes, names, "f")
    assert rows == [0, 1, -1]
    assert matched["first_shapes_without_area"] == ["99999999"]
    assert matched["first_areas_without_shape"] == ["2021S051210010003"]
    assert matched_in_words(matched) == (
        "2 areas have a shape, matched by DAUID. 1 shape has a code that no area has (99999999). "
        "1 area has no shape (2021S051210010003)."
    )


def test_codes_that_lost_their_zeros_are_known_again() -> None:
    assert match([shape(ward="101"), shape(ward="7")], [("00101", ""), ("0", "")], "f")[0] == [0, -1]


def test_without_any_code_the_properties_are_named() -> None:
    with pytest.raises(InputError, match=r"no property of the shapes in f .* look like D01\. Its properties: name = 'Hill'"):
        match([shape(name="Hill")], [("D01",)], "f")


# -- on a plane -------------------------------------------------------------------------------------------------------


def test_the_projection_keeps_sizes() -> None:
    """A square degree gets the size that it has on a sphere, wherever on the map it is."""

    def size(x: float, y: float) -> float:
        steps = np.linspace(0, 1, 50)
        side = np.zeros(50)
        ring = np.concatenate(
            [
                np.column_stack([x + steps, y + side]),
                np.column_stack([x + 1 + side, y + steps]),
                np.column_stack([x + 1 - steps, y + 1 + side]),
                np.column_stack([x + side, y + 1 - steps]),
            ]
        )
        corners = np.array([[-140.0, 41.0], [-50.0, 70.0]])  # of the map
        flat = projected(np.concatenate([corners, ring]))[2:]
        return abs(area_of(flat))

    for y in (45.0, 55.0, 65.0):
        expected = np.radians(1) * (np.sin(np.radians(y + 1)) - np.sin(np.radians(y)))
        for x in (-130.0, -80.0):
            assert size(x, y) == pytest.approx(expected, rel=1e-3)


def test_islands_beyond_the_antimeridian_stay_near() -> None:
    flat = projected(np.array([[172.0, -43.0], [178.0, -38.0], [-176.5, -44.0]]))
    assert flat[2, 0] > flat[1, 0] > flat[0, 0]
    assert np.ptp(flat[:, 0]) < 0.2
    assert flat[1, 1] < flat[2, 1]  # north is up
    metres = np.array([[600_000.0, 5_000_000.0], [600_500.0, 5_000_900.0]])
    assert projected(metres).tolist() == [[600_000, -5_000_000], [600_500, -5_000_900]]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=3, max_size=12), st.integers(30, 200))
def test_simplifying_keeps_every_area(ring: list[tuple[int, int]], wide: int) -> None:
    points = np.array(ring, dtype=np.int32) * 100
    far = np.array([[0, 0], [10_000, 0], [10_000, 10_000]], dtype=np.int32)
    boundaries = Boundaries(np.concatenate([far, points]), np.array([0, 3, 3 + len(ring)]), np.array([7, 4]), {})
    small, _ = scaled(boundaries, boundaries.box(), wide)
    assert set(small.rows.tolist()) == {4, 7}
    assert (small.points.max(axis=0) <= wide).all()
    for first, last in zip(small.starts[:-1], small.starts[1:], strict=True):
        assert len(np.unique(small.points[first:last], axis=0)) >= 1


def test_the_area_at_a_point_has_the_hole_cut_out() -> None:
    outer, hole = [[0, 0], [90, 0], [90, 90], [0, 90]], [[30, 30], [60, 30], [60, 60], [30, 60]]
    boundaries = Boundaries(np.array(outer + hole, dtype=np.int32), np.array([0, 4, 8]), np.array([5, 5]), {})
    assert boundaries.at(10, 10) == 5
    assert boundaries.at(45.5, 45.5) == -1
    assert boundaries.at(-3, 10) == -1


# -- made-up shapes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("areas", "small"), [(1, False), (2, False), (5, False), (60, True), (400, False)])
def test_simulated_areas_tile_their_parents(areas: int, small: bool) -> None:
    place = plan(areas, 3, small)
    shapes = shapes_of(place, 3)
    assert len(shapes) == areas
    at = {region: row for row, region in enumerate(place.regions["region"])}
    inside: dict[int, float] = {}
    for row, parent in enumerate(place.regions["parent"]):
        assert area_of(shapes[row]) > 0
        if parent in at:
            around = shapes[at[parent]]
            side = np.concatenate([around[1:], around[:1]]) - around
            for x, y in shapes[row]:  # to the left of every side: within a convex shape
                off = side[:, 0] * (y - around[:, 1]) - side[:, 1] * (x - around[:, 0])
                assert (off > -1e-9).all()
            inside[at[parent]] = inside.get(at[parent], 0.0) + area_of(shapes[row])
    for row, size in inside.items():
        assert size == pytest.approx(area_of(shapes[row]), rel=1e-9)  # inside, and of the same size: they tile it


def test_simulated_boundaries_are_a_file_of_the_census(tmp_path: Path) -> None:
    made = simulate(tmp_path / "a", areas=40, seed=2, boundaries=True)
    assert made.boundaries is not None
    shapes = read_shapes(made.boundaries)
    assert len(shapes) == 40
    assert made.boundaries.name in made.note.read_text(encoding="utf-8")
    again = simulate(tmp_path / "b", areas=40, seed=2, boundaries=True)
    assert again.boundaries is not None
    assert again.boundaries.read_bytes() == made.boundaries.read_bytes()
    without = simulate(tmp_path / "a", areas=40, seed=2)  # in the same folder, no old shapes stay
    assert without.boundaries is None
    assert not made.boundaries.exists()
    assert made.truth.read_bytes() == again.truth.read_bytes()  # the counts do not depend on it


# -- an audit with a map ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mapped(mapped_audit: Path) -> Path:
    """Return the folder of an audit with boundaries, and of its census."""
    return mapped_audit.parent


@pytest.fixture(scope="module")
def asked(mapped: Path) -> TestClient:
    return TestClient(explorer_app(mapped / "audit", hosts_for("127.0.0.1")), base_url="http://127.0.0.1")


def test_the_shapes_are_kept_with_the_audit(mapped: Path) -> None:
    folder = AuditFolder.open(mapped / "audit")
    kept = kept_boundaries(folder)
    fresh = boundaries_of(folder, mapped / "census" / "boundaries.geojson.gz")
    assert kept is not None
    assert (kept.points == fresh.points).all()
    assert (kept.rows == fresh.rows).all()
    assert kept.matching == fresh.matching
    assert kept.matching["matched"] == 120
    assert unround.verify(mapped / "audit").holds


def test_every_area_is_where_the_map_says(mapped: Path, asked: TestClient) -> None:
    """The middle of an area's shape leads to that area, at every level."""
    folder = AuditFolder.open(mapped / "audit")
    kept = kept_boundaries(folder)
    assert kept is not None
    for row in range(0, 120, 7):
        shape = kept.of(np.array([row]))
        x, y = shape.points.mean(axis=0).tolist()
        level = folder.areas["level"][row]
        place = asked.get("/map/at.json", params={"x": x, "y": y, "level": level}).json()
        assert place["code"] == folder.areas["region"][row]
    assert asked.get("/map/at.json?x=-5&y=-5").status_code == 404
    assert asked.get("/map/at.json?x=nan&y=1").status_code == 400
    assert asked.get("/map/at.json").status_code == 400


def test_colours_are_the_worst_finding(mapped: Path, asked: TestClient) -> None:
    frame = pl.read_parquet(mapped / "audit" / "findings.parquet")
    areas = pl.read_parquet(mapped / "audit" / "model" / "areas.parquet")
    lowest = set(areas.filter(pl.col("level") == "Dissemination area")["region"])
    names = dict(WORST)
    zeros = pl.read_parquet(mapped / "audit" / "model" / "published.parquet").filter(pl.col("zeros_not_listed") > 0)
    classes = dict.fromkeys(lowest & set(zeros["region"]), "zeros")
    for finding in frame.filter(pl.col("region").is_in(lowest)).iter_rows(named=True):
        size = "small" if 1 <= finding["value"] <= 2 else "zeros" if finding["value"] == 0 else "likely"
        kind = finding["kind"] if finding["kind"] != "likely" else size
        order = list(names)
        before = classes.get(finding["region"], "none")
        classes[finding["region"]] = min(before, kind, key=order.index)
    expected = {names[name]: list(classes.values()).count(name) for name in names if name in classes.values()}
    expected["no finding"] = len(lowest) - len(classes)
    map_data = asked.get("/map.json").json()
    assert {finding["class"]: finding["areas"] for finding in map_data["classes"]} == {
        k: v for k, v in expected.items() if v
    }
    assert map_data["level"] == "Dissemination area"
    assert map_data["notes"] == ["120 areas have a shape, matched by DGUID."]


def test_the_map_is_on_the_pages_and_names_nobody(mapped: Path, asked: TestClient) -> None:
    for view in ("/", "/map", "/map?measure=rate", "/map?level=Census+subdivision"):
        text = asked.get(view).text
        picture = re.search(r"<svg[^>]*choropleth.*?</svg>", text, re.DOTALL)
        assert picture is not None
        assert " style=" not in text
        assert 'href="/map"' in text
    drawn = map_of_report(AuditFolder.open(mapped / "audit"))
    assert drawn is not None
    assert sum(number for _, _, number in drawn.key) == len(
        pl.read_parquet(mapped / "audit" / "model" / "areas.parquet").filter(pl.col("level") == "Dissemination area")
    )
    assert "2021S" not in drawn.picture
    report, public = (
        (mapped / "audit" / name).read_text(encoding="utf-8") for name in ("report.html", "report-public.html")
    )
    assert drawn.picture in report
    assert drawn.caption in report
    assert "choropleth" not in public.split("</style>")[1]


@pytest.mark.parametrize("query", ["measure=size", "level=Moon", "place=Atlantis"])
def test_a_map_of_nothing_is_refused(asked: TestClient, query: str) -> None:
    assert asked.get(f"/map?{query}").status_code == 400


def test_a_map_of_one_place_shows_its_areas_only(asked: TestClient) -> None:
    province, division = "2021A000210", "2021A00031001"
    whole = asked.get("/map.json?level=Census+division").json()["classes"]
    part = asked.get(f"/map.json?level=Census+division&place={province}").json()["classes"]
    assert part == whole
    assert sum(one["areas"] for one in asked.get(f"/map.json?place={division}").json()["classes"]) == 108
    answer = asked.get(f"/map?place={province}")  # no dissemination area names the province as its parent
    assert answer.status_code == 404
    assert "no area of 2021A000210 has a shape" in answer.text.lower().replace("2021a000210", "2021A000210")


def test_without_boundaries_there_is_no_map(census_audit: Path) -> None:
    asked = TestClient(explorer_app(census_audit, hosts_for("127.0.0.1")), base_url="http://127.0.0.1")
    assert asked.get("/map").status_code == 404
    assert "--boundaries" in asked.get("/map").text
    assert 'href="/map"' not in asked.get("/").text
    assert map_of_report(AuditFolder.open(census_audit)) is None


def test_boundaries_can_be_given_when_serving_or_reporting(hostile_audit: Path, tmp_path: Path, run: Run) -> None:
    shapes = written(
        tmp_path / "s.geojson", collection(feature("D01"), feature(IMAGE, [[2, 0], [2, 1], [3, 1]]), feature("x<b>"))
    )
    shown = run("serve", str(hostile_audit), "--boundaries", str(shapes), "--get", "/map.json")
    assert shown.code == 0
    wrong = run("serve", str(hostile_audit), "--boundaries", str(tmp_path / "none.geojson"), "--get", "/map.json")
    assert wrong.code == 2
    app = explorer_app(hostile_audit, hosts_for("127.0.0.1"), boundaries=shapes)
    text = TestClient(app, base_url="http://127.0.0.1").get("/map").text
    assert "1 shape has a code that no area has (x&lt;b&gt;)" in text
    assert "areas have no shape (" in text
    assert "<img" not in text


def test_a_report_keeps_the_boundaries_that_it_was_given(mapped: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(mapped / "audit", tmp_path / "audit")
    report = json.loads(gzip.decompress((mapped / "census" / "boundaries.geojson.gz").read_bytes()))
    report["features"] = report["features"][:50]
    unround.audit(tmp_path / "audit", boundaries=written(tmp_path / "s.geojson", report))
    kept = kept_boundaries(AuditFolder.open(tmp_path / "audit"))
    assert kept is not None
    assert (kept.matching["matched"], kept.matching["areas_without_shape"]) == (50, 70)
    damaged = tmp_path / "audit" / "model" / "boundaries.npz"
    damaged.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"boundaries\.npz"):
        AuditFolder.open(tmp_path / "audit")


def test_a_broken_file_of_boundaries_stops_an_audit_before_it_begins(simulated_census: Path, tmp_path: Path) -> None:
    (tmp_path / "b.geojson").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="neither GeoJSON"):
        unround.audit(simulated_census / BULK, tmp_path / "audit", boundaries=tmp_path / "b.geojson")
    assert not (tmp_path / "audit").exists()


# -- drawing ----------------------------------------------------------------------------------------------------------


def many(number: int) -> Boundaries:
    """Return a field of so many small crosses, on the finest grid."""
    side = int(np.ceil(np.sqrt(number)))
    cross = np.array([[2, 0], [3, 0], [3, 2], [5, 2], [5, 3], [3, 3], [3, 5], [2, 5], [2, 3], [0, 3], [0, 2], [2, 2]]) * 20
    corners = np.array([[k % side, k // side] for k in range(number)]) * 120
    points = (corners[:, None] + cross[None]).reshape(-1, 2).astype(np.int32)
    summary = {"by": "code", "matched": number, "shapes_without_area": 0, "areas_without_shape": 0}
    return Boundaries(points, np.arange(0, 12 * number + 1, 12), np.arange(number), summary)


def test_however_many_areas_a_drawing_stays_small() -> None:
    numbers = many(27_013)
    classes = np.arange(27_013) % len(WORST)
    drawn = draw(numbers, classes, WORST, "A map.", 400_000)
    assert len(drawn.picture) < 401_000
    assert sum(number for _, _, number in drawn.key) == 27_013
    few = draw(many(30), classes, WORST, "A map.")
    assert f'viewBox="0 0 {UNITS[0]} ' in few.picture  # as fine as it can be


def test_classes_of_rates_are_fifths_that_can_be_told_apart() -> None:
    rates = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 60.0])
    classes, named = rate_classes(rates)
    assert named[-1] == ("none", "no finding")
    assert [named[at][1] for at in classes[:2]] == ["no finding", "no finding"]
    assert classes[2:].tolist() == sorted(classes[2:].tolist(), reverse=True)
    assert classes[-1] == 0
    assert rate_classes(np.zeros(3))[0].tolist() == [1, 1, 1]
    assert len(set(rate_classes(np.array([7.0, 7.0, 0.0]))[0].tolist())) == 2


@pytest.mark.parametrize(
    ("classes", "caption"),
    [
        ([5, 5, 5], "No area has a finding"),
        ([2, 5, 5], "1 of 3 areas has a likely count of one or two"),
        ([0, 0, 4], "2 of 3 areas have a proved count; 1 more has likely zeros only"),
    ],
)
def test_a_map_has_a_sentence_for_a_title(classes: list[int], caption: str) -> None:
    assert draw(many(3), np.array(classes), WORST, "A map.").caption == caption


def test_the_worst_finding_is_the_first_by_rank() -> None:
    classes = worst_classes([3, 1, 1, 3, 0], [0, 1, 2, 2, 2], [3, 0, 0, 0, 3], [1, 2, 0, 2, 0])
    assert [WORST[at][0] for at in classes] == ["zeros", "conditional", "none", "proved", "none"]
