"""Pictures of rows whose truth and predictions are lists of masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.masks import MaskColumn, resize
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.report.inputs import Material
from bench_datasets.report.layers import Frame, base, dense, difference_layer, masks_layer
from bench_datasets.report.page_data import Panel
from bench_datasets.report.runs import Run

PLAIN = (240, 320)
"""Size (height, width) of the ground of a row that has none."""


def mask_panels(
    runs: Sequence[Run],
    material: Material,
    keys: Sequence[str],
    read: Callable[[pa.Table], tuple[list[str], MaskLists, MaskLists]],
    facts: Callable[[dict[str, Any]], str],
) -> Iterator[tuple[str, list[Panel], str]]:
    """The pictures of some rows: key, one panel, no further drawing.

    Args:
        runs: of the report.
        material: with the predictions of each.
        keys: of the rows.
        read: keys, true and predicted masks of truth rows with their predictions beside them.
        facts: what is to be said of a score row.
    """
    images = material.pictures(keys)
    found = [read(pa.concat_tables(material.batches(i, set(keys)))) for i in range(len(runs))]
    scores = [
        {row["key"]: row for row in run.table.filter(pa.compute.is_in(run.table["key"], pa.array(keys))).to_pylist()}
        for run in runs
    ]
    place = {key: k for k, key in enumerate(found[0][0])}
    for key in keys:
        k = place[key]
        true = _own(found[0][1], k)
        given = [_own(predicted, k) for _, _, predicted in found]
        size = _size(true, given)
        frame = Frame.fit(size)
        truth = dense(true, frame)
        layers, said = [], []
        for masks, rows in zip(given, scores, strict=True):
            n = len(masks)
            answer = dense(resize(masks, np.full(n, size[0]), np.full(n, size[1])), frame)
            layers.append((masks_layer(answer, frame, predicted=True), difference_layer(truth, answer, frame)))
            said.append(facts(rows[key]))
        panel = Panel(
            "", (frame.height, frame.width), base(images.get(key), frame),
            masks_layer(truth, frame, predicted=False), layers, said,
        )  # fmt: skip
        yield key, [panel], ""


def _own(lists: MaskLists, k: int) -> MaskColumn:
    return lists.masks.part(int(lists.groups[k]), int(lists.groups[k + 1]))


def _size(true: MaskColumn, given: Sequence[MaskColumn]) -> tuple[int, int]:
    for column in (true, *given):
        if len(column):
            return int(column.heights[0]), int(column.widths[0])
    return PLAIN
