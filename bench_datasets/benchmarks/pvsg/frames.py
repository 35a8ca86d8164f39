"""PVSG's images: label maps out of mask files, and frames out of image files or the mp4."""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray
from PIL.PngImagePlugin import PngImageFile

from bench_datasets._util.untrusted import open_file
from bench_datasets.benchmarks.pvsg.annotation import VideoEntry
from bench_datasets.benchmarks.pvsg.source_files import ImageFolder
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError, BenchWarning
from bench_datasets.predictions.formats.png import stored_values

logger = logging.getLogger(__name__)

MAX_PIXELS = 1 << 26
"""Most pixels of a mask file whose size is not the annotated one."""

_ONE_CHANNEL = {"P", "L", "I", "1", "I;16"}


def label_maps(folder: ImageFolder, entry: VideoEntry) -> Iterator[tuple[int, NDArray[Any]]]:
    """Number and label map of each frame, one at a time.

    Args:
        folder: the video's masks.
        entry: its annotation; an image of far more pixels is not decoded.

    Raises:
        BenchError: a file is missing, damaged, no image of one channel, or far too large; the message names it.
    """
    limit = max(entry.height * entry.width, MAX_PIXELS)
    for frame in folder.files:
        yield frame, read_label_map(folder.read(frame), limit, folder.where(frame))


def read_label_map(data: bytes, limit: int, name: str) -> NDArray[Any]:
    """A mask file's pixel values.

    Args:
        data: a PNG with a palette, or of one channel; pixel value = object id, 0 = void.
        limit: most pixels that it may have.
        name: what messages call it.

    Returns:
        `(height, width)` integers.

    Raises:
        BenchError: it cannot be read, has colours in place of ids, or too many pixels.
    """
    try:
        with PIL.Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            found, mode = (image.height, image.width), image.mode
            if found[0] * found[1] <= limit and mode in _ONE_CHANNEL and isinstance(image, PngImageFile):
                values = stored_values(image, data, name)
                return values.astype(np.uint8) if values.dtype == np.bool_ else values
    except BenchError:
        raise
    except Exception as error:
        raise BenchError(
            f"{name}: expected a mask as PNG, found a file that cannot be read ({type(error).__name__}: {error}); "
            f"fetch it again"
        ) from error
    if mode not in _ONE_CHANNEL:
        raise BenchError(f"{name}: expected pixel values that are object ids (a palette or one channel), found {mode}")
    raise BenchError(f"{name}: expected at most {limit:,} pixels, found {found[0]} x {found[1]} (height x width)")


@functools.cache
def can_decode_video() -> bool:
    """Whether PyAV (the extra `video`) is installed and imports."""
    if importlib.util.find_spec("av") is None:
        return False
    try:
        importlib.import_module("av")
    except Exception as error:  # a broken installation may raise anything
        warnings.warn(
            f"PyAV does not import ({type(error).__name__}: {error}); videos are not decoded",
            BenchWarning,
            stacklevel=2,
        )
        return False
    return True


def video_frames(url: str, access: Access, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Frames of an mp4 as PNG files; frame n of the video is n.

    Args:
        url: path or fsspec URL; a zip's member is copied to a temporary file first.
        access: token and storage options.
        wanted: the frames' numbers, ascending.

    Yields:
        Number and PNG of each wanted frame that the video has.

    Raises:
        BenchError: the video is missing or cannot be decoded; the message names it.
    """
    import av

    if not wanted:
        return
    fs, path = access.open(url)
    try:
        with tempfile.TemporaryFile() as scratch, open_file(fs, path, url) as stream:
            source: IO[bytes] = stream
            if "::" in url:
                shutil.copyfileobj(stream, scratch, 1 << 20)
                scratch.seek(0)
                source = scratch
            left = iter(wanted)
            following: int | None = next(left)
            with av.open(source) as container:
                for n, frame in enumerate(container.decode(video=0)):
                    if n == following:
                        yield n, _png(frame.to_image())
                        following = next(left, None)
                    if following is None:
                        return
    except (av.FFmpegError, OSError, IndexError) as error:
        raise BenchError(f"{url}: the video cannot be read ({type(error).__name__}: {error})") from error


def _png(image: PIL.Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def frame_images(
    folder: ImageFolder, video: str | None, access: Access, wanted: Sequence[int]
) -> Iterator[tuple[int, Mapping[str, Any] | None]]:
    """The image of each wanted frame, in order: of the frames' folder, else of the mp4, else None.

    Args:
        folder: the video's frames.
        video: path or URL of the mp4.
        access: token and storage options.
        wanted: the frames' numbers, ascending.
    """
    if folder.files or video is None or not can_decode_video():
        for frame in wanted:
            data = folder.read(frame) if frame in folder.files else None
            yield frame, None if data is None else {"bytes": data, "path": f"{frame:04d}.png"}
        return
    decoded = video_frames(video, access, wanted)
    ready = next(decoded, None)
    for frame in wanted:
        if ready is not None and ready[0] == frame:
            yield frame, {"bytes": ready[1], "path": f"{frame:04d}.png"}
            ready = next(decoded, None)
        else:
            yield frame, None
