"""Convert RefCOCO, RefCOCO+ and RefCOCOg into InstanceBench's manifest.

Run it as `python -m bench_datasets.benchmarks.instancebench.refcoco`.

The annotation knows instances, refs and sentences, and neither roles nor operations. Both are set by rule here, and
every expression says so in its tags:

* roles by order (`role_source:order`): a ref's first sentence is `minimal`, the second `variant`, further ones `extra`.
  Nobody has checked that the second follows another path than the first.
* operations by words (`operation_source:lexical`): see `refcoco_words.guess_operation`.

So what is said of operations and tracks on such data is a rough sketch; identity and mask numbers do not lean on it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_datasets._util.atomic import whole_file
from bench_datasets.benchmarks.instancebench.refcoco_words import guess_operation
from bench_datasets.data.coco_annotations import CocoFile, looks_exchanged
from bench_datasets.data.refer_annotations import read_refs
from bench_datasets.faults import BenchError, shorten

ORDER = "role_source:order"
"""The tag of a role that was given by the sentences' order."""

MAX_SENTENCES = 10_000_000
"""Most sentences that are read."""

MAX_SENTENCE = 10_000
"""Most characters of one sentence."""

MAX_CHARACTERS = 1 << 28
"""Most characters of all sentences together."""

_OTHER_SPLITS = "refs of other splits"

_ROLES = ("minimal", "variant")


@dataclass
class Converted:
    """Result of a conversion: the written file and the refs left out.

    Attributes:
        path: the manifest.
        sets: lines written, one per ref.
        expressions: expressions in them.
        left_out: numbers of refs and sentences that were not written, by reason.
        other_splits: numbers of refs of the splits that were not asked for, by split.
        noted: numbers of refs that deserve a look, by reason.
        read: sentences that were looked at.
        characters: characters in them.
    """

    path: str
    sets: int = 0
    expressions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    other_splits: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    read: int = 0
    characters: int = 0

    def reasons(self) -> list[str]:
        """Format the left-out refs, one line per reason."""
        splits = ", ".join(f"{name} {n}" for name, n in sorted(self.other_splits.items())[:12])
        return [
            f"{n} {reason}" + (f" ({splits})" if reason == _OTHER_SPLITS else "") for reason, n in self.left_out.items()
        ]

    def lines(self) -> list[str]:
        """Format the left-out refs and the notes, one line each."""
        noted = [f"note: {n} {reason}" for reason, n in self.noted.items()]
        return [f"left out: {reason}" for reason in self.reasons()] + noted


def refcoco_to_manifest(
    instances_json: str | os.PathLike[str],
    refs: str | os.PathLike[str],
    out_path: str | os.PathLike[str],
    *,
    split: str | None = None,
    split_by: str | None = None,
    images: str = "images",
) -> Converted:
    """Write a manifest of InstanceBench from COCO instances and RefCOCO refs.

    Each ref becomes one set, `refcoco-<ref_id>`, its sentences the expressions `refcoco-<ref_id>-<sent_id>`, which is
    what predictions name as `expression_id`. The set's candidates are the image's instances of the target's category,
    crowds marked. The file appears whole or not at all.

    A set needs a target with a mask and two sentences that differ. Refs that lack one of them are left out and counted:
    those whose target is a crowd region, or has no valid mask of the image's size, and those with fewer than two
    sentences. Sentences without text are left out, too.

    Args:
        instances_json: COCO's `instances.json` (images, annotations, categories).
        refs: the refs, JSON or the released pickle; or the folder that holds `refs(<split_by>).json` or `.p`.
        out_path: the manifest, named `<split>.jsonl` for `load_dataset("instancebench", data_dir=<its folder>)`; the
            folder is made where there is none. `val.jsonl` is read as the split `validation`.
        split: the refs' split to take (`train`, `val`, `testA`, ...); all for None.
        split_by: whose refs to take where `refs` is a folder: `unc`, `google`, `umd`.
        images: the folder of the images, relative to the manifest's.

    Returns:
        What was written and what was left out.

    Raises:
        BenchError: a file is missing, malformed or unsafe, holds an id twice, or the two files disagree; the message
            names the ref or the id.
    """
    target = Path(out_path)
    done = Converted(str(target))
    if target.suffix != ".jsonl":
        raise BenchError(f"out_path: expected a name like test.jsonl, got {str(target)!r}")
    found = _refs_file(Path(refs), split_by)
    coco = CocoFile(instances_json)
    with whole_file(target) as stream:
        for line in _lines(read_refs(found), coco, str(found), split, images, done):
            stream.write(json.dumps(line).encode() + b"\n")
        if not done.sets:
            reasons = ", ".join([*done.reasons(), *(f"{n} {reason}" for reason, n in done.noted.items())])
            reasons = reasons or "the file holds no ref"
            advice = ""
            if done.other_splits and set(done.left_out) == {_OTHER_SPLITS}:
                advice = f"; no ref has the split {split!r}: name one that the file has"
            raise BenchError(f"{found}: expected refs to write, found none ({reasons}){advice}")
    return done


