"""Source: a file of text as it was downloaded (plain, gzipped, zipped with companions) becomes a stream of UTF-8.

What a file is, is told by its first bytes, not by its name. It is never unpacked whole: bytes pass through in chunks of
whole lines, so that the size of a file does not matter, nor what it would unpack to.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.small_files import SMALL, require_file, shortened

Progress = Callable[[int], None]

HEAD = 1 << 16
CHUNK = 1 << 23
LONGEST_LINE = 1 << 26
PACKED_TIGHTEST, SUSPICIOUS = 500, 1 << 28
"""No table packs into a five-hundredth of its size: one that seems to, and is large, is there to fill a memory."""
WHOLE = 1 << 31
"""Bytes of text that may be held at once, for formats that cannot be read in pieces."""
LINES, MOST_AREAS = 20_000_000, 1_500_000
"""Lines of text that may be held at once; and areas, one per line of a wide table: 2 GB of memory."""
MOST_PARTS = 1_000
"""Tables in a zip."""
_QUOTED_LINES = 200
_GZIP, _ZIP, _EMPTY_ZIP, _PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06", b"PAR1"
_BOM, _UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_QUOTE = ord('"')
_TABLES = (".csv", ".tab", ".tsv", ".txt")
_COMPANIONS = re.compile(r"readme|meta\b|_meta|licen[cs]e|geo_starting_row", re.IGNORECASE)
_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
BROKEN = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    struct.error,
    IndexError,
    ValueError,
    RuntimeError,
)
"""What the packers' own modules raise at damage, expected by them or not."""


_AGAIN = re.compile(r"(SYMBOL)(?:_duplicated_\d+|\.\d+)")
"""What polars and pandas call the second column of a name, where a format has several of that name."""


def header_of(frame: pl.DataFrame) -> str:
    """Return the first line of the file that a frame would be.

    >>> header_of(pl.DataFrame({"GEO, NAME": ["a"], "SYMBOL": [""], "SYMBOL_duplicated_0": [""]}))
    '"GEO, NAME",SYMBOL,SYMBOL'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([_AGAIN.sub(r"\1", name) for name in frame.columns])
    return line.getvalue()


@dataclass(slots=True)
class _Read:
    """How far a reading has come: bytes as they are unpacked, and bytes on disk."""

    unpacked: int = 0
    consumed: int = 0


class _Recoded:
    """A file in UTF-16, read as UTF-8: what Excel calls Unicode text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")()

    def read(self, size: int) -> bytes:
        """Return some bytes; none only at the end."""
        while True:
            piece = self._file.read(size)
            text = self._decoder.decode(piece, final=not piece)
            if text or not piece:
                return text.encode()


