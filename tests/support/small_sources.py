"""Small sources in PBench's layout, and a file system that tells which bytes were asked of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, ClassVar

import PIL.Image
import pyarrow as pa
from datasets import load_dataset
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

MASK = {"size": [10, 10], "counts": "d0n0b1"}
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
MASKS = pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))


def jpeg(height: int = 10, width: int = 10, seed: int = 0, exif: int | None = None) -> bytes:
    """An image of one colour."""
    out = io.BytesIO()
    image = PIL.Image.new("RGB", (width, height), (seed % 256, 50, 90))
    tags = PIL.Image.Exif()
    if exif is not None:
        tags[0x0112] = exif
    image.save(out, "JPEG", exif=tags)
    return out.getvalue()


def table(rows: Sequence[dict[str, Any]], masks: pa.DataType = MASKS, image: bool = True) -> pa.Table:
    """Source rows; what a row leaves out is a sound default."""
    full = []
    for row in rows:
        own = row.get("masks", [MASK])
        sound: dict[str, Any] = {
            "image": {"bytes": jpeg(seed=row["id"] or 0), "path": None},
            "expression": f"thing {row['id']}",
            "masks": own,
            "count": len(own or []),
        }
        full.append({**sound, **row})
    columns = {
        "image": pa.array([row["image"] for row in full], IMAGE),
        "expression": pa.array([row["expression"] for row in full], pa.string()),
        "masks": pa.array([row["masks"] for row in full], masks),
        "count": pa.array([row["count"] for row in full], pa.int32()),
        "id": pa.array([row["id"] for row in full], pa.int64()),
    }
    if not image:
        del columns["image"]
    return pa.table(columns)


def load(root: object, config: str | None = None, **kwargs: Any) -> Any:
    """PBench from a source, its one split."""
    return load_dataset("pbench", config, split=kwargs.pop("split", "test"), data_dir=str(root), **kwargs)


class CountedFile(AbstractBufferedFile):  # type: ignore[misc]
    """A remote file in miniature: each fetch is noted."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        CountedFileSystem.reads.append((self.path, start, end))
        return CountedFileSystem.files[self.path][start:end]


class CountedFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Read-only files in memory, reached as remote ones are."""

    protocol = "counted"
    files: ClassVar[dict[str, bytes]] = {}
    reads: ClassVar[list[tuple[str, int, int]]] = []

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """Files directly in a folder."""
        path = self._strip_protocol(path).rstrip("/")
        found = [name for name in self.files if path in (name, name.rsplit("/", 1)[0])]
        if not found:
            raise FileNotFoundError(path)
        infos = [{"name": name, "size": len(self.files[name]), "type": "file", "etag": "1"} for name in found]
        return infos if detail else [info["name"] for info in infos]

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> CountedFile:
        return CountedFile(self, path, mode, size=len(self.files[path]), **kwargs)
