"""RefCOCO's annotation as a manifest, and its pickles, of which nothing runs."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_datasets.benchmarks.instancebench.refcoco import main, refcoco_to_manifest
from bench_datasets.benchmarks.instancebench.refcoco_words import LEXICAL, guess_operation
from bench_datasets.data.refer_annotations import load_plain_pickle
from bench_datasets.faults import BenchError

from ...support.manifests import load

ROOT = Path(__file__).resolve().parents[3]


def small_coco() -> dict[str, Any]:
    """Two images, three cars (one a crowd region) in the first, a dog in the second."""
    square = [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0, 1.0, 5.0]]

    def annotation(number: int, image: int, category: int, segmentation: Any, crowd: int = 0) -> dict[str, Any]:
        return {
            "id": number,
            "image_id": image,
            "category_id": category,
            "segmentation": segmentation,
            "iscrowd": crowd,
            "bbox": [1, 1, 4, 4],
        }

    return {
        "images": [{"id": k, "file_name": f"{k}.jpg", "height": 10, "width": 20} for k in (1, 2)],
        "categories": [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}],
        "annotations": [
            annotation(11, 1, 3, square),
            annotation(12, 1, 3, [[10.0, 1.0, 15.0, 1.0, 15.0, 8.0]]),
            annotation(13, 1, 3, {"size": [10, 20], "counts": [180, 20]}, crowd=1),
            annotation(14, 1, 18, square),
            annotation(21, 2, 18, square),
        ],
    }


def ref(
    number: int, annotation: int, *sentences: str, split: str = "val", image: int = 1, category: int = 3
) -> dict[str, Any]:
    """A ref as the files hold it."""
    said = [
        {"sent_id": number * 10 + k, "sent": text, "raw": text.title(), "tokens": text.split()}
        for k, text in enumerate(sentences)
    ]
    return {
        "ref_id": number,
        "ann_id": annotation,
        "image_id": image,
        "category_id": category,
        "split": split,
        "file_name": "COCO.jpg",
        "sent_ids": [sentence["sent_id"] for sentence in said],
        "sentences": said,
    }


REFS = [
    ref(1, 11, "left car", "car next to the dog", "Left  car", "car not in the middle"),
    ref(2, 12, "second car", "the blue one", split="testA"),
    ref(3, 21, "dog", image=2, category=18),
    ref(4, 14, "brown dog", "dog", category=18),
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with instances, and refs as JSON and as pickles of every protocol."""
    (tmp_path / "instances.json").write_text(json.dumps(small_coco()))
    (tmp_path / "refs(unc).json").write_text(json.dumps(REFS))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / f"refs({protocol}).p").write_bytes(pickle.dumps(REFS, protocol=protocol))
    return tmp_path


def convert(folder: Path, refs: str, **kwargs: Any) -> list[dict[str, Any]]:
    """The manifest's lines."""
    out = folder / "test.jsonl"
    refcoco_to_manifest(folder / "instances.json", folder / refs, out, **kwargs)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_refs_become_sets(files: Path) -> None:
    done = refcoco_to_manifest(files / "instances.json", files / "refs(unc).json", files / "test.jsonl")
    assert (done.sets, done.expressions) == (3, 7)
    assert done.left_out == {
        "sentences that repeat an earlier one of their ref": 1,
        "refs with fewer than two sentences that differ": 1,
    }
    first = json.loads((files / "test.jsonl").read_text().splitlines()[0])
    assert first["tces_id"] == "refcoco-1"
    assert (first["image"], first["image_id"], first["source"], first["category"]) == (
        "images/1.jpg",
        "1",
        "coco",
        "car",
    )
    assert (first["height"], first["width"], first["target"]) == (10, 20, "11")
    assert [(c["instance_id"], c["iscrowd"]) for c in first["candidates"]] == [("11", 0), ("12", 0), ("13", 1)]
    assert [(e["expression_id"], e["role"], e["text"], e["operation"]) for e in first["expressions"]] == [
        ("refcoco-1-10", "minimal", "left car", "relative_selection"),
        ("refcoco-1-11", "variant", "car next to the dog", "single_anchor_relation"),
        ("refcoco-1-13", "extra", "car not in the middle", "negation_or_exclusion"),
    ]
    assert all({LEXICAL, "role_source:order"} <= set(e["tags"]) for e in first["expressions"])
    assert "spatial_relation" in first["expressions"][1]["tags"]


