"""Make a release: `python scripts/release.py 0.2.0`. It commits and tags; it pushes and uploads nothing.

What it checks, in order: the tree is clean, the version follows the last one, the changelog has notes for it,
`make check` and `make test` pass, what is built holds what it should (see `look_into`).
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_WHEEL = 1_000_000
"""Bytes that a wheel may have."""

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UNRELEASED = "## Unreleased\n"


class ReleaseError(Exception):
    """The release can't be made; the message says why."""


def main(args: Sequence[str] | None = None) -> int:
    """Make a release, or say why not."""
    parser = argparse.ArgumentParser(description="Make a release; nothing is pushed or uploaded.")
    parser.add_argument("version", help="like 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="check and build, and leave files and git alone")
    parser.add_argument("--no-checks", action="store_true", help="leave `make check` and `make test` out")
    given = parser.parse_args(args)
    try:
        release(ROOT, given.version, dry_run=given.dry_run, checks=not given.no_checks)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def release(root: Path, version: str, *, dry_run: bool = False, checks: bool = True) -> None:
    """Check, build, commit and tag.

    Args:
        root: the repository.
        version: of the release.
        dry_run: whether to leave files and git alone.
        checks: whether to run `make check` and `make test`.

    Raises:
        ReleaseError: something is not as it should be; the files are then as they were.
    """
    if _run(root, "git", "status", "--porcelain"):
        raise ReleaseError("the tree is not clean: commit or put away what is changed")
    source, changes = root / "bench_datasets" / "__init__.py", root / "CHANGELOG.md"
    old_source, old_changes = source.read_text(encoding="utf-8"), changes.read_text(encoding="utf-8")
    new_source = with_version(old_source, version)
    new_changes = with_notes(old_changes, version, datetime.date.today().isoformat())
    if checks:
        for target in ("check", "test"):
            _run(root, "make", target)
    try:
        if not dry_run:
            source.write_text(new_source, encoding="utf-8")
            changes.write_text(new_changes, encoding="utf-8")
        found = current_version(source.read_text(encoding="utf-8"))
        _run(root, sys.executable, "-m", "build", "--outdir", str(root / "dist"))
        wheel = root / "dist" / f"bench_datasets-{found}-py3-none-any.whl"
        look_into(wheel)
        if dry_run:
            print(f"would release {version}; {wheel.name} is sound")
            return
        _run(root, "git", "commit", "--quiet", "--message", f"Release {version}", "--", str(source), str(changes))
    except BaseException:
        source.write_text(old_source, encoding="utf-8")
        changes.write_text(old_changes, encoding="utf-8")
        raise
    _run(root, "git", "tag", "--annotate", f"v{version}", "--message", f"bench_datasets {version}")
    print(f"released {version}: look at it, then git push --follow-tags, and upload {wheel}")


def current_version(text: str) -> str:
    """The version that the package's source names.

    Example:
        >>> current_version('__version__ = "0.1.0"')
        '0.1.0'
    """
    found = _VERSION.search(text)
    if found is None:
        raise ReleaseError("bench_datasets/__init__.py names no version")
    return found[1]


def with_version(text: str, version: str) -> str:
    """The package's source with a later version.

    Raises:
        ReleaseError: it is no version, or not a later one.

    Example:
        >>> with_version('__version__ = "0.1.0"', "0.2.0")
        '__version__ = "0.2.0"'
    """
    old, new = _NUMBER.fullmatch(current_version(text)), _NUMBER.fullmatch(version)
    if new is None or old is None:
        raise ReleaseError(f"expected a version like 0.2.0, got {version!r}")
    if tuple(map(int, new.groups())) <= tuple(map(int, old.groups())):
        raise ReleaseError(f"expected a version after {old[0]}, got {version}")
    return _VERSION.sub(f'__version__ = "{version}"', text, count=1)


def with_notes(text: str, version: str, day: str) -> str:
    """The changelog with what is unreleased under the version.

    Raises:
        ReleaseError: there is nothing under `## Unreleased`.
    """
    head, found, rest = text.partition(_UNRELEASED)
    notes = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not found or not notes:
        raise ReleaseError("CHANGELOG.md: expected notes under '## Unreleased', found none")
    return f"{head}{_UNRELEASED}\n## {version} ({day})\n{rest}"


def look_into(wheel: Path) -> None:
    """Check that a wheel holds the package, its samples, cards and templates, nothing else, and is small.

    Raises:
        ReleaseError: it does not.
    """
    size = wheel.stat().st_size
    if size >= MAX_WHEEL:
        raise ReleaseError(f"{wheel.name}: {size:,} bytes, expected fewer than {MAX_WHEEL:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    needed = (
        "py.typed", "benchmark.py", "plugins.py", "samples/pbench.py", "samples/instancebench.py", "samples/pvsg.py",
        "cards/dataset_card.md", "report/templates/page.html", "results/paper_results/pbench.json",
        *(f"benchmarks/{name}/{name}.py" for name in ("pbench", "instancebench", "pvsg")),
    )  # fmt: skip
    absent = [name for name in needed if f"bench_datasets/{name}" not in names]
    if absent:
        raise ReleaseError(f"{wheel.name}: expected {', '.join(absent)} inside, found none")
    foreign = sorted(name for name in names if not re.match(r"bench_datasets(-[\w.+]+\.dist-info)?/", name))
    if foreign or any("__pycache__" in name for name in names):
        raise ReleaseError(f"{wheel.name}: expected the package alone, found {', '.join(foreign) or '__pycache__'}")


def _run(root: Path, *command: str) -> str:
    """Run a command in the repository; what it prints.

    Raises:
        ReleaseError: it fails.
    """
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ReleaseError(f"{' '.join(command[:3])} failed:\n{tail}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
