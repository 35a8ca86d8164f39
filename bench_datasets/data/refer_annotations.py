"""RefCOCO's refs files: JSON, or pickles of which nothing but plain values is ever built.

A pickle is a program. This one is read twice: first its instructions are listed, and any but those that make lists,
dicts, texts, bytes, numbers, booleans and None ends the reading there; only then is it run, by an unpickler that has no
way to find a class or a function.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from bench_datasets.data.coco_annotations import parse_json, read_bounded
from bench_datasets.faults import BenchError, shorten_text

_SPARE = 1000
"""Values that a small pickle may hold beyond one per byte."""

_PLAIN = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK"),
        *("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"),
        *("NONE", "NEWTRUE", "NEWFALSE"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    }
)


_INSTRUCTIONS = {opcode.code: opcode for opcode in pickletools.opcodes}


def read_refs(path: Path) -> list[Any]:
    """The refs of a file, as it has them.

    Args:
        path: `refs(*).json`, or `refs(*).p` as released.

    Raises:
        BenchError: the file is missing, too large, no JSON or pickle, a pickle that builds anything but plain values,
            or no list.
    """
    data = read_bounded(path)
    value = parse_json(data, path) if data.lstrip()[:1] in (b"[", b"{") and path.suffix == ".json" else None
    if value is None:
        if path.suffix == ".json":
            raise BenchError(f"{path}: expected a JSON list of refs, found {data[:20]!a}")
        value = load_plain_pickle(data, str(path))
    if not isinstance(value, list):
        raise BenchError(f"{path}: expected a list of refs, found {type(value).__name__}")
    return value


def load_plain_pickle(data: bytes, name: str) -> Any:
    """The value of a pickle that builds only plain values.

    Args:
        data: the pickle, of any protocol; texts of Python 2 are read as UTF-8.
        name: what messages call it.

    Raises:
        BenchError: an instruction would import, call or build anything else (nothing has run by then), the pickle is
            broken or cut off, or its lists and dicts contain one another so often that it means far more values than
            it has bytes.

    Example:
        >>> load_plain_pickle(pickle.dumps([{"ref_id": 1}]), "refs.p")
        [{'ref_id': 1}]
    """
    _inspect(data, name)
    try:
        value = _Plain(io.BytesIO(data), encoding="utf-8", errors="replace").load()
    except BenchError:
        raise
    except Exception as error:  # whatever a broken pickle sets off
        raise BenchError(f"{name}: expected a whole pickle, found it broken ({type(error).__name__})") from None
    _bound(value, len(data) + _SPARE, name)
    return value


def _bound(value: Any, limit: int, name: str) -> None:
    """Count the values, a list that stands in two places twice: every value takes a byte unless it is shared."""
    left, found = [value], 0
    while left:
        item = left.pop()
        found += 1
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
        if found + len(left) > limit:
            raise BenchError(
                f"{name}: expected at most one value per byte ({limit - _SPARE:,} bytes), found more: its lists or "
                "dicts are contained in one another; save the refs as JSON where you trust them"
            )


def _inspect(data: bytes, name: str) -> None:
    """Go through the instructions without following one."""
    kept = 0
    stop = -1
    try:
        for opcode, argument, position in _instructions(data):
            if opcode.name not in _PLAIN:
                raise BenchError(
                    f"{name}: byte {position}: expected a pickle of lists, dicts, texts and numbers, found the "
                    f"instruction {opcode.name}, which can import, run or build other things; nothing of it was run. "
                    "Save the refs as JSON where you trust them"
                )
            if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT"):
                # A number far beyond those in use would have the unpickler reserve memory up to it.
                kept += 1
                if int(argument or 0) > kept + 1:
                    raise BenchError(
                        f"{name}: byte {position}: expected memo numbers one by one, found {argument}; the file is "
                        "no ordinary pickle"
                    )
            elif opcode.name == "MEMOIZE":
                kept += 1
            stop = position
    except BenchError:
        raise
    except Exception as error:
        raise BenchError(f"{name}: expected a whole pickle, found it broken ({_first(error)})") from None
    if stop + 1 < len(data):
        raise BenchError(f"{name}: expected the file to end with the pickle, found {len(data) - stop - 1} more bytes")


def _instructions(data: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, Any, int]]:
    """As `pickletools.genops`, which takes byte strings of Python 2 for ASCII; here their bytes are passed over."""
    stream = io.BytesIO(data)
    while True:
        position = stream.tell()
        code = stream.read(1)
        opcode = _INSTRUCTIONS.get(code.decode("latin-1"))
        if opcode is None:
            found = f"no instruction {code!r}" if code else "the end of the file"
            raise ValueError(f"byte {position}: found {found}")
        argument = None
        if opcode.name == "STRING":
            if not stream.readline().endswith(b"\n"):
                raise ValueError(f"byte {position}: found a text that is cut off")
        elif opcode.arg is not None:
            argument = opcode.arg.reader(stream)
        yield opcode, argument, position
        if opcode.name == "STOP":
            return


class _Plain(pickle.Unpickler):
    """An unpickler that finds no class and no function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise BenchError(f"expected plain values, found the name {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise BenchError("expected plain values, found a persistent id")


def _first(error: BaseException) -> str:
    return shorten_text((str(error).strip().splitlines() or [type(error).__name__])[0], 120)
