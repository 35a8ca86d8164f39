"""Are the versions that are installed here the lowest ones that pyproject.toml allows?

On the oldest Python of its range every direct dependency must be. A newer Python has no builds of some of them, so that
there it is only said which ones are higher.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.version import Version

EXTRAS = ("", *os.environ.get("EXTRAS", "dev").split(","))


def main() -> int:
    """1 if a bound is not true."""
    oldest = metadata.metadata("bench-datasets")["Requires-Python"].removeprefix(">=")
    higher = set()
    for text in metadata.requires("bench-datasets") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not any(wanted.marker.evaluate({"extra": extra}) for extra in EXTRAS):
            continue
        bounds = [Version(part.version) for part in wanted.specifier if part.operator == ">="]
        found = Version(metadata.version(wanted.name))
        if not bounds or found != max(bounds):
            higher.add(f"{wanted}: the lowest that goes with the others is {found}")
    for line in sorted(higher):
        print(line)
    return int(bool(higher) and sys.version_info[:2] == Version(oldest).release[:2])


if __name__ == "__main__":
    sys.exit(main())
