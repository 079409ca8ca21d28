"""An audit that is stopped, killed or runs out of disk goes on where it was, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import unround
from tests.conftest import MakeOnce, run_in
from unround import simulate
from unround.errors import InputError
from unround.job import AuditFolder, AuditRun, audit, cluster
from unround.job.folder import RUN
from unround.job.work import PARTS, PREPARED, Job, add_up, job_folder, new_part, part_folder
from unround.options import AuditOptions
from unround.output import DONE, MOVING
from unround.tables import read

FOLDER = ".audit"
THOROUGH = "UNROUND_THOROUGH" in os.environ
KILLS = 20 if THOROUGH else 6
RELEASE = "census/98-401-X2021006_English_CSV_data.csv"
COMMAND = ("audit", RELEASE, "-o", "out", "--truth", "census/truth.parquet", "--estimates", "means", "--block", "6")
QUICK = AuditOptions(prior="flat", block=6)


@pytest.fixture(scope="session")
def audited_once(make_once: MakeOnce) -> Path:
    """A folder with a small census, and its audit as nobody disturbed it under `undisturbed`."""

    def fill(where: Path) -> None:
        simulate(where / "census", areas=120, rows="age", seed=5)
        assert run_in(where, *COMMAND) == 0
        (where / "out").rename(where / "undisturbed")

    return make_once("resume", fill)


@pytest.fixture
def place(audited_once: Path, tmp_path: Path) -> Path:
    """A copy of it, to disturb."""
    return Path(shutil.copytree(audited_once, tmp_path / "place"))


def _start(where: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "unround", *COMMAND]
    return subprocess.Popen(command, cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files but the one that tells of the run itself."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RUN
    }


def test_killed_again_and_again_it_ends_with_the_same_bytes(place: Path) -> None:
    chance = random.Random(20)
    job, out = place / "out" / FOLDER, place / "out"
    seen, kills = set[int](), 0
    while kills < KILLS:
        before = _parts(job)
        process = _start(place)
        # Until reading is over, a moment anywhere in it; from then on, while a block or two are done.
        if not (job / PREPARED).exists() and kills % 3:
            while process.poll() is None and not (job / PREPARED).exists():
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.3))
        elif (job / PREPARED).exists():
            while process.poll() is None and _parts(job) - before < kills % 3:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.2))
        else:
            time.sleep(chance.uniform(0.1, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:  # it was quicker; begin anew, so that all kills are kills
            assert contents(out) == contents(place / "undisturbed")
            shutil.rmtree(out)
            continue
        assert process.returncode == -signal.SIGKILL
        assert not (out / "summary.json").exists(), "half an audit must not look like one"
        kills += 1
        seen.add(_parts(job))
    assert len(seen) > (4 if THOROUGH else 2), "the kills must come at different moments"
    before = _parts(job)
    assert run_in(place, *COMMAND) == 0
    assert contents(out) == contents(place / "undisturbed")
    assert not job.exists()
    assert json.loads((out / RUN).read_text())["blocks_done_before"] == before


def _parts(job: Path) -> int:
    return len(list((job / PARTS).glob("0*"))) if (job / PARTS).exists() else 0


def test_killed_while_results_are_moved_out_it_has_only_to_move_the_rest(place: Path, tmp_path: Path) -> None:
    whole = contents(place / "undisturbed")
    names = sorted({Path(name).parts[0] for name in whole} | {RUN})
    for moved in range(len(names) + 1):
        out = tmp_path / f"out{moved}"
        job = out / FOLDER
        shutil.copytree(place / "undisturbed", job / DONE)
        (job / "key").write_text("whatever was asked for")
        (job / MOVING).write_text(json.dumps({"new": names, "leaving": {}}))
        for name in names[:moved]:
            (job / DONE / name).rename(out / name)
        with pytest.raises(InputError, match=r"no usable sum|nothing to infer"):  # something else fails afterwards …
            audit(_useless(tmp_path), out)
        assert contents(out) == whole  # … but the audit that was complete is in its place
        assert not job.exists()


def _useless(folder: Path):  # type: ignore[no-untyped-def]
    table = folder / "useless.csv"
    table.write_text("region,characteristic_id,sex,value\n" + "".join(f"{i},a,total,{5 * i}\n" for i in range(30)))
    return read(table)


def test_a_full_disk_stops_it_and_what_is_done_is_kept(place: Path) -> None:
    out = place / "out"
    size = (place / "undisturbed" / "estimates.parquet").stat().st_size - 1  # large enough for all that comes before it

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-m", "unround", *COMMAND]
    stopped = subprocess.run(command, cwd=place, capture_output=True, preexec_fn=little_room, check=False)
    printed = stopped.stderr.decode()
    assert stopped.returncode == 2, printed
    assert "cannot continue writing to" in printed
    assert "run the same command again to continue" in printed
    assert _parts(out / FOLDER) == json.loads((place / "undisturbed" / "run.json").read_text())["blocks"]
    assert not (out / "summary.json").exists()
    assert run_in(place, *COMMAND) == 0
    assert contents(out) == contents(place / "undisturbed")


def test_ctrl_c_keeps_what_is_done_and_says_so(place: Path) -> None:
    out, job = place / "out", place / "out" / FOLDER
    for _ in range(10):
        process = _start(place)
        while process.poll() is None and _parts(job) < 1:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate()
        if process.returncode != 0 and _parts(job):
            break
        shutil.rmtree(out, ignore_errors=True)  # it was quicker; begin anew
    assert process.returncode == 130
    assert b"run the same command again to continue" in printed
    assert _parts(job) >= 1
    assert not list((job / PARTS).glob(".half*"))
    assert run_in(place, *COMMAND) == 0
    assert contents(out) == contents(place / "undisturbed")


def test_another_question_begins_anew(place: Path, tmp_path: Path) -> None:
    """Whatever is asked for decides the key: options, files, their contents."""
    release = read(place / RELEASE)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), _interrupted(out, release, QUICK) as job:
        assert _parts(job) >= 1
    left = {path.name: path.stat().st_ino for path in (out / FOLDER / PARTS).glob("0*")}
    assert left
    audit(release, out, replace(QUICK, threshold=0.9), run=AuditRun([]))
    assert AuditFolder.open(out).run["blocks_done_before"] == 0
    assert AuditFolder.open(out).summary["threshold"] == 0.9


def test_an_edit_that_the_file_system_does_not_tell_begins_anew(place: Path, tmp_path: Path) -> None:
    """Size and time of the file are those of before; what is in it is not."""
    file, out = place / RELEASE, tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), _interrupted(out, read(file), QUICK) as job:
        assert _parts(job) >= 1
    before, text = file.stat(), file.read_bytes()
    at = text.rindex(b",5\n") if b",5\n" in text else text.rindex(b"5")
    file.write_bytes(text[:at] + text[at:].replace(b"5", b"0", 1))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    audit(read(file), out, QUICK, run=AuditRun([]))
    assert AuditFolder.open(out).run["blocks_done_before"] == 0


def test_a_file_that_is_replaced_while_it_is_read_is_not_audited(place: Path, tmp_path: Path) -> None:
    file = place / RELEASE

    def replaced(what: str, _done: int, _total: int) -> None:
        if what == "Auditing":
            pytest.fail("it was not noticed")
        shutil.copy(file, tmp_path / "again")
        (tmp_path / "again").replace(file)

    with pytest.raises(InputError, match="was changed while it was being read"):
        unround.audit(file, tmp_path / "out", prior="flat", progress=replaced)
    assert not (tmp_path / "out").exists()


def _interrupted(out: Path, release, options: AuditOptions):  # type: ignore[no-untyped-def]
    from contextlib import contextmanager

    @contextmanager
    def run():  # type: ignore[no-untyped-def]
        def stop(what: str, done: int, _total: int) -> None:
            if what == "Auditing" and done >= 24:
                raise KeyboardInterrupt

        try:
            audit(release, out, options, run=AuditRun([]), progress=stop)
        finally:
            yield out / FOLDER

    return run()


def test_two_audits_into_one_folder_do_not_mix(tmp_path: Path) -> None:
    with job_folder(tmp_path / "out", "one"), pytest.raises(InputError, match="another `unround audit` is writing"):  # noqa: SIM117
        with job_folder(tmp_path / "out", "one"):
            raise AssertionError
    assert not (tmp_path / "out").exists()


def test_failures_leave_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="cannot continue writing to"),
        job_folder(tmp_path / "deep" / "out", "key") as output,
    ):
        (output.work / PREPARED).write_text((tmp_path / "missing").read_text())
    assert not (tmp_path / "deep").exists()
    with pytest.raises(KeyboardInterrupt), job_folder(tmp_path / "deep" / "out", "key"):
        raise KeyboardInterrupt  # while it was still reading
    assert not (tmp_path / "deep").exists()


def test_a_cluster_that_is_gone_does_not_cost_what_was_done_before(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the extra unround[cluster] is not installed")
    monkeypatch.setattr(cluster, "PATIENCE", "1s")
    release, out = read(place / RELEASE), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), _interrupted(out, release, QUICK):
        pass
    done = _parts(out / FOLDER)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        audit(release, out, QUICK, run=AuditRun([], "tcp://127.0.0.1:9"))
    assert _parts(out / FOLDER) == done > 0


def test_a_part_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(TypeError), new_part(tmp_path, 3) as part:
        (part / "a").write_text(None)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    for text in ("first", "second"):
        with new_part(tmp_path, 3) as part:
            (part / "a").write_text(text)
    assert [path.name for path in tmp_path.iterdir()] == ["000003"]
    assert (part_folder(tmp_path, 3) / "a").read_text() == "first"


@pytest.fixture(scope="module")
def killed_once(audited_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of that folder, with what an audit left under `killed` that was killed when some parts were done."""
    where = Path(shutil.copytree(audited_once, tmp_path_factory.mktemp("killed") / "place"))
    for _ in range(10):
        process = _start(where)
        while process.poll() is None and _parts(where / "out" / FOLDER) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode != 0:
            (where / "out").rename(where / "killed")
            return where
        shutil.rmtree(where / "out")  # it was quicker; begin anew
    raise AssertionError