class Source:
    """A file of text, opened as often as needed.

    - `path`: A plain, gzipped or zipped file. In a zip, the table is the largest file that is called like one; files with
      the very same first line are its other parts (Statistics Canada zips six regions together) and are read after it, in
      the order of the zip: `members`. `size` are its bytes on disk, as progress counts them.
    - `notes`: What a user should know about what was picked.
    - `encoding`, `delimiter`: "utf-8", "utf-16" or a code page, and what parts the columns, as far as the head tells.
    """

    def __init__(self, path: str | Path, text: bytes | None = None) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        self.members: tuple[str, ...] = ()
        self._text = text
        self._packing, self._in_utf_16 = "none", False
        self.size = require_file(self.path) if text is None else len(text)
        if text is None:
            self._look()
        self._begin = self._first_bytes()
        marked = self._in_utf_16 or self._bom or _is_utf8(self._begin)
        self.encoding = "utf-16" if self._in_utf_16 else "utf-8" if marked else code_page(self._begin)
        if self.encoding not in ("utf-8", "utf-16", WESTERN):
            self.notes.append(f"The file does not say how its letters are coded; they were read as {self.encoding}.")
        self.delimiter = _delimiter(self.head())

    @classmethod
    def of_frame(cls, frame: pl.DataFrame, name: str) -> Source:
        """Return a frame as the file that it would be, so that it is read exactly like one.

        A column of counts with gaps or with figures among them holds 15.0 for 15, which its file does not.
        """
        floating = [column for column, kind in frame.schema.items() if kind.is_float()]
        whole = (
            pl.col(floating).is_finite() & (pl.col(floating) == pl.col(floating).round()) & (pl.col(floating).abs() < 1e15)
        )
        number = pl.when(whole).then(pl.col(floating).cast(pl.Int64, strict=False).cast(pl.String))
        frame = frame.with_columns(number.otherwise(pl.col(floating).cast(pl.String))) if floating else frame
        return cls(name, f"{header_of(frame)}\n{frame.write_csv(include_header=False)}".encode())

    # What is inside

    def _look(self) -> None:
        """Tell by its first bytes how a file is packed, and what in it is the table."""
        try:
            with self.path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror}); check its permissions.") from None
        if not magic:
            raise InputError(f"{self.path} is empty; download it again.")
        self._packing = "gzip" if magic[:2] == _GZIP else "zip" if magic in (_ZIP, _EMPTY_ZIP) else "none"
        if magic == _PARQUET:
            raise InputError(f"{self.path} is a Parquet file; describe it in a release.toml and give that (format tidy).")
        if self._packing == "none" and self.path.suffix.lower() in (".zip", ".gz"):
            raise InputError(f"{self.path} is called {self.path.suffix} but is not compressed that way; download it again.")
        if self._packing == "zip":
            self._choose()

    def _choose(self) -> None:
        """Pick the table in a zip, and its other parts."""
        with damage_reported(self.path), zipfile.ZipFile(self.path) as packed:
            files = [member for member in packed.infolist() if not member.filename.endswith("/")]
            if any(member.filename == "[Content_Types].xml" for member in files):
                raise InputError(f"{self.path} is an Office document; save the sheet as CSV and give that.")
            tables = [
                member
                for member in files
                if member.filename.lower().endswith(_TABLES)
                and member.file_size
                and not _COMPANIONS.search(Path(member.filename).name)
                and "__MACOSX" not in member.filename
            ]
            if not tables:
                if not files:
                    raise InputError(f"{self.path} is an empty zip file: there is no table (.csv or .tab) in it.")
                inside = _listed([member.filename for member in files])
                raise InputError(f"{self.path} contains {inside} but no table (.csv or .tab); download the CSV version.")
            if len(tables) > MOST_PARTS:
                raise InputError(f"{self.path} holds {len(tables):,} tables; unzip it and give the one you mean.")
            names = [member.filename for member in tables]
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"{self.path} holds two files called {_listed([twice])}; unzip it, and give the right one.")
            if any(member.flag_bits & 1 for member in tables):
                raise InputError(f"{self.path} is encrypted; unzip it with its password and give the table inside.")
            largest = max(tables, key=lambda member: member.file_size)
            first = {member.filename: _first_line(packed, member) for member in tables}
        alike = [member.filename for member in tables if first[member.filename] == first[largest.filename]]
        self.members = tuple(alike)
        others = [member.filename for member in tables if member.filename not in alike]
        if len(files) > 1:
            read = _listed(self.members)
            aside = f"; other tables, not read: {_listed(others)}" if others else ""
            self.notes.append(f"In {self.path.name} the table is {read}{aside}.")

    def _first_bytes(self) -> bytes:
        """Return the beginning of the table, cut at a line end where there is one."""
        with damage_reported(self.path), self._opened() as (file, _):
            self._in_utf_16 = file.read(2) in _UTF_16
        with damage_reported(self.path), self._opened() as (file, _):
            begin = file.read(HEAD)
            whole = not file.read(1)
        if not begin.strip():
            raise InputError(f"{self.path} is empty once decompressed; download it again.")
        bytes_ = np.frombuffer(begin, dtype=np.uint8)
        strange = np.count_nonzero((bytes_ < 32) & (bytes_ != 9) & (bytes_ != 10) & (bytes_ != 13) & (bytes_ != 26))
        if 0 in begin or strange > len(begin) / 100:
            raise InputError(f"{self.path} is not text; give a CSV, tab-separated, zipped or gzipped table.")
        self._bom = begin.startswith(_BOM)
        # A lone carriage return ends lines on no system of today, but in some files of old it does.
        self._returns = b"\r" in begin.replace(b"\r\n", b"")
        begin = begin.removeprefix(_BOM)
        if self._returns:
            begin = begin.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return begin if whole or b"\n" not in begin else begin[: begin.rindex(b"\n") + 1]

    def companion(self, pattern: str) -> str:
        """Return the text of a small file that comes with the table, in its zip or beside it; "" where there is none."""
        if self._packing == "zip":
            with damage_reported(self.path), zipfile.ZipFile(self.path) as packed:
                companions = [member for member in packed.infolist() if re.search(pattern, member.filename)]
                return (
                    packed.read(companions[0]).decode("utf-8", "replace")
                    if companions and companions[0].file_size <= SMALL
                    else ""
                )
        if self._text is not None:
            return ""
        beside = sorted(self.path.parent.glob(f"{glob.escape(self.path.name.partition('.')[0])}_*"))
        path = next((path for path in beside if re.search(pattern, path.name) and path.is_file()), None)
        return "" if path is None or path.stat().st_size > SMALL else path.read_bytes().decode("utf-8", "replace")

    @property
    def name(self) -> str:
        """What formats are told by: the table's own name, inside a zip too."""
        return Path(self.members[0]).name if self.members else self.path.name

    def head(self, size: int = HEAD) -> str:
        """Return the first `size` bytes at most, decoded; whole lines where possible. No byte order mark."""
        begin = self._begin[:size]
        if len(begin) < len(self._begin) and b"\n" in begin:
            begin = begin[: begin.rindex(b"\n") + 1]
        return self._decoded(begin).decode("utf-8", errors="ignore")

    def as_text(self, text: bytes) -> str:
        """Decode a piece of an undecoded chunk."""
        return self._decoded(text).decode("utf-8")

    def whole(self, most_lines: int = LINES, advice: str = "Split it, or convert it to a tidy Parquet file.") -> bytes:
        """Return all of the table at once, as `chunks` would."""
        pieces, held, lines = list[bytes](), 0, 0
        for chunk in self.chunks():
            held, lines = held + len(chunk), lines + chunk.count(b"\n")
            if held > WHOLE or lines > most_lines:
                much = f"{WHOLE >> 30} GB of text" if held > WHOLE else f"{most_lines:,} lines"
                raise InputError(f"{self.path} has over {much}, too much for a format that is read all at once. {advice}")
            pieces.append(chunk)
        return b"".join(pieces)

    # Going through it

    def chunks(self, progress: Progress = lambda _: None, size: int = CHUNK, decode: bool = True) -> Iterator[bytes]:
        """Go through the table in chunks of whole lines, as UTF-8, without byte order mark.

        Line ends stay as they are, except that lone carriage returns become line ends where a file has them. Quoted
        fields with line ends in them are not cut apart. The last line gets a line end if it has none.
        """
        read = _Read()
        for number in range(max(1, len(self.members))):
            begins = True
            for chunk in self._member(number, size, progress, decode, read):
                if begins and number:
                    chunk = chunk[chunk.index(b"\n") + 1 :]
                begins = False
                if chunk:
                    yield chunk
        progress(self.size)

    def _member(self, number: int, size: int, progress: Progress, decode: bool, read: _Read) -> Iterator[bytes]:
        carried = b""
        with damage_reported(self.path), self._opened(number) as (file, position):
            first = True
            while piece := file.read(size):
                read.unpacked += len(piece)
                read.consumed = max(read.consumed, position())
                # Beside what has been read so far, not beside the whole file: for most of that may be there as a disguise.
                if read.unpacked > max(SUSPICIOUS, PACKED_TIGHTEST * read.consumed):
                    raise InputError(f"{self.path} unpacks to over {PACKED_TIGHTEST} times its size; is it really a table?")
                if first:
                    piece, first = piece.removeprefix(_BOM), False
                if self._returns:
                    # A pair of carriage return and line feed is not to be cut in two.
                    while piece.endswith(b"\r") and (more := file.read(1)):
                        piece += more
                    piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                piece = carried + piece
                cut = _cut(piece)
                if not cut and len(piece) > LONGEST_LINE:
                    raise InputError(f"{self.path} has a line of over {LONGEST_LINE:,} bytes; it is not a table of counts.")
                carried = piece[cut:]
                if cut:
                    yield self._decoded(piece[:cut]) if decode else piece[:cut]
                progress(min(position(), self.size))
        carried = carried.rstrip(b"\x1a")  # how files ended once
        if carried.strip(b"\x1a\x00 \r\n"):
            yield (self._decoded(carried) if decode else carried) + b"\n"

    def _decoded(self, text: bytes) -> bytes:
        return _utf8(text, self._bom, self.path, self.encoding)

    @contextmanager
    def _opened(self, number: int = 0) -> Iterator[tuple[IO[bytes] | _Recoded, Callable[[], int]]]:
        """Open the table; also return what tells the position in the file on disk."""
        with self._unpacked(number) as (file, position):
            yield _Recoded(file) if self._in_utf_16 else file, position

    @contextmanager
    def _unpacked(self, number: int) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
        if self._text is not None:
            memory = io.BytesIO(self._text)
            yield memory, memory.tell
            return
        with self.path.open("rb") as file:
            if self._packing == "gzip":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked, file.tell  # type: ignore[misc]  # it reads like any other file
            elif self._packing == "zip":
                with zipfile.ZipFile(file) as packed, packed.open(self.members[number]) as member:
                    yield member, file.tell
            else:
                yield file, file.tell


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Turn what packers say about damaged files into something a user can act upon."""
    try:
        yield
    except NotImplementedError as error:
        raise InputError(f"{path} is compressed in a way that cannot be read here ({error}); decompress it first.") from None
    except BROKEN as error:
        raise InputError(f"{path} is damaged or cut short ({error}); download it again.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); check the file and its permissions.") from None


def _listed(names: Sequence[str]) -> str:
    """Return the names of files for people; without characters that a terminal would obey."""
    return shortened(["".join(sign if sign.isprintable() else "\ufffd" for sign in name) for name in names], 6)


def _first_line(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with packed.open(member) as file:
        return file.readline(HEAD).removeprefix(_BOM).strip()


def _is_utf8(text: bytes, cut: bool = True) -> bool:
    """Return whether bytes, perhaps cut within a character, are UTF-8."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return cut and error.reason == "unexpected end of data" and error.start >= len(text) - 3
    return True


