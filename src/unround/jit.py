"""How functions are compiled: kernels, which Python calls, in threads, and inner functions, for compiled code alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.np import linalg
from numpy.typing import NDArray

from unround.machine import Worker, processors
from unround.mechanisms.sampling import scattered

# To see whether there is a BLAS, numba would import scipy.linalg, which takes longer than the audit of a small table. No
# kernel here needs one; code that does, elsewhere, finds scipy when it runs.
linalg.ensure_blas = getattr(linalg, "_check_lapack_int_width", lambda: None)

Function = TypeVar("Function", bound=Callable[..., Any])


class _Compiling(event.Listener):
    """Counts the functions that are being compiled: none, once what was compiled is kept on disk."""

    depth = 0

    def on_start(self, event: object) -> None:  # noqa: ARG002  # numba's signature
        self.depth += 1

    def on_end(self, event: object) -> None:  # noqa: ARG002
        self.depth -= 1


_COMPILING = _Compiling()
event.register("numba:compile", _COMPILING)  # type: ignore[no-untyped-call]  # numba ships no complete types


_ELSEWHERE: list[threading.Thread] = []
"""Those that wait for another process to compile a kernel."""


def compile_elsewhere(needed: Callable[..., Any], module: str) -> None:
    """Have another process compile a kernel, unless it is on disk, while this one has other things to compile and to do.

    `module` answers a `Worker` when it has compiled the kernel, which is on disk then. If it fails, nothing is lost.
    """
    kept = _file_of(needed)
    if processors() == 1 or kept is None or kept._load_index():
        return

    def wait() -> None:
        worker = Worker(module)
        with suppress(OSError):  # no process can be started, here and now
            worker.ask(None)
        worker.end()

    _ELSEWHERE.append(threading.Thread(target=wait, daemon=True))
    _ELSEWHERE[-1].start()


def wait_for_others() -> None:
    """Wait until no other process compiles anything for this one."""
    for waiting in _ELSEWHERE:
        waiting.join()


def is_compiling() -> bool:
    """Return whether a function is being compiled now, as happens in the first audit on a machine."""
    return _COMPILING.depth > 0 or any(waiting.is_alive() for waiting in _ELSEWHERE)


class _PartOfKernels(JITCodeLibrary):
    """The code of an inner function, which kernels take over: it is optimised, and made machine code, there alone.

    numba would do both for every function by itself as well, and for all that it calls: a quarter of the time of compiling.
    """

    def _optimize_final_module(self) -> None:
        """Leave that to the kernels."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]  # numba ships no complete types
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return that there is none: the interpreter does not call it."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    @property
    def codegen(self) -> type[_PartOfKernels]:
        """What to ask about machine code."""
        return _PartOfKernels

    @staticmethod
    def set_env(name: str, env: object) -> None:
        """Do nothing: only functions that the interpreter calls have an environment."""


class _InnerCompiler(Compiler):
    """Compiles inner functions."""

    def define_pipelines(self) -> Any:
        """Return the usual steps, towards a part of kernels."""
        codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
        self.state.library = _PartOfKernels(codegen, name)  # type: ignore[no-untyped-call]
        return super().define_pipelines()  # type: ignore[no-untyped-call]


_INNER: dict[str, Any] = {
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _InnerCompiler,
}
"""Inner functions make no arrays, and so need not count references to those they are given, which would take longer than
all the rest; without entries for the interpreter they compile in half the time."""


ZERO, MINUS_ONE = cast(int, np.int64(0)), cast(int, np.int64(-1))
"""Numbers to call inner functions with: for a plain 0, the compiler would make a function of its own."""


def kernel(function: Function) -> Function:
    """Compile a function that the interpreter calls, and keep the result on disk; threads run it side by side.

    The compiled function is discarded when its own file changes, or that of any function it calls; numba alone would look
    at the first only. What it depends on is compared as if it were numba's version, because that is checked before the rest
    of the index is unpickled: an index that refers to a class since renamed could not be.
    """
    compiled = njit(nogil=True)(function)
    with suppress(RuntimeError):  # there is no place to write to, here or in the user's folder: compiled every time, then
        compiled.enable_caching()
    kept = _file_of(compiled)
    if kept is not None:
        kept._version = (kept._version, *sorted(_stamps(function, set())))
    return cast(Function, compiled)


