"""Hashes, made again by hand from their description."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.masks import available_engines

from ..support.dense_pbench import Dense, Row
from ..support.pbench_rows import TRUTH, encode, joined, predictions_of, truth_of


def by_hand(labels: dict[str, Any], masks: list[Dense]) -> str:
    text = json.dumps(labels, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    for mask in masks:
        runs, colour = [0], False
        for pixel in mask.ravel(order="F").tolist():
            if pixel != colour:
                runs.append(0)
                colour = pixel
            runs[-1] += 1
        text += struct.pack(f"<{3 + len(runs)}I", *mask.shape, len(runs), *runs)
    return hashlib.sha256(text).hexdigest()


def rows_of(count: int) -> list[Row]:
    generator = np.random.default_rng(1)
    masks = [[generator.random((3, 5)) < 0.5 for _ in range(int(generator.integers(0, 4)))] for _ in range(count)]
    return [Row(k, ("level_0", "dense")[k % 2], masks[k], masks[-1 - k]) for k in range(count)]


def test_rows_and_content(tmp_path: Path) -> None:
    rows = rows_of(20)
    expected = {
        f"{row.level}/{row.id}": by_hand({"id": row.id, "level": row.level, "expression": f"thing {row.id}"}, row.truth)
        for row in rows
    }
    predictions = predictions_of(rows, tmp_path)
    for engine in available_engines():
        scores = bd.score("pbench", truth_of(rows), predictions, engine=engine)
        assert dict(zip(scores["key"], scores["row_sha256"], strict=True)) == expected
    assert list(scores["key"]) == sorted(expected)
    content = hashlib.sha256("".join(f"{item}\n" for item in sorted(expected.values())).encode()).hexdigest()
    result = bd.summarize("pbench", scores, draws=0)
    assert result.dataset["content_sha256"] == content
    shuffled = bd.score("pbench", truth_of(rows[::-1]), predictions_of(rows[::-1], tmp_path))
    again = bd.summarize("pbench", shuffled, draws=0)
    assert again.dataset["content_sha256"] == content
    assert again.predictions["sha256"] == result.predictions["sha256"]
    fewer = bd.score("pbench", truth_of(rows[1:]), predictions_of(rows[1:], tmp_path))
    assert bd.summarize("pbench", fewer, draws=0).dataset["content_sha256"] != content


def test_predictions(tmp_path: Path) -> None:
    rows = rows_of(6)
    scores = {row.id: [0.5] * len(row.predicted) for row in rows}
    found = bd.summarize(
        "pbench", bd.score("pbench", truth_of(rows), predictions_of(rows, tmp_path, scores=scores)), draws=0
    )
    hashes = [
        by_hand(
            {"key": f"{row.level}/{row.id}", "pred_scores": scores[row.id], "pred_centers": None, "pred_sizes": None},
            row.predicted,
        )
        for row in rows
    ]
    assert found.predictions["sha256"] == hashlib.sha256("".join(f"{h}\n" for h in sorted(hashes)).encode()).hexdigest()
    assert found.predictions["rows"] == 6


def test_spelling_does_not_matter_and_content_does() -> None:
    """Another spelling of one mask is the same row; another text, level, size or pixel is another."""
    mask = np.array([[0, 1, 1, 0, 1]], bool)
    row = {"id": 7, "level": "level_2", "expression": 'the "ö"\n\u2028 \U0001f600', "masks": [encode(mask)], "count": 1}

    def hash_of(**changes: Any) -> str:
        table = Dataset.from_list([{**row, **changes}], features=TRUTH).with_format("arrow")[:]
        table = table.append_column("pred_masks", [[[]]])
        return bd.scorer("pbench")(table)["row_sha256"][0].as_py()

    labels = {"id": 7, "level": "level_2", "expression": row["expression"]}
    assert hash_of() == by_hand(labels, [mask])
    padded = encode(mask)
    padded["counts"] += "O"  # a run of no pixels at the end: one less than the run two before
    assert hash_of(masks=[padded]) == hash_of()
    assert hash_of(count=3) == hash_of()
    others = [
        hash_of(id=8), hash_of(level="level_3"), hash_of(expression="thing"), hash_of(expression=None),
        hash_of(masks=[]), hash_of(masks=[encode(mask)] * 2), hash_of(masks=[encode(~mask)]),
        hash_of(masks=[encode(mask.T)]),
    ]  # fmt: skip
    assert len({hash_of(), *others}) == 9


def test_the_builders_rows_have_the_same_hashes() -> None:
    rows = rows_of(4)
    bare = bd.scorer("pbench")(joined(rows).with_format("arrow")[:])["row_sha256"].to_pylist()
    python = bd.scorer("pbench")(joined(rows)[:])["row_sha256"]
    assert bare == python
