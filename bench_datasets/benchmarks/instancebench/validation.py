"""Which InstanceBench rows can't be scored, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.batch import Kept, Rows
from bench_datasets.benchmarks.instancebench.faults import FAULTS
from bench_datasets.benchmarks.instancebench.measure import CORE
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATION_TAG, OPERATIONS
from bench_datasets.faults import Fault, stops
from bench_datasets.masks import MaskColumn, Status
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.predictions.arrow_types import boxes_apart, odd_boxes, odd_masks, size_advice
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.options import ScoreOptions

STOPPING = frozenset(
    code for code, kind in FAULTS.items() if kind.where == "instancebench truth" and kind.default == "stop"
)
"""Codes of the builder at which scoring stops."""

UNKNOWN = "unknown_operation"

Flags = NDArray[np.bool_]


def find_faults(rows: Rows, kept: Kept, options: ScoreOptions) -> Faulty:
    """Rows that can't be scored as they are, with their faults.

    Raises:
        FaultError: there is such a row and the options say to stop.
    """
    donors, predicted = _unsound(rows.donors), _unsound(rows.predicted)
    odd, empty = _odd_sizes(rows, kept), _empty_targets(kept)
    suspects = (kept.target < 0) | empty | odd | ~rows.predicted.present | _ill(rows)
    suspects[[*donors, *predicted]] = True
    suspects |= np.array([bool(found) for found in rows.reading], np.bool_)
    result = Faulty(options)
    for i in np.flatnonzero(suspects).tolist():
        truth = _of_truth(rows, kept, i, donors, bool(empty[i]))
        prediction = _of_predictions(rows, i, predicted) if not truth else []
        if not truth and odd[i]:
            truth = _size_mismatch(rows, kept, i, ("donor_mask",))
            prediction = prediction or _size_mismatch(rows, kept, i, ("pred_masks",))
        if not (truth or prediction) and not rows.predicted.present[i] and options.missing == "error":
            text = 'no predictions for this row; predict it, or ask for missing="empty" to count it as wrong'
            prediction = [Fault("missing_prediction", rows.keys[i], text)]
        result.add(i, truth, prediction)
    return result


def noted_predictions(rows: Rows) -> dict[int, list[str]]:
    """Find the rows with predictions that look wrong, and the codes that say so.

    The codes are those of `odd_masks` and `odd_boxes`, `box_apart_from_mask` and `unknown_candidate`. Boxes are
    compared with the image where its size is known.
    """
    found: dict[int, list[str]] = {}
    row = rows.expression_row
    for code, k in odd_masks(rows.predicted.masks):
        found.setdefault(int(row[k]), []).append(code)
    boxed = np.flatnonzero(np.isfinite(rows.boxes).all(axis=1) & ~rows.faulty)
    for code, k in odd_boxes(rows.boxes[boxed], rows.heights[row[boxed]], rows.widths[row[boxed]]):
        found.setdefault(int(row[boxed[k]]), []).append(code)
    both = boxed[(rows.predicted.masks.decoded.status == Status.OK)[boxed]]
    for k in both[boxes_apart(rows.boxes[both], rows.predicted.masks.take(both))].tolist():
        found.setdefault(int(row[k]), []).append("box_apart_from_mask")
    for k, name in enumerate(rows.named or ()):
        i = int(row[k])
        own = rows.candidate_ids[int(rows.candidates.groups[i]) : int(rows.candidates.groups[i + 1])]
        if name is not None and not rows.faulty[k] and str(name) not in own:
            found.setdefault(i, []).append("unknown_candidate")
    return found


def faulty_answers(rows: Rows, kept: Kept) -> Flags:
    """`(m,) bool`: predictions with a fault of reading, of their mask, or of its size.

    Args:
        rows: whose targets have a mask.
        kept: their candidates.
    """
    masks = rows.predicted.masks
    found = rows.faulty | ~np.isin(masks.decoded.status, (Status.OK, Status.NULL))
    found[list(rows.predicted.wrong)] = True
    target = (kept.groups[:-1] + kept.target)[rows.expression_row]
    found |= masks.present & (masks.heights != kept.masks.heights[target])
    found |= masks.present & (masks.widths != kept.masks.widths[target])
    return found


def _of_truth(rows: Rows, kept: Kept, i: int, donors: dict[int, list[str]], empty: bool) -> list[Fault]:
    """Faults of the ground truth that the builder noted or that are found here."""
    key = rows.keys[i]
    noted = [code for code in rows.noted[i] if code in STOPPING]
    means = {code: _operations(rows, i) if code == UNKNOWN else FAULTS[code].meaning for code in noted}
    found = [Fault(code, key, f"faults: {means[code]}; mend the manifest") for code in noted]
    found = found or [Fault(code, key, f"{text}; mend the manifest") for code, text in _seen(rows, i)]
    found += [Fault("malformed_mask", key, f"donor_mask, {text}; mend the manifest") for text in donors.get(i, ())]
    if not found and kept.target[i] < 0:
        target = int(rows.candidates.groups[i] + rows.targets[i])
        text = rows.left_out_candidates[target][1]
        text = f"target: expected a valid mask of the image's size; candidate {rows.targets[i]}: {text}"
        found = [Fault("target_missing", key, f"{text}; mend the manifest")]
    if not found and empty:
        found = [Fault("target_empty", key, "target: its mask has no pixel; mend the manifest")]
    return found


def _operations(rows: Rows, i: int) -> str:
    """Which operations are none of the nine, as far as that is still known: a builder leaves the word in a tag."""
    found = []
    for k in range(int(rows.groups[i]), int(rows.groups[i + 1])):
        word = rows.expressions["operation"][k]
        if word in OPERATIONS:
            continue
        tags = [tag for tag in rows.expressions["tags"][k] or () if str(tag).startswith(OPERATION_TAG)]
        shown = repr(word) if word is not None else str(tags[0])[len(OPERATION_TAG) :] if tags else "none"
        found.append(f"{rows.expressions['expression_id'][k]} {shown}")
    if not found:
        return FAULTS[UNKNOWN].meaning
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"operation: expected one of {', '.join(OPERATIONS)}; found at {', '.join(found[:3])}{more}"


def _seen(rows: Rows, i: int) -> list[tuple[str, str]]:
    """Faults of a row that no builder has validated."""
    count = int(rows.candidates.groups[i + 1] - rows.candidates.groups[i])
    own = slice(int(rows.groups[i]), int(rows.groups[i + 1]))
    found = []
    if not 0 <= rows.targets[i] < count:
        text = f"target: expected a position among {count} candidates, found {rows.targets[i]}"
        found.append(("target_missing", text))
    ids = Counter(rows.expressions["expression_id"][own])
    found += [
        ("repeated_expression", f"expressions: {name!r} stands {times} times")
        for name, times in ids.items()
        if times > 1
    ]
    if any(name is not None and name not in OPERATIONS for name in rows.expressions["operation"][own]):
        found.append((UNKNOWN, _operations(rows, i)))
    roles = Counter(rows.expressions["role"][own])
    for role in CORE:
        if roles[role] != 1:
            code = "core_role_repeated" if roles[role] else "core_role_missing"
            found.append((code, f"role: expected one {role} expression, found {roles[role]}"))
    return found


def _ill(rows: Rows) -> Flags:
    """`(n,) bool`: rows whose truth must be looked at."""
    result = np.array([not STOPPING.isdisjoint(codes) for codes in rows.noted], np.bool_)
    result |= (rows.targets < 0) | (rows.targets >= np.diff(rows.candidates.groups))
    role = np.array(rows.expressions["role"], dtype=np.str_)
    for name in CORE:
        result |= np.bincount(rows.expression_row[role == name], minlength=len(rows)) != 1
    ids, operations = rows.expressions["expression_id"], rows.expressions["operation"]
    if len(set(ids)) < len(ids) or not {*operations} <= {None, *OPERATIONS}:
        result[:] = True
    return result


def _of_predictions(rows: Rows, i: int, unsound: dict[int, list[str]]) -> list[Fault]:
    found = [Fault(code, rows.keys[i], f"predictions: {text}") for code, text in rows.reading[i] if stops(code)]
    texts = unsound.get(i, ())
    return found + [Fault("malformed_mask", rows.keys[i], f"pred_masks, {text}; re-encode it") for text in texts]


def _unsound(lists: MaskLists) -> dict[int, list[str]]:
    """Reasons why masks are invalid, by row."""
    status = lists.masks.decoded.status
    if not lists.wrong and ((status == Status.OK) | (status == Status.NULL)).all():
        return {}
    found = {
        i: [text for text in texts if not text.endswith("the mask is null")] for i, texts in lists.problems().items()
    }
    return {i: texts for i, texts in found.items() if texts}


def _empty_targets(kept: Kept) -> Flags:
    """`(n,) bool`: rows whose target has no pixel."""
    result = np.zeros(len(kept.target), np.bool_)
    targeted = kept.target >= 0
    result[targeted] = kept.masks.areas()[(kept.groups[:-1] + kept.target)[targeted]] == 0
    return result


def _odd_sizes(rows: Rows, kept: Kept) -> Flags:
    """`(n,) bool`: rows with a mask of another size than the target's."""
    height, width = np.full(len(rows), -1), np.full(len(rows), -1)
    targeted = kept.target >= 0
    target = (kept.groups[:-1] + kept.target)[targeted]
    height[targeted], width[targeted] = kept.masks.heights[target], kept.masks.widths[target]
    result = np.zeros(len(rows), np.bool_)
    for _, column, groups in _compared(rows):
        row = np.repeat(np.arange(len(rows)), np.diff(groups))
        other = column.present & ((column.heights != height[row]) | (column.widths != width[row]))
        result[row[other]] = True
    return result


def _size_mismatch(rows: Rows, kept: Kept, i: int, columns: Sequence[str]) -> list[Fault]:
    """The first mask of these columns that has another size than the target's: this benchmark resizes nothing."""
    target = int(kept.groups[i] + kept.target[i])
    size = int(kept.masks.heights[target]), int(kept.masks.widths[target])
    for name, column, groups in _compared(rows):
        for k in range(int(groups[i]), int(groups[i + 1])) if name in columns else ():
            found = int(column.heights[k]), int(column.widths[k])
            if column.present[k] and found != size:
                text = (
                    f"{name}, mask {k - int(groups[i])}: expected the size {size[0]} x {size[1]} of the target's mask"
                )
                text += f", found {found[0]} x {found[1]}{size_advice(found, size, 'resize it yourself')}"
                return [Fault("size_mismatch", rows.keys[i], text)]
    return []


def _compared(rows: Rows) -> tuple[tuple[str, MaskColumn, NDArray[np.int64]], ...]:
    """The masks that must have the target's size: their names, and where each row's masks begin."""
    return (
        ("pred_masks", rows.predicted.masks, rows.groups),
        ("donor_mask", rows.donors.masks, rows.groups),
    )
