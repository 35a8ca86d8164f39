"""Which format predictions are in, found by looking at names and first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.foreign_fields import name_of, refuse_other_benchmark, signatures, wrong_benchmark
from bench_datasets.predictions.form import PredictionForm
from bench_datasets.predictions.formats.png import OTHER_IMAGES
from bench_datasets.predictions.json_records import first_record, open_text
from bench_datasets.predictions.mask_lines import ENDINGS
from bench_datasets.predictions.signature import Signature

_KINDS = {
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "npz": (".npz",),
    "npy": (".npy",),
    "png": (".png",),
}
_DENSE = ("npz", "npy", "png")
"""Formats of single masks, which no folder of videos is read as."""

_SHARD = re.compile(r"\w+-\d{5}-of-\d{5}\.parquet")
"""A file of a dataset as the Hub holds it."""

_TRUTH = "name what the model wrote"
_RUN_FILES = {"scores.parquet", "result.json"}
_SCORED, _RESULT = {"row_sha256", "protocol"}, {"schema_version", "metrics"}
"""Columns of every score table, and fields of every `result.json`."""
_LOOKED_AT = 20
"""Most files of a folder whose first records are looked at."""

_PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"(lp0", b"(dp0")
_TORCH = "a torch file, which holds a pickle and is never read"
_TABLE = "read it with pandas and write df.to_json(path, orient='records', lines=True)"
_BEGINNINGS = {
    b"BZh": "a bzip2 file: unpack it first (bunzip2)",
    b"\xfd7zXZ\x00": "an xz file: unpack it first (unxz)",
    b"\x28\xb5\x2f\xfd": "a Zstandard file: unpack it first (unzstd)",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it first",
    b"Rar!": "a RAR archive: unpack it first",
    b"\x89HDF": "an HDF5 file: read it with h5py and write np.savez(file, masks=...) per row",
    b"MATLAB": "a MATLAB file: read it with scipy.io.loadmat and write np.savez(file, masks=...) per row",
    b"SQLite": "an SQLite database: write JSON Lines instead",
    b"\xff\xd8\xff": "a JPEG, which changes pixel values: save masks as PNG",
}
"""Files that are not read, by their first bytes."""

_ENDINGS = {
    (".pkl", ".pickle", ".joblib"): "a pickle, which is never read: load it where you trust it and write JSON Lines",
    (".pt", ".pth", ".ckpt"): f"{_TORCH}: load it where you trust it and write JSON Lines",
    (".csv", ".tsv"): f"a CSV table: {_TABLE}",
    (".tar",): "a tar archive (WebDataset?): unpack it first (tar -xf), and give the folder",
    (".zip",): "a zip archive: unpack it first (unzip), and give the folder",
    (".safetensors",): "a safetensors file: write np.savez(file, masks=...) per row",
    (".tfrecord",): "a TFRecord file: write JSON Lines instead",
    (".yaml", ".yml"): "YAML: write JSON Lines instead",
    (".xml",): "XML: write JSON Lines instead",
}
"""Files that are not read, by the endings of their names."""


def detect_format(location: Location, form: PredictionForm) -> str:
    """The name of the format.

    Args:
        location: where the predictions are.
        form: of the benchmark that they are for.

    Raises:
        FaultError: `wrong_benchmark`, they have a form that only another benchmark's have.
        BenchError: it is none that is known; the message says what was found and what to do.
    """
    return _folder(location, form) if location.kind == "directory" else _file(location, form)


def _folder(location: Location, form: PredictionForm) -> str:
    sign = form.signature
    inside = location.inside()
    names = {relative for relative, _, _ in inside}
    if "dataset_dict.json" in names or {"state.json", "dataset_info.json"} <= names:
        return "saved"
    files = [relative.lower() for relative, _, is_folder in inside if not is_folder]
    ends = {file.rsplit("/", 1)[-1] for file in files}
    layouts = _layouts(sign, ends | names)
    for other in signatures().values():
        if other is not sign and not layouts and (theirs := _layouts(other, ends | names)):
            marker = next(name for some in (other.folders or {})[theirs[0]] for name in sorted(some))
            raise wrong_benchmark(location.shown, sign, f"file {marker}", folder=theirs[0])
    kinds = _kinds(sign)
    found = layouts or [kind for kind, endings in kinds.items() if any(file.endswith(endings) for file in files)]
    if not found and any(file.endswith((".json", ".json.gz")) for file in files):
        found = ["jsonl"]
    _refuse_truth(location, inside)
    if found == ["parquet"] and names >= _RUN_FILES:
        raise _run(location)
    if found == ["jsonl"]:
        _refuse_mixture(location, sign)
        records = filter(None, map(_first, location.files(*ENDINGS)[:_LOOKED_AT]))
        if any(sign.format_of(record, location.shown) == "coco" for record in records):
            return "coco"
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchError(
            f"{location.shown}: expected files of one format, found {' and '.join(found)}; say which with "
            f"format={found[0]!r}, or give a folder that holds only one"
        )
    if not names:
        empty = "found an empty folder; did the run write its predictions?"
        raise BenchError(f"{location.shown}: expected {sign.expected}; {empty}")
    sample = ", ".join(sorted(names)[:5])
    advice = "force one with format="
    unread = next((text for text in map(_by_ending, files) if text), None)
    if unread:
        advice = f"such a file is {unread}"
        if "pickle" in unread and sign.instead not in advice and sign.instead != "write JSON Lines instead":
            advice += f"; {sign.instead}"
    else:
        advice = next((text for endings, text in sign.advice if any(f.endswith(endings) for f in files)), advice)
    if any(file.endswith(OTHER_IMAGES) for file in files):
        advice = "JPEG and other image formats are not read: save masks as PNG"
    raise BenchError(f"{location.shown}: expected {sign.expected}; found a folder of {sample}; {advice}")


def _refuse_truth(location: Location, inside: list[tuple[str, Location, bool]]) -> None:
    """Stop at a folder that holds the truth.

    Raises:
        BenchError: it does; the message names the file by which it is known.
    """
    forms = signatures().values()
    for relative, file, is_folder in inside:
        name = file.name.lower()
        truth = not is_folder and (
            any(name in form.truth_files for form in forms)
            or (_SHARD.fullmatch(name) is not None and _any_of([form.truth_columns for form in forms], _columns(file)))
            or (
                name.endswith(".jsonl")
                and "/" not in relative
                and _any_of([form.truth_fields for form in forms], set(_first(file) or ()))
            )
        )
        if truth:
            raise BenchError(f"{location.shown}: expected predictions, this is the truth ({relative}); {_TRUTH}")


def _run(location: Location) -> BenchError:
    text = "expected predictions, found what `score` wrote about a run; give the file that the model wrote"
    return BenchError(f"{location.shown}: {text}")


def _columns(file: Location) -> set[str]:
    """The columns of a Parquet file without predictions; none of a broken one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with file.open() as stream:
            names = set(pq.ParquetFile(stream).schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError):
        return set()
    return set() if any(name.startswith("pred_") for name in names) else names


