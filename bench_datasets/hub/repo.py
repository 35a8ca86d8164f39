"""A Hub repo as it stands: which files it holds, and whether they are those that are wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bench_datasets._util.untrusted import read_regular
from bench_datasets.faults import BenchError
from bench_datasets.hub import client

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Content: TypeAlias = bytes | str | Path
"""A file's content: bytes, text, or the path of a local file."""

LARGEST = 16 << 20
"""Bytes of the largest file whose content is read: cards and results are far smaller."""


class Head:
    """A repo as it stands at one commit.

    Attributes:
        repo_id: its name.
        repo_type: `model`, `dataset` or `space`.
        sha: the commit; `None` where the repo is not there yet.
        files: size, git blob id and (large files) SHA-256 by path.
    """

    def __init__(
        self, api: HfApi, repo_id: str, repo_type: str, sha: str | None, kept: dict[str, bytes] | None = None
    ) -> None:
        from huggingface_hub.hf_api import RepoFile

        self.repo_id, self.repo_type, self.sha = repo_id, repo_type, sha
        self._api, self._kept = api, {} if kept is None else kept
        self.files: dict[str, tuple[int, str, str | None]] = {}
        if sha is not None:
            for entry in api.list_repo_tree(repo_id, recursive=True, revision=sha, repo_type=repo_type):
                if isinstance(entry, RepoFile):
                    self.files[entry.path] = (entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else None)

    def read(self, path: str) -> bytes | None:
        """A file's content, or `None` if it does not exist; a file is fetched once.

        Raises:
            BenchError: the file holds more than `LARGEST` bytes.
        """
        if path not in self.files or self.sha is None:
            return None
        size, blob, _ = self.files[path]
        if size > LARGEST:
            raise BenchError(f"{self.repo_id}: {path}: expected at most {LARGEST:,} bytes, found {size:,}")
        if blob not in self._kept:
            self._kept[blob] = read_regular(self.download(path), LARGEST, f"{self.repo_id}: {path}")
        return self._kept[blob]

    def download(self, path: str) -> Path:
        """A file's copy in the local cache of the Hub; it is fetched where it is not there yet."""
        return Path(self._api.hf_hub_download(self.repo_id, path, repo_type=self.repo_type, revision=self.sha))

    def download_all(self, paths: Iterable[str]) -> dict[str, Path]:
        """The local copies of several files, fetched side by side."""
        wanted = list(paths)
        with ThreadPoolExecutor(8) as pool:
            return dict(zip(wanted, pool.map(self.download, wanted), strict=True))

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The content of several files, fetched side by side; those that are not there are left out."""
        wanted = [path for path in paths if path in self.files]
        with ThreadPoolExecutor(8) as pool:
            found = dict(zip(wanted, pool.map(self.read, wanted), strict=True))
        return {path: data for path, data in found.items() if data is not None}

    def text(self, path: str) -> str | None:
        """A file's content as text, or `None` where there is no such file.

        Raises:
            BenchError: it is not UTF-8.
        """
        data = self.read(path)
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BenchError(f"{self.repo_id}: {path}: expected UTF-8 text ({error}); mend it there first") from None

    def holds(self, path: str, content: Content) -> bool:
        """Whether a file is there with just this content; nothing is fetched to tell."""
        if path not in self.files:
            return False
        size, blob, sha256 = self.files[path]
        if size != size_of(content):
            return False
        if sha256 is not None:
            return _digest(content, hashlib.sha256()) == sha256
        return _digest(content, hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)) == blob


def look(repo: str, *, kind: str = "dataset", token: str | None = None) -> Head:
    """A repo as it is now.

    Args:
        repo: its name.
        kind: `model`, `dataset` or `space`.
        token: to sign in with; by default the user's own.

    Raises:
        BenchError: it can't be read; one line says why.
    """
    api = client.connect(token)
    return client.trying(lambda: Head(api, repo, kind, api.repo_info(repo, repo_type=kind).sha), repo, kind, api)


def size_of(content: Content) -> int:
    """Bytes of a content."""
    if isinstance(content, Path):
        return content.stat().st_size
    return len(content.encode() if isinstance(content, str) else content)


def _digest(content: Content, digest: hashlib._Hash) -> str:
    if isinstance(content, Path):
        with content.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    else:
        digest.update(content.encode() if isinstance(content, str) else content)
    return digest.hexdigest()
