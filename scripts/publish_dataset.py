"""Publish a benchmark's truth to the Hub: `python scripts/publish_dataset.py pbench --repo ORG/NAME --dry-run`.

The same as `bench-datasets publish dataset`; `--help` lists the options.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `bench-datasets publish dataset` with the arguments given."""
    from bench_datasets.cli import main as run

    run(["publish", "dataset", *sys.argv[1:]])


if __name__ == "__main__":
    main()
