"""Where a benchmark's files are: roots on this machine, on the Hub or behind any fsspec URL, and what lies in them.

A source holds one or more files a part (`level_0`, ..., `dense`), Parquet or whatever its benchmark comes as, in the
layout that the Hub gives to splits: `data/<part>-00000-of-00001.parquet`, or the same names, or `<part>.parquet`,
directly in the root; or it is a copy that `publish dataset` wrote, whose Parquet lies in a folder named after a config.
Only those files are looked at; whatever else lies beside them (folders of images, say) is neither listed nor opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from fsspec.core import url_to_fs

from bench_datasets.benchmark import Source
from bench_datasets.data.provenance import without_secrets
from bench_datasets.faults import BenchError

_VERSION_FIELDS = {
    *("ETag", "etag", "blob_id", "xet_hash", "sha", "checksum", "md5Hash", "content_md5", "CRC", "size"),
    *(
        "generation",
        "mtime",
        "ino",
        "created",
        "modified",
        "updated",
        "LastModified",
        "last_modified",
        "modificationTime",
    ),
    "date_time",
}
"""What the file systems call that which changes with a file."""

PARQUET = ".parquet"
"""What the names of a copy's files end in."""

_HUB = "hf://datasets/"
_SHARD = re.compile(r"^-(\d+)-of-(\d+)(?:-[0-9a-zA-Z]+)?$")


class SourceNotFoundError(BenchError, FileNotFoundError):
    """The root, or a file or folder that it should hold, does not exist."""


class SourceUnreachableError(BenchError, ConnectionError):
    """The root is on another machine and could not be asked."""


class SourceFile(NamedTuple):
    """One file of a source: a path of this machine or a URL, and a text that changes when the file does."""

    url: str
    version: str


@dataclass(frozen=True)
class Listing:
    """The files of a source.

    Attributes:
        source: the Hub dataset id, the folder or the URL; what provenance names.
        revision: the commit that is read, where the source is a Hub dataset; else None.
        parts: the files of each part that is there, in source order.
        declared: rows by config and split, as a Hub dataset's card declares them at that commit.
    """

    source: str
    revision: str | None
    parts: dict[str, tuple[SourceFile, ...]]
    declared: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Pinned(NamedTuple):
    """A root that is read: its URL (the Hub's with a commit), what provenance calls it, its commit, its `declared`."""

    root: str
    source: str
    commit: str | None
    declared: Mapping[str, Mapping[str, int]]


TIMEOUT = 30.0
"""Seconds that a web server may take to begin an answer, or to go on with one."""

_Token = TypeVar("_Token")


def check_token(token: _Token) -> _Token:
    """A token, unless it or the stored one has characters that no token has; HTTP could not send them.

    Raises:
        BenchError: it has.

    Example:
        >>> check_token("hf_caf\u00e9")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        bench_datasets.faults.BenchError: token: expected letters, digits and _ alone, found character 7 to be ...
    """
    from huggingface_hub import get_token

    used = token if isinstance(token, str) else get_token() if token is not False else None
    for number, character in enumerate(used or "", start=1):
        if not " " < character < "\x7f":
            raise BenchError(
                f"token: expected letters, digits and _ alone, found character {number} to be another one; copy the"
                " token again and set it as HF_TOKEN or with `hf auth login`"
            )
    return token


def open_url(url: str, **options: Any) -> tuple[Any, str]:
    """The fsspec file system of a URL or path, and the path in it; web servers that stop answering are not waited for.

    Args:
        url: a path or any URL that fsspec opens.
        options: of the file system.
    """
    if "http://" in url or "https://" in url:
        import aiohttp

        limits = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        client = {"timeout": limits, **options.pop("client_kwargs", {})}
        if "::" in url:
            scheme = "https" if "https://" in url else "http"
            options[scheme] = {"client_kwargs": client, **options.get(scheme, {})}
        else:
            options["client_kwargs"] = client
    fs, path = url_to_fs(url, **options)
    return fs, path


