"""Which strings are masks, and which: against a reader that goes character by character."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pycocotools import mask as coco

from bench_datasets.masks import MASK_TYPE, MaskColumn, MaskError, intersections, parse, parse_mask, parse_masks
from bench_datasets.masks.engine import Engine

from ..support.slow_masks import coco_encode, fill, messy, random_mask, read_runs, write_runs, write_varint

BINARY = pa.struct([("size", pa.list_(pa.int64(), 2)), ("counts", pa.binary())])

RLE = {"size": [2, 3], "counts": "15"}

STRINGS = 1_000_000 if os.environ.get("BENCH_DATASETS_NIGHTLY") else 50_000
"""Random and mutated strings that are held against the slow reader."""


def column_of(masks: list[tuple[int, int, bytes]]) -> MaskColumn:
    return MaskColumn.from_arrow(pa.array([{"size": [h, w], "counts": text} for h, w, text in masks], BINARY))


def malformed_cases(shared: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((shared / "data" / "malformed_masks.json").read_text())
    return cases


def test_the_listed_masks_through_python(engine: Engine, shared: Path) -> None:
    for case in malformed_cases(shared):
        counts = base64.b64decode(case["counts_base64"]) if "counts_base64" in case else case["counts"]
        masks, wrong = parse_masks([{"size": case["size"], "counts": counts}])
        assert masks.type == MASK_TYPE
        assert (not wrong) == (case["expect"] == "ok"), case["name"]
        assert masks.is_valid().to_pylist() == [not wrong]
        if not wrong:
            assert MaskColumn.from_arrow(masks).areas().tolist() == [case["area"]], case["name"]
        else:
            with pytest.raises(MaskError, match=r"\w"):
                parse_mask({"size": case["size"], "counts": counts})


def test_the_listed_masks_through_arrow(engine: Engine, shared: Path) -> None:
    for case in malformed_cases(shared):
        counts = base64.b64decode(case["counts_base64"]) if "counts_base64" in case else case["counts"]
        size = case["size"]
        if not (isinstance(counts, (str, bytes)) or counts is None) or (size and isinstance(size[0], str)):
            continue
        data = counts.encode() if isinstance(counts, str) else counts
        column = MaskColumn.from_arrow(pa.array([{"size": size, "counts": data}], BINARY))
        assert (not column.problems()) == (case["expect"] == "ok"), case["name"]
        if case["expect"] == "ok":
            assert column.areas().tolist() == [case["area"]]
        else:
            for compute in (column.areas, column.boxes, column.rles, lambda c=column: intersections(c, c)):
                with pytest.raises(MaskError, match="mask 0"):
                    compute()


def test_printed_bytes_are_named() -> None:
    _, wrong = parse_masks([{"size": [10, 10], "counts": str(b"d0n0b1")}])
    assert "printed form of bytes" in wrong[0]


def test_agrees_with_the_slow_reader(engine: Engine) -> None:
    """Many strings: sound ones, sound ones in strange spellings, mutations of both, and noise."""
    generator = np.random.default_rng(7)
    alphabet = bytes(range(48, 112))
    strings: list[tuple[int, int, bytes]] = []
    while len(strings) < STRINGS:
        h, w = (int(side) for side in generator.integers(1, 7, size=2))
        mask = random_mask(generator, h, w)
        spelled = coco_encode(mask) if generator.random() < 0.5 else messy(generator, mask)
        text = spelled["counts"].encode()
        strings.append((h, w, text))
        for kind in generator.integers(0, 8, size=9):
            strings.append((h, w, mutate(generator, text, int(kind), alphabet)))
    column = column_of(strings)
    problems = column.problems()
    areas = column.take([k for k in range(len(strings)) if k not in problems]).areas().tolist()[::-1]
    accepted = 0
    for k, (h, w, text) in enumerate(strings):
        runs = read_runs(h, w, text)
        assert (runs is None) == (k in problems), (h, w, text, problems.get(k))
        if runs is not None:
            accepted += 1
            assert areas.pop() == sum(runs[1::2])
            if accepted % 10 == 0:
                np.testing.assert_array_equal(column_of([strings[k]]).decode(0), fill(h, w, runs))
    assert STRINGS // 10 < accepted < 9 * STRINGS // 10


def test_one_by_one_as_in_company(engine: Engine) -> None:
    """A string by itself, and among sound ones: above, it may be another mask that has all of them read with care."""
    generator = np.random.default_rng(8)
    alphabet = bytes(range(48, 112))
    sound = [(4, 5, write_runs(runs)) for runs in ([20], [0, 20], [3, 4, 13], [1, 1, 1, 1, 16], [0, 2, 3, 4, 5, 6])]
    areas = [0, 20, 4, 2, 12]
    wrong = 0
    for turn in range(STRINGS // 25):
        h, w = (int(side) for side in generator.integers(1, 40, size=2))
        mask = random_mask(generator, h, w)
        text = (coco_encode(mask) if turn % 2 else messy(generator, mask))["counts"].encode()
        if turn % 3:
            text = mutate(generator, text, int(generator.integers(0, 8)), alphabet)
        runs = read_runs(h, w, text)
        wrong += runs is None
        place = int(generator.integers(0, len(sound) + 1))
        company = column_of([*sound[:place], (h, w, text), *sound[place:]])
        assert list(company.problems()) == ([] if runs is not None else [place]), (h, w, text, place)
        assert list(column_of([(h, w, text)]).problems()) == ([] if runs is not None else [0]), (h, w, text)
        others = company.take([k for k in range(len(sound) + 1) if k != place])
        assert others.areas().tolist() == areas
        if runs is not None:
            assert company.areas()[place] == sum(runs[1::2])
            np.testing.assert_array_equal(company.decode(place), fill(h, w, runs))
            assert [int(coco.area(rle)) for rle in company.rles()] == company.areas().tolist()
    assert STRINGS // 100 < wrong < STRINGS // 30


def test_every_length_of_varint_beside_every_other(engine: Engine) -> None:
    """Runs written in one to seven characters each, in all pairs, at the beginning and the end of masks."""
    for first in range(1, 8):
        for second in range(1, 8):
            text = write_runs([3, 2, 4, 1, 5], [first, second, first, second, first])
            column = column_of([(3, 5, text), (3, 5, write_runs([3, 2, 4, 1, 5])), (3, 5, text)])
            assert column.problems() == {}
            assert column.areas().tolist() == [3, 3, 3]
            assert column.runs.lengths.tolist() == [3, 2, 4, 1, 5] * 3
            assert column.decoded.irregular.tolist() == [7 in (first, second), False, 7 in (first, second)]


def mutate(generator: np.random.Generator, text: bytes, kind: int, alphabet: bytes) -> bytes:
    at = int(generator.integers(0, len(text) + 1))
    other = bytes([alphabet[int(generator.integers(64))]])
    if kind == 0:
        return text[:at] + other + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + 1 :]
    if kind == 2:
        return text[:at] + other + text[at:]
    if kind == 3:
        return text[:at]
    if kind == 4:
        return text + text[at:]
    if kind == 5:
        return text[:at] + b"P" * int(generator.integers(1, 9)) + text[at:]
    if kind == 6:
        return text[:at] + bytes([int(generator.integers(256))]) + text[at:]
    return bytes(alphabet[i] for i in generator.integers(0, 64, size=int(generator.integers(0, 20))))


@pytest.mark.parametrize("characters", [None, 6, 7])
def test_overlong_varints_are_read_as_what_they_are(engine: Engine, characters: int | None) -> None:
    """pycocotools never returns from a negative one of seven characters."""
    plain = column_of([(10, 10, write_runs([20, 30, 10, 8, 32]))])
    column = column_of([(10, 10, write_runs([20, 30, 10, 8, 32], characters))])
    assert column.problems() == {}
    assert column.areas().tolist() == [38]
    assert intersections(column, plain).tolist() == [[38]]
    assert [int(coco.area(rle)) for rle in column.rles()] == [38]


def test_eight_characters_are_too_many(engine: Engine) -> None:
    column = column_of([(10, 10, write_runs([20, 30, 50], 8))])
    assert "more than 7 characters" in column.problems()[0]


def test_a_sum_that_wraps_around_does_not_pass(engine: Engine) -> None:
    """Runs that sum to 2^64 + 100 are not those of a 10 x 10 mask."""
    n, target = 60_000, 2**64 + 100
    steps, rest = [target // (n * (n - 1) // 2)] * (n - 1), target % (n * (n - 1) // 2)
    for k in range(1, n):
        steps[k - 1] += rest // (n - k)
        rest %= n - k
    text = b"00" + b"".join(write_varint(0) + write_varint(step, 7) for step in steps)
    assert "do not sum" in column_of([(10, 10, text)]).problems()[0]


def test_the_largest_masks(engine: Engine) -> None:
    """Runs and differences beyond 2^29, of which pycocotools makes something else."""
    side = 46_340
    a = [1, 700_000_000, 100, 5, side * side - 700_000_106]
    b = [0, 900_000_000, side * side - 900_000_000]
    left, right = column_of([(side, side, write_runs(a))] * 2), column_of([(side, side, write_runs(b))])
    assert left.areas().tolist() == [700_000_005] * 2
    assert intersections(left, right).tolist() == [[700_000_005]] * 2
    assert intersections(right, left).tolist() == [[700_000_005] * 2]
    whole = column_of([(1, 2**31 - 1, write_runs([0, 2**31 - 1]))])
    assert whole.areas().tolist() == [2**31 - 1]
    assert whole.boxes().tolist() == [[0, 0, 2**31 - 1, 1]]
    assert intersections(whole, whole).tolist() == [[2**31 - 1]]
    assert "too large" in column_of([(2, 2**30, write_runs([0, 2**31]))]).problems()[0]


def test_zero_length_runs_anywhere(engine: Engine) -> None:
    """Leading, trailing, several together: the mask is the same, and its IoU with itself is 1."""
    mask = np.array([[0, 1, 1, 0, 1]], bool)
    for runs in (
        [1, 2, 1, 1], [1, 2, 1, 1, 0], [1, 2, 1, 1, 0, 0], [1, 1, 0, 1, 1, 1], [1, 0, 0, 2, 1, 1], [0, 0, 1, 2, 1, 1],
        [0, 0, 0, 0, 1, 2, 1, 1], [1, 2, 0, 0, 1, 1], [1, 2, 0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0],
    ):  # fmt: skip
        column = column_of([(1, 5, write_runs(runs))])
        np.testing.assert_array_equal(column.decode(0), mask)
        assert column.runs.lengths.tolist() == [1, 2, 1, 1]
        assert column.areas().tolist() == [3]
        assert column.boxes().tolist() == [[1, 0, 4, 1]]
        assert intersections(column, MaskColumn.from_dense([mask])).tolist() == [[3]]
        again, wrong = parse_masks([{"size": [1, 5], "counts": runs}])
        assert not wrong
        np.testing.assert_array_equal(MaskColumn.from_arrow(again).decode(0), mask)
    for runs, area in (([5], 0), ([0, 5], 5), ([5, 0], 0), ([0, 5, 0, 0], 5), ([0, 0, 5], 0), ([0, 0, 0, 5], 5)):
        column = column_of([(1, 5, write_runs(runs))])
        assert column.areas().tolist() == [area]
        assert intersections(column, MaskColumn.from_dense([np.ones((1, 5), bool)])).tolist() == [[area]]


ODD = [
    None, [], {}, {"size": [2, 3]}, {"counts": "15"}, {"size": (2, 3), "counts": "15"},
    {"size": [2, 3], "counts": b"15"},
    {"size": [2, 3], "counts": [1, 5]}, {"size": [0, 3], "counts": "0"}, {"size": [2, 3], "counts": ""},
    {"size": [2, 3], "counts": "16"}, {"size": [2, 3], "counts": "1\u00e9"}, {"size": [True, 3], "counts": "12"},
    {"size": [2.0, 3], "counts": "15"}, {"size": [2, 3, 1], "counts": "15"}, {"size": [2**20, 2**20], "counts": "15"},
    {"size": [2**70, 1], "counts": "15"}, {"size": [-2, -3], "counts": "15"},
    {"size": [2, 3], "counts": "15", "area": 5},
    {"size": [2, 3], "counts": "~~"}, {"size": np.array([2, 3]), "counts": "15"}, {"size": [2, 3], "counts": None},
    {"size": [np.int64(2), 3], "counts": "15"}, {"size": "23", "counts": "15"}, [[0, 0, 0, 2, 2, 2]], "15", 3,
]  # fmt: skip


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_masks_parsed_together_are_those_parsed_one_by_one(odd: int) -> None:
    values = [RLE, RLE, ODD[odd], RLE]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "_usual", lambda values: None)
        expected = [parse.parse_masks(each, height=2, width=3) for each in (values, [ODD[odd]], values[:2], [])]
    found = [parse.parse_masks(each, height=2, width=3) for each in (values, [ODD[odd]], values[:2], [])]
    assert [(one.to_pylist(), wrong) for one, wrong in found] == [(one.to_pylist(), wrong) for one, wrong in expected]


def test_column_of_values_takes_text_and_bytes() -> None:
    mixed = [RLE, {**RLE, "counts": b"15"}, {**RLE, "counts": "1\u00e9"}]
    for values in (mixed, mixed[:1], mixed[1:2], []):
        column = MaskColumn.from_values(values)
        parts = [v["counts"] if isinstance(v["counts"], bytes) else v["counts"].encode() for v in values]
        assert column.data.tobytes() == b"".join(parts)
        assert np.diff(column.offsets).tolist() == [len(part) for part in parts]
        assert column.heights.tolist() == [2] * len(values)
        assert column.widths.tolist() == [3] * len(values)