@pytest.fixture
def half_done(killed_once: Path) -> Iterator[Path]:
    """The place where an audit was interrupted, with some parts done: an audit goes on only where it began."""
    shutil.copytree(killed_once / "killed", killed_once / "out")
    yield killed_once
    shutil.rmtree(killed_once / "out")


def _damaged(file: Path, how: str) -> None:
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    file.write_bytes({"cut": content[:middle], "flipped": flipped, "emptied": b""}[how])


def test_damaged_parts_are_done_again(half_done: Path) -> None:
    parts = sorted((half_done / "out" / FOLDER / PARTS).glob("0*"))
    for part, name, how in zip(parts, ("findings.parquet", "published.parquet"), ("cut", "flipped"), strict=False):
        _damaged(part / name, how)
    assert run_in(half_done, *COMMAND) == 0
    assert contents(half_done / "out") == contents(half_done / "undisturbed")
    assert json.loads((half_done / "out" / RUN).read_text())["blocks_done_before"] == len(parts) - 2


DAMAGES = [("counts.bin", "cut"), (PREPARED, "flipped")]
if THOROUGH:
    DAMAGES += [(PREPARED, "cut"), ("model/prior.npz", "flipped"), ("model/areas.parquet", "emptied")]


@pytest.mark.parametrize(("name", "how"), DAMAGES)
def test_where_what_was_read_is_damaged_it_starts_anew(half_done: Path, name: str, how: str) -> None:
    _damaged(half_done / "out" / FOLDER / name, how)
    command = [sys.executable, "-m", "unround", *COMMAND]
    said = subprocess.run(command, cwd=half_done, capture_output=True, text=True, check=True).stdout
    assert f"{name}, left by an earlier run, was damaged, so that everything was done again." in " ".join(said.split())
    assert contents(half_done / "out") == contents(half_done / "undisturbed")
    assert json.loads((half_done / "out" / RUN).read_text())["blocks_done_before"] == 0


