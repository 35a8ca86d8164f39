"""The predictions of the small cases, as a file would hold them, run by run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_datasets.predictions import read_predictions

from ..support.dense_masks import decode, runs


def files(shared: Path, tmp_path: Path, benchmark: str) -> list[tuple[list[dict[str, Any]], Path]]:
    cases = json.loads((shared / "data/small_cases.json").read_text())
    cases = cases if isinstance(cases, list) else cases["cases"]
    found = []
    for i, case in enumerate(case for case in cases if case["benchmark"] == benchmark):
        path = tmp_path / f"{i}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in case["predictions"]))
        found.append((case["predictions"], path))
    return found


def test_instancebench(shared: Path, tmp_path: Path) -> None:
    for lines, path in files(shared, tmp_path, "instancebench"):
        read = read_predictions("instancebench", path)
        assert not any(read["pred_faults"])
        assert read["expression_id"][:] == [line["expression_id"] for line in lines]
        for row, line in zip(read, lines, strict=True):
            assert (row["mask"] is None) == (line.get("mask") is None)
            if row["mask"] is not None:
                assert runs(decode(row["mask"])) == line["mask"]["counts"]


def test_pvsg(shared: Path, tmp_path: Path) -> None:
    for lines, path in files(shared, tmp_path, "pvsg"):
        read = read_predictions("pvsg", path)
        assert not any(read["pred_faults"])
        for row, line in zip(read, lines, strict=True):
            assert row["key"] == line["video_id"]
            for tube, given in zip(row["pred_tubes"], line["tubes"], strict=True):
                assert (tube["tube_id"], tube["frames"]) == (str(given["tube_id"]), given["frames"])
                for mask, counts in zip(tube["masks"], given["masks"], strict=True):
                    assert runs(decode(mask)) == counts["counts"]
            for triplet, given in zip(row["pred_triplets"], line["triplets"], strict=True):
                assert triplet["subject_id"] == str(given["subject_id"])
                assert (triplet["score"], triplet["spans"]) == (given["score"], given["spans"])
