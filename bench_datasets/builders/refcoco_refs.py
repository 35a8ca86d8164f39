"""RefCOCO's refs files: JSON, or pickles of which nothing but plain values is ever built.

A pickle is a program. This one is read twice: first its instructions are listed, and any but those that make lists,
dicts, texts, bytes, numbers, booleans and None ends the reading there; only then is it run, by an unpickler that has no
way to find a class or a function.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from bench_datasets.faults import BenchError
from bench_datasets.untrusted import load_json, open_regular

MAX_FILE = 1 << 31
"""Largest annotation file that is read: 2 GiB."""

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


def read_refs(path: Path) -> list[Any]:
    """The refs of a file, as it has them.

    Args:
        path: `refs(*).json`, or `refs(*).p` as released.

    Raises:
        BenchError: the file is missing, too large, no JSON or pickle, a pickle that builds anything but plain values,
            or no list.
    """
    data = read_bounded(path)
    value = _json(data, path) if data.lstrip()[:1] in (b"[", b"{") and path.suffix == ".json" else None
    if value is None:
        if path.suffix == ".json":
            raise BenchError(f"{path}: expected a JSON list of refs, found {data[:20]!a}")
        value = load_plain_pickle(data, str(path))
    if not isinstance(value, list):
        raise BenchError(f"{path}: expected a list of refs, found {type(value).__name__}")
    return value


def read_json(path: Path) -> Any:
    """A JSON file's value.

    Raises:
        BenchError: the file is missing, too large or no JSON.
    """
    return _json(read_bounded(path), path)


def read_bounded(path: Path) -> bytes:
    """A regular file's bytes, at most `MAX_FILE`.

    Raises:
        BenchError: the file is missing, no regular file, or larger.
    """
    if not path.is_file():
        raise BenchError(f"{path}: expected a file, found {'a folder or device' if path.exists() else 'nothing there'}")
    with open_regular(path) as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise BenchError(f"{path}: the file has more than {MAX_FILE} bytes; is it the annotation?")
    return data


def load_plain_pickle(data: bytes, name: str) -> Any:
    """The value of a pickle that builds only plain values.

    Args:
        data: the pickle, of any protocol; texts of Python 2 are read as UTF-8.
        name: what messages call it.

    Raises:
        BenchError: an instruction would import, call or build anything else (nothing has run by then), or the pickle is
            broken or cut off.

    Example:
        >>> load_plain_pickle(pickle.dumps([{"ref_id": 1}]), "refs.p")
        [{'ref_id': 1}]
    """
    _inspect(data, name)
    try:
        return _Plain(io.BytesIO(data), encoding="utf-8", errors="replace").load()
    except BenchError:
        raise
    except Exception as error:  # whatever a broken pickle sets off
        raise BenchError(f"{name}: expected a whole pickle, found it broken ({type(error).__name__})") from None


def _inspect(data: bytes, name: str) -> None:
    """Go through the instructions without following one."""
    kept = 0
    stop = -1
    try:
        for opcode, argument, position in pickletools.genops(data):
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
            stop = position or 0
    except BenchError:
        raise
    except Exception as error:
        raise BenchError(f"{name}: expected a whole pickle, found it broken ({_first(error)})") from None
    if stop + 1 < len(data):
        raise BenchError(f"{name}: expected the file to end with the pickle, found {len(data) - stop - 1} more bytes")


class _Plain(pickle.Unpickler):
    """An unpickler that finds no class and no function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise BenchError(f"expected plain values, found the name {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise BenchError("expected plain values, found a persistent id")


def _json(data: bytes, path: Path) -> Any:
    try:
        return load_json(data)
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: expected JSON, found {_first(error)}") from None


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
