"""Publish metrics as Spaces: `python scripts/publish_metrics.py pbench --org ORG --dry-run`.

The same as `bench-datasets publish metrics`; `--help` lists the options.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `bench-datasets publish metrics` with the arguments given."""
    from bench_datasets.cli import main as run

    run(["publish", "metrics", *sys.argv[1:]])


if __name__ == "__main__":
    main()