def why(error: BaseException) -> str:
    """Format an error of reaching a source, without user names and tokens of URLs."""
    name, text = type(error).__name__, first_line(error)
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return f"the server did not answer within {TIMEOUT:.0f} s"
    if name in ("ClientPayloadError", "ContentLengthError", "TransferEncodingError", "IncompleteRead"):
        return "the server broke its answer off before the end"
    if name in ("ServerDisconnectedError", "ClientOSError", "ConnectionResetError"):
        return "the server closed the connection without an answer"
    shown = _SECRET.sub(r"\1", text)
    return f"{name}: {shown}"


def is_of_the_way(error: BaseException) -> bool:
    """Whether an error is one of the connection to a server, not one of the file."""
    kinds = (TimeoutError, asyncio.TimeoutError, ConnectionError)
    return isinstance(error, kinds) or type(error).__module__.partition(".")[0] == "aiohttp"


@contextlib.contextmanager
def in_words(name: str) -> Iterator[None]:
    """Say in words what goes wrong on the way to a source while its files are read.

    Args:
        name: what the file is called.

    Raises:
        SourceUnreachableError: the server did not answer, or broke its answer off.
    """
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        if not is_of_the_way(error):
            raise
        raise SourceUnreachableError(f"{without_secrets(name)}: {why(error)}; run it again, or download it") from error


_SECRET = re.compile(r"(\w://)[^/\s@]+@|\?[^\s'\")]+")


@dataclass(frozen=True)
class Access:
    """How a source's file systems are opened.

    Attributes:
        token: Hub token, or True for the stored one.
        storage_options: fsspec options by protocol (`{"s3": {...}}`), or one protocol's options flat.
    """

    token: str | bool | None = None
    storage_options: Mapping[str, Any] | None = None

    def open(self, url: str) -> tuple[Any, str]:
        """The fsspec file system of a URL or path, and the path in it."""
        protocol = url.split("::", 1)[0].split("://", 1)[0] if "://" in url else "file"
        given = dict(self.storage_options or {})
        flat = {key: value for key, value in given.items() if not isinstance(value, Mapping)}
        options = {**flat, **given.get(protocol, {})} if protocol != "file" else {}
        if "::" in url:
            options |= {key: value for key, value in given.items() if isinstance(value, Mapping) and key in url}
        if protocol == "hf" and self.token is not None:
            options.setdefault("token", self.token)
        if protocol == "hf":
            check_token(self.token)
        return open_url(url, **options)


def list_source(
    name: str,
    default: Source,
    parts: Sequence[str],
    *,
    suffix: str = PARQUET,
    copies: str | None = None,
    root: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    access: Access | None = None,
) -> Listing:
    """Find a benchmark's files.

    Args:
        name: the benchmark, for messages.
        default: its entry's source: the environment variable that is asked next and the Hub dataset that is asked last.
        parts: the names that files may begin with.
        suffix: what their names end in.
        copies: the folder in which a published copy has its Parquet, where that is not the source's own layout.
        root: a folder or any fsspec URL (`hf://datasets/org/name@revision`, `s3://...`, `https://...`).
        revision: branch, tag or commit; for a Hub source only.
        access: token and storage options.

    Raises:
        SourceNotFoundError: the root is missing or holds none of the files.
        SourceUnreachableError: the root is elsewhere and does not answer; the message names the other ways.
        BenchError: the root is a file, a part's files are incomplete or ambiguous, or `revision` has nothing to name.
    """
    access = access or Access()
    chosen = os.fspath(root) if root else os.environ.get(default.env) or None
    ways = (
        f"{'Three other ways' if default.repo else 'Three ways'}: load_dataset({name!r}, data_dir=...) with a folder "
        f"or URL holding {_names(suffix)}; the environment variable {default.env} with the same; or the built-in "
        f"load_dataset({name!r}, 'sample')."
    )
    if chosen is None and not default.repo:
        raise SourceNotFoundError(f"{name}: there is no public source to read by default. {ways}")
    if chosen is None:
        chosen = f"{_HUB}{default.repo}" if revision else f"{_HUB}{default.repo}@{default.revision}"
    pinned = pin(chosen, revision, access, ways)
    found = _list(pinned.root, parts, suffix, copies, access, ways)
    return Listing(pinned.source, pinned.commit, found, pinned.declared)


