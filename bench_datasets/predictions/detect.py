"""Which format predictions are in, found by looking at names and first bytes."""

from __future__ import annotations

import re

from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark, wrong_benchmark
from bench_datasets.predictions.formats.png import OTHER_IMAGES
from bench_datasets.predictions.json_records import first_record, open_text
from bench_datasets.predictions.mask_lines import ENDINGS

_TABLES = "Parquet, an Arrow file"
EXPECTED = {
    "pbench": (
        f"JSON Lines (.jsonl), COCO results (.json), {_TABLES}, a folder of <level>.jsonl, .parquet, .npz, .npy or PNG "
        "files, or a save_to_disk folder"
    ),
    "instancebench": (
        f"JSON Lines (.jsonl), COCO results (.json), {_TABLES}, a folder of <expression_id>.png, .npz or .npy files, "
        "or a save_to_disk folder"
    ),
    "pvsg": (
        f"JSON Lines (.jsonl), {_TABLES}, a folder of <video_id>/quantitive/masks.txt, of <video_id>/<frame>.png with "
        "tubes.json or panoptic.json, VIPSeg's pred.json with pan_pred/, or a save_to_disk folder"
    ),
}
"""What `read_predictions` reads, by benchmark, for messages."""

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

_VIDEOS = {"research": "masks.txt", "panoptic": "panoptic.json", "davis": "tubes.json"}
"""The file by which a folder of videos is known, by format."""

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
_ARRAYS = "NumPy arrays, which are not read for videos: write JSON Lines, each mask as encode_dense(array)"
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


def recognise(location: Location, benchmark: str = "pbench") -> str:
    """Name of the format.

    Args:
        location: where the predictions lie.
        benchmark: what they are predictions for.

    Raises:
        FaultError: `wrong_benchmark`, they have a form that only another benchmark's have.
        BenchError: it is none that is known; the message says what was found and what to do.
    """
    return _folder(location, benchmark) if location.kind == "directory" else _file(location, benchmark)


def _folder(location: Location, benchmark: str) -> str:
    inside = location.inside()
    names = {relative for relative, _, _ in inside}
    if "dataset_dict.json" in names or {"state.json", "dataset_info.json"} <= names:
        return "saved"
    files = [relative.lower() for relative, _, is_folder in inside if not is_folder]
    ends = {file.rsplit("/", 1)[-1] for file in files}
    videos = [kind for kind, marker in _VIDEOS.items() if marker in ends]
    if {"pred.json", "pan_pred"} <= names and "panoptic" not in videos:  # VIPSeg's submission
        videos.append("panoptic")
    if videos and benchmark != "pvsg":
        raise wrong_benchmark(location.shown, benchmark, "pvsg", f"file {_VIDEOS[videos[0]]}")
    kinds = {kind: endings for kind, endings in _KINDS.items() if benchmark != "pvsg" or kind not in _DENSE}
    found = videos or [kind for kind, endings in kinds.items() if any(file.endswith(endings) for file in files)]
    if not found and any(file.endswith((".json", ".json.gz")) for file in files):
        found = ["jsonl"]
    _refuse_truth(location, inside)
    if found == ["parquet"] and names >= _RUN_FILES:
        raise _run(location)
    if found == ["jsonl"]:
        _refuse_mixture(location, benchmark)
        if benchmark == "pbench" and any(map(_is_coco, map(_fields, location.files(*ENDINGS)[:_LOOKED_AT]))):
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
        raise BenchError(f"{location.shown}: expected {EXPECTED[benchmark]}; {empty}")
    sample = ", ".join(sorted(names)[:5])
    advice = "force one with format="
    unread = next((text for text in map(_by_ending, files) if text), None)
    if unread:
        advice = f"such a file is {unread}"
        if "pickle" in unread and benchmark == "pvsg":
            advice += f"; {_instead(benchmark)}"
    elif benchmark == "pvsg" and any(file.endswith(".png") for file in files):
        advice = (
            'write tubes.json [{"tube_id": 1, "category": "dog"}] beside the PNGs of each video; one PNG per frame'
            " holds all its tubes, so folders of single objects are merged into one label map per frame"
        )
    elif benchmark == "pvsg" and any(file.endswith((".npz", ".npy")) for file in files):
        advice = f"such a file holds {_ARRAYS}"
    elif benchmark == "pvsg" and any(file.endswith(".txt") for file in files):
        advice = "put masks as MOTS writes them at <video_id>/quantitive/masks.txt, frames counted from 1"
    elif any(file.endswith(".txt") for file in files):
        advice = "text files, such as polygons in fractions of the image, are not read: write JSON Lines"
    if any(file.endswith(OTHER_IMAGES) for file in files):
        advice = "JPEG and other image formats are not read: save masks as PNG"
    raise BenchError(f"{location.shown}: expected {EXPECTED[benchmark]}; found a folder of {sample}; {advice}")


