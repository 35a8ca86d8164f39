"""Published copies as untrusted input: every fault is found and named by file, row, key and field."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, load_dataset

from bench_datasets._compat import FIXED_SIZE_NULLS
from bench_datasets.faults import BenchError
from bench_datasets.hub.datasets import build_dataset
from bench_datasets.hub.export import open_source

MAIN = {
    "pbench": "data/level_1-00000-of-00001.parquet",
    "instancebench": "default/test-00000-of-00001.parquet",
    "pvsg": "videos/test-00000-of-00001.parquet",
}
MASK = {"size": [2, 2], "counts": "13"}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a sample's copy, without images; made once."""
    made: dict[str, Path] = {}

    def build(benchmark: str) -> Path:
        if benchmark not in made:
            made[benchmark] = tmp_path_factory.mktemp(benchmark)
            build_dataset(open_source(benchmark, "sample", with_images=False), "acme/x", made[benchmark])
        return made[benchmark]

    return build


def broken(copy: Path, place: Path, benchmark: str, change: Callable[[list[dict[str, Any]]], Any]) -> Path:
    """The copy with other rows in its main file, of the same types."""
    shutil.copytree(copy, place)
    file = place / MAIN[benchmark]
    table = pq.read_table(file)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    return place


def load(benchmark: str, root: Path, config: str | None = None) -> Any:
    return load_dataset(benchmark, config, data_dir=str(root), split="test", images=False)


def setting(*path: Any, to: Any) -> Callable[[Any], None]:
    """A change of one value, by the way to it."""

    def change(rows: Any) -> None:
        for step in path[:-1]:
            rows = rows[step]
        rows[path[-1]] = to

    return change


INSTANCEBENCH = {
    "null key": (setting(2, "key", to=None), r"row 2 \(None\): field 'tces_id': expected an id"),
    "key twice": (lambda rows: setting(3, "key", to=rows[1]["key"])(rows), r"row 3 .*'key': expected a key of its own"),
    "target beyond": (setting(0, "target", to=99), r"row 0 .*field 'target': expected a position in \d+ candidates"),
    "target below": (setting(0, "target", to=-2), r"field 'target': expected a position"),
    "null target": (setting(0, "target", to=None), r"field 'target': expected a position"),
    "role": (setting(1, "expressions", 0, "role", to=9), r"'expressions\[0\]\.role': expected one of minimal.* int 9"),
    "operation": (setting(1, "expressions", 0, "operation", to=77), r"expressions\[0\]\.operation'.* int 77"),
    "text": (setting(1, "expressions", 0, "text", to=None), r"row 1 .*'expressions\[0\]\.text': expected a text"),
    "donor": (
        setting(1, "expressions", 0, "donor_mask", to={"size": [2, 2], "counts": "~~"}),
        r"row 1 .*expression '.*': field 'donor_mask'",
    ),
    "null candidate": (setting(1, "candidates", 0, to=None), r"'candidates\[0\]': expected a JSON object, found None"),
    "null candidates": (setting(1, "candidates", to=None), r"(target|candidates)': expected"),
    "height": (setting(1, "height", to=0), r"row 1 .*'height': expected a positive number of pixels"),
    "fault": (setting(1, "faults", to=["evil"]), r"row 1 .*'faults': expected codes of faults, found 'evil'"),
    "expression twice": (
        lambda rows: setting(1, "expressions", 0, "expression_id", to=rows[0]["expressions"][0]["expression_id"])(rows),
        r"row 1 .*'expressions': expected ids of their own",
    ),
    "candidate twice": (
        lambda rows: setting(1, "candidates", 1, "instance_id", to=rows[1]["candidates"][0]["instance_id"])(rows),
        r"row 1 .*'candidates': expected instance ids that differ",
    ),
}  # fmt: skip

PVSG = {
    "key": (setting(0, "key", to="../up"), r"row 0: pvsg: video_id: expected the name of a folder"),
    "key twice": (lambda rows: setting(1, "key", to=rows[0]["key"])(rows), r"row 1: .*expected a key of its own"),
    "source": (setting(0, "source", to="evil"), r"row 0: .*source: expected one of vidor.*'evil'"),
    "fps": (setting(0, "fps", to=float("nan")), r"meta\.fps: expected a positive number"),
    "category": (setting(0, "objects", 0, "category", to=500), r"objects\[0\].*category: expected text, found 500"),
    "object twice": (
        lambda rows: setting(0, "objects", 1, "object_id", to=rows[0]["objects"][0]["object_id"])(rows),
        r"objects\[1\]\.object_id: expected each object once",
    ),
    "predicate": (setting(0, "relations", 0, "predicate", to=-1), r"relations\[0\]: predicate: expected text"),
    "spans": (setting(0, "relations", 0, "spans", to=[[5, 2]]), r"relations\[0\]: expected spans from 0 on"),
    "null relations": (setting(0, "relations", to=None), r"relations: expected a list, found None"),
    "tubes": (lambda rows: rows[0]["tubes"].pop(), r"tubes: expected one for each of \d+ objects, found \d+"),
    "frames": (lambda rows: rows[0]["tubes"][0]["frames"].reverse(), r"tube of object \d+: expected frames from 0 on"),
    "one mask less": (lambda rows: rows[0]["tubes"][0]["masks"].pop(), r"tube of object \d+: expected a mask for each"),
    "mask": (
        setting(0, "tubes", 0, "masks", 1, to={"size": [2, 2], "counts": "99999"}),
        r"row 0: .*: tube of object \d+: frame \d+: malformed mask",
    ),
    "null mask": (setting(0, "tubes", 0, "masks", 0, to=None), r"tube of object \d+: frame \d+: malformed mask"),
    "size": (setting(0, "tubes", 0, "masks", 0, to=MASK), r"frame \d+: expected a mask of \d+ x \d+ .* found 2 x 2"),
    "fault": (setting(0, "faults", to=["evil"]), r"'faults': expected codes of faults, found 'evil'"),
    "present": (setting(0, "frames_present", to=-4), r"frames_present: expected a number of frames"),
}  # fmt: skip


