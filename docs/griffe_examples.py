"""Docstrings write `Example:`; the documentation's reader knows `Examples:` as code that is shown as such."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Let examples be read as examples."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rename the section in one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
