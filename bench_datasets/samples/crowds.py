"""The sample's pictures of very many things: a car park from above, a fruit stall, a flock at dusk."""

from __future__ import annotations

import random

from bench_datasets.samples import props
from bench_datasets.samples.canvas import Canvas, Pen, box, ellipse, limb

_PAINTS = ("#d8dadd", "#f2f2f0", "#2c3037", "#8c939c", "#b8352f", "#2f5f9e", "#3f7d62", "#e0b23c", "#6b4f86", "#c9c2b2")


def car_park() -> Canvas:
    """Eight rows of stalls seen from above, most of them taken."""
    canvas = Canvas(800, 560)
    canvas.gradient((0, "#6b6f75"), (1, "#5e6268"))
    rng = random.Random("car park")
    for block in range(4):
        top = 18 + block * 138
        canvas.fill(box(400, top + 52, 784, 8, 3), "#7fa267")
        for k in range(25):
            x = 16 + k * 32
            for y in (top + 24, top + 80):
                canvas.fill(box(x, y, 1.8, 46), "#dfe1e0", None, rim=0, opacity=0.85)
        for row, middle in enumerate((top + 23, top + 81)):
            for k in range(24):
                lone = rng.random()
                across, lean = 32 + k * 32 + (rng.random() - 0.5) * 3, (rng.random() - 0.5) * 0.08
                paint = _PAINTS[int(rng.random() * len(_PAINTS))]
                away, turned = (rng.random() - 0.5) * 5, rng.random() < 0.3
                if lone > 0.1:
                    facing = 3.141592653589793 if turned != (row == 1) else 0.0
                    name = f"car/{block}.{row}.{k}"
                    props.car_from_above(
                        Pen(canvas, canvas.thing(name), across, middle + away, 1, 1, facing + lean), paint
                    )
        for x in (16 + 32 * 6, 16 + 32 * 18):
            _crown(canvas, rng, x, top + 52)
    driving = ((210, 138, 1.5708, "#b8352f"), (560, 276, -1.5708, "#f2f2f0"), (330, 414, 1.5708, "#2f5f9e"))
    for x, y, facing, paint in driving:
        props.car_from_above(Pen(canvas, canvas.thing(f"car/on the lane {y}"), x, y, 1, 1, facing), paint)
    return canvas


def _crown(canvas: Canvas, rng: random.Random, x: float, y: float) -> None:
    """A tree seen from above."""
    tree = canvas.thing(f"tree/{x:.0f}.{y:.0f}")
    canvas.shadow(ellipse(x + 4, y + 5, 18, 17), 0.4, soft=8)
    crown = ellipse(x, y, 14, 14)
    for _ in range(6):
        crown = crown | ellipse(x + (rng.random() - 0.5) * 18, y + (rng.random() - 0.5) * 18, 8, 8)
    canvas.fill(crown, "#4f8a4c", tree, light=0.25)
    canvas.gleam(ellipse(x - 4, y - 5, 6, 5), 0.2, soft=8)


def fruit_stall() -> Canvas:
    """Crates of oranges, apples and lemons."""
    canvas = Canvas(640, 420)
    canvas.gradient((0, "#5d4636"), (1, "#8a6647"))
    rng = random.Random("fruit stall")
    fruits = {
        "orange": ("#f08c24", "#f39a33", "#e9801c"),
        "apple": ("#c8373a", "#d34845", "#b92f38"),
        "lemon": ("#f3d54a", "#efcb39", "#f6de66"),
    }
    plan = (("orange", "apple", "orange"), ("apple", "lemon", "orange"))
    for row, kinds in enumerate(plan):
        for column, kind in enumerate(kinds):
            _crate(canvas, rng, 110 + column * 210, 108 + row * 200, kind, fruits[kind])
    return canvas


