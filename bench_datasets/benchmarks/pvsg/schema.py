"""PVSG's score table: its columns, documented one by one. Exact integers that every number is made of afterwards."""

from __future__ import annotations

from datasets import List, Value

VOID = "void"
"""Value of `class_category` for void, which is a class of STQ under the protocol `step`."""

TEXTS, FLAGS, COUNTS, PIXELS = List(Value("string")), List(Value("bool")), List(Value("int32")), List(Value("int64"))

TRUTH_COLUMNS = (
    "key", "source", "height", "width", "fps", "num_frames", "frames_present", "objects", "tubes", "relations",
    "relations_left_out", "faults",
)  # fmt: skip
PREDICTION_COLUMNS = ("pred_tubes", "pred_triplets", "pred_faults")

SCORE_COLUMNS: dict[str, tuple[object, str]] = {
    "key": (Value("string"), "the video's id"),
    "cluster": (Value("string"), "what the row is resampled with: its video"),
    "protocol": (Value("string"), "protocol and version the row was scored under, `official@1`"),
    "oracle": (Value("string"), "whose tubes or relations the truth stood in for: `tubes`, `relations` or nobody's"),
    "row_sha256": (Value("string"), "hash of the truth row's labels and masks; empty if its masks are unsound"),
    "source": (Value("string"), "vidor, epic_kitchen or ego4d"),
    "faults": (List(Value("string")), "fault codes of the truth row and of its prediction"),
    "skipped": (Value("bool"), "whether a fault kept the row from being scored; its lists are then empty"),
    "height": (Value("int32"), "pixels"),
    "width": (Value("int32"), "pixels"),
    "frames": (Value("int32"), "frames of the video that have masks"),
    "triplets": (Value("int32"), "predicted triplets, those that can't hit included"),
    "object_id": (COUNTS, "truth objects: their ids; what is aligned with them bears the prefix object_"),
    "object_category": (TEXTS, "truth objects: category"),
    "object_is_thing": (FLAGS, "truth objects: whether it is countable"),
    "object_frames": (COUNTS, "truth objects: frames in which it is visible"),
    "object_area": (PIXELS, "truth objects: pixels over all frames"),
    "tube_category": (TEXTS, "predicted tubes: category; empty for one that PVSG lacks"),
    "tube_area": (PIXELS, "predicted tubes: pixels over all its frames, those outside the video included"),
    "twin_object": (COUNTS, "tubes of one class that meet: position of the truth object"),
    "twin_tube": (COUNTS, "tubes of one class that meet: position of the predicted tube"),
    "twin_shared": (PIXELS, "tubes of one class that meet: shared pixels over all frames"),
    "relation_subject": (COUNTS, "relations: position of the subject among the objects; -1 for one that is not there"),
    "relation_object": (COUNTS, "relations: position of the object; -1 for one that is not there"),
    "relation_predicate": (TEXTS, "relations: predicate"),
    "relation_span": (COUNTS, "relations: frames in the spans"),
    "relation_visible": (COUNTS, "relations: frames of the spans where subject and object are visible"),
    "relation_subject_area": (PIXELS, "relations: pixels of the subject over the spans"),
    "relation_object_area": (PIXELS, "relations: pixels of the object over the spans"),
    "relation_best": (
        COUNTS,
        "relations: the most of the visible frames in which one pair of predicted tubes of the right classes has IoU .5"
        " with both masks",
    ),
    "pair_relation": (COUNTS, "triplets beside relations of their classes: position of the relation"),
    "pair_rank": (COUNTS, "pairs: the triplet's rank in the video, from 0"),
    "pair_class_rank": (COUNTS, "pairs: its rank among the triplets whose subject is of that class, from 0"),
    "pair_same_predicate": (FLAGS, "pairs: whether the predicates agree too"),
    "pair_frames": (COUNTS, "pairs: visible frames with IoU .5 of both masks, within the triplet's spans"),
    "pair_timeless": (COUNTS, "pairs: visible frames with IoU .5 of both masks, whatever the triplet's spans"),
    "pair_subject_shared": (PIXELS, "pairs: pixels the subjects share over the frames in both spans"),
    "pair_subject_area": (PIXELS, "pairs: pixels of the predicted subject over the triplet's spans"),
    "pair_object_shared": (PIXELS, "pairs: pixels the objects share over the frames in both spans"),
    "pair_object_area": (PIXELS, "pairs: pixels of the predicted object over the triplet's spans"),
    "vpq_window": (COUNTS, "window length and class, for VPQ: frames"),
    "vpq_category": (TEXTS, "window and class: category"),
    "vpq_iou": (List(Value("float64")), "window and class: the matched pairs' IoUs, summed exactly and rounded once"),
    "vpq_tp": (COUNTS, "window and class: matched pairs"),
    "vpq_fp": (COUNTS, "window and class: predicted tubes without a match, those more than half void left out"),
    "vpq_fn": (COUNTS, "window and class: truth tubes without a match"),
    "track_object": (COUNTS, "countable tubes that meet, of any class, for STQ: position of the truth object"),
    "track_tube": (COUNTS, "tracks: position of the predicted tube"),
    "track_shared": (PIXELS, "tracks: shared pixels"),
    "track_area": (PIXELS, "tracks: pixels of the predicted tube outside void; under `step` those on void too"),
    "class_category": (TEXTS, "classes that occur, for STQ: category; under `step` also `void`"),
    "class_shared": (PIXELS, "classes: pixels that bear it in truth and prediction"),
    "class_predicted": (PIXELS, "classes: pixels outside void that bear it in the prediction"),
    "class_true": (PIXELS, "classes: pixels that bear it in the truth"),
}
"""Feature and meaning of every column. VPQ and STQ need one label a pixel: where predicted tubes overlap, the pixel is
the first one's there; everything else is measured on the tubes as given."""
