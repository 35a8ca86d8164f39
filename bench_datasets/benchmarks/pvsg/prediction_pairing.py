"""Which prediction belongs to which video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from datasets import Dataset

from bench_datasets.faults import BenchError, Fault
from bench_datasets.predictions.pairing import Pairing, unlike


def pair_videos(truth_keys: Sequence[str], predictions: Dataset, *, whole: bool = True) -> Pairing:
    """Find every video's prediction.

    Args:
        truth_keys: `(n,)` ids of the truth's videos.
        predictions: a Dataset with `key`, and `pred_faults` where it has it.
        whole: whether these are all videos that the predictions are about; if not, predictions for others are no
            fault.

    Returns:
        The pairing; of two predictions for one video the first is taken, and both are reported. A prediction whose
        tubes and triplets are null is none.

    Raises:
        BenchError: there is no column `key`.

    Example:
        >>> from datasets import Dataset
        >>> found = pair_videos(["v", "w"], Dataset.from_dict({"key": ["w"]}))
        >>> found.index, [(fault.code, fault.key) for fault in found.faults]
        (array([-1,  0]), [('missing_prediction', 'v')])
    """
    if "key" not in predictions.column_names:
        raise BenchError(f"predictions: expected a column key, found {', '.join(predictions.column_names)}")
    names = predictions["key"][:]
    noted = predictions["pred_faults"][:] if "pred_faults" in predictions.column_names else [None] * len(names)
    problems, absent = (
        {
            row: item["text"]
            for row, items in enumerate(noted)
            for item in items or []
            if item is not None and item["code"] == code
        }
        for code in ("unknown_row", "missing_prediction")
    )
    place = {key: row for row, key in reversed(list(enumerate(truth_keys)))}
    index = np.full(len(truth_keys), -1, np.int64)
    none = not any(name in place for name in names)
    hint = unlike("videos", [name for name in names if name is not None], list(truth_keys)) if none else ""
    faults: list[Fault] = []
    for row, name in enumerate(names):
        at = None if row in problems else place.get(name)
        if at is None and (whole or row in problems):
            text = problems.get(row) or f"the truth holds no video {name!r}{hint}"
            faults.append(Fault("unknown_row", name or f"prediction {row}", text))
        elif at is not None and index[at] >= 0:
            text = f"predictions {index[at]} and {row} (from 0) both name this video; keep one"
            faults.append(Fault("duplicate_prediction", name, text))
        elif at is not None:
            index[at] = row
    missing = f'no prediction for this video; write one without tubes where nothing was found, or missing="empty"{hint}'
    texts = [absent.get(at, missing if at < 0 else "") for at in index.tolist()]
    faults += [Fault("missing_prediction", key, text) for key, text in zip(truth_keys, texts, strict=True) if text]
    index[np.isin(index, list(absent))] = -1
    return Pairing(index, faults)
