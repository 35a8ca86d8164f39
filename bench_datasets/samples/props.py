"""Drawn objects of the scenes: people, animals, vehicles, boats, fruit, each painted by a `Pen`."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.samples.canvas import Canvas, Pen, Point, Shape, ellipse

Joints = tuple[Point, Point]
"""Elbow and hand, or knee and foot, in hundredths of the person's height."""


@dataclass(frozen=True)
class Look:
    """How a person is dressed, each a colour."""

    shirt: str
    trousers: str
    skin: str = "#e0ac86"
    hair: str = "#3b2a20"
    long_hair: bool = False
    skirt: bool = False


STANDING: tuple[Joints, Joints] = (((-5, -22), (-6, -2)), ((5, -22), (6, -2)))
WALKING: tuple[Joints, Joints] = (((-7, -22), (-15, -3)), ((8, -23), (9, -2)))
KICKING: tuple[Joints, Joints] = (((-4, -22), (-7, -2)), ((14, -27), (27, -16)))
AT_REST: tuple[Joints, Joints] = (((-15, -58), (-14, -43)), ((15, -58), (14, -43)))
"""Arms that hang."""


def person(pen: Pen, look: Look, legs: tuple[Joints, Joints] = STANDING, arms: tuple[Joints, Joints] = AT_REST) -> None:
    """A person of 100 units, feet at the origin."""

    def arm(shoulder: Point, joints: Joints) -> None:
        pen.fill(pen.limb(joints[0], joints[1], 3.2, 2.8), look.skin, rim=0.1)
        pen.fill(pen.ellipse(*joints[1], 3.6, 3.6), look.skin, rim=0.1)
        pen.fill(pen.limb(shoulder, joints[0], 4.6, 3.9), look.shirt)

    pen.canvas.shadow(pen.ellipse(2, -1, 20, 4), 0.3, soft=6 * pen.scale)
    if look.long_hair:
        pen.fill(pen.box(0, -82, 19, 24, 8), look.hair)
    arm((-10, -72), arms[0])
    for hip, (knee, foot) in zip(((-4.5, -44), (4.5, -44)), legs, strict=True):
        bare = look.skin if look.skirt else look.trousers
        pen.fill(pen.limb((foot[0], foot[1]), (foot[0] + 5, foot[1] + 0.5), 3, 2.4), "#33302e")
        pen.fill(pen.limb(hip, knee, 5.6, 4.4) | pen.limb(knee, foot, 4.3, 3.2), bare)
    if look.skirt:
        pen.fill(pen.polygon((-9, -48), (9, -48), (14, -25), (-14, -25)), look.trousers)
    else:
        pen.fill(pen.box(0, -44, 20, 9, 4), look.trousers)
    pen.fill(pen.limb((0, -78), (0, -84), 3.6), look.skin)
    pen.fill(
        pen.polygon((-12, -74), (-7, -78), (7, -78), (12, -74), (10, -44), (-10, -44)) | pen.box(0, -72, 25, 11, 5),
        look.shirt,
    )
    pen.fill(pen.ellipse(0, -91, 8, 9), look.skin, light=0.1)
    cap = pen.ellipse(0, -93, 9, 9) - pen.ellipse(2.5, -87, 8.2, 7.6)
    pen.fill(cap, look.hair)
    arm((10, -72), arms[1])


def dog(pen: Pen, coat: str, dark: str, collar: str = "") -> None:
    """A dog of about 60 units' length that looks right, paws at the origin's height."""
    pen.canvas.shadow(pen.ellipse(0, -1, 32, 4), 0.3, soft=6 * pen.scale)
    pen.fill(pen.limb((-24, -32), (-36, -46), 3, 1.6), coat)
    for x in (-17, 14):
        pen.fill(pen.limb((x, -20), (x + 2, -3), 4, 2.8), dark)
    pen.fill(pen.limb((-18, -27), (15, -28), 10.5, 11.5), coat)
    for x in (-22, 19):
        pen.fill(pen.limb((x, -22), (x - 1, -3), 4.6, 3) | pen.limb((x - 1, -2.4), (x + 3, -2), 2.4), coat)
    pen.fill(pen.limb((20, -32), (28, -44), 8, 7), coat)
    if collar:
        pen.fill(pen.limb((18, -42), (30, -34), 2.2), collar)
    pen.fill(pen.limb((29, -48), (41, -44), 8.2, 4.4), coat)
    pen.fill(pen.ellipse(26, -47, 4, 9, 0.3), dark)
    pen.fill(pen.ellipse(44.5, -46, 2.4, 2.2), "#201a18", rim=0)
    pen.fill(pen.ellipse(33, -50, 1.5, 1.5), "#201a18", rim=0)