WESTERN = "cp1252"
_ALPHABETS = {
    WESTERN: (
        "àâæçéèêëîïôœùûüÿäöß", "ìíîàèéòóùú", "áéíóúñüàèïòç", "áâãàçéêíóôõúü", "åäöæøéüóáíúýðþèô", "éëïóöüáèêç",
        "àèéìòùäöüçêôî",
    ),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýžöü", "áéíóöőúüű", "áäčďéíĺľňóôŕšťúýž", "ăâîşţ", "čćđšž"),
    "cp1254": ("âçğıiîöşüû",),
}  # fmt: skip
"""The letters that languages add to the Latin ones, by code page: western ones first, which need no more than fit."""


def code_page(text: bytes) -> str:
    """Return the code page of a text that is not UTF-8, as far as its letters tell; that of western Europe otherwise.

    >>> code_page("Nombre d'élèves".encode("cp1252")), code_page("Mężczyźni;Ogółem".encode("cp1250"))
    ('cp1252', 'cp1250')
    >>> code_page("市町村,総数,男,女".encode("cp932")), code_page("Мужчины;Женщины".encode("cp1251"))
    ('cp932', 'cp1251')
    """
    high = re.findall(rb"[\x80-\xff]+", text)
    runs = sum(len(run) for run in high if len(run) > 1)
    if runs > len(re.findall(rb"[A-Za-z]", text)) / 2 and runs > sum(map(len, high)) / 2:  # hardly a Latin letter
        return _of_other_script(b"".join(high), text)
    for page, alphabets in _ALPHABETS.items():
        shown = text.decode(page, errors="replace").lower()
        seen = {sign for sign in shown if sign > "\x7f" and (sign.isalpha() or sign == "\ufffd")}
        # A sign within a word, as ³ for the Polish ł, is a letter of another code page.
        within = re.search(r"[a-z][\u00a1-\u00bf][a-z]", shown)
        if within is None and any(seen <= set(letters) for letters in alphabets):
            return page
    return WESTERN


