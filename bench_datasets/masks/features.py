"""The mask as a `datasets` feature: plain types only, so that it loads where this package is absent."""

from __future__ import annotations

from typing import Any

from datasets import List, Value

MASK_FEATURE: dict[str, Any] = {"size": List(Value("int32")), "counts": Value("string")}
"""`datasets` feature of a mask: `size` [height, width] and `counts`; Arrow stores it as `MASK_TYPE`."""