def _first(file: Location) -> dict[str, Any] | None:
    """The first record of a file; none of a broken one."""
    try:
        return first_record(file)
    except BenchError:  # its reader says what is wrong
        return None


def _any_of(wanted: Iterable[frozenset[str]], found: set[str]) -> bool:
    return any(fields and fields <= found for fields in wanted)


def _layouts(sign: Signature, names: set[str]) -> list[str]:
    """Formats of a folder by the names of its files."""
    return [kind for kind, some in (sign.folders or {}).items() if any(wanted <= names for wanted in some)]


def _kinds(sign: Signature) -> dict[str, tuple[str, ...]]:
    """Endings of files by format; without those of single masks where they are not read."""
    return {kind: endings for kind, endings in _KINDS.items() if sign.array or kind not in _DENSE}


def _refuse_mixture(location: Location, sign: Signature) -> None:
    """Stop at a folder that holds files of several benchmarks.

    Raises:
        BenchError: it does; the message names the file that fits.
    """
    fits, others = [], []
    for file in location.files(*ENDINGS)[:_LOOKED_AT]:
        fields = set(_first(file) or ())
        try:
            refuse_other_benchmark(fields, file.shown, sign)
        except BenchError:
            others.append(file.shown)
        else:
            fits += [file.shown] if fields else []
    if fits and others:
        raise BenchError(
            f"{location.shown}: expected files of {name_of(sign)} alone, found {others[0]} beside them; give"
            f" {' or '.join(fits[:3])} itself"
        )