def test_the_builder_reads_the_manifest(files: Path) -> None:
    convert(files, "refs(unc).json")
    data = load(files)
    assert data["key"][:] == ["refcoco-1", "refcoco-2", "refcoco-4"]
    assert data["faults"][:] == [["crowd_candidate"], ["crowd_candidate"], []]
    assert [len(row["candidates"]) for row in data] == [3, 3, 1]


def test_pickles_of_every_protocol_give_the_same(files: Path) -> None:
    expected = convert(files, "refs(unc).json")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert convert(files, f"refs({protocol}).p") == expected, protocol
    assert convert(files, ".", split_by="unc") == expected
    assert convert(files, ".", split_by="2") == expected


def test_splits_are_taken_apart(files: Path) -> None:
    assert [line["tces_id"] for line in convert(files, "refs(unc).json", split="testA")] == ["refcoco-2"]
    assert [line["image"] for line in convert(files, "refs(unc).json", split="testA", images="")] == ["1.jpg"]
    words = r"found none .4 refs of other splits .testA 1, val 3..; no ref has the split 'none'"
    with pytest.raises(BenchError, match=words):
        convert(files, "refs(unc).json", split="none")


def test_python_2_wrote_texts_as_bytes(files: Path) -> None:
    oldest = b"(lp1\n(dp2\nS'ref_id'\np3\nI7\nsS'note'\np4\nVcaf\\u00e9\np5\nsa."
    old = b"\x80\x02]q\x01}q\x02(U\x06ref_idq\x03K\x07U\x04noteq\x04U\x05caf\xc3\xa9q\x05ua."
    for data in (oldest, old):
        assert load_plain_pickle(data, "refs.p") == [{"ref_id": 7, "note": "caf\u00e9"}]


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_byte_strings_that_are_not_ascii_are_read_in_every_old_protocol(protocol: int) -> None:
    raw = {0: b"S'caf\\xc3\\xa9 \xff'\n", 1: b"T\x07\x00\x00\x00caf\xc3\xa9 \xff", 2: b"U\x07caf\xc3\xa9 \xff"}
    data = b"(lp1\n" + raw[protocol] + b"a."
    assert load_plain_pickle(data, "refs.p") == ["caf\u00e9 \ufffd"]


@pytest.mark.parametrize("field", ["sent", "image_id", "ann_id", "split", "ref_id", "note"])
def test_a_pickle_whose_lists_contain_one_another_is_refused_by_its_size(files: Path, field: str) -> None:
    bomb: list[Any] = ["lol"] * 10
    for _ in range(30):
        bomb = [bomb] * 10
    value = {**ref(1, 11, "left car", "car"), field: bomb}
    if field == "sent":
        value["sentences"][0]["sent"] = bomb
    (files / "bomb.p").write_bytes(pickle.dumps([value], protocol=2))
    with pytest.raises(BenchError, match=r"bomb\.p: expected at most one value per byte") as caught:
        convert(files, "bomb.p")
    assert len(str(caught.value)) < 1000


def test_a_pickle_that_shares_a_list_a_few_times_is_read() -> None:
    shared = ["left", "car"]
    value = [{"ref_id": k, "tokens": shared} for k in range(50)]
    assert load_plain_pickle(pickle.dumps(value), "refs.p") == value


def changed(files: Path, change: Any) -> None:
    """Change the instances."""
    coco = small_coco()
    change(coco)
    (files / "instances.json").write_text(json.dumps(coco))


@pytest.mark.parametrize("part", ["images", "annotations", "categories"])
def test_an_id_that_stands_twice_in_the_instances_is_named(files: Path, part: str) -> None:
    changed(files, lambda coco: coco[part].append({**coco[part][0], "height": 80, "name": "other"}))
    number, places = small_coco()[part][0]["id"], len(small_coco()[part])
    words = rf"instances\.json: {part}\[0\] and {part}\[{places}\]: .* found the id {number} twice"
    with pytest.raises(BenchError, match=words):
        convert(files, "refs(unc).json")
    assert not (files / "test.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"iscrowd": 1}, "refs whose target is a crowd region"),
        ({"segmentation": [[1, 1, 2, 2]]}, "refs whose target has a mask that is not valid"),
        ({"segmentation": None}, "refs whose target has a mask that is not valid"),
        ({"segmentation": {"size": [10, 20], "counts": [200]}}, "refs whose target has a mask that is empty"),
        (
            {"segmentation": {"size": [5, 20], "counts": [0, 100]}},
            "refs whose target has a mask that has another size than the image",
        ),
        (
            {"segmentation": {"size": [20, 10], "counts": [0, 200]}},
            "refs whose target has a mask that has another size than the image (height and width exchanged)",
        ),
    ],
)
def test_a_target_that_cannot_be_one_is_left_out_and_the_rest_is_scored(
    files: Path, change: dict[str, Any], reason: str
) -> None:
    changed(files, lambda coco: coco["annotations"][0].update(change))
    done = refcoco_to_manifest(files / "instances.json", files / "refs(unc).json", files / "test.jsonl")
    assert done.left_out[reason] == 1
    assert f"left out: 1 {reason}" in done.lines()
    data = load(files)
    assert data["key"][:] == ["refcoco-2", "refcoco-4"]
    assert all("target_missing" not in faults for faults in data["faults"])


