"""Benchmarks of other packages: one that works is a benchmark like ours, one that doesn't harms nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from datasets import load_dataset

import bench_datasets as bd
from bench_datasets.benchmark import BENCHMARKS, Benchmark, get_benchmark
from bench_datasets.cli.doctor import examine
from bench_datasets.data import register_all
from bench_datasets.faults import FAULTS, BenchError, stops
from bench_datasets.plugins import GROUP, PluginError, PluginWarning, find_plugins
from bench_datasets.report.generic import SECTION

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "plugin_refcoco"
SOUND = """
from bench_datasets.benchmark import Benchmark, Protocol, Source

class Toy(Benchmark):
    name = '{name}'
    title = 'Toy'
    builder = 'toy.builder'
    source = Source('', '', 'TOY')
    protocols = {{'default': Protocol(name='default', version='1', meaning='Nothing.')}}
    headline = {{'default': 'x'}}
    truth_columns = ('key',)
    score_columns = dict.fromkeys(('key', 'cluster', 'protocol', 'row_sha256', 'faults', 'skipped'), (None, ''))

    def measure(self, rows, protocol, options): ...
    def statistics(self, table, protocol, *, k=None, thresholds=None, by=()): ...

B = Toy()
"""
Install = Callable[..., None]


def write_package(folder: Path, name: str, entry_points: str, source: str | None = None) -> None:
    """A package as an installer leaves it: its metadata, and a module."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    if source is not None:
        (folder / f"{name}_module.py").write_text(source)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def call(package: str, source: str | None, *names: str) -> None:
        lines = [f"{name} = {package}_module:B" for name in names]
        write_package(tmp_path, package, "\n".join([f"[{GROUP}]", *lines]), source)
        BENCHMARKS.refresh()

    yield call
    monkeypatch.undo()
    BENCHMARKS.refresh()


def names_found() -> list[str]:
    """Without plug-ins that the tests' environment has."""
    return [name for name in BENCHMARKS if name in BENCHMARKS.own or name.startswith("toy")]


def test_one_that_works_is_a_benchmark(install: Install) -> None:
    install("toy_good", SOUND.format(name="toy_good"), "toy_good")
    assert "toy_good_module" not in sys.modules
    assert list(BENCHMARKS.plugins) == sorted(BENCHMARKS.plugins)
    assert str(BENCHMARKS.plugins["toy_good"]) == "plug-in 'toy_good' of toy_good 1.0 (toy_good_module:B)"
    assert isinstance(get_benchmark("toy_good"), Benchmark)
    assert names_found() == [*BENCHMARKS.own, "toy_good"]
    assert list(BENCHMARKS)[:3] == ["pbench", "instancebench", "pvsg"]
    with pytest.raises(BenchError, match="tells no kinds of errors apart"):
        get_benchmark("toy_good").error_kinds(None, None, None)
    assert get_benchmark("toy_good").report_section() is SECTION


def test_plugin_fault_codes_are_known_and_change_no_code_of_others(install: Install) -> None:
    kinds = "fault_kinds('toy truth', 'noted', blurred='a blurred image', malformed_mask='no fault at all')"
    source = "from bench_datasets.faults import fault_kinds" + SOUND.format(name="toy_faults")
    assert "blurred" not in FAULTS
    assert stops("blurred")
    install("toy_faults", source.replace("headline =", f"faults = {kinds}\n    headline ="), "toy_faults")
    assert (FAULTS["blurred"].where, FAULTS["blurred"].default, stops("blurred")) == ("toy truth", "noted", False)
    assert stops("malformed_mask")
    assert len(FAULTS) == len(set(FAULTS)) == len(dict(FAULTS))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import module_that_nobody_has", "ModuleNotFoundError"),
        ("x = (", "SyntaxError"),
        (None, "ModuleNotFoundError"),
        ("C = 1", "AttributeError"),
        ("B = 5", "found int"),
        (SOUND.format(name="other"), "must agree"),
        (SOUND.format(name="toy_bad").replace("{'default': 'x'}", "{}"), "headline"),
        (SOUND.format(name="toy_bad").replace("protocols = {", "protocols = {} and {"), "protocols"),
        (SOUND.format(name="toy_bad").replace("'toy.builder'", "None"), "builder"),
        (SOUND.format(name="toy_bad").replace("'TOY'", "''"), "source"),
        (SOUND.format(name="toy_bad").replace("headline =", "faults = {'blurred': 'noted'}; headline ="), "faults"),
        (
            SOUND.format(name="toy_bad").replace("truth_columns", "columns_of_truth"),
            "lacks the attributes truth_columns",
        ),
        (SOUND.format(name="toy_bad").replace("'row_sha256', ", ""), "score_columns: expected row_sha256"),
        (SOUND.format(name="toy_bad").replace("def statistics", "def numbers"), "abstract method"),
        (SOUND.format(name="toy_bad").replace("B = Toy()", "B = Toy"), "found ABCMeta"),
    ],
)
def test_one_that_does_not_work_warns_once(install: Install, source: str | None, why: str) -> None:
    sys.modules.pop("toy_bad_module", None)
    install("toy_bad", source, "toy_bad")
    with pytest.warns(PluginWarning, match="plug-in 'toy_bad' of toy_bad 1.0") as caught:
        found = [names_found(), names_found()]
    assert found == [list(BENCHMARKS.own)] * 2
    assert "toy_bad" not in BENCHMARKS
    assert len(caught) == 1
    assert why in str(caught[0].message)
    with pytest.raises(PluginError, match=re.escape(why)):
        get_benchmark("toy_bad")
    with pytest.raises(BenchError, match="expected one of pbench, instancebench, pvsg"):
        get_benchmark("nothing")
    assert get_benchmark("pbench").title == "PBench"


