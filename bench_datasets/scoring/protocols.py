"""Choosing one of a benchmark's protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from bench_datasets.faults import BenchError

ProtocolT = TypeVar("ProtocolT")


def choose_protocol(benchmark: str, protocols: Mapping[str, ProtocolT], name: str | None) -> ProtocolT:
    """The protocol of a name; the first one for `None`.

    Args:
        benchmark: its name, for the message.
        protocols: by name, the default first.
        name: which.

    Raises:
        BenchError: there is no protocol of that name; the message lists those there are.

    Example:
        >>> choose_protocol("mybench", {"strict": 1, "loose": 2}, None)
        1
    """
    chosen = name or next(iter(protocols))
    if chosen not in protocols:
        raise BenchError(f"protocol of {benchmark}: expected one of {', '.join(protocols)}, got {chosen!r}")
    return protocols[chosen]
