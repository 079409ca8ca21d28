"""Work out, from published tables whose counts were randomly rounded, what the original counts were.

The public functions are called like the commands. From one sum to a whole census:

- One system. `solve` works out equations such as "48! = 20 + 20 + 20" and returns a `Solution`: bounds, probabilities, the
  best solutions, and proofs. `parse` reads the equations into a `System` (each `Cell`, each `Sum`); `check_proof` verifies
  a proof without any of the code that found it; `expect` says how often sums of one shape give counts away.
- A table. `read` opens a file, several files, or a polars or pandas frame as a `Release`; the functions below do so
  themselves. `describe` drafts a description of a table of your own. `check` looks at it: how it was read, which sums hold,
  whether the data fit the mechanism. `audit` infers every count that can be inferred and writes an `AuditFolder`, and
  `review` decides whether a draft may be published.
- Results show themselves: in a notebook, or as text when printed. Those of `solve`, `check`, `audit` and `explain` have
  `to_polars`, `to_pandas` and `plot`, too; an `AuditFolder` has `findings`, `explain(area, cell)` and `posterior(area)`.
- An audit. `explain` gives the argument for one count, `serve` opens it in a browser (`view` returns a single page),
  `verify` checks its files and certificates, `diff` compares two audits, and `audit` of a folder writes its pages again.
- Publishing. `simulate` invents a census, `protect` publishes true counts under a `mechanism`, `compare` weighs several ways
  of publishing, `reconstruct` says how much of each person tables give away, and `rate_steps` how coarse rates must be to
  add nothing.
- Errors. `InputError` is about what was given, `Infeasible` about data that no true counts fit, `InternalError` a fault of
  unround itself.

Behind these, the data go one way: `tables` → `release` → `structure` (sums) → a plan of the sums, and inference on it, by
`infer` for one system, by `batch` and `linked` for blocks of areas → `audits` (findings) → `show` and `web`.
CONTRIBUTING.md has the whole map, and the docstring of every package that of its modules.

>>> import unround
>>> solution = unround.solve("48! = 20 + 20 + 20")
>>> [(proof.cell, proof.value) for proof in solution.proofs]
[('part1', 16), ('part2', 16), ('part3', 16)]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unround._version import __version__

if TYPE_CHECKING:
    from unround.api import audit as audit
    from unround.api import check as check
    from unround.api import compare as compare
    from unround.api import describe as describe
    from unround.api import diff as diff
    from unround.api import expect as expect
    from unround.api import explain as explain
    from unround.api import protect as protect
    from unround.api import rate_steps as rate_steps
    from unround.api import read as read
    from unround.api import reconcile as reconcile
    from unround.api import reconstruct as reconstruct
    from unround.api import review as review
    from unround.api import serve as serve
    from unround.api import simulate as simulate
    from unround.api import solve as solve
    from unround.api import verify as verify
    from unround.api import view as view
    from unround.checks import Check as Check
    from unround.equations import parse as parse
    from unround.errors import Infeasible as Infeasible
    from unround.errors import InputError as InputError
    from unround.errors import InternalError as InternalError
    from unround.errors import UnroundError as UnroundError
    from unround.explanation.cell import Explanation as Explanation
    from unround.explanation.posterior import Posterior as Posterior
    from unround.mechanisms import Mechanism as Mechanism
    from unround.mechanisms import mechanism as mechanism
    from unround.proofs import Proof as Proof
    from unround.proofs import check_proof as check_proof
    from unround.protection.table import parse_protection as parse_protection
    from unround.protection.table import publish_counts as publish_counts
    from unround.release import Release as Release
    from unround.results import AuditFolder as AuditFolder
    from unround.solution import Solution as Solution
    from unround.system import Cell as Cell
    from unround.system import Sum as Sum
    from unround.system import System as System

# The public names of each module. Modules load when a name is first used, so that `import unround` costs next to nothing.
_NAMES = {
    "api": (
        *("solve", "expect", "read", "describe", "check", "audit", "review"),
        *("explain", "serve", "view", "verify", "diff"),
        *("rate_steps", "simulate", "protect", "compare", "reconcile", "reconstruct"),
    ),
    "errors": ("UnroundError", "InputError", "Infeasible", "InternalError"),
    "mechanisms": ("Mechanism", "mechanism"),
    "system": ("Cell", "Sum", "System"),
    "equations": ("parse",),
    "proofs": ("Proof", "check_proof"),
    "release": ("Release",),
    "solution": ("Solution",),
    "checks": ("Check",),
    "explanation.cell": ("Explanation",),
    "explanation.posterior": ("Posterior",),
    "results": ("AuditFolder",),
    "protection.table": ("parse_protection", "publish_counts"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unround' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"unround.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