def pin(chosen: str, revision: str | None, access: Access, ways: str) -> Pinned:
    """Settle which root is read: a path in full, or a Hub URL with the commit that it names now.

    Raises:
        SourceUnreachableError: the Hub does not answer, or not with such a dataset.
        BenchError: `revision` has nothing to name, or names another than the URL.
    """
    if chosen.startswith("hf://"):
        return _pin(chosen, revision, access, ways)
    if revision is not None:
        raise BenchError(
            f"revision: expected a source on the Hub, got revision={revision!r} with {chosen!r}; leave it out"
        )
    root = _local(chosen)
    return Pinned(root, root, None, {})


def list_copy(root: str, folder: str, parts: Sequence[str], access: Access) -> dict[str, tuple[SourceFile, ...]]:
    """The files of a published copy's config, by part; none where `root` holds no such folder or files.

    Raises:
        SourceUnreachableError: the root is elsewhere and does not answer.
        BenchError: a part's files are incomplete or ambiguous.
    """
    try:
        fs, path = access.open(root)
        return _in_folder(fs, f"{path.rstrip('/')}/{folder}" if path else folder, parts, PARQUET, root)[0]
    except BenchError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except Exception as error:
        if root.startswith(("http://", "https://")):  # a web server need not list its folders
            return {}
        raise SourceUnreachableError(
            f"{without_secrets(root)}: the source could not be listed ({why(error)})"
        ) from error


def _in_folder(
    fs: Any, folder: str, parts: Sequence[str], suffix: str, root: str
) -> tuple[dict[str, tuple[SourceFile, ...]], list[str]]:
    """The files of each part in a folder, and all names in it."""
    names = sorted(str(name).rstrip("/") for name in fs.ls(folder, detail=False))
    by_part = {part: _of_part(names, part, suffix, root) for part in parts}
    found = {
        part: tuple(SourceFile(_full(fs, name, root), version_of(fs.info(name))) for name in files)
        for part, files in by_part.items()
        if files
    }
    return found, [name.rsplit("/", 1)[-1] for name in names]


ALSO_CALLED = {"validation": ("val",)}
"""Other words that a part's files may begin with."""


def stem_of(base: str, part: str, suffix: str) -> str | None:
    """The text between the part's name and the suffix: empty, or from a hyphen on; None for other files."""
    for name in (part, *ALSO_CALLED.get(part, ())):
        if base.startswith(name) and base.endswith(suffix):
            rest = base[len(name) : -len(suffix)]
            if not rest or rest.startswith("-"):
                return rest
    return None


def _local(root: str) -> str:
    """A local root as an absolute path; a URL as it is, without the last slash."""
    if root.startswith("file://"):
        root = url_to_fs(root)[1]
    return root.rstrip("/") if "://" in root else os.path.realpath(os.path.expanduser(root))


def _pin(url: str, revision: str | None, access: Access, ways: str) -> Pinned:
    """A Hub URL with its revision replaced by the commit that it names now; `source` is the dataset's id."""
    from huggingface_hub import HfApi

    if not url.startswith(_HUB):
        return Pinned(url.rstrip("/"), url, None, {})
    match = re.fullmatch(r"([^/@]+/[^/@]+)(?:@([^/]+))?((?:/.*)?)", url[len(_HUB) :].rstrip("/"))
    if match is None:
        raise BenchError(f"data_dir: expected hf://datasets/<org>/<name>[@revision][/folder], got {url!r}")
    repo, named, folder = match[1], (match[2] or "").replace("%2F", "/") or None, match[3]
    if revision is not None and named is not None and revision != named:
        raise BenchError(f"revision: {url!r} names {named!r} already, got revision={revision!r}; leave one of them out")
    try:
        info = HfApi(token=check_token(access.token)).dataset_info(repo, revision=revision or named, timeout=30)
    except BenchError:
        raise
    except Exception as error:
        raise SourceUnreachableError(
            f"{_HUB}{repo}@{revision or named or 'main'}: the Hub's dataset could not be read ({why(error)}). {ways}"
        ) from error
    declared = None if info.card_data is None else info.card_data.get("dataset_info")
    return Pinned(f"{_HUB}{repo}@{info.sha}{folder}", repo, info.sha, _declared(declared))


