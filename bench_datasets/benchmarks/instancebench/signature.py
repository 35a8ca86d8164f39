"""Signature of InstanceBench's predictions: one mask, box or candidate per expression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.signature import Signature

_FIELDS = "expression_id, and mask, box or candidate_id"


def _format_of(record: Mapping[str, Any], shown: str) -> str:
    if "segmentation" not in record:  # a COCO result, whose image_id may be an expression's id
        refuse_other_benchmark(record, shown, SIGNATURE)
    return "jsonl"


SIGNATURE = Signature(
    fields=_FIELDS,
    expected=(
        "JSON Lines (.jsonl), COCO results (.json), Parquet, an Arrow file, a folder of <expression_id>.png, .npz or"
        " .npy files, or a save_to_disk folder"
    ),
    own=frozenset({"expression_id"}),
    row_names=frozenset({"expression_id"}),
    certain=(frozenset({"candidates", "expressions"}),),
    truth=("candidates", "expressions"),
    truth_advice=f"give a row an expression ({_FIELDS})",
    truth_fields=frozenset({"candidates", "expressions"}),
    format_of=_format_of,
    array="mask",
    png="<expression_id>.png",
    advice=(((".txt",), "text files, such as polygons in fractions of the image, are not read: write JSON Lines"),),
)
