"""InstanceBench's columns: those that scoring reads, and those of the score table."""

from __future__ import annotations

from datasets import List, Value

TEXTS, FLAGS, PIXELS = List(Value("string")), List(Value("bool")), List(Value("int64"))

ORIGINAL = "original"
"""The condition of the benchmark's own expressions, without an intervention."""

CONDITIONS = (ORIGINAL, "category_only", "text_swap", "logic_explicit", "deliberation", "same_class_context")
"""The conditions that the benchmark knows: the expression as it is, two interventions, three aids."""

TRUTH_COLUMNS = (
    "key", "image_id", "source", "category", "height", "width", "target", "candidates", "expressions", "faults",
)  # fmt: skip
PREDICTION_COLUMNS = ("mask", "box", "candidate_id", "run", "condition", "pred_faults")
SCORE_COLUMNS: dict[str, tuple[object, str]] = {
    "key": (Value("string"), "the TCES"),
    "run": (Value("string"), "run of the model, `0` where there is one"),
    "condition": (Value("string"), "what the model was given: original, category_only, text_swap, ..."),
    "cluster": (Value("string"), "what the row is resampled with: its TCES"),
    "protocol": (Value("string"), "protocol and version the row was scored under, `default@1`"),
    "row_sha256": (Value("string"), "hash of the truth row's labels and masks; empty if its masks are unsound"),
    "source": (Value("string"), "coco or openimages"),
    "category": (Value("string"), "the target's category"),
    "faults": (List(Value("string")), "fault codes of the truth row and, where it was skipped, of its predictions"),
    "skipped": (Value("bool"), "whether a fault kept the row from being scored; its lists are then empty"),
    "pixels": (Value("int64"), "height x width of the image"),
    "target": (Value("int32"), "position of the target among the candidates below"),
    "candidate_ids": (TEXTS, "instances of the target's category with a valid mask, the target included, no crowds"),
    "candidate_areas": (PIXELS, "their pixels"),
    "expression_ids": (TEXTS, "the expressions; all lists below are aligned with them"),
    "roles": (TEXTS, "minimal, variant, paraphrase or extra"),
    "operations": (TEXTS, "one of the nine operations"),
    "families": (TEXTS, "one of the five families"),
    "tracks": (TEXTS, "minimal, paraphrase, same_target or exclusion"),
    "spatial": (FLAGS, "whether the expression bears the tag `spatial_relation`"),
    "words": (List(Value("int32")), "length of the text in words"),
    "answered": (FLAGS, "whether there is an answer, be it an empty one"),
    "masked": (FLAGS, "whether the answer is a mask, be it an empty one; null, a box or a candidate alone is none"),
    "areas": (PIXELS, "pixels of the predicted mask; 0 for none"),
    "intersections": (List(PIXELS), "pixels the predicted mask shares with each candidate"),
    "donor_area": (PIXELS, "pixels of the donor's target; -1 where the expression has no donor"),
    "donor_intersection": (PIXELS, "pixels the predicted mask shares with it"),
    "chosen": (
        List(Value("int32")),
        "position of the candidate that was named; -1 for an unknown one or none, -2: not asked",
    ),
    "box_iou": (List(Value("float64")), "IoU of the predicted box with the target's; NaN where no box was given"),
    "core_intersection": (
        Value("int64"),
        "pixels that the predictions of the two core expressions share; -1 without both",
    ),
}
"""Feature and meaning of every column."""


BOUNDARY_COLUMNS: dict[str, tuple[object, str]] = {
    "boundary_intersection": (PIXELS, "pixels shared by the boundary regions of the predicted mask and of the target"),
    "boundary_union": (PIXELS, "pixels that are in one of these two boundary regions at least"),
    "contour_predicted_hit": (PIXELS, "pixels of the predicted contour that lie near the target's"),
    "contour_predicted": (PIXELS, "pixels of the predicted contour"),
    "contour_true_hit": (PIXELS, "pixels of the target's contour that lie near the predicted one"),
    "contour_true": (PIXELS, "pixels of the target's contour"),
}
"""Further columns where the option `boundary` asks for them, aligned with the expressions."""
