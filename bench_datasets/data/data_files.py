"""The files that a caller of `load_dataset` names one by one, with `data_files=`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from bench_datasets.data.source import (
    PARQUET,
    Access,
    Listing,
    SourceFile,
    SourceNotFoundError,
    stem_of,
    version_of,
)
from bench_datasets.faults import BenchError


def list_given(
    name: str,
    data_files: object,
    parts: Sequence[str],
    *,
    suffix: str = PARQUET,
    base: str | None,
    access: Access,
) -> Listing:
    """The files that a caller named with `data_files=`, in the order given.

    Args:
        name: the benchmark, for messages.
        data_files: `{part: path or list of paths}`, or paths alone whose file names begin with a part's name. Paths may
            be patterns and URLs.
        parts: the parts there are.
        suffix: what the names of files that are to tell their part end in.
        base: folder that relative paths start from; the working directory where None.
        access: token and storage options.

    Raises:
        SourceNotFoundError: a path or pattern matches nothing.
        BenchError: a key or file name is no part's.
    """
    from datasets import DownloadConfig
    from datasets.data_files import resolve_pattern

    config = DownloadConfig(token=access.token, storage_options=dict(access.storage_options or {}))
    found: dict[str, list[str]] = {}
    for part, pattern in _given_patterns(name, data_files, parts):
        try:
            urls = resolve_pattern(pattern, base_path=base or os.getcwd(), download_config=config)
        except FileNotFoundError as error:
            raise SourceNotFoundError(f"data_files: expected files at {pattern!r}, found none ({error})") from error
        for url in urls:
            found.setdefault(part or _part_of(url, parts, suffix), []).append(url)
    listed: dict[str, tuple[SourceFile, ...]] = {}
    for part in parts:
        if part in found:
            listed[part] = tuple(_describe(url, access) for url in found[part])
    if not listed:
        raise BenchError(f"data_files: expected files of {name}, got none in {data_files!r}")
    return Listing(os.path.dirname(next(iter(listed.values()))[0].url), None, listed)


def _given_patterns(name: str, data_files: object, parts: Sequence[str]) -> list[tuple[str | None, str]]:
    """Part (None where the file name is to tell) and pattern of each entry of `data_files`."""
    entries: Iterable[tuple[object, object]]
    entries = data_files.items() if isinstance(data_files, Mapping) else [(None, data_files)]
    out: list[tuple[str | None, str]] = []
    for key, value in entries:
        if key is not None and key not in parts:
            raise BenchError(f"data_files: expected parts of {name} ({', '.join(parts)}) as keys, got {str(key)!r}")
        paths = [value] if isinstance(value, str | os.PathLike) else value
        if not isinstance(paths, Sequence) or not all(isinstance(path, str | os.PathLike) for path in paths):
            raise BenchError(f"data_files: expected paths, a list of them or {{part: paths}}, got {data_files!r}")
        out += [(None if key is None else str(key), os.fspath(path)) for path in paths]
    return out


def _part_of(url: str, parts: Sequence[str], suffix: str) -> str:
    base = url.split("::", 1)[0].rsplit("/", 1)[-1]
    for part in parts:
        if stem_of(base, part, suffix) is not None or stem_of(base, part, PARQUET) is not None:
            return part
    raise BenchError(
        f"data_files: {url}: the file's name begins with none of {', '.join(parts)}; "
        f"name its part: data_files={{part: path}}"
    )


def _describe(url: str, access: Access) -> SourceFile:
    fs, path = access.open(url)
    return SourceFile(url, version_of(fs.info(path)))