def _refuse_truth(location: Location, inside: list[tuple[str, Location, bool]]) -> None:
    """Stop at a folder that holds the truth.

    Raises:
        BenchError: it does; the message names the file by which it is known.
    """
    for relative, file, is_folder in inside:
        name = file.name.lower()
        truth = not is_folder and (
            name == "pvsg.json"
            or (_SHARD.fullmatch(name) is not None and {"expression", "masks"} <= _columns(file))
            or (name.endswith(".jsonl") and "/" not in relative and {"candidates", "expressions"} <= _fields(file))
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


def _fields(file: Location) -> set[str]:
    """The fields of a file's first record; none of a broken one."""
    try:
        return set(first_record(file) or ())
    except BenchError:  # its reader says what is wrong
        return set()


def _refuse_mixture(location: Location, benchmark: str) -> None:
    """Stop at a folder that holds files of several benchmarks.

    Raises:
        BenchError: it does; the message names the file that fits.
    """
    fits, others = [], []
    for file in location.files(*ENDINGS)[:_LOOKED_AT]:
        fields = _fields(file)
        try:
            refuse_other_benchmark(fields, file.shown, benchmark)
        except BenchError:
            others.append(file.shown)
        else:
            fits += [file.shown] if fields else []
    if fits and others:
        raise BenchError(
            f"{location.shown}: expected files of {benchmark} alone, found {others[0]} beside them; give"
            f" {' or '.join(fits[:3])} itself"
        )


def _file(location: Location, benchmark: str) -> str:
    if location.name == "pvsg.json":
        raise BenchError(f"{location.shown}: expected predictions, this is the truth; {_TRUTH}")
    start = location.read(512)
    if not start:
        found = "an empty file; did the run write its predictions?"
        raise BenchError(f"{location.shown}: expected {EXPECTED[benchmark]}; found {found}")
    if start[:4] == b"PAR1":
        if _columns(location) >= _SCORED:
            raise _run(location)
        return "parquet"
    if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
        return "arrow"
    if start[:4] == b"PK\x03\x04":
        if location.name.lower().endswith(".npz") and benchmark != "pvsg":
            return "npz"
        if location.name.lower().endswith(".npz"):
            raise _unknown(location, benchmark, _ARRAYS)
        torch = location.name.lower().endswith((".pt", ".pth", ".ckpt")) or b"data.pkl" in start
        if torch:
            raise _unknown(location, benchmark, f"{_TORCH}: {_instead(benchmark)}")
        raise _unknown(location, benchmark, "a zip archive: unpack it first (unzip), and give the folder")
    if start[:6] == b"\x93NUMPY" and benchmark != "pvsg":
        return "npy"
    if start[:8] == b"\x89PNG\r\n\x1a\n":
        raise _unknown(location, benchmark, f"one PNG: give the folder that holds {_png(benchmark)}")
    if start.startswith(_PICKLED):
        raise _unknown(location, benchmark, f"a pickle, which is never read: {_instead(benchmark)}")
    other = next((text for first, text in _BEGINNINGS.items() if start.startswith(first)), None)
    if start[257:262] == b"ustar":
        other = _by_ending("a.tar")
    if start[:6] == b"\x93NUMPY":
        other = _ARRAYS
    other = other or (None if start.lstrip()[:1] in (b"{", b"[") else _by_ending(location.name))
    if other:
        raise _unknown(location, benchmark, other)
    kinds = {kind: endings for kind, endings in _KINDS.items() if benchmark != "pvsg" or kind not in _DENSE}
    ending = next((kind for kind, endings in kinds.items() if location.name.lower().endswith(endings)), None)
    if ending not in (None, "jsonl"):
        return str(ending)  # broken, and its reader says how
    return _text(location, benchmark)


def _by_ending(name: str) -> str | None:
    """Name a file type that is not read, and advice, by the file's ending; None for other endings."""
    return next((text for endings, text in _ENDINGS.items() if name.lower().endswith(endings)), None)


def _text(location: Location, benchmark: str) -> str:
    with open_text(location) as stream:
        start = stream.read(4096).lstrip()
    if start[257:262] == b"ustar" or start.startswith(_PICKLED):  # gzipped
        raise _unknown(location, benchmark, str(_by_ending("a.tar" if start[257:262] == b"ustar" else "a.pkl")))
    if benchmark == "pvsg" and location.name in ("masks.txt", "relations.json", "tubes.json", "panoptic.json"):
        raise _unknown(location, benchmark, f"{location.name} alone; give the folder of the video, or of all videos")
    if start[:1] not in (b"{", b"["):
        found = f"a file that begins with {start[:16]!r}" if start else "a file of blanks"
        if benchmark == "pvsg" and re.match(rb"\d+ \d+ \d+ \d+ \d+ \S", start):
            found += " (masks as MOTS writes them go to <video_id>/quantitive/masks.txt, frames counted from 1)"
        raise _unknown(location, benchmark, f"{found}; write one JSON object per line")
    record = first_record(location)
    if record is None:
        raise _unknown(location, benchmark, "an empty list; write one object per row")
    if set(record) >= _RESULT:
        raise _run(location)
    if benchmark != "pbench":
        if not ("segmentation" in record and benchmark == "instancebench"):
            refuse_other_benchmark(record, location.shown, benchmark)
        return "jsonl"
    if _is_coco(set(record)):
        return "coco"
    return "falcon" if "instances" in record and "masks" not in record else "jsonl"


def _is_coco(fields: set[str]) -> bool:
    """Whether these are the fields of a COCO result."""
    return "segmentation" in fields or {"image_id", "bbox"} <= fields


def _png(benchmark: str) -> str:
    return {
        "pbench": "<id>/<k>.png or <id>.png",
        "instancebench": "<expression_id>.png",
        "pvsg": "<video_id>/<frame>.png and tubes.json or panoptic.json",
    }[benchmark]


def _instead(benchmark: str) -> str:
    if benchmark == "pvsg":
        return "turn relations into relations.json with scripts/convert_pvsg_relations.py, or write JSON Lines instead"
    return "write JSON Lines instead"


def _unknown(location: Location, benchmark: str, found: str) -> BenchError:
    return BenchError(f"{location.shown}: expected {EXPECTED[benchmark]}; found {found}")