AIMED = """
import os, resource, signal, sys
from pathlib import Path
moment, limit = sys.argv.pop(1), int(sys.argv.pop(1))
seen = 0

def kill_at(owner, name, counts=lambda *_: True):
    usual = getattr(owner, name)
    def aimed(*arguments, **more):
        global seen
        if counts(*arguments):
            if seen == limit:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1
        return usual(*arguments, **more)
    setattr(owner, name, aimed)

if moment == "moving":
    kill_at(Path, "replace", lambda path, target: path.parent.name == "done" and Path(target).parent.name == "out")
elif moment == "reading":
    from unround.tables import bulk
    from unround.tables.spool import Spool
    from unround.job import work
    kill_at(bulk, "_rows")
    kill_at(Spool, "add")
    kill_at(Spool, "close")
    kill_at(work, "write_json")
else:  # at the very write for which there is no room
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from unround.cli import main
main()
"""


def _killed(place: Path, moment: str, limit: int) -> bool:
    """Run the audit, to be killed at a moment; return whether it was, rather than ended before that moment came."""
    command = [sys.executable, "-c", AIMED, moment, str(limit), *COMMAND]
    ended = subprocess.run(command, cwd=place, capture_output=True, check=False)
    assert ended.returncode in (0, -signal.SIGKILL, -signal.SIGXFSZ), ended.stderr
    return ended.returncode != 0


