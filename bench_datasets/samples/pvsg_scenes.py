"""The films of the PVSG sample, painted frame by frame: who is where at frame t, in front of scenery painted once.

Each film's objects have fixed numbers, which are the pixel values of its masks. Everything moves by straight lines and
parabolas.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from bench_datasets.samples import props
from bench_datasets.samples.canvas import Canvas, Pen, Point, box, ellipse, polygon
from bench_datasets.samples.props import Joints, Look

WIDTH, HEIGHT = 320, 200

Legs = tuple[Joints, Joints]

_STRIDE: tuple[Legs, ...] = (
    (((-7, -22), (-15, -3)), ((8, -23), (9, -2))),
    (((-2, -22), (-7, -2)), ((4, -23), (3, -3))),
    (((7, -23), (8, -2)), ((-6, -22), (-14, -3))),
    (((4, -23), (2, -3)), ((-2, -22), (-7, -2))),
)
"""Legs in four steps of walking."""

_PEDAL: tuple[Legs, ...] = (
    (((14, -36), (10, -14)), ((10, -26), (4, -3))),
    (((15, -31), (14, -9)), ((9, -32), (1, -9))),
    (((11, -26), (5, -3)), ((14, -36), (10, -14))),
    (((9, -32), (1, -9)), ((15, -31), (14, -9))),
)
"""Legs in four steps of cycling."""


def between(t: float, start: float, end: float, a: float, b: float) -> float:
    """From a at frame `start` to b at frame `end`, in a straight line, and at rest before and after."""
    return a + (b - a) * min(max((t - start) / (end - start), 0.0), 1.0)


def _arms(near: Point, far: Point | None = None) -> tuple[Joints, Joints]:
    """Arms whose hands are at these points."""
    hands = (far or near, near)
    return tuple(((hand[0] * 0.5, (hand[1] - 72) * 0.5 + 5), hand) for hand in hands)  # type: ignore[return-value]


def _on(backdrop: Callable[[], Canvas]) -> Canvas:
    """A canvas with the scenery on it."""
    base, canvas = backdrop(), Canvas(WIDTH, HEIGHT)
    canvas.pixels, canvas.labels = base.pixels.copy(), base.labels.copy()
    return canvas


def bike(pen: Pen, colour: str) -> None:
    """A bicycle of 60 units' length that goes right, wheels at the origin's height; one sees through its wheels."""
    pen.canvas.shadow(pen.ellipse(0, -1, 34, 3), 0.3, soft=5 * pen.scale)
    for x in (-19, 19):
        pen.fill(pen.ellipse(x, -12, 12, 12) - pen.ellipse(x, -12, 9.4, 9.4), "#2b2d33")
    hub, seat, head = (-1.0, -12.0), (-7.0, -31.0), (14.0, -31.0)
    for start, end in (
        ((-19, -12), hub),
        (hub, seat),
        (seat, head),
        (hub, head),
        ((-19, -12), seat),
        (head, (19, -12)),
    ):
        pen.fill(pen.limb(start, end, 1.5), colour, rim=0.05)
    pen.fill(pen.limb((-11, -34), (-3, -34), 2), "#2b2d33")
    pen.fill(pen.limb(head, (13, -38), 1.5) | pen.limb((13, -38), (18, -38), 1.4), "#2b2d33")


@functools.lru_cache(maxsize=1)
def _park() -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.fill(box(160, 45, 322, 100), "#9fd0ee", 5, light=0.2, rim=0)
    props.cloud(canvas, 80, 30, 12, 0.8)
    props.cloud(canvas, 210, 22, 10, 0.7)
    canvas.fill(ellipse(70, 108, 120, 26), "#86ad92", rim=0.05)
    canvas.fill(ellipse(250, 108, 130, 22), "#78a384", rim=0.05)
    canvas.fill(box(160, 150, 322, 104), "#7cb55d", 6, light=0.2, rim=0)
    canvas.fill(polygon([(-2, 158), (322, 150), (322, 176), (-2, 186)]), "#d3bd94", 7, rim=0.05)
    props.tree(Pen(canvas, 8, 282, 122, 0.66), "#4f9150")
    return canvas


def park(t: int) -> Canvas:
    """1 child on 2 bike, 3 dog that runs after, 4 adult that looks on; 5 sky, 6 grass, 7 path, 8 tree; 9 bird."""
    canvas = _on(_park)
    if t < 14:
        bird = Pen(canvas, 9, 96 + 7 * t, 76 - 4 * t, 0.9)
        props.bird(bird, "#5b4a7a", "#3d3157")
        lift = 8 if t % 2 else -6
        bird.fill(bird.polygon((-6, -10), (4, -10), (-4, -12 - lift)), "#3d3157")
    props.person(Pen(canvas, 4, 232, 140, 0.62, -1), Look("#c9657b", "#44507a", long_hair=True), arms=_arms((15, -64)))
    x = between(t, 0, 29, 34, 244)
    bike(Pen(canvas, 2, x, 172, 0.95), "#d8453e")
    rider = Look("#f0b93a", "#3f5d8c", hair="#7a4a25")
    arms = (((11, -62), (23, -50)), ((13, -60), (25, -49)))
    props.person(Pen(canvas, 1, x - 8, 164, 0.62), rider, _PEDAL[t // 2 % 4], arms)
    if t >= 5:
        hop = (0, 3, 4, 2)[t % 4]
        props.dog(Pen(canvas, 3, between(t, 5, 29, -24, 168), 192 - hop, 0.72), "#b98350", "#86592f", "#3c7fd0")
    return canvas


@functools.lru_cache(maxsize=1)
def _kitchen() -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.fill(box(160, 100, 322, 202), "#e5d8bd", 5, light=0.06, rim=0)
    canvas.fill(box(62, 48, 84, 60, 2), "#f6f3ea", 7, rim=0.06)
    canvas.fill(box(62, 48, 72, 48), "#a9d5ee", 7, light=0.2, rim=0)
    canvas.fill(box(62, 48, 3, 50) | box(62, 48, 74, 3), "#f6f3ea", 7, rim=0)
    canvas.fill(box(266, 38, 88, 62, 3), "#a56f45", 6)
    for x in (246, 286):
        canvas.fill(box(x, 38, 34, 50, 2), "#b9814f", 6)
        canvas.fill(ellipse(x + (12 if x < 266 else -12), 46, 2, 2), "#5d3d24", 6, rim=0)
    return canvas


def kitchen(t: int) -> Canvas:
    """1 adult drinks from 2 cup; 3 bottle, 9 bowl with fruits 8 and 10 on 4 table; 5 wall, 6 cabinet, 7 window."""
    canvas = _on(_kitchen)
    home, mouth = (132.0, 153.0), (149.0, 109.0)
    if t <= 12:
        x, y = (between(t, 6, 11, a, b) for a, b in zip(home, mouth, strict=True))
    else:
        x, y = (between(t, 16, 21, a, b) for a, b in zip(mouth, home, strict=True))
    scale, foot = 1.45, (166.0, 218.0)
    grip = (x + 7, y - 12) if 4 <= t <= 22 else (between(t, 0, 4, 196, x + 7) if t < 4 else 172.0, y - 6)
    hand = ((grip[0] - foot[0]) / scale, (grip[1] - foot[1]) / scale)
    look = Look("#3f8f86", "#394253", hair="#2a1d17")
    rest = (((15, -58), (19, -44)),)
    props.person(Pen(canvas, 1, *foot, scale), look, arms=(((-17, -58), hand), rest[0]))
    canvas.fill(box(160, 182, 330, 60, 3), "#8a5a3a", 4)
    canvas.fill(box(160, 156, 330, 14, 3), "#a9754c", 4)
    bottle = Pen(canvas, 3, 226, 156, 0.9)
    bottle.fill(bottle.box(0, -22, 19, 44, 5) | bottle.box(0, -52, 7, 22, 2), "#3f7a54")
    bottle.fill(bottle.box(0, -22, 17, 14, 1), "#f2ead4", rim=0.04)
    props.ball(Pen(canvas, 8, 266, 139), 10, "#e0852f")
    props.ball(Pen(canvas, 10, 283, 140), 9, "#c63d3a", "#4c8a44")
    bowl = Pen(canvas, 9, 274, 157)
    bowl.fill(bowl.ellipse(0, -13, 26, 14) & bowl.box(0, -4, 60, 18), "#5a86bd")
    cup = Pen(canvas, 2, x, y, 0.62, -1)
    props.mug(cup, "#d8503f")
    if 4 <= t <= 22:
        finger = Pen(canvas, 1, *foot, scale)
        finger.fill(finger.ellipse(hand[0] - 1, hand[1], 3.4, 3), look.skin, rim=0.1)
    return canvas


@functools.lru_cache(maxsize=1)
def _beach() -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.fill(box(160, 38, 322, 80), "#f4cfa0", 6, light=0.12, rim=0)
    canvas.gleam(ellipse(222, 66, 14, 14), 0.9, soft=5)
    canvas.fill(box(160, 96, 322, 44), "#4f9db4", 5, light=0.2, rim=0)
    for x, y in ((40, 88), (120, 96), (200, 90), (270, 102), (84, 106), (170, 108)):
        canvas.gleam(box(x, y, 34, 1.6, 0.8), 0.5, soft=2)
    canvas.fill(polygon([(-2, 118), (120, 113), (240, 117), (322, 112), (322, 202), (-2, 202)]), "#e6cd97", 4, rim=0.04)
    canvas.fill(ellipse(302, 120, 34, 15) | ellipse(322, 108, 22, 16), "#7d7068", 7)
    return canvas


def beach(t: int) -> Canvas:
    """1 adult kicks 2 ball to 3 child, who catches it and throws it back; 4 sand, 5 water, 6 sky, 7 rock."""
    canvas = _on(_beach)
    kick = 4 <= t <= 7
    legs = props.KICKING if kick else (_STRIDE[t % 4] if t < 4 else props.STANDING)
    x = between(t, 0, 4, 44, 66)
    props.person(Pen(canvas, 1, x, 178, 0.92), Look("#e9e4d8", "#3c6d9c", hair="#3a2a1d"), legs)
    if t < 6:
        ball = (94.0, 168.0)
    elif t <= 16:
        f = (t - 6) / 10
        ball = (94 + f * 128, 168 - f * 36 - 4 * 62 * f * (1 - f))
    elif t <= 21:
        ball = (222.0, between(t, 16, 19, 132, 116))
    else:
        f = (t - 21) / 8
        ball = (222 - f * 112, 116 + f * 22 - 4 * 30 * f * (1 - f))
    foot, scale = (240.0, 172.0), 0.68
    reach = max(-20.0, min(-16.0, (ball[0] - foot[0]) / scale))
    hand = (reach, max(-98.0, min(-50.0, (ball[1] - foot[1]) / scale)))
    hand = hand if 10 <= t <= 24 else (-16.0, -43.0)
    child = Look("#e0566f", "#f1c24a", skin="#b9835a", hair="#1d1613")
    props.person(Pen(canvas, 3, *foot, scale), child, arms=(((-14, -64), hand), ((-9, -62), (hand[0] + 4, hand[1]))))
    canvas.shadow(ellipse(ball[0], 182 if ball[0] < 200 else 174, 9, 2.5), 0.25, soft=4)
    football = Pen(canvas, 2, *ball)
    props.ball(football, 9, "#f5f3ee")
    football.fill(football.box(0, 0, 18, 3.6, 1, 0.5) & football.ellipse(0, 0, 9, 9), "#3d7ed0", rim=0)
    return canvas


@functools.lru_cache(maxsize=1)
def _street() -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.fill(box(160, 46, 322, 102), "#bcd9e8", 4, light=0.1, rim=0)
    canvas.fill(box(160, 112, 322, 34), "#9aa889", rim=0)
    for x, width, height, colour in ((40, 84, 92, "#c58a6a"), (126, 78, 76, "#d8c3a0"), (214, 88, 104, "#a9727a")):
        canvas.fill(box(x, 124 - height / 2, width, height), colour, 5)
        for dx in (-24, 0, 24):
            canvas.fill(box(x + dx, 124 - height + 22, 12, 18, 1), "#5d7f96", 5, rim=0.05)
    props.tree(Pen(canvas, 7, 290, 132, 0.6), "#5d9a55")
    canvas.fill(box(160, 164, 322, 80), "#9c9a98", 6, light=0.1, rim=0)
    canvas.fill(box(160, 150, 322, 26), "#6a6c72", 6, light=0.1, rim=0)
    return canvas


def street(t: int) -> Canvas:
    """1 adult walks 2 dog, 3 car drives by; 4 sky, 5 wall, 6 ground, 7 tree."""
    canvas = _on(_street)
    props.car(Pen(canvas, 3, between(t, 0, 23, -40, 380), 158, 0.85), "#3f77b8")
    x = between(t, 0, 23, 250, 96)
    props.dog(Pen(canvas, 2, x - 52, 190 - (t % 2), 0.6, -1), "#e6d6bd", "#b79f7c", "#c43f45")
    lead = Pen(canvas, 0, x, 188)
    canvas.fill(lead.limb((-18, -48), (-66, -24), 0.7), "#4b3a2c", None, rim=0)
    adult = Look("#587d4f", "#3d3a46", hair="#c7bdb0")
    arms = (((12, -60), (18, -50)), ((14, -58), (20, -49)))
    props.person(Pen(canvas, 1, x, 188, 0.92, -1), adult, _STRIDE[t // 2 % 4], arms)
    return canvas