def test_names_are_given_once(install: Install) -> None:
    install("toy_a", SOUND.format(name="toy_a"), "toy_a", "pbench", "Toy-A")
    install("toy_b", SOUND.format(name="toy_a"), "toy_a")
    with pytest.warns(PluginWarning) as caught:
        found = BENCHMARKS.plugins
    assert [name for name in found if "toy" in name.lower() or name == "pbench"] == ["toy_a"]
    said = [str(warning.message) for warning in caught]
    assert any("'pbench' of toy_a" in text and "already" in text for text in said)
    assert any("'Toy-A' of toy_a" in text for text in said)
    assert any("'toy_a' of toy_b" in text and "toy_a 1.0 declares" in text for text in said)
    assert type(BENCHMARKS["pbench"]).__module__ == "bench_datasets.benchmarks.pbench"


def test_a_name_of_datasets_is_not_taken_over(install: Install) -> None:
    install("toy_csv", SOUND.format(name="csv"), "csv")
    with pytest.warns(PluginWarning, match="'csv' is taken"):
        register_all()


def test_metadata_that_is_broken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise ValueError("bad bytes")

    monkeypatch.setattr("importlib.metadata.entry_points", fail)
    with pytest.warns(PluginWarning, match="bad bytes"):
        assert find_plugins() == {}


