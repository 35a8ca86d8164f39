"""PBench's columns: those that scoring reads, and those of the score table."""

from __future__ import annotations

from datasets import List, Value

LEVELS = ("level_0", "level_1", "level_2", "level_3", "level_4", "dense")
"""The parts in the order of the paper's table: names of the source's splits and of the column `level`."""

TRUTH_COLUMNS = ("key", "id", "level", "expression", "masks", "count", "faults", "image_sha256")
PREDICTION_COLUMNS = ("pred_masks", "pred_scores", "pred_centers", "pred_sizes", "pred_faults")

SCORE_COLUMNS: dict[str, tuple[object, str]] = {
    "key": (Value("string"), "the truth row's key, `<level>/<id>`"),
    "cluster": (Value("string"), "what the row is resampled with: its image's SHA-256, or its key"),
    "protocol": (Value("string"), "protocol and version the row was scored under, `released@1`"),
    "row_sha256": (Value("string"), "hash of the truth row's labels and masks; empty if its masks are unsound"),
    "level": (Value("string"), "level_0 to level_4 or dense"),
    "faults": (List(Value("string")), "fault codes of the truth row and, where it was skipped, of its prediction"),
    "skipped": (Value("bool"), "whether a fault kept the row from being scored; its counts are then 0"),
    "true_count": (Value("int32"), "truth masks"),
    "raw_count": (Value("int32"), "predicted masks, as given"),
    "nms_count": (Value("int32"), "predicted masks that non-maximum suppression at IoU .5 keeps"),
    "kept_count": (Value("int32"), "predicted masks that were scored, after the protocol's clean-up"),
    "matched_prediction": (List(Value("int32")), "assigned pairs that overlap: position of the prediction, as given"),
    "matched_truth": (List(Value("int32")), "assigned pairs: position of the truth mask"),
    "matched_intersection": (List(Value("int64")), "assigned pairs: shared pixels"),
    "matched_union": (List(Value("int64")), "assigned pairs: pixels of the union"),
    "union_intersection": (
        Value("int64"),
        "pixels shared by the union of the scored predictions and that of the truth",
    ),
    "union_predicted": (Value("int64"), "pixels of the union of the scored predictions"),
    "union_true": (Value("int64"), "pixels of the union of the truth"),
    "duplicates": (Value("int32"), "summed over truth masks: predictions, as given, beyond the first with IoU >= .5"),
    "position_truth": (List(Value("int32")), "in generation order: each prediction's best truth mask, -1 for none"),
    "position_intersection": (List(Value("int64")), "in generation order: shared pixels with that truth mask"),
    "position_union": (List(Value("int64")), "in generation order: pixels of the union with it"),
    "position_drift": (
        List(Value("float64")),
        "in generation order: from the predicted centre to the middle of the mask's box, in diagonals of the image;"
        " NaN for an empty mask",
    ),
}
"""Feature and meaning of every column; the lists by position are null where the order of generation is not known."""

BOUNDARY_COLUMNS: dict[str, tuple[object, str]] = {
    "boundary_intersection": (
        Value("int64"),
        "pixels shared by the boundary region of the union of the scored predictions and that of the truth's union",
    ),
    "boundary_union": (Value("int64"), "pixels that are in one of these two boundary regions at least"),
    "contour_predicted_hit": (Value("int64"), "contour pixels of the predictions' union near the truth's contour"),
    "contour_predicted": (Value("int64"), "contour pixels of the union of the scored predictions"),
    "contour_true_hit": (Value("int64"), "contour pixels of the truth's union near the predictions' contour"),
    "contour_true": (Value("int64"), "contour pixels of the union of the truth"),
}
"""Further columns where the option `boundary` asks for them; `masks.boundary_pairs` says what a region and a contour
are, and what is near."""