def _of_other_script(high: bytes, text: bytes) -> str:
    """Return the code page of a text in letters other than Latin ones."""
    letters = sum(byte >= 0xC0 for byte in high)
    if letters > 0.8 * len(high):
        # Of Cyrillic capitals the last four, which are Greek vowels with an accent, follow no small letter.
        return "cp1253" if re.search(rb"[\xe1-\xfe][\xdc-\xdf]", high) else "cp1251"
    for page, test, fits in (
        ("cp949", "euc_kr", r"[\uac00-\ud7a3]"),  # of which only the usual signs tell it from others
        ("cp932", "cp932", r"[\u3040-\u30ff\u4e00-\u9fff]"),
        ("gb18030", "gb18030", r"[\u4e00-\u9fff]"),
    ):
        try:
            signs = [sign for sign in text.decode(test) if sign > "\x7f"]
        except UnicodeDecodeError:
            continue
        if sum(re.match(fits, sign) is not None for sign in signs) > 0.8 * len(signs):
            return page
    return WESTERN


def _utf8(text: bytes, marked: bool, path: Path, encoding: str) -> bytes:
    """Return bytes of whole lines as UTF-8, whatever they are.

    Most of a table is plain ASCII, and accents may come late: each chunk is looked at by itself.
    """
    if text.isascii() or _is_utf8(text, cut=False):
        return text
    if marked:
        raise InputError(f"{path} is marked as UTF-8 but contains other bytes; save it as UTF-8 again.")
    if encoding not in ("utf-8", "utf-16", WESTERN):
        return text.decode(encoding, errors="replace").encode()
    decoded = text.decode("latin-1")
    high = np.frombuffer(text, dtype=np.uint8)
    if np.any((high >= 0x80) & (high < 0xA0)):
        decoded = decoded.translate(_WINDOWS)
    return decoded.encode("utf-8")


