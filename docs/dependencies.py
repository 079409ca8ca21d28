"""Write down what unround was tested with: constraints.txt, and docs/licences.md.

`make constraints` runs this in the environment of the tests; `make test LOCKED=1` installs exactly that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LICENCES = ROOT / "constraints.txt", ROOT / "docs" / "licences.md"

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_CLASSIFIER = "License :: OSI Approved :: "


def normal(name: str) -> str:
    """Return a package's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(package: str, extras: frozenset[str] = frozenset(), seen: set[str] | None = None) -> Iterator[Distribution]:
    """Yield the packages that a package needs, and those that these need, each once."""
    seen = {normal(package)} if seen is None else seen
    for requirement in distribution(package).requires or ():
        name, extra = _NAME.match(requirement), _EXTRA.search(requirement)
        if name is None or (extra is not None and extra[1] not in extras) or normal(name[0]) in {*seen, "unround"}:
            continue
        try:
            found = distribution(name[0])
        except PackageNotFoundError:  # for another system or another version of Python
            continue
        seen.add(normal(name[0]))
        yield found
        yield from needed(name[0], frozenset(), seen)


def licence_of(package: Distribution) -> str:
    """Return the licence that a package states."""
    told = package.metadata

    def stated(field: str) -> list[str]:
        return [str(one).strip() for one in told.get_all(field) or () if str(one).strip()]

    classified = [one.removeprefix(_CLASSIFIER) for one in stated("Classifier") if one.startswith(_CLASSIFIER)]
    written = [one.splitlines()[0] for one in stated("License")]
    return ", ".join(stated("License-Expression") or classified or written[:1]) or "not stated"


def constraints() -> str:
    """Return every installed package with its version, but unround itself."""
    found = {normal(one.metadata["Name"]): one.version for one in distributions()}
    kept = sorted((name, version) for name, version in found.items() if name not in ("unround", "pip", "setuptools"))
    return "# What the tests passed with; `make constraints` writes it again.\n" + "".join(
        f"{name}=={version}\n" for name, version in kept
    )


def licences() -> str:
    """Return the page about licences."""
    extras = frozenset({"all", "charts", "cluster", "z3"})
    found = {normal(one.metadata["Name"]): licence_of(one) for one in needed("unround", extras)}
    rows = "".join(f"| {name} | {licence} |\n" for name, licence in sorted(found.items()))
    return (
        "# Licences\n\n*Reference.* unround is under the Apache License 2.0. It needs the following packages, those of its "
        "extras and those\n"
        "that these need included, each under its own licence. `make constraints` writes this page from what the packages\n"
        f"state.\n\n| package | licence |\n| --- | --- |\n{rows}"
    )


def main() -> None:
    """Write both."""
    CONSTRAINTS.write_text(constraints(), encoding="utf-8")
    LICENCES.write_text(licences(), encoding="utf-8")
    print(f"{CONSTRAINTS.relative_to(ROOT)}\n{LICENCES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