def test_killed_at_the_last_step_at_reading_and_when_the_disk_is_full(place: Path) -> None:
    """Twenty kills in `make thorough`: in the worst moments, one after the other, without a whole run in between."""
    out, job = place / "out", place / "out" / FOLDER
    whole = contents(place / "undisturbed")
    sizes = [path.stat().st_size for path in (place / "undisturbed").rglob("*.parquet")]
    rooms = sorted({size // part - 1 for size in sizes for part in (1, 2)})
    kills = 0
    for limit in range(4) if THOROUGH else (3,):
        assert _killed(place, "reading", limit)
        assert not (job / PREPARED).exists(), "what was not read to its end is not taken for read"
        kills += 1
    for room in rooms if THOROUGH else rooms[-1:]:
        assert _killed(place, "full", room)
        assert not (out / "summary.json").exists(), "half an audit must not look like one"
        kills += 1
    names = len({Path(name).parts[0] for name in whole} | {RUN})
    for turn in range(names if THOROUGH else 2):  # every run but the first moves one more file into its place
        assert _killed(place, "moving", min(turn, 1))
        assert (job / MOVING).exists()
        assert not (out / "summary.json").exists(), "half an audit must not look like one"
        kills += 1
    assert kills >= (20 if THOROUGH else 4)
    assert run_in(place, *COMMAND) == 0
    assert contents(out) == whole
    assert not job.exists()


def test_blocks_add_up(place: Path, tmp_path: Path) -> None:
    """However areas are put into blocks, the numbers are the same."""
    release, truth = read(place / RELEASE), read(place / "census" / "truth.parquet")
    summaries = []
    for block in (7, 4096):
        folder = audit(release, tmp_path / str(block), AuditOptions(block=block), truth=truth)
        summaries.append(folder.summary)
        assert folder.findings.equals(AuditFolder.open(place / "undisturbed").findings)
    for other in summaries[1:]:
        for name, value in summaries[0].items():
            if name not in ("truth", "files", "seal"):  # Parquet keeps the blocks it was written in
                assert other[name] == value, name
        assert other["truth"]["checked"] == summaries[0]["truth"]["checked"]
        assert other["truth"]["mean_error"] == pytest.approx(summaries[0]["truth"]["mean_error"])


def test_numbers_of_parts_add_up() -> None:
    one = {"a": 1, "b": {"x": [1.5, 2]}, "listed": [{"z": 1}]}
    other = {"a": 2, "b": {"x": [1, 1], "y": [5]}, "listed": []}
    assert add_up(one, other) == {"a": 3, "b": {"x": [2.5, 3], "y": [5]}, "listed": [{"z": 1}]}


def test_findings_are_sorted_range_by_range_as_if_at_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from unround.job import work

    monkeypatch.setattr(work, "ROWS_AT_A_TIME", 5)
    findings = audit(read(place / RELEASE), tmp_path / "out", AuditOptions(block=10)).findings
    assert findings.height > 3 * work.ROWS_AT_A_TIME, "there must be something to sort"
    assert findings.equals(AuditFolder.open(place / "undisturbed").findings)


def test_a_job_can_be_opened_by_anybody(place: Path, tmp_path: Path) -> None:
    """What a worker elsewhere finds in the folder is all that it needs: not the release, nor this process."""
    release = read(place / RELEASE)
    with pytest.raises(KeyboardInterrupt), _interrupted(tmp_path / "out", release, QUICK):
        pass
    job = tmp_path / "out" / FOLDER
    part = part_folder(job / PARTS, 0)
    before = contents(part)
    shutil.rmtree(part)
    code = f"from unround.job.work import work_on; print(work_on({str(job)!r}, 'key', 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    opened = Job(job)
    assert done.stdout == f"{len(opened.areas_of(0))}\n".encode()  # 6, or the areas of a family
    assert contents(part) == before
    assert opened.areas.height == 120
