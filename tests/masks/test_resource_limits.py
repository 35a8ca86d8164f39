"""Small inputs that ask for much: in a process of 2 GiB, each is refused or done, none hangs or kills it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bench_datasets.masks import available_engines

PREAMBLE = """
import numpy as np, pyarrow as pa
from bench_datasets.masks import *
from bench_datasets.masks.engine import get_engine
get_engine()
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
def column(*masks):
    return MaskColumn.from_arrow(parse_masks(list(masks))[0])
def refused(*values, **size):
    masks, wrong = parse_masks(list(values), **size)
    assert sorted(wrong) == list(range(len(values))), wrong
"""

BOMBS = {
    "claims of huge sizes": """
        refused(*({"size": [a, b], "counts": "0"} for a in (1, 2**20, 2**31, 2**62) for b in (2**31, 2**40, 2**63)))
        sizes = pa.array([[2**40, 2**40], [2**31, 2**31], [2**63 - 1, 2**63 - 1]], pa.list_(pa.int64(), 2))
        masks = pa.StructArray.from_arrays([sizes, pa.array(["0", "55", "000"])], ["size", "counts"])
        assert len(MaskColumn.from_arrow(masks).problems()) == 3
    """,
    "the largest size, true": """
        whole = column(*({"size": [46340, 46340], "counts": [k, 46340 * 46340 - k]} for k in range(9)))
        other = column({"size": [46340, 46340], "counts": [46340 * 46340]})
        assert whole.areas()[3] == 46340 * 46340 - 3
        assert whole.boxes()[0].tolist() == [0, 0, 46340, 46340]
        assert intersections(whole, other).sum() == 0 and intersections(whole, whole)[0, 8] == 46340 * 46340 - 8
        assert nms(whole, [0, 9]).sum() == 1
        small = resize(whole, np.full(9, 3), np.full(9, 5))
        assert small.areas().tolist() == [15] * 9
        long = column(*({"size": size, "counts": [5, 2**31 - 6]} for size in ([1, 2**31 - 1], [2**31 - 1, 1])))
        assert resize(long, np.array([7, 7]), np.array([7, 7])).areas().tolist() == [49, 49]
        many = column(*[{"size": [46340, 46340], "counts": [0, 46340 * 46340]}] * 2000)
        assert union_overlaps(1, (many, np.zeros(2000, int)), (many, np.zeros(2000, int)))[0][0] == 46340 * 46340
        assert pair_intersections(many, many).sum() == 2000 * 46340 * 46340
    """,
    "a million runs": """
        runs = [1] * 1_000_000
        masks, wrong = parse_masks([{"size": [1000, 1000], "counts": runs}, {"size": [1000, 999], "counts": runs}])
        assert list(wrong) == [1]
        mask = MaskColumn.from_arrow(masks).take([0])
        assert mask.areas().tolist() == [500_000]
        assert intersections(mask, mask).tolist() == [[500_000]]
        refused({"size": [1000, 1000], "counts": "1" * 999_999}, {"size": [1000, 1000], "counts": "1" * 2_000_000})
        nothing = {"size": [10, 10], "counts": "T3" + "0" * 1_000_000}
        assert column(nothing).areas().tolist() == [0]
        zeros = {"size": [10, 10], "counts": [0] * 1_000_000 + [100]}
        assert column(zeros).areas().tolist() == [0]
        assert intersections(column(zeros), column(nothing)).tolist() == [[0]]
    """,
    "endless varints": """
        refused({"size": [10, 10], "counts": "o" * 2_000_000}, {"size": [10, 10], "counts": "o" * 2_000_000 + "0"},
                {"size": [10, 10], "counts": "oooooo0" * 300_000}, {"size": [10, 10], "counts": "PPPPPP?" * 300_000})
    """,
    "long borders of polygons": """
        w = 80_000_000
        refused([[-2.0 * w, 0, 2.0 * w, 0, -2.0 * w, 1]], height=1, width=w)
        refused([[0, 0, 1, w, 1, 0]], height=w, width=1)
        corners = np.random.default_rng(0).uniform(-4000, 4000, 200_000).tolist()
        refused([corners], height=2000, width=2000)
        refused([[0, 0, 2000, 2000, 0, 2000]] * 5000, height=2000, width=2000)
        refused([[0, 0, 2, 2, 0, 2]], height=2**31, width=2)
        refused([[0, 0, 1e308, 1e308, 0, 1]], [[0, 0, -1e308, 1e308, 0, 1]], height=2000, width=2000)
        large, wrong = parse_masks([[[0, 0, 46339, 0, 46339, 46339, 0, 46339]]], height=46340, width=46340)
        assert not wrong and MaskColumn.from_arrow(large).areas()[0] > 46330**2
    """,
    "many masks": """
        one = {"size": [46340, 46340], "counts": "T3"}
        assert len(parse_masks([one] * 200_000)[1]) == 200_000
        assert column(*[{"size": [10, 10], "counts": "d0n0b1"}] * 200_000).areas().sum() == 6_000_000
    """,
}  # fmt: skip


@pytest.mark.parametrize("engine_name", ["pycocotools", "numba"])
def test_bombs(engine_name: str, tmp_path: Path) -> None:
    if engine_name not in available_engines():
        pytest.skip(f"{engine_name} is not installed")
    script = PREAMBLE + "".join(
        f"print({name!r}, flush=True)\n{textwrap.dedent(body).strip()}\n" for name, body in BOMBS.items()
    )
    file = tmp_path / "bombs.py"
    file.write_text(script)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "PYTHONPATH": str(root), "BENCH_DATASETS_ENGINE": engine_name},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"died at {done.stdout!r}: {done.stderr[-2000:]}"
    assert done.stdout.splitlines() == list(BOMBS)
