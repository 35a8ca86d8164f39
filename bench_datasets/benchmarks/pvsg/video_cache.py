"""Videos that are built already, kept one Arrow file each, so that a build that was killed goes on where it was.

They lie in `<datasets cache>/bench_datasets/pvsg/<two digits>/<key>.arrow` (`~/.cache/huggingface/datasets` where no
other cache is named). The key is a hash of all that a row is made of: the annotation entry, where the masks are, each
one's frame and version, the video's path, and the version of the builder. Nothing is ever read that was made of
something else. The folder may be removed at any time; `download_mode="force_redownload"` writes it anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from bench_datasets._util.atomic import whole_file
from bench_datasets.faults import Fault

logger = logging.getLogger(__name__)

_FAULTS = b"bench_datasets.faults"


def part_key(*facts: str | None) -> str:
    """SHA-256 of texts, each kept apart from the next."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


class Parts:
    """A folder of built videos.

    Args:
        folder: where they lie; it is made when the first is written.
        schema: the rows' columns.
        reuse: whether to read what is there; what is built is written in any case.
    """

    def __init__(self, folder: Path, schema: pa.Schema, *, reuse: bool = True) -> None:
        self._folder, self._schema, self._reuse = folder, schema, reuse

    def load(self, key: str) -> tuple[pa.Table, list[Fault]] | None:
        """A video's row and faults; None where there is no sound file of it."""
        path = self._path(key)
        if not self._reuse or not path.is_file():
            return None
        try:
            with pa.OSFile(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
            faults = [Fault(*fault) for fault in json.loads((table.schema.metadata or {})[_FAULTS])]
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("pvsg: %s: the kept video cannot be read (%s); it is built again", path, error)
            return None
        table = table.replace_schema_metadata(None)
        if len(table) != 1 or not table.schema.equals(self._schema.remove_metadata()):
            return None
        return table, faults

    def save(self, key: str, table: pa.Table, faults: Sequence[Fault]) -> None:
        """Keep a video's row and faults; the file appears whole or not at all. Without room for it nothing is kept."""
        path = self._path(key)
        kept = table.replace_schema_metadata({_FAULTS: json.dumps([list(fault) for fault in faults])})
        try:
            with whole_file(path) as file, pa.ipc.new_file(file, kept.schema) as writer:
                writer.write_table(kept)
        except OSError as error:
            logger.info("pvsg: %s: the video is not kept (%s)", path, error)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.arrow"
