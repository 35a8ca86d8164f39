"""Fixtures over small sources."""

from __future__ import annotations

from ..support.source_fixtures import counted, mini, no_pvsg_environment, pvsg_mini, write

__all__ = ["counted", "mini", "no_pvsg_environment", "pvsg_mini", "write"]