def _file(location: Location, form: PredictionForm) -> str:
    sign = form.signature
    if any(location.name in other.truth_files for other in signatures().values()):
        raise BenchError(f"{location.shown}: expected predictions, this is the truth; {_TRUTH}")
    start = location.read(512)
    if not start:
        found = "an empty file; did the run write its predictions?"
        raise BenchError(f"{location.shown}: expected {sign.expected}; found {found}")
    if start[:4] == b"PAR1":
        if _columns(location) >= _SCORED:
            raise _run(location)
        return "parquet"
    if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
        return "arrow"
    if start[:4] == b"PK\x03\x04":
        if location.name.lower().endswith(".npz") and sign.array:
            return "npz"
        if location.name.lower().endswith(".npz"):
            raise _unknown(location, sign, _arrays(sign))
        torch = location.name.lower().endswith((".pt", ".pth", ".ckpt")) or b"data.pkl" in start
        if torch:
            raise _unknown(location, sign, f"{_TORCH}: {sign.instead}")
        raise _unknown(location, sign, "a zip archive: unpack it first (unzip), and give the folder")
    if start[:6] == b"\x93NUMPY" and sign.array:
        return "npy"
    if start[:8] == b"\x89PNG\r\n\x1a\n":
        raise _unknown(location, sign, f"one PNG: give the folder that holds {sign.png}")
    if start.startswith(_PICKLED):
        raise _unknown(location, sign, f"a pickle, which is never read: {sign.instead}")
    other = next((text for first, text in _BEGINNINGS.items() if start.startswith(first)), None)
    if start[257:262] == b"ustar":
        other = _by_ending("a.tar")
    if start[:6] == b"\x93NUMPY":
        other = _arrays(sign)
    other = other or (None if start.lstrip()[:1] in (b"{", b"[") else _by_ending(location.name))
    if other:
        raise _unknown(location, sign, other)
    ending = next((kind for kind, endings in _kinds(sign).items() if location.name.lower().endswith(endings)), None)
    if ending not in (None, "jsonl"):
        return str(ending)  # broken, and its reader says how
    return _text(location, sign)


def _by_ending(name: str) -> str | None:
    """Name a file type that is not read, and advice, by the file's ending; None for other endings."""
    return next((text for endings, text in _ENDINGS.items() if name.lower().endswith(endings)), None)


def _text(location: Location, sign: Signature) -> str:
    with open_text(location) as stream:
        start = stream.read(4096).lstrip()
    if start[257:262] == b"ustar" or start.startswith(_PICKLED):  # gzipped
        raise _unknown(location, sign, str(_by_ending("a.tar" if start[257:262] == b"ustar" else "a.pkl")))
    if location.name in sign.parts_of_folder:
        raise _unknown(location, sign, f"{location.name} alone; give the folder of the video, or of all videos")
    if start[:1] not in (b"{", b"["):
        found = f"a file that begins with {start[:16]!r}" if start else "a file of blanks"
        if sign.line is not None and re.match(sign.line[0], start):
            found += sign.line[1]
        raise _unknown(location, sign, f"{found}; write one JSON object per line")
    record = first_record(location)
    if record is None:
        raise _unknown(location, sign, "an empty list; write one object per row")
    if set(record) >= _RESULT:
        raise _run(location)
    return sign.format_of(record, location.shown)


def _arrays(sign: Signature) -> str:
    """Words about files of NumPy where they are not read."""
    found = next((text for endings, text in sign.advice if ".npy" in endings), "NumPy arrays")
    return found.removeprefix("such a file holds ")


def _unknown(location: Location, sign: Signature, found: str) -> BenchError:
    return BenchError(f"{location.shown}: expected {sign.expected}; found {found}")
