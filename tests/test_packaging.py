"""What would be uploaded: wheel and sdist are built, and installed into an environment of their own.

Nothing is fetched: dependencies are those of the environment that runs the tests, which the new one sees behind its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_string
from email.message import Message
from importlib.util import find_spec
from pathlib import Path

import pytest

from unround import __version__
from unround.cli import COMMANDS

if find_spec("hatchling") is None and "CI" not in os.environ:
    pytest.skip("hatchling is not installed: `make test` does that", allow_module_level=True)

ROOT = Path(__file__).parents[1]
WHEEL, SDIST = f"unround-{__version__}-py3-none-any.whl", f"unround-{__version__}.tar.gz"

EVERY_COMMAND = (
    "solve 6=6+6 --base 3",
    "simulate -o census --format tidy --areas 8 --rows age",
    "describe census/release.parquet --json",
    "check census/release.toml -q",
    "audit census/release.toml -o audit -q",
    "explain audit 2021A00031001 8 -q",
    "serve audit --get /",
    "verify audit -q",
    "review census/release.toml -o review --repairs none -q",
    "protect census/truth.parquet -o protected --base 3 -q",
    "reconcile census/release.toml -o additive -q",
    "compare --areas 10 --seeds 1 --mechanism rounding:5 -q",
    "simulate -o people --persons --areas 2 --people 60 -q",
    "reconstruct people/profile.toml --truth people/persons.parquet -o persons -q",
)
"""Each command at work, in the order in which one needs what another wrote."""


def build(source: Path, to: Path, *targets: str) -> None:
    wanted = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(to), *wanted]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist", "wheel")
    return folder


@pytest.fixture(scope="module")
def metadata(dist: Path) -> Message:
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        return message_from_string(wheel.read(f"unround-{__version__}.dist-info/METADATA").decode())


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(dist: Path) -> None:
    package = ROOT / "src" / "unround"
    ours = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = set(contents(dist / WHEEL))
    assert {name for name in packed if not name.startswith(f"unround-{__version__}.dist-info/")} == ours
    assert {"unround/py.typed", "unround/show/static/notebook.css"} <= packed


def test_the_sdist_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / SDIST) as packed:
        names = packed.getnames()
        packed.extractall(tmp_path, filter="data")
    top = f"unround-{__version__}"
    for name in ("README.md", "LICENSE", "pyproject.toml", "CHANGELOG.md", "examples/survey.csv", "tests/test_packaging.py"):
        assert f"{top}/{name}" in names
    assert not [name for name in names if "shared/data" in name or name.startswith(f"{top}/.venv")]
    build(tmp_path / top, tmp_path / "again", "wheel")
    assert contents(tmp_path / "again" / WHEEL) == contents(dist / WHEEL)


def test_the_metadata_say_what_it_is(metadata: Message) -> None:
    assert metadata["Name"] == "unround"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    classifiers = metadata.get_all("Classifier") or []  # hatchling has checked that each exists
    for said in ("Intended Audience :: Science/Research", "Framework :: Jupyter", "Typing :: Typed"):
        assert said in classifiers
    assert all(url.partition(", ")[2].startswith("https://") for url in metadata.get_all("Project-URL") or [])


def test_it_works_once_installed(dist: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(dist / WHEEL)], check=True)
    environment = {name: report for name, report in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}

    def printed(code: str) -> str:
        return subprocess.check_output([python, "-c", code], cwd=tmp_path, env=environment, text=True).strip()

    own = Path(printed("import sysconfig; print(sysconfig.get_path('purelib'))"))
    # What unround needs is taken from here, behind the packages that were installed there.
    there = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (own / "dependencies.pth").write_text("\n".join(there) + "\n", encoding="utf-8")
    assert Path(printed("import unround; print(unround.__file__)")).is_relative_to(own)
    command = [str(place / "bin" / "unround"), "solve", "48! = 20 + 20 + 20", "--json"]
    report = json.loads(subprocess.check_output(command, cwd=tmp_path, env=environment, text=True))
    assert [cell["kind"] for cell in report["cells"]] == ["given", "proved", "proved", "proved"]
    code = "import unround; print(len(unround.solve('87! = 35 + 45')._repr_html_()))"  # needs the templates
    assert int(printed(code)) > 1000
    for words in EVERY_COMMAND:
        done = subprocess.run(
            [str(place / "bin" / "unround"), *words.split()],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in ((0, 4, 5, 6) if words.startswith("review") else (0,)), f"{words}: {done.stderr}"
    assert {words.split()[0] for words in EVERY_COMMAND} == {command.name for command in COMMANDS}