def test_sentences_without_text_are_left_out_and_counted(files: Path) -> None:
    value = ref(1, 11, "", "left car", "  ", "the blue car")
    value["sentences"].append({"sent_id": 99, "sent": None, "raw": None})
    (files / "refs.json").write_text(json.dumps([value]))
    done = refcoco_to_manifest(files / "instances.json", files / "refs.json", files / "test.jsonl")
    assert (done.sets, done.expressions, dict(done.left_out)) == (1, 2, {"sentences without text": 3})


def test_exchanged_height_and_width_are_noted(files: Path) -> None:
    changed(files, lambda coco: [image.update(height=20, width=10) for image in coco["images"]])
    done = refcoco_to_manifest(files / "instances.json", files / "refs(unc).json", files / "test.jsonl")
    assert list(done.noted.values()) == [2]
    assert "height and width are exchanged" in done.lines()[-1]
    with pytest.raises(BenchError, match=r"found none .*1 refs whose image has polygons that fit only if"):
        convert(files, "refs(unc).json", split="testA")


def hostile() -> dict[str, bytes]:
    """Pickles that do something, by what they would do."""

    class Shell:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.system, (f"{sys.executable} -c \"open('ran', 'w')\"",)

    class Nested:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return eval, ("open('ran', 'w')",)

    return {
        **{f"system, protocol {k}": pickle.dumps([Shell()], protocol=k) for k in range(pickle.HIGHEST_PROTOCOL + 1)},
        "eval": pickle.dumps([*REFS, {"sentences": [Nested()]}]),
        "inst": b"(S'touch ran'\nios\nsystem\n.",
        "class": b"cos\nsystem\n.",
        "persistent": b"Pevil\n.",
        "extension": b"\x80\x02\x82\x01.",
        "set": pickle.dumps({1, 2}),
        "complex": pickle.dumps(1j),
        "a second pickle": pickle.dumps(REFS) + pickle.dumps(Shell()),
        "memo": b"\x80\x02]r\xff\xff\xff\x7f.",
    }


HOSTILE = hostile()


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_pickle_that_does_something_is_refused(name: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    (files / "bad.p").write_bytes(HOSTILE[name])
    with pytest.raises(BenchError, match=r"bad\.p: ") as caught:
        convert(files, "bad.p")
    assert (
        "nothing of it was run" in str(caught.value)
        or "ordinary pickle" in str(caught.value)
        or "more bytes" in str(caught.value)
    )
    assert not (files / "ran").exists()
    assert not [path for path in files.iterdir() if path.name.startswith((".", "test"))]


def test_a_broken_pickle(files: Path) -> None:
    whole = pickle.dumps(REFS)
    for content in (
        b"",
        b"no pickle",
        whole[:-1],
        whole[: len(whole) // 2],
        b"\x80\x02h\x07.",
        b"\x8d" + b"\xff" * 8,
        b"a.",
    ):
        (files / "bad.p").write_bytes(content)
        with pytest.raises(BenchError, match=r"bad\.p: expected a"):
            convert(files, "bad.p")
    assert all(opcode.name for opcode, *_ in pickletools.genops(whole))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ref_id": "1"}, "field 'ref_id': expected an integer id"),
        ({"ref_id": 2}, "field 'ref_id': expected ids that differ, found 2 again"),
        ({"ann_id": 99}, r"ref 4: expected annotation 99 in .*instances\.json"),
        ({"image_id": 2}, "field 'image_id': expected 1"),
        ({"category_id": 18}, "field 'category_id': expected 3, as annotation 11 has it, found 18"),
        ({"ann_id": [11, 12]}, "field 'ann_id': expected an integer id, found a list; this looks like gRefCOCO"),
        ({"sentences": [{"sent_id": 1, "sent": "x" * 10_001}]}, "at most 10000 characters, found 10001"),
        (
            {"sentences": [{"sent_id": 1, "sent": "left"}, {"sent_id": 1, "sent": "right"}]},
            "sentence 1: field 'sent_id': expected ids that differ within a ref, found 1 again",
        ),
        ({"sentences": None}, "field 'sentences': expected a list"),
        ({"sentences": [3]}, "sentence 0: expected a dict"),
        ({"sentences": [{"sent_id": 1}]}, "sentence 0: field 'sent': expected a text"),
    ],
)
def test_refs_at_odds_with_the_instances(change: dict[str, Any], words: str, files: Path) -> None:
    (files / "refs.json").write_text(json.dumps([*REFS, {**ref(9, 11, "a", "b"), **change}]))
    (files / "test.jsonl").write_text("as it was")
    with pytest.raises(BenchError, match=words):
        convert(files, "refs.json")
    assert (files / "test.jsonl").read_text() == "as it was"
    assert not list(files.glob(".test*"))


