"""What unround needs: that it is written down, under which licences, and that versions which are locked will do."""

from __future__ import annotations

import re
import tomllib

import pytest
from docs import dependencies
from packaging.requirements import Requirement

PROJECT = tomllib.loads((dependencies.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PERMISSIVE = re.compile(r"MIT|BSD|Apache|PSF|ISC|MPL|Zlib|CC0|0BSD|LLVM", re.IGNORECASE)


def asked_for() -> list[Requirement]:
    project = PROJECT["project"]
    extras = [
        requirement for name, some in project["optional-dependencies"].items() if name != "all" for requirement in some
    ]
    return [
        Requirement(requirement) for requirement in (*project["dependencies"], *extras, *PROJECT["dependency-groups"]["dev"])
    ]


def locked() -> dict[str, str]:
    lines = dependencies.CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("needed", asked_for(), ids=lambda needed: needed.name)
def test_what_is_locked_will_do(needed: Requirement) -> None:
    version = locked().get(dependencies.normal(needed.name))
    assert version is not None, "run `make constraints`"
    assert needed.specifier.contains(version, prereleases=True)


def test_every_package_and_its_licence_are_listed() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", dependencies.LICENCES.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name: licence for name, licence in rows if name != "package" and set(name) != {"-"}}
    of_users = [Requirement(one) for one in PROJECT["project"]["dependencies"]]
    assert {dependencies.normal(one.name) for one in of_users} <= set(listed), "run `make constraints`"
    assert len(listed) > 30
    for name, licence in listed.items():
        assert PERMISSIVE.search(licence), f"{name}: may we use what is under {licence}?"


def test_what_a_package_needs_is_followed_to_the_end() -> None:
    found = {dependencies.normal(one.metadata["Name"]) for one in dependencies.needed("unround")}
    assert {"numba", "llvmlite", "starlette", "anyio"} <= found
    assert not {"unround", "distributed", "pytest"} & found
    assert {dependencies.licence_of(one) for one in dependencies.needed("unround")} - {"not stated"}
