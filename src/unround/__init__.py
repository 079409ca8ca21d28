"""Work out, from published tables whose counts were randomly rounded, what the original counts were.

The public names, in the order in which data flow through them:

- `parse` reads equation text into a `System`: `Cell`s, each with the `mechanism` that protects it, and `Sum`s.
- `solve` works out a system and returns a `Solution`: bounds, probabilities, the best solutions, and proofs.
- `check_proof` verifies a proof without any of the code that found it.
- `read_release` opens a published table of any known format, `from_frame` a polars or pandas frame: a `Release`.
- `inspect_release` says what is in it; `check_release` whether it fits its declared mechanism, as a `Check`.
- `audit_release` works out every count that it gives away, into an `AuditFolder`;
  `explain_cell` gives the argument for one of them.
- `InputError`, `Infeasible` and `InternalError` tell apart what is wrong with the input, the data, and unround itself.

>>> import unround
>>> solution = unround.solve(unround.parse("48! = 20 + 20 + 20"))
>>> [(proof.cell, proof.value) for proof in solution.proofs]
[('part1', 16), ('part2', 16), ('part3', 16)]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unround._version import __version__

if TYPE_CHECKING:
    from unround.audits import AuditFolder as AuditFolder
    from unround.audits import AuditOptions as AuditOptions
    from unround.checks import Check as Check
    from unround.checks import check_release as check_release
    from unround.equations import parse as parse
    from unround.errors import Infeasible as Infeasible
    from unround.errors import InputError as InputError
    from unround.errors import InternalError as InternalError
    from unround.errors import UnroundError as UnroundError
    from unround.explanation.cell import explain as explain_cell  # noqa: F401 - public under this name
    from unround.inspection import inspect as inspect_release  # noqa: F401 - public under this name
    from unround.mechanisms import Mechanism as Mechanism
    from unround.mechanisms import mechanism as mechanism
    from unround.presentation.audited import audit_release as audit_release
    from unround.proofs import Proof as Proof
    from unround.proofs import check_proof as check_proof
    from unround.protection.release import ProtectOptions as ProtectOptions
    from unround.protection.release import protect as protect_release  # noqa: F401 - public under this name
    from unround.protection.table import parse_protection as parse_protection
    from unround.protection.table import publish_counts as publish_counts
    from unround.readers import read as read_release  # noqa: F401 - public under this name
    from unround.readers.frames import from_frame as from_frame
    from unround.release import Release as Release
    from unround.solution import Solution as Solution
    from unround.solution import solve as solve
    from unround.system import Cell as Cell
    from unround.system import Sum as Sum
    from unround.system import System as System

# Where each public name lives. Modules load when a name is first used: `import unround` costs next to nothing. Functions
# whose own name is that of a package go by a longer one here.
_HOME = {
    "UnroundError": "errors:UnroundError",
    "InputError": "errors:InputError",
    "Infeasible": "errors:Infeasible",
    "InternalError": "errors:InternalError",
    "Mechanism": "mechanisms:Mechanism",
    "mechanism": "mechanisms:mechanism",
    "Cell": "system:Cell",
    "Sum": "system:Sum",
    "System": "system:System",
    "parse": "equations:parse",
    "solve": "solution:solve",
    "Solution": "solution:Solution",
    "Proof": "proofs:Proof",
    "check_proof": "proofs:check_proof",
    "Release": "release:Release",
    "read_release": "readers:read",
    "from_frame": "readers.frames:from_frame",
    "inspect_release": "inspection:inspect",
    "check_release": "checks:check_release",
    "Check": "checks:Check",
    "AuditOptions": "audits:AuditOptions",
    "audit_release": "presentation.audited:audit_release",
    "AuditFolder": "audits:AuditFolder",
    "explain_cell": "explanation.cell:explain",
    "parse_protection": "protection.table:parse_protection",
    "publish_counts": "protection.table:publish_counts",
    "ProtectOptions": "protection.release:ProtectOptions",
    "protect_release": "protection.release:protect",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unround' has no attribute {name!r}")
    module, own_name = _HOME[name].split(":")
    return getattr(importlib.import_module(f"unround.{module}"), own_name)


def __dir__() -> list[str]:
    return sorted(__all__)