def _declared(infos: object) -> dict[str, dict[str, int]]:
    """Rows by config and split in a card's `dataset_info`; entries of another form are left out."""
    found: dict[str, dict[str, int]] = {}
    for info in infos if isinstance(infos, list) else [infos]:
        splits = info.get("splits") if isinstance(info, Mapping) else None
        if isinstance(info, Mapping) and isinstance(splits, list):
            found[str(info.get("config_name", "default"))] = {
                str(split.get("name")): split["num_examples"]
                for split in splits
                if isinstance(split, Mapping) and type(split.get("num_examples")) is int
            }
    return found


def _names(suffix: str) -> str:
    """The files of a source, for messages."""
    return "data/<part>-*.parquet" if suffix == PARQUET else f"<split>{suffix} or <split>-*{suffix}"


def _list(
    root: str, parts: Sequence[str], suffix: str, copies: str | None, access: Access, ways: str
) -> dict[str, tuple[SourceFile, ...]]:
    """The files of each part under `root/data`, or else under `root`; else those of a copy."""
    seen: list[str] = []
    try:
        fs, path = access.open(root)
        protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
        if not {"http", "https"} & set(protocols) and fs.isfile(path):
            raise BenchError(
                f"{root}: expected a folder that holds {_names(suffix)}, found a file; name single files by "
                f"data_files={{part: path}} (parts: {', '.join(parts)})"
            )
        exists = False
        tried = [("data", suffix), ("", suffix)] + ([] if copies is None else [(copies, PARQUET), ("", PARQUET)])
        for below, ending in tried:
            folder = (f"{path.rstrip('/')}/{below}" if path else below) if below else path
            try:
                found, names = _in_folder(fs, folder, parts, ending, root)
            except (FileNotFoundError, NotADirectoryError):
                continue
            exists = True
            if found:
                return found
            seen += [name for name in names if name not in seen]
    except BenchError:
        raise
    except Exception as error:
        name = without_secrets(root)
        raise SourceUnreachableError(f"{name}: the source could not be listed ({why(error)}). {ways}") from error
    example = f"data/{parts[0]}-00000-of-00001.parquet" if suffix == PARQUET else f"{parts[-1]}{suffix}"
    expected = f"expected files like {example} (parts: {', '.join(parts)})"
    if not exists:
        raise SourceNotFoundError(f"{root}: {expected}, found no such folder")
    found_text = (
        ", ".join(seen[:5]) + (f" and {len(seen) - 5} more" if len(seen) > 5 else "") if seen else "an empty folder"
    )
    raise SourceNotFoundError(f"{root}: {expected}, found {found_text}")


def _of_part(names: Sequence[str], part: str, suffix: str, root: str) -> list[str]:
    """The names that are this part's files, checked to be one whole set."""
    stems = {name: stem for name in names if (stem := stem_of(name.rsplit("/", 1)[-1], part, suffix)) is not None}
    shards = [match for stem in stems.values() if (match := _SHARD.match(stem))]
    totals = {int(match[2]) for match in shards}
    if len(totals) > 1 or (shards and len(shards) != len(stems)) or ("" in stems.values() and len(stems) > 1):
        listed = ", ".join(sorted(name.rsplit("/", 1)[-1] for name in stems)[:6])
        raise BenchError(f"{root}: {part}: expected one set of files, found more than one ({listed}); remove the other")
    if totals:
        numbers, total = sorted(int(match[1]) for match in shards), totals.pop()
        if numbers != list(range(total)):
            missing = sorted(set(range(total)) - set(numbers))
            what = f"number {missing[0]} is missing" if missing else "a number occurs twice or is beyond it"
            raise BenchError(
                f"{root}: {part}: expected {total} files, found {len(numbers)} ({what}); fetch the part again"
            )
    return list(stems)


def _full(fs: Any, name: str, root: str) -> str:
    if "://" not in root:
        return name
    url = str(fs.unstrip_protocol(name))
    return url + "::" + root.split("::", 1)[1] if "::" in root else url


def version_of(info: Mapping[str, Any]) -> str:
    """A text that changes when the file does, made of its etag, hash, times and size where known."""
    return ";".join(f"{field}={info[field]}" for field in sorted(_VERSION_FIELDS & info.keys()))


def first_line(error: BaseException) -> str:
    """The first line of an error, short enough for a message."""
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