def bird(pen: Pen, coat: str, wing: str) -> None:
    """A small bird of about 30 units' length that looks right, feet at the origin."""
    pen.fill(pen.polygon((-8, -10), (-24, -5), (-22, 0), (-6, -5)), wing)
    for x in (-1, 3):
        pen.fill(pen.limb((x, -3), (x, 0), 0.8), "#5d4630", rim=0)
    pen.fill(pen.ellipse(0, -9, 11, 7.5, -0.35), coat)
    pen.fill(pen.ellipse(-4, -9, 8.5, 4.6, -0.1), wing)
    pen.fill(pen.polygon((13, -19), (20, -16.5), (13, -14)), "#e39a2d")
    pen.fill(pen.ellipse(9, -17, 6, 5.6), coat)
    pen.fill(pen.ellipse(11, -18, 1.2, 1.2), "#1d1d24", rim=0)


def car(pen: Pen, paint: str, hatch: bool = False) -> None:
    """A car seen from the side, 110 units long, that drives right; wheels at the origin's height."""
    pen.canvas.shadow(pen.ellipse(0, -1, 58, 5), 0.45, soft=6 * pen.scale)
    back = -44 if hatch else -34
    pen.fill(pen.polygon((back, -28), (back + 12, -44), (16, -44), (34, -27)), paint)
    pen.fill(pen.box(0, -20, 110, 21, 9) | pen.box(-4, -15, 100, 14, 3), paint)
    pen.fill(pen.polygon((back + 6, -29), (back + 15, -41), (-6, -41), (-6, -29)), "#2e4a5c", light=0.5)
    pen.fill(pen.polygon((-2, -29), (-2, -41), (14, -41), (27, -29)), "#2e4a5c", light=0.5)
    pen.fill(pen.box(50, -21, 7, 5, 2), "#ffe9a8")
    pen.fill(pen.box(-52, -21, 5, 5, 2), "#b3262a")
    pen.fill(pen.box(2, -23, 7, 1.8, 0.9), "#e9edf0", rim=0)
    for x in (-31, 32):
        pen.fill(pen.ellipse(x, -9, 10.5, 10.5), "#23252b")
        pen.fill(pen.ellipse(x, -9, 5.2, 5.2), "#c3c9d0")


def bus(pen: Pen, paint: str, line: str) -> None:
    """A bus seen from the side, 210 units long, that drives right, with its line's number."""
    pen.canvas.shadow(pen.ellipse(0, -1, 110, 6), 0.45, soft=7 * pen.scale)
    pen.fill(pen.box(0, -48, 210, 80, 9), paint)
    pen.fill(pen.box(0, -23, 208, 9, 1), "#f4ead2", rim=0.05)
    for x in range(-80, 60, 34):
        pen.fill(pen.box(x, -56, 28, 25, 4), "#33536a", light=0.5)
    pen.fill(pen.box(63, -48, 20, 56, 3), "#2c485c", light=0.5)
    pen.fill(pen.box(92, -52, 19, 34, 4), "#33536a", light=0.5)
    pen.fill(pen.box(-16, -79, 58, 14, 2), "#20232a", rim=0)
    pen.canvas.text(line, *pen.at(-16, -79), 13 * pen.scale, "#ffc53d")
    pen.fill(pen.box(102, -17, 5, 8, 2), "#ffe9a8")
    for x in (-66, 70):
        pen.fill(pen.ellipse(x, -11, 13, 13), "#23252b")
        pen.fill(pen.ellipse(x, -11, 6, 6), "#c3c9d0")


def car_from_above(pen: Pen, paint: str) -> None:
    """A car seen from above, 46 units long and 22 wide, about the origin, that drives up."""
    pen.canvas.shadow(pen.box(2.5, 2.5, 22, 45, 6), 0.4, soft=4 * pen.scale)
    pen.fill(pen.box(0, 0, 21, 45, 6.5) | pen.box(0, -6, 24.5, 3.2, 1.4), paint, light=0.1)
    pen.fill(pen.box(0, 2.5, 18, 28, 5), "#26323d", light=0.35, rim=0.05)
    pen.fill(pen.box(0, 3.5, 16.5, 15, 3), paint, light=0.2, rim=0.05)
    pen.canvas.gleam(pen.box(-3, 2, 4, 9, 2), 0.25, soft=4 * pen.scale)


def sailboat(pen: Pen, hull: str, sail: str, name: str = "", stripe: str = "") -> None:
    """A sailing boat, 100 units long and 135 high, water line at the origin's height."""
    pen.canvas.shadow(pen.ellipse(0, 6, 56, 6), 0.3, soft=7 * pen.scale)
    pen.fill(pen.limb((2, -18), (2, -132), 1.6, 1.1), "#6b4c33")
    main = pen.polygon((5, -128), (7, -28), (48, -26), (30, -66))
    pen.fill(main, sail, light=0.2, rim=0.08)
    if stripe:
        for y in (-100, -72, -44):
            pen.fill(main & pen.box(20, y, 90, 12), stripe, rim=0.04)
    pen.fill(pen.polygon((-1, -120), (-2, -28), (-42, -26), (-24, -66)), sail, light=0.2, rim=0.08)
    pen.fill(pen.polygon((-52, -22), (54, -22), (42, 3), (-38, 3)), hull)
    pen.fill(pen.polygon((-52, -22), (54, -22), (52.5, -18), (-50, -18)), "#f4ead2", rim=0.05)
    if name:
        pen.canvas.text(name, *pen.at(0, -9), 14 * pen.scale, "#ffffff")


