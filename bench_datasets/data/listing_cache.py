"""Cache of file listings, so that built data of the Hub loads while the Hub is unreachable.

A build's name in the datasets cache follows from the files that it was made of, and which these are is the Hub's to
say. So a listing of the Hub's is kept beside the builds, in `<datasets cache>/bench_datasets/sources/`, by what was
asked for; where the Hub does not answer, the one kept is taken, as `datasets` itself takes the build that it has.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path

from bench_datasets._util.atomic import whole_file
from bench_datasets.data.source import Listing, SourceFile, SourceUnreachableError

logger = logging.getLogger(__name__)


class Memory:
    """The listing of one request, on disk.

    Args:
        cache_dir: the datasets cache.
        asked: all that the listing depends on; each value has a `repr` that says it all.
    """

    def __init__(self, cache_dir: str | os.PathLike[str], *asked: object) -> None:
        name = hashlib.sha256(repr(asked).encode()).hexdigest()[:32]
        self._path = Path(cache_dir, "bench_datasets", "sources", f"{name}.json")

    def keep(self, listing: Listing) -> None:
        """Remember a listing of the Hub's; without room for it nothing is kept."""
        if listing.revision is None:
            return
        parts = {part: [list(file) for file in files] for part, files in listing.parts.items()}
        text = json.dumps({"source": listing.source, "revision": listing.revision, "parts": parts})
        try:
            if self._path.is_file() and self._path.read_text(encoding="utf-8") == text:
                return
            with whole_file(self._path) as stream:
                stream.write(text.encode("utf-8"))
        except OSError as error:
            logger.info("%s: the source's files are not remembered (%s)", listing.source, error)

    def recall(self) -> Listing | None:
        """The listing that was kept; None where there is none."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            parts = {
                part: tuple(SourceFile(*map(str, file)) for file in files) for part, files in found["parts"].items()
            }
            return Listing(str(found["source"]), str(found["revision"]), parts)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def is_away(error: SourceUnreachableError) -> bool:
    """Whether the Hub could not be asked at all, or is out of order; not that it has refused."""
    status = getattr(getattr(error.__cause__, "response", None), "status_code", None)
    return status is None or status >= 500