def _windows() -> dict[int, str]:
    """Map the bytes in which cp1252 and Latin-1 differ."""
    codes = {code: bytes([code]).decode("cp1252", errors="ignore") for code in range(0x80, 0xA0)}
    return {code: character for code, character in codes.items() if character}


_WINDOWS = _windows()


def _cut(piece: bytes) -> int:
    """Return where the last whole line ends, outside of quotes; 0 where none does."""
    end = piece.rfind(b"\n") + 1
    if not end:
        return 0
    # Numpy counts several times as fast as bytes do, where there are so many.
    quotes = int(np.count_nonzero(np.frombuffer(piece, dtype=np.uint8, count=end) == _QUOTE))
    cut = end
    for _ in range(_QUOTED_LINES):
        if quotes % 2 == 0:
            return cut
        before = piece.rfind(b"\n", 0, cut - 1) + 1
        if not before:
            return 0  # the quotation may close further on
        quotes -= piece.count(b'"', before, cut)
        cut = before
    # A quote that never closes is an inch sign, not a quotation.
    return end


def _delimiter(head: str) -> str:
    """Return the character that parts the columns: the one that the first lines have most of, outside of quotes."""
    bare = re.sub(r'"[^"\n]*"', "", head[:HEAD])
    lines = bare.splitlines()[:50]
    most = {mark: sum(line.count(mark) for line in lines) for mark in _DELIMITERS}
    # Commas also occur in text; a tab or a semicolon in most lines is not an accident.
    for mark in ("\t", ";", "|"):
        if lines and sum(mark in line for line in lines) > len(lines) / 2 and most[mark] >= most[","] / 2:
            return mark
    return ","


def too_many_areas(source: object) -> InputError:
    """Return the error for more areas than fit into memory."""
    return InputError(
        f"{source} has over {MOST_AREAS:,} areas, more than can be read at once. Split it by region, and give the parts one "
        "by one."
    )


def called(delimiter: str) -> str:
    """Return what people call a delimiter.

    >>> called(";")
    'semicolon'
    """
    return _DELIMITERS.get(delimiter, repr(delimiter))
