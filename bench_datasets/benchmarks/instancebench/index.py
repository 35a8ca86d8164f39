"""First pass over an InstanceBench split: the facts that rows need about other rows.

Ids must be unique over all files of a split, and an expression may borrow the target of another one, which may stand in
a later file. So every file is read once before rows are made. What is kept is small: the ids, and the target masks of
the expressions that others name as donors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench_datasets.benchmarks.instancebench.manifest import Tces, read_lines, read_manifest, read_tces
from bench_datasets.benchmarks.instancebench.source_masks import sound_candidates
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError


class Index(NamedTuple):
    """Facts about the rows of a split that other rows need.

    Attributes:
        rows: how many sets the split holds.
        repeated: the expression ids that stand more than once in it.
        donors: for every expression that another names as its donor, its target's mask; None where it has none.
    """

    rows: int
    repeated: frozenset[str]
    donors: Mapping[str, dict[str, Any] | None]


def index_split(files: Sequence[tuple[str, str]], access: Access) -> Index:
    """Read every file of a split once; those lines that hold donors a second time.

    Args:
        files: of each file what is read (a path or URL), and what messages call it.
        access: token and storage options.

    Raises:
        BenchError: a line is malformed, a `tces_id` stands twice, or a donor is no expression of the split.
    """
    sets: dict[str, tuple[int, int]] = {}
    homes: dict[str, tuple[int, int]] = {}
    asked: dict[str, str] = {}
    repeated: set[str] = set()
    for number, (path, name) in enumerate(files):
        for tces in read_manifest(path, access, name=name):
            at = (number, int(tces.place.rsplit(":", 1)[1]))
            if tces.tces_id in sets:
                first = sets[tces.tces_id]
                raise BenchError(
                    f"{tces.place}: field 'tces_id': expected an id of its own, found {tces.tces_id!r}, which stands "
                    f"at {files[first[0]][1]}:{first[1]} already; remove one of the two"
                )
            sets[tces.tces_id] = at
            for expression in tces.expressions:
                if expression.expression_id in homes:
                    repeated.add(expression.expression_id)
                homes.setdefault(expression.expression_id, at)
                if expression.donor is not None:
                    asked.setdefault(expression.donor, f"{tces.place}: expression {expression.expression_id!r}")
    for donor, where in asked.items():
        if donor not in homes:
            raise BenchError(
                f"{where}: field 'donor_expression_id': expected an expression of the same split, found {donor!r}, "
                "which none of its files holds"
            )
    return Index(len(sets), frozenset(repeated), _donors(files, {donor: homes[donor] for donor in asked}, access))


def _donors(
    files: Sequence[tuple[str, str]], homes: Mapping[str, tuple[int, int]], access: Access
) -> dict[str, dict[str, Any] | None]:
    """The target masks of these expressions, whose file and line are given."""
    at: dict[tuple[int, int], list[str]] = {}
    for donor, home in homes.items():
        at.setdefault(home, []).append(donor)
    found: dict[str, dict[str, Any] | None] = {}
    for number, (path, name) in enumerate(files):
        last = max((line for file, line in at if file == number), default=0)
        if not last:
            continue
        for line, raw in read_lines(path, access, name=name):
            if (number, line) in at:
                mask = _target(read_tces(raw, f"{name}:{line}"))
                found.update(dict.fromkeys(at[number, line], mask))
            if line >= last:
                break
    return found


def _target(tces: Tces) -> dict[str, Any] | None:
    (candidates,) = sound_candidates([tces])
    return None if candidates.target < 0 else candidates.masks[candidates.target]