@pytest.mark.parametrize("case", INSTANCEBENCH)
def test_rows_of_instancebench(case: str, copies: Callable[[str], Path], tmp_path: Path) -> None:
    change, told = INSTANCEBENCH[case]
    root = broken(copies("instancebench"), tmp_path / "copy", "instancebench", change)
    with pytest.raises(BenchError, match=r"test-00000-of-00001\.parquet: row \d+ \(") as caught:
        load("instancebench", root)
    assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(BenchError, match=told):
        load("instancebench", root, "expressions")


@pytest.mark.parametrize("case", PVSG)
def test_rows_of_pvsg(case: str, copies: Callable[[str], Path], tmp_path: Path) -> None:
    change, told = PVSG[case]
    root = broken(copies("pvsg"), tmp_path / "copy", "pvsg", change)
    for config in ("videos", "frames"):
        with pytest.raises(BenchError, match=told) as caught:
            load("pvsg", root, config)
        assert "test-00000-of-00001.parquet: row" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def test_unsound_candidates_are_noted_as_ever(copies: Callable[[str], Path], tmp_path: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        last = len(rows[0]["candidates"]) - 1
        other = next(k for k in range(last + 1) if k != rows[0]["target"])
        rows[0]["candidates"][other]["mask"]["counts"] = "~"
        rows[1]["candidates"][rows[1]["target"]]["mask"] = None
        rows[2]["target"] = -1

    sound = load("instancebench", copies("instancebench"))
    data = load("instancebench", broken(copies("instancebench"), tmp_path / "copy", "instancebench", change))
    assert [row["faults"] for row in data.select(range(3))] == [
        ["candidate_without_mask"], ["target_missing", "candidate_without_mask"], ["target_missing"]
    ]  # fmt: skip
    assert len(data[0]["candidates"]) == len(sound[0]["candidates"]) - 1
    names = [candidate["instance_id"] for candidate in data[0]["candidates"]]
    assert names[data[0]["target"]] == sound[0]["candidates"][sound[0]["target"]]["instance_id"]
    assert data[3:] == sound[3:]


def test_masks_of_pbench_are_noted_as_ever(copies: Callable[[str], Path], tmp_path: Path) -> None:
    change = setting(0, "masks", 0, to={"size": [2, 2], "counts": "99"})
    data = load("pbench", broken(copies("pbench"), tmp_path / "copy", "pbench", change), "level_1")
    assert data[0]["masks"][0] is None
    assert "malformed_mask" in data[0]["faults"]


def rewritten(copy: Path, place: Path, benchmark: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """The copy with another table as its main file."""
    shutil.copytree(copy, place)
    pq.write_table(change(pq.read_table(place / MAIN[benchmark])), place / MAIN[benchmark])
    return place


@pytest.mark.parametrize("benchmark", ["instancebench", "pvsg"])
def test_columns_that_are_others(benchmark: str, copies: Callable[[str], Path], tmp_path: Path) -> None:
    copy = copies(benchmark)

    def refused(name: str, change: Callable[[pa.Table], pa.Table]) -> str:
        with pytest.raises(BenchError) as caught:
            load(benchmark, rewritten(copy, tmp_path / name, benchmark, change))
        assert len(str(caught.value).splitlines()) == 1
        return str(caught.value)

    def typed(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("height"), "height", table["height"].cast(pa.string()))

    def renamed(table: pa.Table) -> pa.Table:
        """As another version would have written it: class labels in another order."""
        features = Features.from_arrow_schema(table.schema)
        inner = features["expressions" if benchmark == "instancebench" else "objects"].feature
        name = "role" if benchmark == "instancebench" else "category"
        inner[name] = ClassLabel(names=inner[name].names[::-1])
        return table.replace_schema_metadata(features.arrow_schema.metadata)

    assert "expected column 'key'" in refused("none", lambda table: table.drop_columns(["key"]))
    assert "column 'height': expected int32, found string" in refused("typed", typed)
    assert "published by another version" in refused("renamed", renamed)
    # Metadata that is nobody's, other widths of the same kinds, and no columns of origin are no harm.
    plain = rewritten(
        copy, tmp_path / "plain", benchmark, lambda t: t.replace_schema_metadata({"huggingface": "[" * 9})
    )
    sound = load(benchmark, copy)
    assert load(benchmark, plain).to_list() == sound.to_list()

    def wider(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("height")
        table = table.set_column(at, "height", table["height"].cast(pa.int64())).replace_schema_metadata(None)
        return table.set_column(0, "key", table["key"].cast(pa.large_string()))

    assert load(benchmark, rewritten(copy, tmp_path / "wider", benchmark, wider)).to_list() == sound.to_list()


def test_files_that_are_cut_off_or_missing(copies: Callable[[str], Path], tmp_path: Path) -> None:
    for benchmark in ("instancebench", "pvsg"):
        root = tmp_path / benchmark
        shutil.copytree(copies(benchmark), root)
        file = root / MAIN[benchmark]
        file.write_bytes(file.read_bytes()[:-20])
        with pytest.raises(BenchError, match="cut off"):
            load(benchmark, root)
        file.rename(file.with_name("test-00000-of-00002.parquet"))
        with pytest.raises(BenchError, match="expected 2 files, found 1"):
            load(benchmark, root)
        (root / MAIN[benchmark].replace("00000-of-00001", "00000-of-00002")).unlink()
        with pytest.raises((BenchError, ValueError), match=r"expected|Unknown split"):
            load(benchmark, root)


def test_frames_where_masks_have_a_gap(copies: Callable[[str], Path], tmp_path: Path) -> None:
    """Without the frames' own files, a frame without objects is known only where no masks are missing."""

    def change(rows: list[dict[str, Any]]) -> None:
        for tube in rows[0]["tubes"]:
            kept = [k for k, frame in enumerate(tube["frames"]) if frame not in (3, 4)]
            tube["frames"], tube["masks"] = ([tube[name][k] for k in kept] for name in ("frames", "masks"))
        rows[1]["faults"] = [*rows[1]["faults"], "mask_missing"]

    data = load("pvsg", broken(copies("pvsg"), tmp_path / "copy", "pvsg", change), "frames")
    videos = load("pvsg", copies("pvsg"))
    first = data.filter(lambda row: row["video_id"] == videos[0]["key"])
    assert first["frame"][:] == list(range(videos[0]["frames_present"]))
    assert [row["frame"] for row in first if not row["object_ids"]] == [3, 4]
    assert len(data.filter(lambda row: row["video_id"] == videos[1]["key"])) == videos[1]["frames_present"]


def fixed(kind: pa.DataType) -> pa.DataType:
    """The type with the sizes of masks as lists of fixed length, as they were published earlier."""
    if pa.types.is_struct(kind):
        fields = [pa.field(f.name, fixed(f.type)) for f in kind]
        if {f.name for f in fields} == {"size", "counts"}:
            fields = [pa.field("size", pa.list_(pa.int32(), 2)), pa.field("counts", pa.string())]
        return pa.struct(fields)
    return pa.list_(fixed(kind.value_type)) if pa.types.is_list(kind) else kind


def types_in(kind: pa.DataType) -> list[pa.DataType]:
    """A type and all types within it."""
    inner = [f.type for f in kind] if pa.types.is_struct(kind) else []
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = [kind.value_type]
    return [kind, *(found for one in inner for found in types_in(one))]


@pytest.mark.parametrize("benchmark", sorted(MAIN))
def test_masks_of_a_copy_have_no_list_of_fixed_length(
    copies: Callable[[str], Path], tmp_path: Path, benchmark: str
) -> None:
    """Arrow before 26 cannot read a null mask above such a list; copies published with one still load."""
    for file in sorted(copies(benchmark).rglob("*.parquet")):
        schema = pq.read_schema(file)
        masks = [
            kind
            for field in schema
            for kind in types_in(field.type)
            if pa.types.is_struct(kind) and {f.name for f in kind} == {"size", "counts"}
        ]
        assert all(kind.field("size").type == pa.list_(pa.int32()) for kind in masks)

    if not FIXED_SIZE_NULLS:
        pytest.skip(f"pyarrow {pa.__version__} cannot write the earlier form")

    def earlier(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        schema = pa.schema([pa.field(f.name, fixed(f.type)) for f in table.schema])
        return pa.Table.from_pylist(rows, schema=schema)

    place = rewritten(copies(benchmark), tmp_path / "earlier", benchmark, earlier)
    kinds = [kind for f in pq.read_schema(place / MAIN[benchmark]) for kind in types_in(f.type)]
    assert any(pa.types.is_fixed_size_list(kind) for kind in kinds)
    config = "level_1" if benchmark == "pbench" else None
    assert load(benchmark, place, config).to_list() == load(benchmark, copies(benchmark), config).to_list()
