"""A relation over time as a drawing: the truth's spans, each run's best triplet below, and how well its tubes fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from bench_datasets.report.drawing import marker

LEFT, WIDTH, RIGHT = 150, 560, 20
TOP, LINE, PLOT, GAP = 22, 16, 46, 16  # pixels

Spans = Sequence[tuple[int, int]]


class Track(NamedTuple):
    """One run's part of it.

    Attributes:
        run: its number.
        name: of the run.
        spans: of the best triplet, first frame and the one behind the last.
        hit: whether it hits.
        note: its rank and overlap, or why there is none.
        subject: IoU of the subjects' masks by frame.
        object: of the objects'.
    """

    run: int
    name: str
    spans: Spans
    hit: bool
    note: str
    subject: dict[int, float]
    object: dict[int, float]


def draw(title: str, frames: int, truth: Spans, tracks: Sequence[Track]) -> Markup:
    """The drawing.

    Args:
        title: the relation in words.
        frames: number of frames of the video.
        truth: its spans, first frame and the one behind the last.
        tracks: one per run.
    """
    height = TOP + LINE + GAP + len(tracks) * (LINE + PLOT + GAP + 14) + 10
    parts = [_axis(frames, height), _label("ground truth", TOP + 12)]
    parts += [_bar("truth", a, b, frames, TOP) for a, b in truth]
    y = TOP + LINE + GAP
    for track in tracks:
        parts.append(_label(track.name, y + 12, track.run))
        parts += [_bar("hit" if track.hit else "nohit", a, b, frames, y) for a, b in track.spans]
        parts.append(Markup('<text class="n" x="{}" y="{}">{}</text>').format(LEFT, y + LINE + 12, track.note))
        top = y + LINE + 18
        parts.append(Markup('<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/><line class="grid" x1="{0}" '
                            'x2="{1}" y1="{3}" y2="{3}"/><line class="half" x1="{0}" x2="{1}" y1="{4}" y2="{4}"/>')
                     .format(LEFT, LEFT + WIDTH, top, top + PLOT, top + PLOT / 2))  # fmt: skip
        parts.append(Markup('<text class="tick" x="{0}" y="{1}" text-anchor="end">IoU 1</text>'
                            '<text class="tick" x="{0}" y="{2}" text-anchor="end">0</text>')
                     .format(LEFT - 6, top + 5, top + PLOT + 4))  # fmt: skip
        for kind, values in (("subject", track.subject), ("object", track.object)):
            parts += [_line(kind, piece, frames, top) for piece in _pieces(values)]
        y += LINE + PLOT + GAP + 14
    notes = ", ".join(f"{t.name}: {t.note}" for t in tracks)
    return Markup(
        '<svg class="timeline" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{title}">'
        "<title>{title}</title>{body}</svg>"
    ).format(w=LEFT + WIDTH + RIGHT, h=height, title=f"{title}. {notes}", body=Markup("").join(parts))


LEGEND = Markup(
    '<p class="n">bars: <span class="swatch truth"></span>ground truth <span class="swatch answer"></span>triplet that '
    'hits <span class="swatch hollow"></span>triplet that does not · lines: IoU of the subject (solid) and of the '
    "object (dashed) with the ground truth, per frame</p>"
)
"""What the drawing's bars and lines mean."""


def _x(frame: float, frames: int) -> float:
    return LEFT + WIDTH * min(max(frame, 0), frames) / max(frames, 1)


def _axis(frames: int, height: int) -> Markup:
    parts = []
    for tick in range(5):
        frame = round((frames - 1) * tick / 4)
        parts.append(Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="16" y2="{1}"/>'
                            '<text class="tick" x="{0:.1f}" y="11" text-anchor="middle">{2}</text>')
                     .format(_x(frame, frames), height, frame))  # fmt: skip
    return Markup("").join(parts)


def _label(name: str, y: float, run: int | None = None) -> Markup:
    short = name if len(name) <= 18 else f"{name[:17]}…"
    mark = Markup("") if run is None else marker(run, 6, y - 4, 4.5)
    return Markup('{}<text class="part" x="{}" y="{}">{}</text>').format(mark, 0 if run is None else 18, y, short)


def _bar(kind: str, first: int, stop: int, frames: int, y: float) -> Markup:
    left, right = _x(first, frames), _x(stop, frames)
    return Markup('<rect class="span {}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
        kind, left, y, max(right - left, 1.5), LINE
    )


def _pieces(values: dict[int, float]) -> list[list[tuple[int, float]]]:
    """The values as runs of frames that follow each other."""
    pieces: list[list[tuple[int, float]]] = []
    for frame in sorted(values):
        if not pieces or pieces[-1][-1][0] != frame - 1:
            pieces.append([])
        pieces[-1].append((frame, values[frame]))
    return pieces


def _line(kind: str, piece: Sequence[tuple[int, float]], frames: int, top: float) -> Markup:
    points = [(_x(frame + 0.5, frames), top + PLOT * (1 - value)) for frame, value in piece]
    if len(points) == 1:
        points = [(points[0][0] - 1, points[0][1]), (points[0][0] + 1, points[0][1])]
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline class="fit {}" points="{}"/>').format(kind, text)
