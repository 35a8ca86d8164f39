"""A benchmark's truth for commands: `load_dataset`, asked the right way."""

from __future__ import annotations

from typing import Any

from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.registry import register


def open_truth(
    name: str,
    data: str | None = None,
    *,
    split: str = "test",
    config: str | None = None,
    streaming: bool = False,
    images: bool = False,
    num_proc: int | None = None,
) -> Any:
    """The truth rows of a benchmark; labels alone unless images are asked for.

    Args:
        name: the benchmark.
        data: its root (a folder or URL), one of its files (Parquet, JSON Lines), or "sample" for the built-in one;
            None for the environment's or the default.
        split: of the builder's splits; slices such as `test[:5]` where not streaming.
        config: of the builder's configs.
        streaming: give an `IterableDataset` and build nothing.
        images: read the images too.
        num_proc: workers to build with.

    Returns:
        A `Dataset`, or an `IterableDataset` where `streaming`.

    Raises:
        BenchError: the source is missing, unreachable or not what it should be; the message says which.
    """
    from datasets import load_dataset

    register(name, get_benchmark(name).builder)
    if data == "sample" and config is None:
        data, config = None, "sample"
    options: dict[str, Any] = {"streaming": streaming, "images": images}
    if not streaming:
        options["num_proc"] = num_proc
    options["data_files" if data is not None and data.endswith((".parquet", ".jsonl")) else "data_dir"] = data
    return load_dataset(name, config, split=split, **options)
