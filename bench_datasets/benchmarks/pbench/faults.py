"""Fault codes of PBench, besides those of all benchmarks."""

from __future__ import annotations

from bench_datasets.faults import fault_kinds

FAULTS = {
    **fault_kinds(
        "pbench truth",
        "noted",
        repeated_id="an id that an earlier row of the same level has too; the key bears #2, #3, ...",
        count_mismatch="a `count` that disagrees with the number of masks",
        image_missing="a row whose image is absent or cannot be read",
        image_size_mismatch="masks of another size than the image; masks of two sizes in one row stop the scoring",
        no_truth="a row without ground truth masks",
    ),
}
"""Its codes, with where they are found and what they do by default."""
