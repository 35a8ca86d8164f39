#!/usr/bin/env python3
"""Hostile predictions by the million through every door, in a process of 2 GiB: no hang, no crash, no growth.

    python scripts/fuzz.py                       a million rows, some minutes
    python scripts/fuzz.py --rows 20000 --seed 7

Rows are PBench's with sound truth and with predictions that are sound, mutated, random or absurd. Each lot goes in as
Python values and as Arrow structs; every row must come out with a score or with a named fault, and what is refused must
be the same by both engines and by a reader that takes one character at a time. A lot that takes longer than --patience
seconds prints where it stands and ends the process.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.faults import stops
from bench_datasets.masks import MaskColumn, available_engines, encode_dense, parse_masks, using_engine
from bench_datasets.scoring.score import scorer

LOT = 2000
"""Rows at a time."""

ALPHABET = "".join(map(chr, range(48, 112)))
"""Characters of COCO's compressed counts."""

Mask = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of everything")
    parser.add_argument("--memory", type=float, default=2.0, metavar="GIB", help="limit of the address space")
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help="for a lot of 2,000 rows")
    parser.add_argument("--growth", type=float, default=64.0, metavar="MB", help="more resident memory than this fails")
    options = parser.parse_args(arguments)
    random.seed(options.seed)
    functions = {name: scorer("pbench", on_fault="skip-and-report", engine=name) for name in available_engines()}
    warm, began, found, refused = 0.0, time.perf_counter(), 0, 0
    _lot(200, functions)  # compile and import before the limit
    limit = int(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    lots = -(-options.rows // LOT)
    for number in range(lots):
        faulthandler.dump_traceback_later(options.patience, exit=True)
        rows = min(LOT, options.rows - found)
        refused += _lot(rows, functions)
        faulthandler.cancel_dump_traceback_later()
        found += rows
        if number == lots // 10:
            warm = _resident()
        if sys.stderr.isatty() or number % 50 == 49:
            print(f"{found:,} rows, {refused:,} refused, {_resident():.0f} MB", file=sys.stderr)
    growth = _resident() - warm
    seconds = time.perf_counter() - began
    print(
        f"{found:,} rows of {', '.join(functions)} in {seconds:.0f} s under {options.memory:g} GiB: {refused:,} refused"
        f" by name, {found - refused:,} scored, {growth:+.0f} MB since the first tenth"
    )
    return int(growth > options.growth)


def _lot(rows: int, functions: dict[str, Callable[..., Any]]) -> int:
    """One lot through both doors and every engine; the number of rows refused."""
    truth = [[_sound()] for _ in range(rows)]
    answers = [[random.choice(MAKERS)(*mask) for _ in range(random.randrange(4))] for mask in truth]
    plain = [mask for row in answers for mask in row]
    parsed, wrong = parse_masks(plain)
    structs = _structs(plain)
    unsound = _unsound(structs)
    for name in functions:
        with using_engine(name):
            assert set(MaskColumn.from_arrow(structs).problems()) == unsound, name
            assert set(parse_masks(plain)[1]) == set(wrong), name
    assert {i for i, sound in enumerate(parsed.is_valid().to_pylist()) if not sound} == set(wrong)
    begin = np.concatenate([[0], np.cumsum([len(row) for row in answers])]).astype(np.int32)
    refused = 0
    for masks, bad in ((parsed, set(wrong)), (structs, unsound)):
        refused = _scored(truth, begin, masks, bad, functions)
    return refused


def _scored(
    truth: list[list[Mask]], begin: Any, masks: pa.StructArray, bad: set[int], functions: dict[str, Callable[..., Any]]
) -> int:
    """Score a lot by every engine; skipped are the rows with a mask that is unsound, and no others."""
    n = len(truth)
    expected = [any(k in bad for k in range(begin[i], begin[i + 1])) for i in range(n)]
    table = pa.table({
        "key": [f"level_0/{i}" for i in range(n)],
        "id": list(range(n)),
        "level": ["level_0"] * n,
        "masks": truth,
        "pred_masks": pa.ListArray.from_arrays(pa.array(begin), masks),
    })  # fmt: skip
    tables = [function(table) for function in functions.values()]
    assert all(other.equals(tables[0]) for other in tables[1:]), "the engines differ"
    assert tables[0]["skipped"].to_pylist() == expected
    found = [[code for code in codes if stops(code)] for codes in tables[0]["faults"].to_pylist()]
    assert found == [["malformed_mask"] if skipped else [] for skipped in expected]
    return sum(expected)


def _structs(values: list[Any]) -> pa.StructArray:
    """The same as Arrow structs, as far as that can hold them; null where it can't."""
    sizes, counts = [], []
    for value in values:
        size, text = (value.get("size"), value.get("counts")) if isinstance(value, dict) else (None, None)
        pair = isinstance(size, list) and len(size) == 2 and all(type(k) is int and abs(k) < 2**63 for k in size)
        sizes.append(size if pair else None)
        counts.append(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    counts = [text if isinstance(text, bytes) else None for text in counts]
    return pa.StructArray.from_arrays(
        [pa.array(sizes, pa.list_(pa.int64())), pa.array(counts, pa.binary())], ["size", "counts"]
    )


def _unsound(structs: pa.StructArray) -> set[int]:
    """Positions of what a reader of one character at a time refuses."""
    return {i for i, mask in enumerate(structs.to_pylist()) if not _reads(mask["size"], mask["counts"])}


def _reads(size: list[int] | None, counts: bytes | None) -> bool:
    if size is None or not counts or min(size) < 1 or size[0] * size[1] >= 2**31:
        return False
    runs: list[int] = []
    at = 0
    while at < len(counts):
        value, shift = 0, 0
        while True:
            if at == len(counts) or not 48 <= counts[at] < 112 or shift == 35:
                return False
            digit = counts[at] - 48
            at += 1
            value |= (digit & 31) << shift
            shift += 5
            if not digit & 32:
                value -= (digit & 16) << (shift - 4)
                break
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            return False
        runs.append(value)
    return sum(runs) == size[0] * size[1]


# ---------------------------------------------------------------------- what predictions are made of


def _sound() -> Mask:
    height, width = random.randrange(1, 24), random.randrange(1, 24)
    threshold = random.random()
    dense = np.array([[random.random() < threshold for _ in range(width)] for _ in range(height)])
    return dict(encode_dense(dense))


def _mutated(mask: Mask) -> Mask:
    text = list(mask["counts"])
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text) + 1)
        kind = random.randrange(4)
        if kind == 0:
            text.insert(at, random.choice(ALPHABET))
        elif kind == 1:
            text[at : at + 1] = random.choice(ALPHABET)
        elif kind == 2:
            del text[at : at + random.randrange(1, 3)]
        else:
            del text[at:]
    return {"size": mask["size"], "counts": "".join(text)}


def _random(mask: Mask) -> Mask:
    text = "".join(random.choices(ALPHABET, k=random.randrange(40)))
    return {"size": mask["size"], "counts": random.choice([text, text.encode()])}


def _odd_text(mask: Mask) -> Mask:
    text = "".join(chr(random.choice([0, 9, 47, 112, 127, 200, 0x20AC, 0xD800, 0x1F600])) for _ in range(5))
    return {"size": mask["size"], "counts": random.choice([text, "", str(mask["counts"].encode()), b"\xff\xfe"])}


def _odd_size(mask: Mask) -> Mask:
    numbers = [-1, 0, 1, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1]
    size = random.choice([
        [random.choice(numbers), random.choice(numbers)], mask["size"][::-1], [7], [1, 2, 3], None, "3x4", [1.5, 2],
        [True, 3], [2**63, 1], {}, [[1], [2]], [float("nan"), 2],
    ])  # fmt: skip
    return {"size": size, "counts": mask["counts"]}


def _runs(mask: Mask) -> Mask:
    height, width = mask["size"]
    first = random.randrange(height * width + 1)
    runs = random.choice([
        [first, height * width - first], [0, 0, first, height * width - first], [height * width, 1], [-1, 5], [],
        [2**31], [2**63], [0.5, 1], ["1", "2"], [None], [True] * 3, [[1], [2]], [float("inf")], [10**30],
    ])  # fmt: skip
    return {"size": mask["size"], "counts": runs}


def _nonsense(mask: Mask) -> Any:
    del mask
    return random.choice([
        None, 3, "", "mask", b"x", [], {}, {"counts": "1"}, {"size": [1, 1]}, [[]], [[1, 2]], [None], float("nan"),
        {"size": [1, 1], "counts": {}}, {1: 2}, [[float("nan")] * 6], [["a"] * 6], object(), True,
    ])  # fmt: skip


def _flat(mask: Mask) -> Mask:
    """A sound mask of the largest size there is, in a few characters."""
    del mask
    return {"size": [46340, 46340], "counts": [0, 46340 * 46340]}


MAKERS: list[Callable[[Mask], Any]] = [
    *[lambda mask: mask, _mutated] * 6,
    *[_random, _odd_text, _odd_size, _runs, _nonsense] * 2,
    lambda mask: _sound(),
    _flat,
]


def _resident() -> float:
    """Megabytes of this process in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    sys.exit(main())
