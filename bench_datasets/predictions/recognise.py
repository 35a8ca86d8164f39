"""Which format predictions are in, found by looking at names and first bytes."""

from __future__ import annotations

from bench_datasets.faults import BenchError
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.text import first_record, open_text

EXPECTED = (
    "JSON Lines (.jsonl), COCO results (.json), Parquet, an Arrow file, a folder of <level>.jsonl, .parquet, .npz or "
    "PNG files, or a save_to_disk folder"
)
"""What `read_predictions` reads, for messages."""

_KINDS = {
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "npz": (".npz",),
    "png": (".png",),
}
_PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def recognise(location: Location) -> str:
    """Name of the format.

    Raises:
        BenchError: it is none that is known; the message says what was found and what to do.
    """
    return _folder(location) if location.kind == "directory" else _file(location)


def _folder(location: Location) -> str:
    inside = location.inside()
    names = {relative for relative, _, _ in inside}
    if "dataset_dict.json" in names or {"state.json", "dataset_info.json"} <= names:
        return "saved"
    files = [relative.lower() for relative, _, is_folder in inside if not is_folder]
    found = [kind for kind, endings in _KINDS.items() if any(file.endswith(endings) for file in files)]
    if not found and any(file.endswith((".json", ".json.gz")) for file in files):
        found = ["jsonl"]
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchError(
            f"{location.shown}: expected files of one format, found {' and '.join(found)}; say which with "
            f"format={found[0]!r}, or give a folder that holds only one"
        )
    sample = ", ".join(sorted(names)[:5]) or "nothing"
    raise BenchError(f"{location.shown}: expected {EXPECTED}; found a folder of {sample}; force one with format=")


def _file(location: Location) -> str:
    start = location.read(512)
    if not start:
        raise BenchError(
            f"{location.shown}: expected {EXPECTED}; found an empty file; did the run write its predictions?"
        )
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
        return "arrow"
    if start[:4] == b"PK\x03\x04":
        if location.name.lower().endswith(".npz"):
            return "npz"
        raise _unknown(location, "a zip archive (or a torch file): unpack it first")
    if start[:8] == b"\x89PNG\r\n\x1a\n":
        raise _unknown(location, "one PNG: give the folder that holds <id>/<k>.png or <id>.png")
    if start[:2] in _PICKLED:
        raise _unknown(location, "a pickle, which is never read: write JSON Lines instead")
    ending = next((kind for kind, endings in _KINDS.items() if location.name.lower().endswith(endings)), None)
    if ending not in (None, "jsonl"):
        return str(ending)  # broken, and its reader says how
    return _text(location)


def _text(location: Location) -> str:
    with open_text(location) as stream:
        start = stream.read(4096).lstrip()
    if start[:1] not in (b"{", b"["):
        found = f"a file that begins with {start[:16]!r}" if start else "a file of blanks"
        raise _unknown(location, f"{found}; write one JSON object a line")
    record = first_record(location)
    if record is None:
        raise _unknown(location, "an empty list; write one object a row")
    if start[:1] == b"[" and ("segmentation" in record or {"image_id", "bbox"} <= set(record)):
        return "coco"
    return "falcon" if "instances" in record and "masks" not in record else "jsonl"


def _unknown(location: Location, found: str) -> BenchError:
    return BenchError(f"{location.shown}: expected {EXPECTED}; found {found}")
