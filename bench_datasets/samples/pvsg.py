"""The built-in PVSG sample: our own films with masks and relations, in the layout of the release.

Its masks are exact, since the painter knows what is seen at each pixel. It is there to try things out; scores on it say
nothing about a model.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.vocabulary import PREDICATES, STUFF, THINGS
from bench_datasets.data.sample_cache import built
from bench_datasets.samples import pvsg_scenes as scenes
from bench_datasets.samples.canvas import Canvas

FPS = 5

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Film:
    """A film of the sample.

    Attributes:
        video_id: its name.
        source: where such a video would be from.
        split: as the annotation file calls it.
        frames: how many it has.
        paint: paints a frame.
        objects: the categories of the objects 1, 2, ...
        relations: subject, object, predicate, spans (frames from 0, both ends in), as an annotator wrote them.
        captions: time and description.
        questions: time, question and answer.
        summary: what happens.
    """

    video_id: str
    source: str
    split: str
    frames: int
    paint: Callable[[int], Canvas]
    objects: tuple[str, ...]
    relations: tuple[tuple[int, int, str, Spans], ...]
    captions: tuple[tuple[str, str], ...]
    questions: tuple[tuple[str, str, str], ...]
    summary: str

    def maps(self) -> list[NDArray[np.uint8]]:
        """The label map of each frame, `(height, width) uint8`."""
        return [labels for labels, _ in _painted(self.video_id)]


FILMS: Mapping[str, Film] = {
    film.video_id: film
    for film in (
        Film(
            *("1101_0000000001", "vidor", "val", 30, scenes.park),
            objects=("child", "bike", "dog", "adult", "sky", "grass", "ground", "tree", "bird"),
            relations=(
                (1, 2, "riding", ((0, 29),)),
                (2, 7, "on", ((0, 29),)),
                (3, 1, "chasing", ((7, 29),)),
                (3, 6, "running on", ((5, 29),)),
                (4, 1, "looking at", ((0, 29),)),
                (4, 6, "standing on", ((0, 36),)),  # past the end, as annotators' spans are at times
                (8, 6, "on", ((0, 29),)),
                (9, 6, "over", ((0, 4),)),
                (3, 1, "barking at", ((12, 20),)),  # of no vocabulary
            ),
            captions=(("0000-0005", "A child (1) rides a bike (2) along a path (7), and a dog (3) runs after it."),),
            questions=(("0004", "Why does the dog (3) run?", "Because it chases the child (1) on the bike (2)."),),
            summary="A dog chases a child who rides a bike through a park.",
        ),
        Film(
            *("P90_01", "epic_kitchen", "val", 24, scenes.kitchen),
            objects=("adult", "cup", "bottle", "table", "wall", "cabinet", "window", "fruit", "bowl", "fruit"),
            relations=(
                (1, 2, "looking at", ((0, 5),)),
                (1, 2, "holding", ((4, 22),)),
                (1, 2, "drinking from", ((11, 16),)),
                (2, 4, "on", ((0, 6), (21, 23))),
                (3, 4, "on", ((0, 23),)),
                (9, 4, "on", ((0, 23),)),
                (8, 9, "in", ((0, 23),)),
                (10, 9, "in", ((0, 23),)),
                (9, 3, "beside", ((0, 23),)),
                (1, 5, "in front of", ((0, 23),)),
            ),
            captions=(("0000-0004", "An adult (1) takes a cup (2), drinks and puts it back."),),
            questions=(),
            summary="An adult drinks from a cup in a kitchen.",
        ),
        Film(
            *("0b6d1f0e-5a3c-4d27-9f55-2f4c1c8f7a10", "ego4d", "val", 30, scenes.beach),
            objects=("adult", "ball", "child", "sand", "water", "sky", "rock"),
            relations=(
                (1, 2, "kicking", ((4, 7),)),
                (3, 2, "looking at", ((0, 18),)),
                (3, 2, "catching", ((14, 17),)),
                (3, 2, "holding", ((16, 21),)),
                (3, 2, "throwing", ((20, 23),)),
                (1, 2, "looking at", ((0, 29),)),
                (1, 4, "standing on", ((4, 29),)),
                (3, 4, "standing on", ((0, 29),)),
                (1, 3, "playing with", ((4, 12), (21, 29))),
                (3, 3, "touching", ((0, 9),)),  # with itself
            ),
            captions=(
                ("0000-0003", "An adult (1) kicks a ball (2) towards a child (3)."),
                ("0003-0006", "The child (3) catches the ball (2) and throws it back."),
            ),
            questions=(("0002", "Where does the ball (2) fly?", "To the child (3)."),),
            summary="An adult and a child play with a ball on the beach.",
        ),
        Film(
            *("1102_0000000002", "vidor", "train", 24, scenes.street),
            objects=("adult", "dog", "car", "sky", "wall", "ground", "tree"),
            relations=(
                (1, 2, "guiding", ((0, 23),)),
                (1, 6, "walking on", ((0, 23),)),
                (2, 6, "walking on", ((0, 23),)),
                (3, 6, "on", ((0, 22),)),
            ),
            captions=(("0000-0004", "An adult (1) walks a dog (2) on a lead; a car (3) drives by."),),
            questions=(),
            summary="An adult walks a dog along a street.",
        ),
    )
}
"""The films by name: three of the test split, which the annotation file calls `val`, and one to train on."""


@functools.lru_cache(maxsize=len(FILMS))
def _painted(video_id: str) -> tuple[tuple[NDArray[np.uint8], bytes], ...]:
    """Label map and picture (a PNG file) of each frame, painted once a process."""
    film = FILMS[video_id]
    painted = []
    for frame in range(film.frames):
        canvas, stream = film.paint(frame), io.BytesIO()
        canvas.picture().save(stream, "PNG", compress_level=1)
        painted.append((canvas.labels.astype(np.uint8), stream.getvalue()))
    return tuple(painted)


def annotation() -> dict[str, object]:
    """The content of the sample's `pvsg.json`, with the release's vocabularies."""
    split: dict[str, dict[str, list[str]]] = {
        source: {part: [] for part in ("train", "val")} for source in ("vidor", "epic_kitchen", "ego4d")
    }
    for film in FILMS.values():
        split[film.source][film.split].append(film.video_id)
    return {
        "objects": {"thing": list(THINGS), "stuff": list(STUFF)},
        "relations": list(PREDICATES),
        "split": split,
        "data": [_entry(film) for film in FILMS.values()],
    }


def _entry(film: Film) -> dict[str, object]:
    return {
        "video_id": film.video_id,
        "meta": {
            "height": scenes.HEIGHT,
            "width": scenes.WIDTH,
            "fps": FPS,
            "duration": film.frames / FPS,
            "num_frames": film.frames,
        },
        "objects": [
            {"object_id": object_id, "category": category, "is_thing": category in THINGS, "status": []}
            for object_id, category in enumerate(film.objects, 1)
        ],
        "relations": [
            [subject_id, object_id, predicate, [list(span) for span in spans]]
            for subject_id, object_id, predicate, spans in film.relations
        ],
        "captions": [{"time": time, "description": description} for time, description in film.captions],
        "qa_pairs": [{"time": time, "question": asked, "answer": answer} for time, asked, answer in film.questions],
        "summary": film.summary,
    }


def sample_files() -> tuple[str, ...]:
    """The sample's files, relative to its folder."""
    images = [
        f"{film.source}/{kind}/{film.video_id}/{frame:04d}.png"
        for film in FILMS.values()
        for kind in ("masks", "frames")
        for frame in range(film.frames)
    ]
    return ("pvsg.json", *images)


