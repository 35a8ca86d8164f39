"""Where the samples lie once they are drawn: a folder of the user's cache, named after the code that draws them."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

import datasets.config

from bench_datasets._util.temporary import temporary_folder


@functools.lru_cache(maxsize=1)
def code_version() -> str:
    """The first 16 hex digits of the SHA-256 of this package's sources: another drawing is another folder."""
    digest = hashlib.sha256()
    for source in sorted(resources.files("bench_datasets.samples").iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def built(name: str, files: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder `<HF_HOME>/bench_datasets/sample-<version>/<name>`, built where any of its files is missing.

    A file is written elsewhere and moved in whole, so nobody ever reads half of one, and two processes that build at
    once end with the same files. Where the cache cannot be written, the folder is a temporary one of this process.

    Args:
        name: the folder's name.
        files: what the folder holds when it is whole, paths relative to it.
        build: writes these files under the folder it is given.
    """
    folder = Path(datasets.config.HF_CACHE_HOME) / "bench_datasets" / f"sample-{code_version()}" / name
    if _whole(folder, files):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            build(Path(scratch))
            _move_in(Path(scratch), folder, files)
    except OSError:
        folder = _scratch_root(os.getpid()) / name
        if not _whole(folder, files):
            build(folder)
    return folder


def _whole(folder: Path, files: Sequence[str]) -> bool:
    return all((folder / file).is_file() for file in files)


def _move_in(scratch: Path, folder: Path, files: Sequence[str]) -> None:
    for file in files:
        target = folder / file
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(scratch / file, target)
            except PermissionError:  # Windows: another process has just put it there and holds it open
                if not target.is_file():
                    raise


@functools.lru_cache(maxsize=1)
def _scratch_root(owner: int) -> Path:
    """A temporary folder of the process `owner`, removed when that ends."""
    return temporary_folder("sample-")