def hot_air_balloon(pen: Pen, cloth: str, stripes: str = "") -> None:
    """A hot-air balloon, 80 units wide, about the middle of its envelope."""
    for x in (-1, 1):
        pen.fill(pen.limb((x * 13, 44), (x * 6, 62), 0.8), "#59483a", rim=0)
    pen.fill(pen.box(0, 67, 16, 13, 3), "#8c5f38")
    envelope = pen.ellipse(0, 0, 40, 40) | pen.polygon((-37, 14), (37, 14), (14, 47), (-14, 47))
    pen.fill(envelope, cloth, light=0.22)
    if stripes:
        for offset, width in ((-29, 7.5), (0, 10), (29, 7.5)):
            pen.fill(envelope & pen.ellipse(offset, 4, width, 52), stripes, light=0.22, rim=0.02)
    pen.canvas.gleam(pen.ellipse(-14, -16, 11, 15, 0.5), 0.28, soft=12 * pen.scale)


def ball(pen: Pen, radius: float, colour: str, leaf: str = "") -> None:
    """A round fruit (or a ball) about the origin, with a leaf where one is named."""
    pen.fill(pen.ellipse(0, 0, radius, radius), colour, light=0.26, rim=0.24)
    shine = pen.ellipse(-radius * 0.35, -radius * 0.38, radius * 0.28, radius * 0.24)
    pen.canvas.gleam(shine, 0.5, soft=radius * 0.5 * pen.scale)
    if leaf:
        pen.fill(pen.ellipse(radius * 0.2, -radius * 0.86, radius * 0.36, radius * 0.15, -0.5), leaf, rim=0.05)


def jar(pen: Pen, glass: str, lid: str, words: str) -> None:
    """A jar of 46 by 66 units with a labelled front, standing at the origin."""
    pen.canvas.shadow(pen.ellipse(2, -1, 27, 4), 0.35, soft=6 * pen.scale)
    pen.fill(pen.box(0, -29, 46, 58, 10), glass, light=0.2)
    pen.fill(pen.box(0, -61, 36, 11, 3), lid)
    pen.fill(pen.box(0, -28, 40, 21, 3), "#fbf4e2", rim=0.06)
    pen.canvas.text(words, *pen.at(0, -28), 11.5 * pen.scale, "#3a2d25")
    pen.canvas.gleam(pen.box(-16, -46, 4, 15, 2), 0.45, soft=3 * pen.scale)


def mug(pen: Pen, colour: str, spoon: bool = False) -> None:
    """A mug of 34 by 38 units, handle to where it faces, standing at the origin; its spoon is a thing of its own."""
    pen.canvas.shadow(pen.ellipse(2, -1, 21, 4), 0.35, soft=6 * pen.scale)
    pen.fill(pen.ellipse(19, -20, 11, 11) - pen.ellipse(19, -20, 6.5, 6.5), colour)
    if spoon:
        stick = Pen(pen.canvas, pen.canvas.thing("spoon/in the mug"), pen.x, pen.y, pen.scale, pen.flip)
        stick.fill(stick.limb((2, -30), (-13, -58), 1.5) | stick.ellipse(-15, -61, 4, 6, -0.5), "#cdd5db", light=0.3)
    pen.fill(pen.box(0, -19, 34, 38, 6), colour, light=0.22)
    pen.canvas.gleam(pen.box(-11, -22, 3, 18, 1.5), 0.4, soft=3 * pen.scale)


def tree(pen: Pen, leaves: str, trunk: str = "#6d4c35") -> None:
    """A leafy tree of about 150 units' height, rooted at the origin."""
    pen.canvas.shadow(pen.ellipse(6, 0, 42, 7), 0.3, soft=8 * pen.scale)
    pen.fill(pen.limb((0, 0), (2, -70), 8, 5) | pen.limb((2, -60), (20, -86), 4, 2.5), trunk)
    crown: Shape | None = None
    for x, y, r in ((-28, -78, 25), (28, -82, 26), (0, -92, 33), (-16, -116, 25), (18, -118, 24)):
        blob = pen.ellipse(x, y, r, r * 0.94)
        crown = blob if crown is None else crown | blob
    assert crown is not None
    pen.fill(crown, leaves, light=0.24, rim=0.2)
    for x, y, r in ((-22, -112, 12), (14, -124, 10), (-34, -84, 9), (8, -96, 12)):
        pen.canvas.gleam(pen.ellipse(x, y, r, r * 0.7), 0.13, soft=9 * pen.scale)


def cloud(canvas: Canvas, x: float, y: float, size: float, strength: float = 0.85) -> None:
    """A cloud of about 4 sizes' width, scenery."""
    shape = ellipse(x, y, 2 * size, 0.5 * size)
    for dx, dy, r in ((-1.0, -0.3, 0.65), (0.1, -0.6, 0.9), (1.1, -0.25, 0.6)):
        shape = shape | ellipse(x + dx * size, y + dy * size, r * size, r * size * 0.8)
    canvas.fill(shape, "#ffffff", None, light=0.05, rim=0, soft=size * 0.35, opacity=strength)
