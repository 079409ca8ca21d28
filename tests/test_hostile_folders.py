"""Folders that somebody edited, hashes and all: every use of them ends with a result, or with words."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError, InternalError, UnroundError
from unround.job.folder import OURS, SEAL, Damaged, seal, seal_of
from unround.small_files import misfit

THOROUGH = int(os.environ.get("UNROUND_THOROUGH", "1"))

VALUES: tuple[Any, ...] = (
    None, True, "", "x", -1, 0, 7, 0.5, 1e308, float("nan"), float("inf"), 10**30, -(10**30), 2**31, [], {}, [[[[[]]]]],
    [1, "a"], {"a": {"b": [None]}}, "0/0", "\0",
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to everything within plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([at] if at else []) + [place for key, item in inner for place in places(item, (*at, key))]


def edited(value: Any, rng: random.Random) -> str:
    """Change one place of plain data, as likely deep inside as near the top; say which, and how."""
    known = places(value)
    depth = rng.choice(sorted({len(place) for place in known}))
    *way, last = rng.choice([place for place in known if len(place) == depth])
    holder = value
    for key in way:
        holder = holder[key]
    how = rng.choice(("value", "value", "value", "removed", "text", "negative", "wrapped", "twice"))
    before = holder[last]
    if how == "removed":
        del holder[last]
    elif how == "twice" and isinstance(holder, list):
        holder.insert(last, before)
    elif how == "negative" and isinstance(before, int | float):
        holder[last] = -before - 1
    else:
        holder[last] = str(before) if how == "text" else [before] if how == "wrapped" else rng.choice(VALUES)
    return f"{'.'.join(map(str, (*way, last)))}, {how}: {holder[last] if how == 'value' else ''!r}"


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "deeper": lambda array: array[None],
    "text": lambda _: np.array("x"),
    "negative": lambda array: -array.astype(np.int64) - 1 if array.dtype.kind in "iufb" else array[None],
    "gaps": lambda array: np.full(array.shape, np.nan),
    "empty": lambda array: array.reshape(-1)[:0],
    "huge": lambda array: np.full_like(array, 10**8) if array.dtype.kind in "if" else array[None],
    "cut": lambda array: array[:-1] if array.ndim else array[None],
    "single": lambda array: array.astype(np.float32) if array.dtype.kind in "iufb" else array[None],
}
TABLES: dict[str, Callable[[pl.DataFrame, str], pl.DataFrame]] = {
    "removed": lambda table, name: table.drop(name),
    "text": lambda table, name: table.with_columns(pl.lit("x").alias(name)),
    "gaps": lambda table, name: table.with_columns(pl.lit(None).alias(name)),
    "number": lambda table, name: table.with_columns(pl.lit(2**62).alias(name)),
    "nan": lambda table, name: table.with_columns(pl.lit(float("nan")).alias(name)),
    "renamed": lambda table, name: table.rename({name: "zzz"}),
    "reversed": lambda table, _: table.reverse(),
    "empty": lambda table, _: table.head(0),
    "twice": lambda table, _: pl.concat([table, table]),
}


def change(folder: Path, name: str, rng: random.Random) -> str:
    """Change one file of a folder, and the hashes with it."""
    path = folder / name
    if name.endswith(".npz"):
        with np.load(path, allow_pickle=False) as kept:
            arrays = {key: kept[key] for key in kept.files}
        key, how = rng.choice(sorted(arrays)), rng.choice(sorted(ARRAYS))
        arrays[key] = ARRAYS[how](arrays[key])
        np.savez(path, allow_pickle=False, **arrays)
    elif name.endswith(".parquet"):
        table = pl.read_parquet(path)
        key, how = rng.choice(table.columns), rng.choice(sorted(TABLES))
        TABLES[how](table, key).write_parquet(path)
    else:
        packed = name.endswith(".gz")
        lines = gzip.decompress(path.read_bytes()).decode().splitlines() if packed else [path.read_text(encoding="utf-8")]
        at = rng.randrange(len(lines))
        report = json.loads(lines[at])
        key, how = edited(report, rng), ""
        if name == "summary.json" and SEAL in report:
            report[SEAL] = seal_of(report)
        lines[at] = json.dumps(report)
        text = "\n".join(lines).encode()
        path.write_bytes(gzip.compress(text) if packed else text)
    if name != "summary.json" and (folder / "model").is_dir():
        seal(folder, OURS)
    return f"{name}: {key} {how}"


def page(address: str) -> Callable[[Path], object]:
    def shown(folder: Path) -> None:
        status, body = unround.view(folder, address)
        assert status < 500
        assert status == 200 or len(body) > 15

    return shown


def uses(sound: Path) -> dict[str, Callable[[Path], object]]:
    """Return everything that reads an audit."""
    known = unround.AuditFolder.open(sound)
    area, cell = known.areas[known.area_axes[0]][0], known.model.columns[1].key
    calls: dict[str, Callable[[Path], object]] = {
        "verify": unround.verify,
        "open": lambda folder: str(unround.AuditFolder.open(folder)),
        "run": lambda folder: unround.AuditFolder.open(folder).run,
        "explain": lambda folder: str(unround.explain(folder, area, cell)),
        "diff": lambda folder: str(unround.diff(sound, folder)),
        "pages": unround.audit,
    }
    addresses = ("/", "/areas", "/findings.csv", "/structure", "/contradictions", "/about", f"/area/{area}/{cell}")
    return calls | {address: page(address) for address in addresses}


def faults(folder: Path, what: dict[str, Callable[[Path], object]]) -> list[str]:
    """Return what went wrong without words."""
    listed = []
    for name, use in what.items():
        try:
            use(folder)
        except InternalError as problem:
            listed.append(f"{name}: {problem!r}")
        except UnroundError as problem:
            if len(str(problem)) < 20:
                listed.append(f"{name}: {problem!r}")
        except Exception as problem:
            listed.append(f"{name}: {problem!r}")
    return listed


FILES = (
    "summary.json", "summary.json", "model/model.json", "run.json", "proofs.jsonl.gz", "findings.parquet",
    "model/areas.parquet", "model/published.parquet", "model/prior.npz",
)  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_an_audit_that_was_edited_is_used_or_refused_in_words(survey_audit: Path, tmp_path: Path, name: str) -> None:
    rng, what = random.Random(name), uses(survey_audit)
    for _ in range(4 * THOROUGH):
        folder = shutil.copytree(survey_audit, tmp_path / "audit", dirs_exist_ok=True)
        said = change(folder, name, rng)
        assert not faults(folder, what), said


@pytest.mark.parametrize("name", ["model/nested.npz", "model/boundaries.npz"])
def test_so_are_areas_within_areas_and_their_shapes(mapped_audit: Path, tmp_path: Path, name: str) -> None:
    rng, what = random.Random(name), uses(mapped_audit)
    for _ in range(2 * THOROUGH):
        folder = shutil.copytree(mapped_audit, tmp_path / "audit", dirs_exist_ok=True)
        said = change(folder, name, rng)
        assert not faults(folder, what), said


@pytest.mark.parametrize("name", ["summary.json", "reconciled.parquet"])
def test_so_is_a_table_that_was_made_to_add_up(tmp_path: Path, name: str) -> None:
    table = pl.DataFrame({"town": ["a", "b", "c"], "all": [20, 15, 10], "men": [10, 10, 5], "women": [5, 10, 5]})
    about = {"area": "town", "sums": {"all": ["men", "women"]}, "mechanism": "rounding:5"}
    sound = tmp_path / "sound"
    unround.reconcile(table, sound, describe=about)
    rng, what = random.Random(name), {address: page(address) for address in ("/", "/index.json", "/area/a", "/area/a.json")}
    assert not faults(sound, what)
    for _ in range(10 * THOROUGH):
        folder = shutil.copytree(sound, tmp_path / "edited", dirs_exist_ok=True)
        said = change(folder, name, rng)
        assert not faults(folder, what), said


@pytest.mark.parametrize(
    ("change_it", "said"),
    [
        (lambda summary: summary.update(proved="3"), r"summary\.json is not a summary of an audit \(it\.proved is '3'\)"),
        (lambda summary: summary["check"]["families"][0].pop("sums"), r"it\.check\.families\[0\]\.sums is missing"),
        (lambda summary: summary.update(threshold=float("nan")), r"it\.threshold is nan"),
        (lambda summary: summary.update(files=[]), r"it\.files is \[\]"),
    ],
)
def test_what_is_wrong_with_a_summary_is_named(
    survey_audit: Path, tmp_path: Path, change_it: Callable[[Any], object], said: str
) -> None:
    folder = shutil.copytree(survey_audit, tmp_path / "audit")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    change_it(summary)
    summary[SEAL] = seal_of(summary)
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(Damaged, match=said):
        unround.AuditFolder.open(folder)


def test_no_number_of_a_finding_may_be_text(survey_audit: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(survey_audit, tmp_path / "audit")
    whole = pl.read_parquet(folder / "findings.parquet")
    numbers = [name for name, kind in whole.schema.items() if kind.is_numeric()]
    assert len(numbers) == 9
    for name in numbers:
        whole.with_columns(pl.lit("x").alias(name)).write_parquet(folder / "findings.parquet")
        seal(folder, OURS)
        with pytest.raises(Damaged, match=r"findings\.parquet cannot be read"):
            _ = unround.AuditFolder.open(folder).findings


def test_areas_within_each_other_in_a_circle_end_no_program(mapped_audit: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(mapped_audit, tmp_path / "audit")
    with np.load(folder / "model" / "nested.npz") as kept:
        arrays = {key: kept[key] for key in kept.files}
    arrays["parent"][:3] = 1, 2, 0
    np.savez(folder / "model" / "nested.npz", allow_pickle=False, **arrays)
    seal(folder, OURS)
    with pytest.raises(Damaged, match=r"model/nested\.npz cannot be read"):
        _ = unround.AuditFolder.open(folder).nested


@pytest.mark.parametrize("name", ["nested.npz", "keys.json", "else.json"])
def test_what_nobody_wrote_into_a_model_is_not_read(survey_audit: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(survey_audit, tmp_path / "audit")
    (folder / "model" / f"{name}.half").write_bytes(b"half")  # left by a run that was killed
    assert unround.AuditFolder.open(folder).nested is None
    for place in (lambda path: path.write_bytes(b"{}"), os.mkfifo):
        (folder / "model" / name).unlink(missing_ok=True)
        place(folder / "model" / name)
        with pytest.raises(Damaged, match=rf"model/{name} (was put there after the audit|cannot be read)"):
            unround.AuditFolder.open(folder)


def test_more_than_memory_holds_is_not_read_back(
    survey_audit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file can be long and take no room, and an archive of zeros is small."""
    monkeypatch.setattr("unround.small_files.LARGEST_ARRAYS", 1 << 22)
    folder = shutil.copytree(survey_audit, tmp_path / "audit")
    with np.load(folder / "model" / "prior.npz") as kept:
        arrays = {key: kept[key] for key in kept.files}
    np.savez_compressed(folder / "model" / "prior.npz", **arrays, more=np.zeros(1 << 22, dtype=np.uint8))
    seal(folder, OURS)
    with pytest.raises(InputError, match="larger than any that unround writes"):
        _ = unround.AuditFolder.open(folder).prior
    for name in ("run.json", "summary.json"):
        os.truncate(folder / name, 1 << 40)
        with pytest.raises(Damaged, match=rf"{name} cannot be read"):
            _ = unround.AuditFolder.open(folder).run


