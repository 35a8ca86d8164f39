"""Which PVSG videos can't be scored, and why."""

from __future__ import annotations

import numpy as np

from bench_datasets.benchmarks.pvsg.batch import Prediction, Row, read_prediction
from bench_datasets.benchmarks.pvsg.tubes import TubeLists
from bench_datasets.benchmarks.pvsg.vocabulary import THINGS
from bench_datasets.faults import FAULTS, Fault, stops
from bench_datasets.predictions.arrow_types import odd_masks, size_advice
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.options import ScoreOptions


def judge(row: Row, faulty: Faulty, i: int) -> tuple[Prediction | None, set[str]]:
    """Find a video's faults.

    Args:
        row: the video.
        faulty: takes its faults.
        i: its place in the batch.

    Returns:
        The prediction, `None` if it has a fault, and the codes that are noted of it.

    Raises:
        FaultError: there is a fault, and the options say to stop.
    """
    truth, wrong, noted = _truth_faults(row), _prediction_faults(row, faulty.options), set[str]()
    prediction: Prediction | None = None
    if not truth and not wrong:
        prediction, texts, found = read_prediction(row)
        wrong = [Fault(code, row.key, f"prediction, {text}; `check` lists all that is wrong") for code, text in texts]
        noted = (
            set()
            if wrong
            else {code for code, _ in (*found, *row.reading) if not stops(code)} | _odd_codes(row.predicted)
        )
    faulty.add(i, truth, wrong)
    return None if wrong else prediction, noted


def _odd_codes(tubes: TubeLists) -> set[str]:
    """Codes of masks of countable objects that look wrong; stuff such as a floor may cover a frame's border."""
    found = set()
    for code, i in odd_masks(tubes.masks):
        tube = int(np.searchsorted(tubes.tubes, i, side="right")) - 1
        if tubes.fields["category"][tube] in THINGS:
            found.add(code)
    return found


def _truth_faults(row: Row) -> list[Fault]:
    """Faults of the ground truth that end the scoring: those of its masks, and those that the builder noted."""
    noted = sorted(code for code in row.values["faults"] or [] if code in FAULTS and stops(code))
    found = [Fault(code, row.key, f"ground truth: {FAULTS[code].meaning}") for code in noted]
    return truth_mask_faults(row) + found


def truth_mask_faults(row: Row) -> list[Fault]:
    """Invalid masks of the ground truth, or masks of another size than the frames."""
    return _mask_faults(row, row.true, "tubes (ground truth)", "correct the source's row")


def _prediction_faults(row: Row, options: ScoreOptions) -> list[Fault]:
    """Faults noted when the prediction was read, and faults of its masks."""
    absent = not row.answered or any(code == "missing_prediction" for code, _ in row.reading)
    found = [
        Fault(code, row.key, f"prediction: {text}")
        for code, text in row.reading
        if stops(code) and code != "missing_prediction"
    ]
    if not found:
        found = _mask_faults(row, row.predicted, "pred_tubes", "re-encode the prediction's masks (`check` lists all)")
    if not found and absent and options.missing == "error":
        text = "no prediction for this video; predict it (empty lists of tubes and triplets where nothing was found)"
        text += ', or ask for missing="empty" to count it as an empty prediction'
        found = [Fault("missing_prediction", row.key, text)]
    return found


def _mask_faults(row: Row, tubes: TubeLists, column: str, advice: str) -> list[Fault]:
    """Masks that are unsound, or of another size than the video's frames."""
    found = [Fault("malformed_mask", row.key, f"{column}, {text}; {advice}") for text in tubes.problems().get(0, ())]
    if found:
        return found
    height, width = row.values["height"], row.values["width"]
    if height is None or width is None:
        if not len(row.true.masks):
            return []
        height, width = int(row.true.masks.heights[0]), int(row.true.masks.widths[0])
    differ = np.flatnonzero((tubes.masks.heights != height) | (tubes.masks.widths != width))
    if not len(differ):
        return []
    i = int(differ[0])
    tube = int(np.searchsorted(tubes.tubes, i, side="right")) - 1
    text = (
        f"{column}, tube {tube}, frame {tubes.frames[i]}: expected the video's {height} x {width} (height x width),"
        f" found {tubes.masks.heights[i]} x {tubes.masks.widths[i]}"
    )
    found_size = tubes.masks.heights[i], tubes.masks.widths[i]
    text += size_advice(found_size, (height, width), "masks are not resized here")
    return [Fault("size_mismatch", row.key, text)]