def write_sample(folder: Path) -> None:
    """Write the sample's files under a folder."""
    for film in FILMS.values():
        masks, frames = (folder / film.source / kind / film.video_id for kind in ("masks", "frames"))
        masks.mkdir(parents=True, exist_ok=True)
        frames.mkdir(parents=True, exist_ok=True)
        for frame, (labels, picture) in enumerate(_painted(film.video_id)):
            image = PIL.Image.fromarray(labels)
            image.putpalette(_palette())  # of one channel until now; the values stay
            image.save(masks / f"{frame:04d}.png")
            (frames / f"{frame:04d}.png").write_bytes(picture)
    text = json.dumps(annotation(), indent=1, ensure_ascii=False)
    (folder / "pvsg.json").write_text(text + "\n", encoding="utf-8", newline="\n")


@functools.lru_cache(maxsize=1)
def _palette() -> list[int]:
    """A colour for each object, void black; neighbours in number are far apart in colour."""
    colours = [0, 0, 0]
    for label in range(1, 256):
        colours += [sum((label >> (3 * bit + channel) & 1) << (7 - bit) for bit in range(3)) for channel in range(3)]
    return colours


def pvsg_sample_dir() -> str:
    """Folder of the built-in PVSG sample, in the release's layout; drawn on first use, in a few seconds.

    It holds `pvsg.json` with the release's vocabularies, and masks and frames of four films of 320 x 200 pixels and 24
    or 30 frames: three in the split `val`, which is the project's `test`, and one in `train`. Among the relations are
    one whose predicate is in no vocabulary, one that goes on past the last frame, and one of an object with itself.

    Example:
        >>> from pathlib import Path
        >>> sorted(path.name for path in Path(pvsg_sample_dir()).iterdir())
        ['ego4d', 'epic_kitchen', 'pvsg.json', 'vidor']
    """
    return str(built("pvsg", sample_files(), write_sample))
