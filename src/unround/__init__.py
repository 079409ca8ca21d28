"""Work out, from published tables whose counts were randomly rounded, what the original counts were.

The public names, in the order in which data flow through them:

- `parse` reads equation text into a `System`: `Cell`s, each with the `mechanism` that protects it, and `Sum`s.
- `solve` works out a system and returns a `Solution`: bounds, probabilities, the best solutions, and proofs.
- `check_proof` verifies a proof without any of the code that found it.
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
    from unround.equations import parse as parse
    from unround.errors import Infeasible as Infeasible
    from unround.errors import InputError as InputError
    from unround.errors import InternalError as InternalError
    from unround.errors import UnroundError as UnroundError
    from unround.findings import Proof as Proof
    from unround.findings import check_proof as check_proof
    from unround.mechanisms import Mechanism as Mechanism
    from unround.mechanisms import mechanism as mechanism
    from unround.solution import Solution as Solution
    from unround.solution import solve as solve
    from unround.system import Cell as Cell
    from unround.system import Sum as Sum
    from unround.system import System as System

# Where each public name lives. Modules load when a name is first used: `import unround` costs next to nothing.
_HOME = {
    "UnroundError": "errors",
    "InputError": "errors",
    "Infeasible": "errors",
    "InternalError": "errors",
    "Mechanism": "mechanisms",
    "mechanism": "mechanisms",
    "Cell": "system",
    "Sum": "system",
    "System": "system",
    "parse": "equations",
    "solve": "solution",
    "Solution": "solution",
    "Proof": "findings",
    "check_proof": "findings",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unround' has no attribute {name!r}")
    return getattr(importlib.import_module(f"unround.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