def _crate(canvas: Canvas, rng: random.Random, x: float, y: float, kind: str, colours: tuple[str, ...]) -> None:
    """A crate of 196 by 176 pixels about (x, y), full of fruit; its front board hides the feet of the first row."""
    canvas.shadow(box(x + 4, y + 8, 196, 180, 6), 0.5, soft=14)
    canvas.fill(box(x, y, 198, 180, 4), "#b98a57")
    canvas.fill(box(x, y, 182, 164, 3), "#4a3524", rim=0.3)
    radius = 17.5
    for row in range(5):
        across = 5 if row % 2 else 6
        for k in range(across):
            if rng.random() < 0.06:
                continue
            at_x = x + (k - (across - 1) / 2) * 29.5 + (rng.random() - 0.5) * 5
            at_y = y - 60 + row * 29 + (rng.random() - 0.5) * 5
            pen = Pen(canvas, canvas.thing(f"{kind}/{x:.0f}.{y:.0f}.{row}.{k}"), at_x, at_y)
            canvas.shadow(ellipse(at_x + 1, at_y + 4, radius, radius), 0.3, soft=7)
            colour = colours[int(rng.random() * len(colours))]
            if kind == "lemon":
                lean = (rng.random() - 0.5) * 1.2
                fruit = pen.ellipse(0, 0, 19, 13.5, lean) | pen.ellipse(0, 0, 22, 4.5, lean)
                pen.fill(fruit, colour, light=0.24, rim=0.2)
                canvas.gleam(ellipse(at_x - 5, at_y - 5, 5, 3.5), 0.5, soft=6)
            else:
                leaf = "#4f8a44" if rng.random() < (0.45 if kind == "apple" else 0.12) else ""
                props.ball(pen, radius, colour, leaf)
    board = canvas.thing(f"crate/{x:.0f}.{y:.0f}")
    canvas.fill(box(x, y + 78, 200, 26, 3), "#c79a66", board)
    canvas.fill(box(x, y + 78, 196, 2), "#94693f", board, rim=0)
    canvas.text({"orange": "ORANGES", "apple": "APPLES", "lemon": "LEMONS"}[kind], x, y + 84, 15, "#5b3d22")


def flock() -> Canvas:
    """Birds over the sea at dusk, in three trains."""
    canvas = Canvas(720, 440)
    canvas.gradient(
        (0, "#3b4a78"), (0.4, "#c9788a"), (0.68, "#f6b77a"), (0.78, "#fbd9a0"), (0.78, "#6a6f92"), (1, "#2f3a5c")
    )
    canvas.gleam(ellipse(500, 330, 44, 44) & box(500, 300, 120, 86), 0.85, soft=4)
    canvas.gleam(ellipse(500, 330, 120, 90) & box(500, 280, 300, 126), 0.25, soft=60)
    rng = random.Random("flock")
    for _ in range(120):
        x, y = rng.random() * 720, 350 + rng.random() * 90
        canvas.fill(limb((x - 9, y), (x + 9, y), 0.7), "#f3c79a", None, rim=0, opacity=0.3)
    trains = ((60, 50, 1.15, 12, 46), (318, 186, 0.9, 10, 42), (36, 240, 0.8, 9, 36))
    for train, (x0, y0, size, columns, count) in enumerate(trains):
        for k in range(count):
            row, column = divmod(k, columns)
            x = x0 + column * 42 * size + (rng.random() - 0.5) * 10 + row * 10
            y = y0 + row * 27 * size + abs(column - columns // 2) * 4 + (rng.random() - 0.5) * 6
            lean = (rng.random() - 0.5) * 0.5
            _wings(Pen(canvas, canvas.thing(f"bird/{train}.{k}"), x, y, size, 1, lean), rng.random())
    return canvas


def _wings(pen: Pen, beat: float) -> None:
    """A bird in flight, 30 units across; `beat` 0 to 1 raises its wings."""
    tip = 2 - 11 * beat
    for side in (-1, 1):
        bend = (side * 8.0, -3 - 2 * beat)
        wing = pen.limb((0, 0), bend, 2.4, 1.7) | pen.limb(bend, (side * 16, tip), 1.7, 0.8)
        pen.fill(wing, "#262a44", light=0.3, rim=0)
    pen.fill(pen.ellipse(0, 0.5, 2.8, 5.2), "#1f2338", light=0.3, rim=0)
