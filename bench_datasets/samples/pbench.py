"""The built-in PBench sample: our own drawings with expressions of every level, in the layout of `tiiuae/PBench`.

Its truth is exact, since the painter knows what is seen at each pixel. It is there to try things out; scores on it say
nothing about a model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features, Image, List, Value
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.data.sample_cache import built
from bench_datasets.masks import encode_label_map
from bench_datasets.samples import crowds, scenes
from bench_datasets.samples.canvas import Canvas

PAINTERS: Mapping[str, Callable[[], Canvas]] = {
    painter.__name__: painter
    for painter in (
        scenes.park,
        scenes.street,
        scenes.kitchen,
        scenes.match,
        scenes.harbour,
        scenes.balloons,
        crowds.car_park,
        crowds.fruit_stall,
        crowds.flock,
    )
}
"""What paints each scene, by the scene's name."""

EXPRESSIONS: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "level_0": (
        ("park", "dog", ("dog/*",)),
        ("street", "car", ("car/*",)),
        ("kitchen", "jar", ("jar/*",)),
        ("harbour", "sailboat", ("sailboat/*",)),
        ("balloons", "hot-air balloon", ("hot-air balloon/*",)),
        ("park", "umbrella", ()),
    ),
    "level_1": (
        ("park", "red balloon", ("balloon/red",)),
        ("street", "yellow car", ("car/yellow",)),
        ("kitchen", "blue mug", ("mug/blue*",)),
        ("kitchen", "green apple", ("apple/*green*",)),
        ("match", "player in a red shirt", ("player/red *",)),
        ("balloons", "striped hot-air balloon", ("hot-air balloon/*striped",)),
        ("balloons", "largest hot-air balloon", ("hot-air balloon/red, large",)),
    ),
    "level_2": (
        ("street", "sign that reads BAKERY", ("sign/BAKERY",)),
        ("street", "bus on line 42", ("bus/42",)),
        ("kitchen", "jar labelled TEA", ("jar/TEA",)),
        ("match", "player wearing number 10", ("player/red 10",)),
        ("harbour", "boat named LUNA", ("sailboat/LUNA",)),
        ("street", "sign that reads PHARMACY", ()),
    ),
    "level_3": (
        ("street", "leftmost car", ("car/green",)),
        ("street", "shop sign in the middle", ("sign/BOOKS",)),
        ("kitchen", "second jar from the left", ("jar/SALT",)),
        ("match", "rightmost player", ("player/red 4",)),
        ("harbour", "sailboat in front of the lighthouse", ("sailboat/striped",)),
        ("balloons", "lowest hot-air balloon", ("hot-air balloon/blue",)),
    ),
    "level_4": (
        ("park", "person holding a balloon", ("person/with the balloon",)),
        ("park", "dog on a leash", ("dog/on the leash",)),
        ("park", "bird sitting on the fence", ("bird/on the fence, *",)),
        ("kitchen", "mug with a spoon in it", ("mug/white",)),
        ("kitchen", "apple lying in the bowl", ("apple/in the bowl, *",)),
        ("match", "player kicking the ball", ("player/red 7",)),
    ),
    "dense": (
        ("car_park", "car", ("car/*",)),
        ("fruit_stall", "orange", ("orange/*",)),
        ("fruit_stall", "apple", ("apple/*",)),
        ("flock", "bird", ("bird/*",)),
    ),
}
"""By level: the scene, what is asked for, and patterns of the names of the things that answer (none: nothing does)."""

FEATURES = Features(
    {
        "image": Image(),
        "expression": Value("string"),
        "masks": List({"size": List(Value("int64")), "counts": Value("string")}),
        "count": Value("int32"),
        "id": Value("int64"),
    }
)
"""The source's own columns."""


@dataclass(frozen=True)
class Scene:
    """A painted scene.

    Attributes:
        name: the painter's name.
        png: the picture, a PNG file.
        labels: `(height, width) int32`, the thing seen at each pixel, 0 where there is none.
        names: things' names `kind/which`; thing k is `names[k - 1]`.
        masks: a mask `{"size", "counts"}` for every thing that is seen, by label.
    """

    name: str
    png: bytes
    labels: NDArray[np.int32]
    names: tuple[str, ...]
    masks: Mapping[int, Mapping[str, object]]


@dataclass(frozen=True)
class Row:
    """A row of the sample: expression, scene, and the labels of the objects that match."""

    id: int
    level: str
    scene: str
    expression: str
    things: tuple[int, ...]


@functools.lru_cache(maxsize=len(PAINTERS))
def paint(name: str) -> Scene:
    """A scene by its name, painted once a process."""
    canvas = PAINTERS[name]()
    return Scene(name, canvas.png(), canvas.labels, tuple(canvas.names), encode_label_map(canvas.labels))


@functools.lru_cache(maxsize=1)
def sample_rows() -> tuple[Row, ...]:
    """All rows, level by level; ids count on from 0 through all of them."""
    rows: list[Row] = []
    for level in PBENCH_LEVELS:
        for scene, expression, patterns in EXPRESSIONS[level]:
            things = [
                label
                for label, name in enumerate(paint(scene).names, 1)
                if any(fnmatchcase(name, pattern) for pattern in patterns) and label in paint(scene).masks
            ]
            if patterns and not things:
                raise ValueError(f"{level}: {expression!r}: nothing in the scene {scene!r} is named like {patterns}")
            rows.append(Row(len(rows), level, scene, expression, tuple(things)))
    return tuple(rows)


def sample_files() -> tuple[str, ...]:
    """The sample's files, relative to its folder, in the order of the levels."""
    return tuple(f"data/{level}-00000-of-00001.parquet" for level in PBENCH_LEVELS)


def write_sample(folder: Path) -> None:
    """Write the sample's Parquet files under a folder."""
    for level, file in zip(PBENCH_LEVELS, sample_files(), strict=True):
        rows = [row for row in sample_rows() if row.level == level]
        columns = {
            "image": [{"bytes": paint(row.scene).png, "path": f"{row.scene}.png"} for row in rows],
            "expression": [row.expression for row in rows],
            "masks": [[dict(paint(row.scene).masks[thing]) for thing in row.things] for row in rows],
            "count": [len(row.things) for row in rows],
            "id": [row.id for row in rows],
        }
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pydict(columns, schema=FEATURES.arrow_schema), folder / file)


def pbench_sample_dir() -> str:
    """Folder of the built-in PBench sample, in the source's layout; drawn on first use, in about a second.

    It holds `data/<level>-00000-of-00001.parquet` with the columns of `tiiuae/PBench`: 35 rows over nine pictures, two
    rows without truth, one with more than 150 instances.

    Example:
        >>> from pathlib import Path
        >>> sorted(path.name.split("-")[0] for path in Path(pbench_sample_dir(), "data").iterdir())
        ['dense', 'level_0', 'level_1', 'level_2', 'level_3', 'level_4']
    """
    return str(built("pbench", sample_files(), write_sample))
