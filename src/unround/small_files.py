"""Files, before they are read: plain ones only, which stay as they are; and small ones, with a limit to their size."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_NAME = 1_000
"""Signs of a label, or of the name of a column. Those of censuses have three hundred at most; a longer one is not a name
but half a file behind a quote that does not close, or is there to keep a pattern busy."""
SMALL = 1 << 23
"""Bytes of a TOML. A plan for every count of a census has a tenth of it."""
LARGEST_JSON, LARGEST_ARRAYS = 1 << 28, 1 << 30
"""Bytes of what is read back from a folder, once it is unpacked; those of a census have a few megabytes."""
_WIDEST = 110
"""Characters of a list in a TOML that is written on one line."""

# tomllib keeps every beginning of a dotted key: of one with a million parts it would fill the memory.
_CHAIN = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")


State = tuple[int, ...]
"""What tells whether a file is still the one that it was: no writing and no replacing leaves all of it alone."""

_watched: ContextVar[dict[Path, State] | None] = ContextVar("watched", default=None)


class SpecialFile(InputError, OSError):  # noqa: N818 - it says what is there in place of a plain file
    """What is to be read is a folder, a pipe, a socket, a device, or a file that the system makes up."""


def is_name(path: Path) -> bool:
    """Whether a file can be called so, and a result can say so: in text, which names on a disk need not be."""
    return not any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in str(path))


def require_file(path: Path) -> int:
    """Return the size of a file."""
    if not is_name(path):
        raise InputError(f"{str(path)!r} cannot be read: its name is not text in UTF-8. Give the file another name.")
    try:
        state = path.stat()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; check its name and folder.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its name and permissions.") from None
    _require_plain(path, state)
    watched = _watched.get()
    if watched is not None and watched.setdefault(path.absolute(), _state(state)) != _state(state):
        raise _changed(path)
    return state.st_size


def _require_plain(path: Path, state: os.stat_result) -> None:
    if stat.S_ISDIR(state.st_mode):
        raise SpecialFile(f"{path} is a folder; give the file in it that you mean.")
    # Files of the kernel claim to be plain, and empty; some of them are waited for like a pipe.
    made_up = not state.st_size and str(path.resolve()).startswith(("/proc/", "/sys/"))
    if made_up or not stat.S_ISREG(state.st_mode):
        raise SpecialFile(f"{path} is a pipe or a device, not a file; save its content to a file and give that.")


def open_plain(path: Path) -> BufferedReader:
    """Open a file for reading, without waiting for what is none."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _require_plain(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def plain_json(path: Path) -> Any:
    """Return what a JSON file of our own says."""
    with open_plain(path) as file:
        content = file.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise ValueError("larger than any that unround writes")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@contextmanager