def test_files_that_are_none(files: Path) -> None:
    for refs, words in (("absent.p", "nothing there"), (".", "split_by: .* is a folder")):
        with pytest.raises(BenchError, match=words):
            convert(files, refs)
    with pytest.raises(BenchError, match=r"expected refs\(google\)\.json or .*found refs\(0\)\.p"):
        convert(files, ".", split_by="google")
    for content, words in (
        ("{}", "expected COCO instances"),
        ("[", "expected JSON"),
        ('{"images": [{}], "annotations": [], "categories": []}', r"images\[0\]: field 'id': expected an id"),
    ):
        (files / "instances.json").write_text(content)
        with pytest.raises(BenchError, match=words):
            convert(files, "refs(unc).json")
    with pytest.raises(BenchError, match=r"expected a name like test\.jsonl"):
        refcoco_to_manifest(files / "instances.json", files / "refs(unc).json", files / "test.json")


def test_real_instances(shared: Path, tmp_path: Path) -> None:
    """Real masks with crowds; every candidate of the manifest is sound, and the crowds are marked."""
    source = shared / "data" / "coco_panoptic" / "panoptic_coco_detection_format.json"
    value = json.loads(source.read_text())
    people = [a for a in value["annotations"] if not a["iscrowd"]][:3]
    refs = [
        ref(k, a["id"], "the first one", "the other", image=a["image_id"], category=a["category_id"])
        for k, a in enumerate(people)
    ]
    (tmp_path / "refs.p").write_bytes(pickle.dumps(refs, protocol=2))
    refcoco_to_manifest(source, tmp_path / "refs.p", tmp_path / "test.jsonl")
    data = load(tmp_path)
    assert len(data) == 3
    for row, annotation in zip(data, people, strict=True):
        alike = [
            a
            for a in value["annotations"]
            if (a["image_id"], a["category_id"]) == (annotation["image_id"], annotation["category_id"])
        ]
        assert [c["instance_id"] for c in row["candidates"]] == [str(a["id"]) for a in alike]
        assert [c["iscrowd"] for c in row["candidates"]] == [bool(a["iscrowd"]) for a in alike]
        assert set(row["faults"]) <= {"crowd_candidate"}


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("guy without a hat", "negation_or_exclusion"),
        ("the woman who isn't sitting", "negation_or_exclusion"),
        ("2nd zebra from right", "ordinal"),
        ("leftmost", "extremal"),
        ("biggest bear", "extremal"),
        ("kid between two adults", "multi_anchor_relation"),
        ("left one of the two dogs", "subgroup_based"),
        ("man next to the woman who is holding a bag", "nested_grounding"),
        ("cup behind the plate", "single_anchor_relation"),
        ("horse facing us", "single_anchor_relation"),
        ("girl on the left", "relative_selection"),
        ("right", "relative_selection"),
        ("red shirt", "target_evidence"),
        ("forest guest", "target_evidence"),
    ],
)
def test_the_operation_is_guessed_from_words(text: str, operation: str) -> None:
    guess = guess_operation(text)
    assert guess.operation == operation
    assert LEXICAL in guess.tags


def test_commands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(files / "instances.json"), str(files / "refs(unc).json"), str(files / "test.jsonl")]
    assert main(given) == 0
    assert "3 sets, 7 expressions" in capsys.readouterr().out
    assert main([given[0], str(files / "absent.json"), given[2]]) == 1
    assert "nothing there" in capsys.readouterr().err
    done = subprocess.run(
        [sys.executable, "-m", "bench_datasets.benchmarks.instancebench.refcoco", *given, "--split", "testA"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "1 sets, 2 expressions" in done.stdout
    assert "left out: 3 refs of other splits (val 3)" in done.stdout
    from bench_datasets.cli.app import app

    arguments = ["convert", "refcoco", "--instances", given[0], "--refs", given[1], "--out", given[2], "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["sets"] == 3