def test_load_dataset_says_what_is_wrong(install: Install) -> None:
    install("toy_late", "raise RuntimeError('out of order')", "toy_late")
    register_all()
    with pytest.warns(PluginWarning), pytest.raises(PluginError, match="out of order"):
        load_dataset("toy_late")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The example and a broken plug-in, installed for processes of their own."""
    folder = tmp_path_factory.mktemp("site")
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    (declared,) = re.findall(rf'^\[project\.entry-points\."{re.escape(GROUP)}"\]\n(\w+) = "([^"]+)"', project, re.M)
    write_package(folder, "bench_refcoco", f"[{GROUP}]\n{declared[0]} = {declared[1]}\n")
    write_package(folder, "toy_broken", f"[{GROUP}]\ntoy_broken = toy_broken_module:B\n", "raise RuntimeError('no')")
    paths = [str(folder), str(EXAMPLE), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "100"}


def python(environment: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], env=environment, cwd=EXAMPLE, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_example_passes_its_tests(environment: dict[str, str], tmp_path: Path) -> None:
    homes = {"HF_HOME": str(tmp_path), "HF_DATASETS_CACHE": str(tmp_path / "datasets")}
    done = python({**environment, **homes}, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_plugin_cache_new_package_or_builder_version_builds_rows_again(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(EXAMPLE / "bench_refcoco", package / "bench_refcoco", ignore=shutil.ignore_patterns("__pycache__"))
    builder = package / "bench_refcoco" / "builder.py"
    write_package(package, "bench_refcoco", f"[{GROUP}]\nrefcoco_toy = bench_refcoco:BENCHMARK\n")
    metadata = package / "bench_refcoco-1.0.dist-info" / "METADATA"
    data = tmp_path / "data"
    data.mkdir()
    line = {"id": 0, "expression": "first", "height": 2, "width": 2, "segmentation": {"size": [2, 2], "counts": "13"}}
    for part in ("val", "test"):
        (data / f"{part}.jsonl").write_text(json.dumps(line) + "\n")
    code = (
        "import bench_datasets, datasets\n"
        f"for where in ({{'data_dir': {str(data)!r}}}, {{'name': 'sample'}}):\n"
        "    print(datasets.load_dataset('refcoco_toy', split='test', **where)['expression'][0])\n"
    )
    homes = {"HF_HOME": str(tmp_path / "home"), "HF_DATASETS_CACHE": str(tmp_path / "home" / "datasets")}
    paths = {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}

    def first_rows() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **homes, **paths}, cwd=tmp_path,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def edit(file: Path, old: str, new: str) -> None:
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))

    assert first_rows() == ["first", "the left square"]
    edit(builder, "return {**line, ", 'return {**line, "expression": line["expression"].upper(), ')
    assert first_rows() == ["first", "the left square"]  # neither version was raised
    edit(metadata, "Version: 1.0", "Version: 1.1")
    assert first_rows() == ["FIRST", "THE LEFT SQUARE"]
    edit(builder, ".upper()", ".title()")
    edit(builder, '    PARTS = ("val", "test")\n', '    PARTS = ("val", "test")\n    VERSION = "1.1.0"\n')
    assert first_rows() == ["First", "The Left Square"]
    edit(builder, "the {word} square", "that {word} square")
    assert first_rows() == ["First", "That Left Square"]


def test_importing_imports_no_plugin(environment: dict[str, str]) -> None:
    code = (
        "import sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "import bench_datasets\n"
        "assert not {'bench_refcoco', 'toy_broken_module'} & set(sys.modules)\n"
        "from bench_datasets.benchmark import BENCHMARKS\n"
        "BENCHMARKS['refcoco_toy'], BENCHMARKS['pvsg']\n"
        "assert 'toy_broken_module' not in sys.modules\n"
    )
    done = python(environment, "-c", code)
    assert done.returncode == 0, done.stderr


def test_the_command_line_lives_with_a_broken_one(environment: dict[str, str]) -> None:
    done = python(environment, "-m", "bench_datasets", "info", "nothing")
    assert done.returncode == 2
    assert "refcoco_toy" in done.stderr
    assert "toy_broken" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_names_a_builder_that_cannot_be_imported(install: Install) -> None:
    install("toy_bare", SOUND.format(name="toy_bare"), "toy_bare")
    wrong = examine(0)["plugins"]["toy_bare"]["wrong"]
    assert wrong == "its builder toy.builder can't be imported: ModuleNotFoundError: No module named 'toy'"


def test_plugin_without_optional_members_scores_and_compares(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    source = (
        "from bench_refcoco import RefCOCOToy\n"
        "class Plain(RefCOCOToy):\n"
        "    name, headline, headline_parts = 'toy_plainly', {'default': 'x'}, {}\n"
        "B = Plain()\n"
    )
    install("toy_plainly", source, "toy_plainly")
    benchmark = get_benchmark("toy_plainly")
    assert (benchmark.unit, benchmark.sort_columns, benchmark.legend) == ("row", ("key",), {})
    assert benchmark.lower_is_better == benchmark.unpaired_slices == benchmark.unpaired_metrics == frozenset()
    table = pa.table({"key": ["a"]})
    assert benchmark.paired_rows(table) is table
    assert benchmark.comparable_to("default", table, {}, {}) is None
    full = np.ones((2, 3), bool)
    truth = [
        {"key": f"test/{k}", "id": k, "split": "test", "expression": "x", "masks": [full], "faults": []}
        for k in range(3)
    ]
    halves = [full & (np.arange(3) < 2) for _ in truth]
    runs = {}
    for name, masks in (("whole", [full] * 3), ("two_thirds", halves)):
        rows = [{**row, "pred_masks": [mask]} for row, mask in zip(truth, masks, strict=True)]
        runs[name] = bd.map_score(rows, "toy_plainly")
    result = bd.summarize("toy_plainly", runs["two_thirds"], draws=0)
    assert result.metrics["miou"].value == pytest.approx(2 / 3)
    assert "no headline number: the benchmark names 'x', and its metrics are miou, oiou" in str(result)
    compared = bd.compare(runs, benchmark="toy_plainly", draws=10, permutations=10)
    assert "miou" in str(compared)


def test_doctor_tells_a_headline_that_is_no_metric(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from bench_datasets.benchmarks.instancebench import InstanceBench\n"
        "class Head(InstanceBench):\n"
        "    name, headline = 'toy_head', {'default': 'mIoU'}\n"
        "B = Head()\n"
    )
    install("toy_head", source, "toy_head")
    assert (wrong := examine(0)["plugins"]["toy_head"]["wrong"]) is not None
    assert re.search(r"its headline 'mIoU' \(default\) is none of its metrics: .*miou", wrong)


def test_example_plugin_is_two_short_modules() -> None:
    files = {str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*") if path.is_file()}
    own = {file for file in files if "__pycache__" not in file and not file.startswith(".")}
    place = "bench_refcoco/"
    modules = [f"{place}__init__.py", f"{place}builder.py"]
    assert own == {"pyproject.toml", *modules, f"{place}card.md", "tests/test_refcoco.py"}
    lines = [line for module in modules for line in (EXAMPLE / module).read_text(encoding="utf-8").splitlines()]
    assert len([line for line in lines if line.strip()]) <= 100
    imported = re.findall(r"^from (bench_datasets\S*) import", "\n".join(lines), re.MULTILINE)
    assert imported
    assert not [name for name in imported if any(part.startswith("_") for part in name.split("."))]
