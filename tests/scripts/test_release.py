"""Releases: what is refused, what is changed, and what a wheel holds."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ..support.loading import load_file

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    return load_file(ROOT / "scripts" / "release.py")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built without the network."""
    pytest.importorskip("hatchling", reason="needs hatchling")
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = target.glob("*.whl")
    return found


def test_the_wheel_is_small_and_whole(script: Any, wheel: Path) -> None:
    script.look_into(wheel)
    assert wheel.stat().st_size < 1_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    for path in (ROOT / "bench_datasets").rglob("*.py"):
        assert str(path.relative_to(ROOT)) in names, path
    assert "License-Expression: Apache-2.0" in about


def test_the_wheel_draws_its_samples(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])}
    env["HF_HOME"] = str(tmp_path / "home")
    code = (
        "import bench_datasets, pathlib; from bench_datasets import samples\n"
        f"assert pathlib.Path(bench_datasets.__file__).is_relative_to({str(tmp_path)!r})\n"
        "for name in ('pbench', 'instancebench', 'pvsg'):\n"
        "    print(len(list(pathlib.Path(getattr(samples, name + '_sample_dir')()).rglob('*.*'))))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(int(count) > 0 for count in done.stdout.split())
    assert len(done.stdout.split()) == 3


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small repository with a package, a changelog and a build that makes a wheel out of nothing."""
    root = tmp_path / "tree"
    (root / "bench_datasets").mkdir(parents=True)
    (root / "bench_datasets" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- A thing.\n")
    (root / ".gitignore").write_text("dist/\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *command], cwd=root, check=True, env={**os.environ, **AUTHOR})
    return root


AUTHOR = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_a_release(script: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AUTHOR.items():
        monkeypatch.setenv(name, value)
    built: list[str] = []
    real = script._run

    def run(root: Path, *command: str) -> str:
        if command[0] == "git":
            return str(real(root, *command))
        built.append(" ".join(command[-4:]))
        return ""

    monkeypatch.setattr(script, "_run", run)
    monkeypatch.setattr(script, "look_into", lambda wheel: built.append(wheel.name))
    script.release(tree, "0.2.0", dry_run=True)
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "tag") == ""
    script.release(tree, "0.2.0")
    assert git(tree, "tag") == "v0.2.0"
    assert git(tree, "log", "-1", "--format=%s") == "Release 0.2.0"
    assert "bench_datasets-0.2.0-py3-none-any.whl" in built
    assert [words for words in built if words.startswith("make")] == ["make check", "make test"] * 2
    changes = (tree / "CHANGELOG.md").read_text()
    assert changes.index("## Unreleased") < changes.index("## 0.2.0 (") < changes.index("- A thing.")
    with pytest.raises(script.ReleaseError, match="found none"):
        script.release(tree, "0.3.0")


def test_what_fails_leaves_the_files(script: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = script._run
    monkeypatch.setattr(script, "_run", lambda root, *c: real(root, *c) if c[0] == "git" else "")
    with pytest.raises(FileNotFoundError):  # the build made no wheel
        script.release(tree, "0.2.0")
    assert git(tree, "status", "--porcelain") == ""


def test_what_is_refused(script: Any, tree: Path) -> None:
    with pytest.raises(script.ReleaseError, match=r"after 0\.1\.0"):
        script.release(tree, "0.1.0")
    with pytest.raises(script.ReleaseError, match=r"like 0\.2\.0"):
        script.release(tree, "2")
    (tree / "stray.py").write_text("")
    with pytest.raises(script.ReleaseError, match="not clean"):
        script.release(tree, "0.2.0")


def test_wheels_that_are_not_right(script: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "poor.whl", "w") as archive:
        archive.writestr("bench_datasets/py.typed", "")
    with pytest.raises(script.ReleaseError, match=r"samples/pbench\.py"):
        script.look_into(tmp_path / "poor.whl")
    (tmp_path / "fat.whl").write_bytes(os.urandom(1_000_000))
    with pytest.raises(script.ReleaseError, match="1,000,000 bytes"):
        script.look_into(tmp_path / "fat.whl")
