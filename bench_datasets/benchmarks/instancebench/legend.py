"""One line per metric of InstanceBench. A set's core expressions are the minimal one and its variant."""

from __future__ import annotations

from bench_datasets.results.legend import Meaning

METRICS: dict[str, Meaning] = {
    "miou": Meaning("mean IoU of the predicted and the target mask, over core expressions", True, "mIoU"),
    "oiou": Meaning("all intersections divided by all unions, over core expressions", True, "oIoU"),
    "p@<t>": Meaning("share of core expressions with IoU of at least t", True),
    "all@<t>": Meaning("share of sets in which every core expression has IoU of at least t", True),
    "worst_path_iou": Meaning("mean over sets of the smallest IoU of a core expression", True),
    "all_target_id": Meaning("share of sets in which every core expression selects the target instance", True),
    "all_target_id/dense": Meaning("the same over all expressions of a set", True),
    "retention/variant": Meaning("share of variants that select the target, where the minimal one does", True),
    "retention/<track>/matched": Meaning("retention over sets that have minimal, variant and paraphrase"),
    "retention/<track>/dense": Meaning("retention over every expression of the track"),
    "tm@<t>/<track>/dense": Meaning("share with the target and IoU of at least t, where the minimal one has both"),
    "nci/<track>": Meaning("how far minimal and track select the target together beyond chance (1: always)"),
    "delta_nci": Meaning("nci/variant minus nci/paraphrase"),
    "conditional_mask_iou": Meaning("IoU of the two core predictions, where both select the target", True),
    "identity_error@<t>": Meaning("share of failing expressions (IoU below t) that do not select the target", True),
    "same_class_switch@<t>": Meaning("share of failing expressions that select another instance of the class", True),
    "unresolved@<t>": Meaning("share of failing expressions that select no instance clearly", True),
    "correct_id_poor_mask@<t>": Meaning("share of failing expressions that select the target with a poor mask", True),
    "box_acc@0.5": Meaning("share of predicted boxes with IoU of at least 0.5", True),
    "oracle/<number>": Meaning("the same metric for answers that name a candidate instead of drawing a mask", True),
    "boundary_iou/miou": Meaning("mean boundary IoU, over core expressions", True),
    "boundary_f/miou": Meaning("mean boundary F, over core expressions", True),
    "miou/operation/<operation>": Meaning("mIoU of one operation", label="mIoU"),
    "miou/source/<source>": Meaning("mIoU of one image source"),
    "all@<t>/source/<source>": Meaning("all@t of one image source"),
    "miou/<source>/<operation>": Meaning("mIoU of one operation in one image source"),
    "track/<track>/miou": Meaning("mIoU over the expressions of a track"),
    "exclusion_drop": Meaning("mIoU of the minimal expression minus that of the exclusion in the same set"),
    "delta_source/<number>": Meaning("Open Images minus COCO"),
    "spearman/source": Meaning("rank correlation of the operations' mIoU in the two image sources"),
    "effect/<contrast>": Meaning("mIoU of one operation minus that of matched expressions of another"),
    "intervention/category_only/miou": Meaning("mIoU if the model gets the category name only"),
    "intervention/category_only/drop": Meaning("mIoU of that minus mIoU of the minimal expression"),
    "intervention/text_swap/<number>": Meaning("with another set's text: IoU with its target, share that prefer it"),
    "intervention/<condition>/delta_miou": Meaning("change of mIoU under a condition"),
    "sensitivity/<score>/<margin>/<number>": Meaning("the metric with another similarity and margin for identity"),
    "transition/<family>/<family2>": Meaning("number of sets by family of the minimal expression and of the variant"),
}
"""Meanings by pattern of the key; `<...>` stands for a name or a number."""
