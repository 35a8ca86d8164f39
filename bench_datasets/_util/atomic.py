"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(*targets: Path, sync: bool = False) -> Iterator[list[Path]]:
    """Paths to write to; the files take their targets' places together when the block ends well.

    The files have the permissions that any new file gets. If the block fails, the targets stay as they are. What a
    killed process of this machine left behind is removed by the next write of the same target.

    Args:
        targets: paths of the files; their folders must exist.
        sync: whether to wait until the content is on the disk, so that it outlives a crash of the machine.

    Yields:
        A path per target, in the same folder and with the same ending.

    Raises:
        OSError: a file can't be written; the error names the target.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.txt"
        >>> with replacing(path) as (partial,):
        ...     _ = partial.write_text("text")
        >>> path.read_text(), [file.name for file in path.parent.iterdir()]
        ('text', ['a.txt'])
    """
    own = f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
    partial = [target.with_name(f".{target.stem}.{own}{target.suffix}") for target in targets]
    for target in targets:
        _remove_abandoned(target)
    try:
        yield partial
        for file, target in zip(partial, targets, strict=True):
            if sync:
                with open(file, "rb") as stream:
                    os.fsync(stream.fileno())
            try:
                os.replace(file, target)
            except OSError as error:
                raise with_path(error, target) from error
    except OSError as error:
        for file, target in zip(partial, targets, strict=True):
            if file.name in f"{error.filename or ''} {error}" or (len(targets) == 1 and error.filename is None):
                raise with_path(error, target) from error
        raise
    finally:
        for file in partial:
            with contextlib.suppress(OSError):
                file.unlink()


@contextlib.contextmanager
def whole_file(target: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name when it is complete, or not at all; see `replacing`.

    Args:
        target: path of the file; its folder is made.
        sync: whether to wait until the content is on the disk.

    Yields:
        A binary stream.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.txt"
        >>> with whole_file(path) as stream:
        ...     _ = stream.write(b"text")
        >>> path.read_bytes()
        b'text'
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, sync=sync) as (partial,), open(partial, "wb") as stream:
        yield stream


def with_path(error: OSError, target: Path) -> OSError:
    """Make an error that names the target's path and the reason; Arrow's own errors may name neither."""
    found = re.search(r"\[errno (\d+)\]", str(error))
    number = error.errno or (int(found[1]) if found else None)
    return OSError(number, os.strerror(number), str(target)) if number else OSError(f"{target}: {error}")


def _remove_abandoned(target: Path) -> None:
    """Remove files that ended processes of this machine left while they wrote the same target."""
    for left in target.parent.glob(
        glob.escape(f".{target.stem}.{socket.gethostname()}.") + "*" + glob.escape(target.suffix)
    ):
        pid = left.name.removesuffix(target.suffix).rsplit(".", 2)[-2]
        if pid.isdigit() and int(pid) != os.getpid() and not _runs(int(pid)):
            with contextlib.suppress(OSError):
                left.unlink()


def _runs(pid: int) -> bool:
    """Whether a process is running; True where that is unknown."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