def test_shapes_of_plain_data() -> None:
    shape = {"a": [int, ...], "b?": (str, None), "c": [str, int], str: float}
    assert misfit({"a": [], "c": ["x", 1], "more": 0.5}, shape) is None
    assert misfit({"a": [1, True], "c": ["x", 1]}, shape) == "it.a[1] is True"
    assert misfit({"a": [], "b": 3, "c": ["x", 1]}, shape) == "it.b is 3"
    assert misfit({"a": [], "c": ["x"]}, shape) == "it.c has 1 entries in place of 2"
    assert misfit({"a": []}, shape) == "it.c is missing"
    assert misfit({"a": [], "c": ["x", 1], "more": "y"}, shape) == "it.more is 'y'"
    assert misfit([], shape) == "it is []"
    assert misfit([True], [range(3), ...]) == "it[0] is True"
    assert misfit([1.0], [range(3), ...]) == "it[0] is 1.0"


def test_boundaries_are_kept_through_no_link(mapped_audit: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(mapped_audit, tmp_path / "audit")
    shutil.move(folder / "model", tmp_path / "elsewhere")
    (folder / "model").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere" / "boundaries.npz").read_bytes()
    shapes = next(mapped_audit.parent.rglob("boundaries.geojson*"))
    with pytest.raises(unround.InputError, match="model is a link to somewhere else, where nothing may be written"):
        unround.audit(folder, boundaries=shapes)
    assert (tmp_path / "elsewhere" / "boundaries.npz").read_bytes() == before
