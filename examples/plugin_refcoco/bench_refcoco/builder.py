"""`load_dataset("refcoco_toy")`: JSON Lines, one expression per line, into ground truth rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from datasets import Features, List, Value

from bench_datasets.data.json_lines import JsonLinesBuilder
from bench_datasets.masks import MASK_FEATURE, encode_dense, parse_mask

SQUARES = {"left": (5, 5), "right": (5, 35), "upper": (2, 20), "lower": (22, 20)}


class RefCOCOToyBuilder(JsonLinesBuilder):
    """Builder of the ground truth rows."""

    BENCHMARK = "refcoco_toy"
    PARTS = ("val", "test")
    FIELDS = ("id", "expression", "height", "width", "segmentation")
    FEATURES = Features(
        key=Value("string"), id=Value("int64"), split=Value("string"), expression=Value("string"),
        masks=List(MASK_FEATURE), height=Value("int32"), width=Value("int32"), faults=List(Value("string")),
    )  # fmt: skip

    def row(self, line: dict[str, Any], part: str) -> dict[str, Any]:
        """One expression with the mask that it means."""
        mask = parse_mask(line.pop("segmentation"), height=line["height"], width=line["width"])
        return {**line, "key": f"{part}/{line['id']}", "split": part, "masks": [mask], "faults": []}

    def sample_lines(self) -> dict[str, list[dict[str, Any]]]:
        """Squares on an empty ground."""
        lines = []
        for number, (word, (y, x)) in enumerate(SQUARES.items()):
            mask = np.zeros((40, 60), bool)
            mask[y : y + 15, x : x + 15] = True
            line = {"id": number, "expression": f"the {word} square", "height": 40, "width": 60}
            lines.append({**line, "segmentation": encode_dense(mask)})
        return {"val": lines[:3], "test": lines}
