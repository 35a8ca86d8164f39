"""The Hub that the tests stand on answers Hugging Face's own clients, with and without their storage of chunks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from packaging.version import Version

SCRIPT = Path(__file__).parents[1] / "support" / "hub_client_checks.py"
CHUNKS = importlib.util.find_spec("hf_xet") is not None


@pytest.mark.parametrize(
    "without_chunks", ["1", pytest.param("", marks=pytest.mark.skipif(not CHUNKS, reason="no hf_xet"))]
)
def test_every_check_passes(hub: Any, without_chunks: str) -> None:
    code = f"import runpy; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    done = hub.run(code, timeout=300, HF_HUB_DISABLE_XET=without_chunks, HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) > 20
    assert {name: words for name, words in found.items() if words} == {}
    if Version(huggingface_hub.__version__) >= Version("1.20"):  # older ones send no chunks to this Hub
        assert (hub.root / "hub" / "xorbs").is_dir() == (without_chunks == "")
