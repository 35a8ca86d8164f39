"""The page on scaling is true: its commands run, the array as several processes at once, and its constants are ours."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmark import get_benchmark
from bench_datasets.execution import fingerprint

from ..support.markdown_blocks import ROOT, Block, blocks, environment
from ..support.sample_runs import answers_of, files, truth_of

PAGE = ROOT / "docs" / "scaling.md"


def block(rest: str) -> Block:
    (found,) = [item for item in blocks(PAGE) if item.language == "bash" and item.rest == rest]
    return found


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {
        **environment(tmp_path / "bin"),
        "TRUTH": "sample",
        "PREDICTIONS": samples.pbench_sample_predictions("hasty"),
        "OUT": str(tmp_path / "out"),
    }


def test_an_array_of_jobs(variables: dict[str, str], tmp_path: Path) -> None:
    text = block("array").text
    (count,) = re.findall(r"--array=0-(\d+)", text)
    tasks = range(int(count) + 1)
    jobs = [
        subprocess.Popen(
            ["bash", "-c", text], stderr=subprocess.PIPE, text=True,
            env={**variables, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": str(len(tasks))},
        )
        for task in tasks
    ]  # fmt: skip
    for job in jobs:
        _, errors = job.communicate(timeout=120)
        assert job.returncode == 0, errors
    subprocess.run(["bash", "-c", block("merge").text], env=variables, check=True, stdout=subprocess.DEVNULL)
    plain = bd.score("pbench", truth_of("pbench"), answers_of("pbench"))
    files(plain, tmp_path / "plain")
    merged = (tmp_path / "out" / "scores.parquet").read_bytes()
    assert merged == (tmp_path / "plain" / "scores.parquet").read_bytes()


def test_a_look_first(variables: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(["bash", "-c", block("").text], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 of 35 rows scored (partial run)" in done.stdout


def test_the_constants_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    pbench, pvsg = get_benchmark("pbench"), get_benchmark("pvsg")
    for line, table in (
        ("PBench, once a run", pbench.seconds_alone), ("PBench, scoring", pbench.seconds_shared),
        ("PVSG, once a run", pvsg.seconds_alone), ("PVSG, scoring", pvsg.seconds_shared),
    ):  # fmt: skip
        (row,) = [row for row in text.splitlines() if row.startswith(f"| {line}")]
        told = [float(cell.replace(",", "")) for cell in row.split("|")[2:-1] if cell.strip()]
        factors = {"rows": 1e6, "masks": 1e6, "bytes": 1e9, "pairs": 1e6}
        assert told == pytest.approx([value * factors[term] for term, value in table.items()], rel=0.01)


def test_the_size_of_parts_is_told() -> None:
    source = Path(fingerprint.__file__).read_text(encoding="utf-8")
    assert "PART_UNITS, PART_BYTES = 1024, 1 << 22" in source
    assert "at most 1,024 score rows and 4 MiB of ground truth and predictions" in " ".join(
        PAGE.read_text(encoding="utf-8").split()
    )
