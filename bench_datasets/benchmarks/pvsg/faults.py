"""Fault codes of PVSG, besides those of all benchmarks."""

from __future__ import annotations

from bench_datasets.faults import fault_kinds

FAULTS = {
    **fault_kinds(
        "pvsg predictions",
        "stop",
        bad_span="a span that is not [first, last] in whole frames with 0 <= first <= last",
    ),
    **fault_kinds(
        "pvsg truth",
        "stop",
        frames_from_one="mask files that are numbered from 1: frame 0 has none, and one lies past the declared end",
        mask_size="a mask file of another size than the annotation's `meta` says",
    ),
    **fault_kinds(
        "pvsg truth",
        "noted",
        unknown_predicate="a relation whose predicate is none of the 57; it is left out",
        span_clipped="a span that goes on past the last frame",
        span_outside="a span that lies wholly past the last frame",
        span_reversed="a span that ends before it begins; it is left out",
        span_missing="a relation without a span",
        frames_beyond="mask files past the declared number of frames; they are left out",
        self_relation="a relation of an object with itself",
        frames_short="fewer frames than declared",
        mask_missing="a frame, or a whole video, without its mask",
        unknown_mask_id="an object id in the masks that the annotation lacks",
        object_never_visible="an object that no mask shows",
        unknown_object="a relation with an object that the annotation lacks",
    ),
    **fault_kinds(
        "pvsg predictions",
        "noted",
        unknown_category="a tube or triplet of a category that the benchmark lacks",
        unknown_tube="a triplet that names a tube that is not there",
        tube_without_masks="a tube without a mask",
        self_triplet="a triplet of a tube with itself, in a video whose truth has no relation of an object with itself",
        repeated_triplet="a triplet with the tubes, predicate and spans of an earlier one; it takes a rank too",
        frame_outside="masks of frames past the video's last; they are left out",
        no_spans="a triplet without a span; it holds on no frame and can't hit",
        no_triplets="a video whose prediction has tubes and no triplet",
        missing_frames="frames with ground-truth masks in which the prediction has no mask, or no image file",
    ),
}
"""Its codes, with where they are found and what they do by default."""