def _refs_file(refs: Path, split_by: str | None) -> Path:
    if not refs.is_dir():
        return refs
    if split_by is None:
        raise BenchError(f"split_by: {refs} is a folder; say whose refs to take, as in split_by='unc'")
    for suffix in (".json", ".p"):
        if (refs / f"refs({split_by}){suffix}").is_file():
            return refs / f"refs({split_by}){suffix}"
    there = ", ".join(sorted(path.name for path in refs.glob("refs*"))[:6]) or "no refs"
    raise BenchError(f"{refs}: expected refs({split_by}).json or refs({split_by}).p, found {there}")


def _lines(
    refs: Sequence[Any], coco: CocoFile, name: str, split: str | None, images: str, done: Converted
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for number, ref in enumerate(refs):
        place = f"{name}: ref {number}"
        if not isinstance(ref, dict):
            raise BenchError(f"{place}: expected a dict, found {type(ref).__name__}")
        ref_id = _id(ref, "ref_id", place)
        if ref_id in seen:
            raise BenchError(f"{place}: field 'ref_id': expected ids that differ, found {ref_id} again")
        seen.add(ref_id)
        if split is not None and ref.get("split") != split:
            done.left_out[_OTHER_SPLITS] += 1
            other = ref.get("split")
            done.other_splits[other if isinstance(other, str) and len(other) <= 40 else shorten(other, 40)] += 1
            continue
        if isinstance(ref.get("ann_id"), list):
            raise BenchError(
                f"{place}: field 'ann_id': expected an integer id, found a list; this looks like gRefCOCO, whose "
                "expressions mean several objects or none. A set of InstanceBench has exactly one target; `convert "
                "coco --captions` writes ground truth of PBench, where an expression means any number of objects"
            )
        expressions = _expressions(ref, ref_id, place, done)
        if len(expressions) < len(_ROLES):
            done.left_out["refs with fewer than two sentences that differ"] += 1
            continue
        target = _target(ref, ref_id, coco, place, images, done)
        if target is not None:
            done.sets += 1
            done.expressions += len(expressions)
            yield {**target, "expressions": expressions}


def _target(
    ref: Mapping[str, Any], ref_id: int, coco: CocoFile, place: str, images: str, done: Converted
) -> dict[str, Any] | None:
    """A set's line without its expressions; None where the target cannot be one."""
    annotation = _known(coco.annotations, _id(ref, "ann_id", place), "annotation", place, coco)
    image = _known(coco.images, annotation["image_id"], "image", place, coco)
    category = _known(coco.categories, annotation["category_id"], "category", place, coco)
    for name, own in (("image_id", image["id"]), ("category_id", annotation["category_id"])):
        if ref.get(name, own) != own:
            raise BenchError(
                f"{place}: field {name!r}: expected {own}, as annotation {annotation['id']} has it, found "
                f"{shorten(ref[name])}; do the refs belong to {coco.path}?"
            )
    (height, width), file_name = coco.size(image), coco.file_name(image)
    alike = coco.alike[annotation["image_id"], annotation["category_id"]]
    if any(looks_exchanged(other.get("segmentation"), height, width) for other in alike):
        done.noted["refs whose image has polygons that fit only if its height and width are exchanged"] += 1
    if annotation.get("iscrowd"):
        done.left_out["refs whose target is a crowd region"] += 1
        return None
    found = coco.instance(annotation, height, width)
    if found.mask is None:
        done.left_out[f"refs whose target has a mask that {found.problem}"] += 1
        return None
    return {
        "tces_id": f"refcoco-{ref_id}",
        "image": f"{images.rstrip('/')}/{file_name}" if images else file_name,
        "image_id": str(image["id"]),
        "source": "coco",
        "category": category,
        "height": height,
        "width": width,
        "target": str(annotation["id"]),
        "candidates": [
            {
                "instance_id": str(other["id"]),
                "segmentation": other.get("segmentation"),
                "iscrowd": int(bool(other.get("iscrowd", 0))),
                "bbox": other.get("bbox"),
            }
            for other in alike
        ],
    }


def _expressions(ref: Mapping[str, Any], ref_id: int, place: str, done: Converted) -> list[dict[str, Any]]:
    sentences = ref.get("sentences")
    if not isinstance(sentences, list):
        raise BenchError(f"{place}: field 'sentences': expected a list, found {type(sentences).__name__}")
    done.read += len(sentences)
    if done.read > MAX_SENTENCES:
        raise BenchError(f"{place}: more than {MAX_SENTENCES} sentences up to here; is this RefCOCO?")
    found: dict[str, dict[str, Any]] = {}
    ids: set[int] = set()
    for k, sentence in enumerate(sentences):
        within = f"{place}: sentence {k}"
        if not isinstance(sentence, dict):
            raise BenchError(f"{within}: expected a dict, found {type(sentence).__name__}")
        text = _text(sentence, within)
        done.characters += len(text)
        if done.characters > MAX_CHARACTERS:
            raise BenchError(f"{within}: more than {MAX_CHARACTERS} characters up to here; is this RefCOCO?")
        if not text:
            done.left_out["sentences without text"] += 1
            continue
        if text.lower() in found:
            done.left_out["sentences that repeat an earlier one of their ref"] += 1
            continue
        sent_id = _id(sentence, "sent_id", within)
        if sent_id in ids:
            raise BenchError(f"{within}: field 'sent_id': expected ids that differ within a ref, found {sent_id} again")
        ids.add(sent_id)
        guess = guess_operation(text)
        found[text.lower()] = {
            "expression_id": f"refcoco-{ref_id}-{sent_id}",
            "role": _ROLES[len(found)] if len(found) < len(_ROLES) else "extra",
            "text": text,
            "operation": guess.operation,
            "tags": [*guess.tags, ORDER],
        }
    return list(found.values())


def _text(sentence: Mapping[str, Any], place: str) -> str:
    """A sentence's words with single spaces: `sent`, or `raw` where that is empty; empty where both are."""
    text = sentence.get("sent") or sentence.get("raw")
    if text is None and ("sent" in sentence or "raw" in sentence):
        text = ""
    if not isinstance(text, str):
        raise BenchError(f"{place}: field 'sent': expected a text, found {shorten(text)}")
    if len(text) > MAX_SENTENCE:
        raise BenchError(f"{place}: field 'sent': expected at most {MAX_SENTENCE} characters, found {len(text)}")
    return " ".join(text.split())


def _id(values: Mapping[str, Any], name: str, place: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise BenchError(f"{place}: field {name!r}: expected an integer id, found {type(value).__name__}")
    return value


def _known(table: Mapping[Any, Any], key: Any, what: str, place: str, coco: CocoFile) -> Any:
    if key not in table:
        raise BenchError(
            f"{place}: expected {what} {shorten(key)} in {coco.path}, found none; do the refs belong to it?"
        )
    return table[key]


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert from the command line; 0 where a manifest was written, 1 where the input is at fault."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("instances", help="COCO's instances.json")
    parser.add_argument("refs", help="refs(*).json, refs(*).p, or their folder")
    parser.add_argument("out", help="the manifest to write, <split>.jsonl")
    parser.add_argument("--split", help="the refs' split to take; all by default")
    parser.add_argument("--split-by", help="whose refs, where refs is a folder: unc, google, umd")
    parser.add_argument("--images", default="images", help="folder of the images, relative to the manifest's")
    given = parser.parse_args(arguments)
    try:
        done = refcoco_to_manifest(
            given.instances, given.refs, given.out, split=given.split, split_by=given.split_by, images=given.images
        )
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {done.path}: {done.sets} sets, {done.expressions} expressions")
    for line in done.lines():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
