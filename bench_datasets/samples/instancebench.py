"""The built-in InstanceBench sample: our own drawings, and for things in them several ways to say which is meant.

Its truth is exact, since the painter knows what is seen at each pixel. It is there to try things out; scores on it say
nothing about a model.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_datasets.data.sample_cache import built
from bench_datasets.masks import encode_dense
from bench_datasets.samples.instancebench_sets import SETS, SOURCES, Set
from bench_datasets.samples.pbench import Scene, paint

MANIFEST = "test.jsonl"


@dataclass(frozen=True)
class Sample:
    """A set with everything looked up in its drawing.

    Attributes:
        tces_id: the set's id.
        source: the source that the drawing stands for.
        asked: the set.
        things: labels of the candidates in the drawing, the target among them.
        target: the target's label.
        crowd: labels of what is one crowd region; mostly none.
        donor: id of the expression whose target a text swap asks for, or None.
    """

    tces_id: str
    source: str
    asked: Set
    things: tuple[int, ...]
    target: int
    crowd: tuple[int, ...]
    donor: str | None

    @property
    def scene(self) -> Scene:
        """The drawing."""
        return paint(self.asked.scene)

    @property
    def category(self) -> str:
        """The kind of thing that is asked for."""
        return self.asked.target.split("/")[0]

    def ids(self) -> list[str]:
        """The expressions' ids, in order."""
        return [f"{self.tces_id}-{k}" for k in range(len(self.asked.asks))]


@functools.lru_cache(maxsize=1)
def sample_sets() -> tuple[Sample, ...]:
    """All sets, in the order of the manifest."""
    source_of = {scene: source for source, scenes in SOURCES.items() for scene in scenes}

    def name(scene: str, target: str) -> str:
        return f"{source_of[scene]}-{scene}-{paint(scene).names.index(target) + 1}"

    named = {(asked.scene, asked.target) for asked in SETS}
    found: list[Sample] = []
    for asked in SETS:
        scene = paint(asked.scene)
        kind = asked.target.split("/")[0]
        alike = [k for k in scene.masks if scene.names[k - 1].split("/")[0] == kind]
        crowd = [k for k in alike if asked.crowd is not None and fnmatchcase(scene.names[k - 1], asked.crowd)]
        if asked.donor is not None and (asked.scene, asked.donor) not in named:
            raise ValueError(f"{asked.scene}: the donor {asked.donor!r} of {asked.target!r} has no set of its own")
        found.append(
            Sample(
                name(asked.scene, asked.target),
                source_of[asked.scene],
                asked,
                tuple(k for k in alike if k not in crowd),
                scene.names.index(asked.target) + 1,
                tuple(crowd),
                None if asked.donor is None else name(asked.scene, asked.donor) + "-0",
            )
        )
    return tuple(found)


def sample_files() -> tuple[str, ...]:
    """The sample's files, relative to its folder."""
    return (MANIFEST, *(f"images/{scene}.png" for scenes in SOURCES.values() for scene in scenes))


def manifest_line(sample: Sample) -> dict[str, Any]:
    """A set as the manifest has it."""
    scene = sample.scene
    height, width = scene.labels.shape
    candidates = [_candidate(str(k), scene.labels == k, scene.masks[k], 0) for k in sample.things]
    if sample.crowd:
        region = np.isin(scene.labels, sample.crowd)
        candidates.append(_candidate("crowd", region, encode_dense(region), 1))
    expressions: list[dict[str, Any]] = [
        {"expression_id": name, "role": ask.role, "text": ask.text, "operation": ask.operation}
        for name, ask in zip(sample.ids(), sample.asked.asks, strict=True)
    ]
    if sample.donor is not None:
        expressions[0]["donor_expression_id"] = sample.donor
    return {
        "tces_id": sample.tces_id,
        "image": f"images/{scene.name}.png",
        "image_id": scene.name,
        "source": sample.source,
        "category": sample.category,
        "height": height,
        "width": width,
        "target": str(sample.target),
        "candidates": candidates,
        "expressions": expressions,
    }


def _candidate(name: str, mask: NDArray[np.bool_], encoded: Mapping[str, object], crowd: int) -> dict[str, Any]:
    xs, ys = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    box = [int(xs[0]), int(ys[0]), int(xs[-1] - xs[0]) + 1, int(ys[-1] - ys[0]) + 1]
    return {"instance_id": name, "segmentation": dict(encoded), "iscrowd": crowd, "bbox": box}


def write_sample(folder: Path) -> None:
    """Write the manifest and the images under a folder."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for scene in {sample.asked.scene for sample in sample_sets()}:
        (folder / "images" / f"{scene}.png").write_bytes(paint(scene).png)
    with (folder / MANIFEST).open("w", encoding="utf-8", newline="\n") as stream:
        for sample in sample_sets():
            stream.write(json.dumps(manifest_line(sample)) + "\n")


def instancebench_sample_dir() -> str:
    """Folder of the built-in InstanceBench sample, as a source has it; drawn on first use, in about a second.

    It holds `test.jsonl`, 20 sets over seven pictures with every operation in both sources, paraphrases, extras,
    exclusions, donors for text swaps and one crowd region; and `images/`.

    Example:
        >>> from pathlib import Path
        >>> sorted(path.name for path in Path(instancebench_sample_dir()).iterdir())
        ['images', 'test.jsonl']
    """
    return str(built("instancebench", sample_files(), write_sample))
