"""A row's picture: its bytes as they come, the size that `datasets` will show it in, and its hash."""

from __future__ import annotations

import hashlib
import io
from typing import Any, NamedTuple

_ORIENTATION = 0x0112  # the EXIF tag


class Picture(NamedTuple):
    """A row's image, or the reason why it can't be read.

    Attributes:
        value: `{"bytes", "path"}` as the `Image` feature stores it; None where there is no readable image.
        size: height and width in pixels, turned the way the EXIF orientation says.
        sha256: of the bytes, in hex.
        problem: what is wrong; empty where nothing is.
    """

    value: dict[str, Any] | None
    size: tuple[int, int] | None
    sha256: str | None
    problem: str


def no_picture(problem: str) -> Picture:
    """A picture that is not there, and why."""
    return Picture(None, None, None, problem)


def picture_of(data: bytes, path: str | None) -> Picture:
    """The picture that these bytes of an image file are.

    Args:
        data: the file's content.
        path: its name, kept beside the bytes.
    """
    try:
        size = _image_size(data)
    except Exception as error:
        return no_picture(f"the image cannot be read ({type(error).__name__}: {error})")
    return Picture({"bytes": data, "path": path}, size, hashlib.sha256(data).hexdigest(), "")


def _image_size(data: bytes) -> tuple[int, int]:
    """Height and width in pixels, as `datasets` shows the image: turned the way its EXIF orientation says."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as image:
        width, height = image.size
        turned = image.getexif().get(_ORIENTATION) in {5, 6, 7, 8}
    return (width, height) if turned else (height, width)