def _file_of(compiled: Any) -> Any:
    """Return where numba keeps what it compiled; None if nowhere."""
    return getattr(getattr(compiled, "_cache", None), "_cache_file", None)


def _stamps(function: Callable[..., Any], seen: set[str]) -> set[str]:
    """Return what a compiled function depends on: files of functions that it calls, as of now, and named numbers."""
    code = function.__code__
    file = os.stat(code.co_filename)
    stamps = {f"{code.co_filename} {file.st_mtime_ns} {file.st_size}"}
    for name in code.co_names:
        used = function.__globals__.get(name)
        called = getattr(used, "py_func", None)
        if isinstance(used, int | float):
            stamps.add(f"{function.__module__} {name} {used}")
        elif called is not None and f"{called.__module__} {name}" not in seen:
            seen.add(f"{called.__module__} {name}")
            stamps |= _stamps(called, seen)
    return stamps


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call. It may not make arrays, only views of those it is given."""
    return cast(Function, njit(**_INNER)(function))


def inlined(function: Function) -> Function:
    """Compile an inner function that is put wherever it is called, for those that are called very often and do little.

    To hand over a tuple of a dozen arrays takes longer than such a function.
    """
    return cast(Function, njit(forceinline=True, **_INNER)(function))


def adding(function: Function) -> Function:
    """Compile an inner function whose sums may be added up in any order, several terms at a time.

    Unlike with full `fastmath`, numbers need not be finite.
    """
    return cast(Function, njit(fastmath={"reassoc", "contract", "nsz"}, **_INNER)(function))


RandomState = NDArray[np.uint64]
"""The state of a generator of random numbers: one number, changed by every draw. Its first value is the seed."""


mixed = cast(Callable[[np.uint64], np.uint64], inlined(scattered))
"""The same for one number, in kernels."""


@inlined
def random_bits(state: RandomState) -> np.uint64:
    """Return 64 random bits, by SplitMix64: the same on every machine and in every thread."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return mixed(state[0])


@inlined
def uniform(state: RandomState) -> float:
    """Return a random number from 0 up to but not including 1."""
    return float(random_bits(state) >> np.uint64(11)) * 2.0**-53


def seeds(contents: Iterable[NDArray[np.int32]]) -> NDArray[np.uint64]:
    """Return a seed for each of some areas or families, a hash of what is known of it: wherever in a release it stands."""
    digests = [
        blake2b(np.ascontiguousarray(content).astype("<i4").tobytes(), digest_size=8).digest() for content in contents
    ]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


FEWEST, FEWEST_CELLS = 16, 2_000
"""Areas, and cells, below which another thread would cost more than it saves."""


def in_threads(
    job: Callable[[int, int], object],
    areas: int,
    threads: int | None = None,
    fewest: int = FEWEST,
    cells: int = FEWEST_CELLS,
) -> None:
    """Run a job on ranges of areas in parallel, and wait for all of them.

    Notes
    -----
    A thread gets so many areas at least, and as many as have `FEWEST_CELLS`, if each has so many `cells`.
    There are several ranges per thread, so that no thread waits long for one with harder areas. The first error of any
    range is raised.
    """
    worth = -(-areas // max(fewest, FEWEST_CELLS // max(1, cells)))
    most = 1 if worth < 2 else min(threads or processors(), worth)
    if most < 2:
        job(0, areas)
        return
    ranges = min(4 * most, worth)
    cuts = [areas * k // ranges for k in range(ranges + 1)]
    with ThreadPoolExecutor(most) as pool:
        for done in [pool.submit(job, first, last) for first, last in pairwise(cuts)]:
            done.result()