def plain_arrays(path: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Lend the arrays of an archive of our own, once it is certain that there is room for them when they are unpacked."""
    import numpy as np

    with open_plain(path) as file, np.load(file, allow_pickle=False) as arrays:
        if sum(part.file_size for part in arrays.zip.infolist()) > LARGEST_ARRAYS:
            raise ValueError("larger than any that unround writes")
        yield arrays


Shape = Any
"""What plain data look like. A type, where int is for whole numbers from 0 on; None; a set of texts, or a range, to be one
of; `(shape, shape)`, either; `[shape, ...]`, a list of such; `[shape, shape]`, a list of just these; `{"name": shape}`, an
object with this and perhaps more, or without it if the name ends in "?"; `{str: shape}`, one in which all else is such."""


def misfit(value: Any, shape: Shape, place: str = "it") -> str | None:
    """Say where plain data are not what they should be; None where they are.

    Examples
    --------
    >>> misfit({"parts": [1, -2]}, {"parts": [int, ...]})
    'it.parts[1] is -2'
    """
    if isinstance(shape, dict) and isinstance(value, dict):
        names = {name.removesuffix("?"): of for name, of in shape.items() if name is not str}
        for name in names:
            if name not in value and f"{name}?" not in shape:
                return f"{place}.{name} is missing"
        inner = ((f"{place}.{name}", value[name], names.get(name, shape.get(str, object))) for name in value)
        return next((fault for at, item, of in inner if (fault := misfit(item, of, at))), None)
    if isinstance(shape, list) and isinstance(value, list):
        each = shape[:1] * len(value) if shape[1:] == [...] else shape
        if len(each) != len(value):
            return f"{place} has {len(value)} entries in place of {len(each)}"
        inner = ((f"{place}[{at}]", item, of) for at, (item, of) in enumerate(zip(value, each, strict=True)))
        return next((fault for at, item, of in inner if (fault := misfit(item, of, at))), None)
    if isinstance(shape, tuple):
        faults = [misfit(value, one, place) for one in shape]
        return None if None in faults else max((fault for fault in faults if fault), key=lambda said: len(said.split()[0]))
    fits = (
        (value is None if shape is None else shape is object or isinstance(value, shape))
        if shape in (None, object, str, bool, dict, list)
        else _is_number(value) and (shape is float or (isinstance(value, int) and value >= 0))
        if shape in (int, float)
        else isinstance(shape, range | set) and type(value) in (int, str) and value in shape  # and True is not 1
    )
    return None if fits else f"{place} is {_short(value)}"


def _is_number(value: Any) -> bool:
    """Whether something is a number that can be reckoned with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15  # which NaN is not


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 40 else f"{said[:39]}…"


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(state: os.stat_result) -> State:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


@contextmanager
def watching() -> Iterator[dict[Path, State]]:
    """Take note of the files that are opened from here on; none may be another when it is opened again."""
    outer = _watched.get()
    token = _watched.set(seen := {} if outer is None else outer)
    try:
        yield seen
    finally:
        _watched.reset(token)


def require_unchanged(seen: Mapping[Path, State]) -> None:
    """Raise if files are no longer as they were when they were opened: what was read is then neither."""
    for path, state in seen.items():
        try:
            same = _state(path.stat()) == state
        except OSError:
            same = False
        if not same:
            raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError(f"{path} was changed while it was being read: nothing can be said of it. Run it again.")


def small_text(path: Path, what: str, most: int = SMALL, fallback: str | None = None) -> str:
    """Return the text of a small file, in UTF-8 with or without mark."""
    content = small_bytes(path, what, most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if fallback is None:
            raise InputError(f"{path} is not UTF-8 text, as {what} must be. Save it as UTF-8.") from None
        return content.decode(fallback, errors="replace")


def small_bytes(path: Path, what: str, most: int = SMALL) -> bytes:
    """Return the content of a small file; `what` says what it should be. Pipes, devices and large files are refused."""
    size = require_file(path)
    if size > most:
        raise InputError(f"{path} has {size:,} bytes, more than {what} can have ({most:,}). Is it the right file?")
    try:
        with open_plain(path) as file:
            return file.read(most)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def parsed_toml(text: str, where: str) -> dict[str, Any]:
    """Return what a TOML says."""
    if len(text) > SMALL:
        raise InputError(
            f"{where} has {len(text):,} characters, more than a TOML file here can have ({SMALL:,}). Is it the right file?"
        )
    if _CHAIN.search(text):
        raise InputError(f"{where} has a key with over a hundred parts; keys here have three at most.")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply to be read as TOML.") from None
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (max(text.count("\n") + 1, 1), 1)
        said = re.sub(r"\s*\(at .*\)", "", str(error)).partition(";")[0]
        raise InputError(f"this is not TOML: {said}.", source=text, line=line, column=column, where=where) from None


def toml_text(
    content: Mapping[str, Any], comment: str = "", remarks: Mapping[Any, str] | None = None, inline: Sequence[str] = ()
) -> str:
    """Return plain data as TOML under a comment: single values first, then tables, and lists of tables.

    A value of None is left out. Tables within tables have headings of their own, but for those of the
    keys in `inline`, a line each. `remarks` are comments: on a key, on the heading of one, or, by heading and number, on one
    of a list.

    >>> axes = {"sex": {"sums": [{"total": "all", "parts": [1, 2]}]}}
    >>> remarks = {"value": "the counts", ("sex", 0): "why"}
    >>> print(toml_text({"axes": axes, "value": "n", "exact": [{"a": 1}]}, "!", remarks))
    # !
    value = "n"                    # the counts
    <BLANKLINE>
    [axes.sex]
    sums = [
        # why
        { total = "all", parts = [1, 2] },
    ]
    <BLANKLINE>
    [[exact]]
    a = 1
    <BLANKLINE>
    """
    said = remarks or {}

    def remarked(line: str, key: Any) -> str:
        return f"{line:30} {toml_comment(said[key])}" if said.get(key) else line

    def lines_of(table: Mapping[str, Any], called: str = "") -> Iterator[str]:
        for key, value in table.items():
            if _is_listed(value):
                yield f"{toml_key(key)} = ["
                for at, item in enumerate(value):
                    yield from [f"    {toml_comment(said[called, at])}"] if said.get((called, at)) else []
                    yield f"    {toml_value(item)},"
                yield "]"
            elif value is not None:
                yield remarked(f"{toml_key(key)} = {toml_value(value)}", key if not called else (called, key))

    lines = [f"# {line}" for line in comment.splitlines()]
    tables = {key for key, value in content.items() if key in inline or _is_listed(value) or _is_nested(value)}
    lines += lines_of({key: value for key, value in content.items() if key not in tables})
    for key in (key for key in content if key in tables):
        value = content[key]
        if key in inline:
            lines += ["", remarked(f"[{toml_key(key)}]", key), *lines_of(value, key)]
        elif _is_listed(value):
            for table in value:
                lines += ["", remarked(f"[[{toml_key(key)}]]", key), *lines_of(table, key)]
        else:
            for name, table in value.items():
                lines += ["", remarked(f"[{toml_key(key)}.{toml_key(name)}]", (key, name)), *lines_of(table, name)]
    return "\n".join(lines) + "\n"


def _is_listed(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(table, Mapping) for table in value.values())


def toml_key(name: str) -> str:
    """Return a key of TOML, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return a value of TOML; long lists take several lines."""
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(str(key))} = {toml_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        items = [toml_value(item) for item in value]
        whole = f"[{', '.join(items)}]"
        if len(whole) <= _WIDEST:
            return whole
        lines = [""]
        for item in items:
            lines += [""] if len(lines[-1]) + len(item) > _WIDEST else []
            lines[-1] += f" {item},"
        return "[\n" + "".join(f"   {line}\n" for line in lines) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_comment(text: str) -> str:
    """Return a comment of one line, whatever stands in a label that it quotes."""
    return f"# {' '.join(''.join(sign if sign.isprintable() else ' ' for sign in text).split())}"


def shortened(words: list[str] | tuple[str, ...], most: int = 20) -> str:
    """Return a list for people, who do not want to see all of a hundred thousand columns.

    >>> shortened(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    shown = ", ".join(word if len(word) <= 100 else f"{word[:99]}…" for word in words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most:,} more"


def plain_text(path: str | os.PathLike[str], hint: str) -> str:
    """Return the text of a file that was typed or written by hand; `hint` says what else the user may have meant."""
    where = os.fspath(path)
    if not os.path.exists(where):
        raise InputError(f"there is no file {where}. {hint}")
    return decoded(small_bytes(Path(where), "a file that people write"), where)


def decoded(content: bytes, where: str) -> str:
    """Return text with plain line ends, whatever the file had."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text.") from None
