"""`convert`: other people's annotations into the layouts that the benchmarks are read from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bench_datasets.cli import choices
from bench_datasets.cli.once import Once
from bench_datasets.cli.screen import echo, out, remark, working

app = typer.Typer(no_args_is_help=True, help="Turn other annotations into a benchmark's own layout.")


@app.callback()
def _group() -> None:
    """Turn other annotations into a benchmark's own layout."""


@app.command("refcoco", cls=Once)
def refcoco(
    instances: Annotated[str, typer.Option("--instances", metavar="FILE", help="COCO's instances.json.")],
    refs: Annotated[str, typer.Option("--refs", metavar="FILE", help="refs(*).json or refs(*).p, or their folder.")],
    to: Annotated[str, typer.Option("--out", metavar="FILE", help="The manifest to write, like data/test.jsonl.")],
    split: Annotated[
        str | None, typer.Option("--split", metavar="S", help="The refs' split to take: train, val, testA, ...")
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option("--split-by", metavar="WHO", help="Whose refs, where --refs is a folder: unc, umd, ..."),
    ] = None,
    images: Annotated[
        str, typer.Option("--images", metavar="DIR", help="Folder of the images, relative to the manifest's.")
    ] = "images",
    as_json: choices.Json = False,
) -> None:
    """Write an InstanceBench manifest from RefCOCO's refs. Roles go by order and operations by words: see the tags.

    Predictions name a sentence by its expression_id, refcoco-<ref_id>-<sent_id>. `score instancebench --data data`
    reads what the example writes.

    Example: bench-datasets convert refcoco --instances instances.json --refs refs.p --split val --out data/test.jsonl
    """
    from bench_datasets.builders.refcoco import refcoco_to_manifest

    with working("converting"):
        done = refcoco_to_manifest(instances, refs, to, split=split, split_by=split_by, images=images)
    if as_json:
        counts = {"left_out": done.left_out, "other_splits": done.other_splits, "noted": done.noted}
        found = {"path": done.path, "sets": done.sets, "expressions": done.expressions, **counts}
        echo(json.dumps(found, indent=2))
        return
    out().print(f"wrote {done.path}: {done.sets} sets, {done.expressions} expressions", markup=False, soft_wrap=True)
    for line in done.lines():
        remark(line)
