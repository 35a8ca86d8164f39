"""The sample's pictures of a few things: a park, a street, a kitchen, a match, a harbour, balloons over hills."""

from __future__ import annotations

import random

from bench_datasets.samples import props
from bench_datasets.samples.canvas import Canvas, Pen, box, ellipse, limb, polygon
from bench_datasets.samples.props import Look

WIDTH, HEIGHT = 480, 320


def _canvas() -> Canvas:
    return Canvas(WIDTH, HEIGHT)


def _hills(canvas: Canvas, *bands: tuple[float, float, str]) -> None:
    """Rolling ground: for each band its height on the left and right and its colour, the farthest first."""
    for at, (left, right, colour) in enumerate(bands):
        w, h = canvas.labels.shape[1], canvas.labels.shape[0]
        rise = 16 if at % 2 else -14
        top = [
            (-5.0, left),
            (w * 0.25, left + (right - left) * 0.2 - rise),
            (w * 0.5, (left + right) / 2),
            (w * 0.75, right + (left - right) * 0.2 + rise),
            (w + 5.0, right),
        ]
        smooth = [_between(top, step / 40) for step in range(41)]
        canvas.fill(polygon([*smooth, (w + 5, h + 5), (-5, h + 5)]), colour, light=0.1, rim=0.05)


def _between(points: list[tuple[float, float]], at: float) -> tuple[float, float]:
    """A point of a smooth line through evenly spaced points, `at` from 0 to 1."""
    place = at * (len(points) - 1)
    k = min(int(place), len(points) - 2)
    t = place - k
    ease = t * t * (3 - 2 * t)
    (ax, ay), (bx, by) = points[k], points[k + 1]
    return ax + (bx - ax) * t, ay + (by - ay) * ease


def _tufts(canvas: Canvas, seed: str, top: float, colours: tuple[str, ...], count: int = 160) -> None:
    """Blades of grass below `top`, scenery."""
    rng = random.Random(seed)
    height, width = canvas.labels.shape
    for _ in range(count):
        x, y = rng.random() * width, top + rng.random() * (height - top)
        size = 2 + 4 * (y - top) / (height - top)
        colour = colours[int(rng.random() * len(colours))]
        blade = limb((x, y), (x + (rng.random() - 0.5) * size, y - size), 0.7, 0.3)
        canvas.fill(blade, colour, None, rim=0, opacity=0.6)


def park() -> Canvas:
    """People, dogs and birds in a park; one person holds a balloon, one dog is on a leash."""
    canvas = _canvas()
    canvas.gradient((0, "#8ec9ef"), (0.55, "#dff1f8"), (1, "#dff1f8"))
    props.cloud(canvas, 90, 46, 20)
    props.cloud(canvas, 330, 34, 24)
    _hills(canvas, (150, 132, "#a9cfa0"), (168, 176, "#8cc07e"), (190, 184, "#79b465"))
    _tufts(canvas, "park", 200, ("#5f9a4f", "#93c97c"))
    for name, x, y, scale, leaves in (("left", 40, 206, 1.0, "#4f9a58"), ("right", 440, 204, 1.1, "#3f8a50")):
        props.tree(Pen(canvas, canvas.thing(f"tree/{name}"), x, y, scale), leaves)
    fence = canvas.thing("fence/white")
    for x in range(112, 392, 18):
        canvas.fill(polygon([(x, 232), (x, 184), (x + 5, 178), (x + 10, 184), (x + 10, 232)]), "#f7f1e6", fence)
    for y in (194, 216):
        canvas.fill(box(251, y, 290, 6, 1), "#ece3d2", fence)
    for name, x, flip, coat, wing in (
        ("on the fence, left", 171, 1, "#d9694e", "#9c4334"),
        ("on the fence, right", 261, -1, "#5a8fd0", "#3a66a3"),
    ):
        props.bird(Pen(canvas, canvas.thing(f"bird/{name}"), x, 179, 0.95, flip), coat, wing)
    props.bird(Pen(canvas, canvas.thing("bird/on the lawn"), 380, 303, 0.95, -1), "#c9a24a", "#8d6d2c")
    line = canvas.thing("string/of the balloon")
    canvas.fill(limb((133, 184), (126, 108), 0.9), "#f5f5f5", line, rim=0)
    props.person(
        Pen(canvas, canvas.thing("person/with the balloon"), 112, 286, 1.12),
        Look("#f2c14b", "#5f5aa8", hair="#6b3f22", long_hair=True, skirt=True),
        arms=(((-15, -58), (-14, -43)), ((17, -76), (19, -91))),
    )
    balloon = Pen(canvas, canvas.thing("balloon/red"), 124, 82, 1)
    balloon.fill(balloon.polygon((0, 24), (4, 31), (-4, 31)), "#b92d33")
    balloon.fill(balloon.ellipse(0, 0, 22, 26), "#e2474b", light=0.24)
    canvas.gleam(ellipse(116, 71, 5, 8, 0.5), 0.55, soft=6)
    leash = canvas.thing("leash/brown")
    props.dog(Pen(canvas, canvas.thing("dog/on the leash"), 300, 300, 0.95), "#c98f56", "#a06b39", "#d13b3b")
    canvas.fill(limb((240, 234), (275, 264), 1.2) | limb((275, 264), (322, 262), 1.2), "#6a3325", leash, rim=0)
    props.person(
        Pen(canvas, canvas.thing("person/with the leash"), 218, 298, 1.2),
        Look("#3f7fb5", "#4b4f58"),
        legs=props.WALKING,
        arms=(((-14, -57), (-17, -43)), ((14, -60), (19, -52))),
    )
    props.person(
        Pen(canvas, canvas.thing("person/on the right"), 404, 262, 1.0), Look("#5aa36a", "#3b4a6b", hair="#d8b25a")
    )
    props.dog(Pen(canvas, canvas.thing("dog/free"), 50, 300, 0.8, -1), "#f3efe6", "#cfc7b8")
    return canvas


def street() -> Canvas:
    """Three shops with lettered signs, a bus and three cars."""
    canvas = _canvas()
    canvas.gradient((0, "#9fd2ee"), (0.5, "#e8f4f7"), (1, "#e8f4f7"))
    props.cloud(canvas, 250, 24, 16)
    shops = (
        ("BAKERY", 84, 150, "#e8c39a", "#a4572f", 42),
        ("BOOKS", 240, 154, "#b9c9d9", "#2f5d8a", 30),
        ("FLOWERS", 398, 158, "#dcb6c1", "#3f7d54", 50),
    )
    for words, x, width, wall, board, roof in shops:
        canvas.fill(box(x, (roof + 226) / 2, width, 226 - roof), wall, light=0.08)
        canvas.fill(box(x, roof, width + 4, 8, 1), "#6d5b52")
        for dx in (-42, 0, 42):
            canvas.fill(box(x + dx, roof + 34, 26, 34, 2), "#f6f2ea")
            canvas.fill(box(x + dx, roof + 34, 21, 29, 1), "#6f93a8", light=0.5)
        canvas.fill(box(x - 24, 180, 84, 62, 2), "#f6f2ea")
        canvas.fill(box(x - 24, 180, 78, 56, 1), "#58788c", light=0.5)
        canvas.fill(box(x + 46, 186, 32, 76, 2), board)
        canvas.fill(box(x + 46, 172, 20, 28, 1), "#9fc0d0", light=0.5)
        sign = canvas.thing(f"sign/{words}")
        canvas.shadow(box(x, 131, width - 16, 24, 3), 0.4)
        canvas.fill(box(x, 127, width - 14, 26, 4), board, sign)
        canvas.fill(box(x, 127, width - 20, 20, 3), board, sign, rim=0.3)
        canvas.text(words, x, 127, 19, "#fff6dd")
    canvas.fill(box(240, 235, 490, 26), "#c9c3b8", rim=0.05)
    canvas.fill(box(240, 285, 490, 76), "#5b5f68", light=0.06, rim=0)
    for x in range(10, 480, 70):
        canvas.fill(box(x, 283, 34, 3.4), "#e9e4d4", rim=0)
    props.bus(Pen(canvas, canvas.thing("bus/42"), 148, 268, 0.98), "#d2483f", "42 CITY")
    props.car(Pen(canvas, canvas.thing("car/yellow"), 372, 266, 0.95), "#f0b93a", hatch=True)
    props.car(Pen(canvas, canvas.thing("car/blue"), 232, 309, 1.06, -1), "#3d78c2")
    props.car(Pen(canvas, canvas.thing("car/green"), 66, 311, 1.06, -1), "#4d9b67", hatch=True)
    return canvas


def kitchen() -> Canvas:
    """Labelled jars on a shelf; mugs and a bowl of apples on the table below."""
    canvas = _canvas()
    canvas.gradient((0, "#d6e5de"), (1, "#bcd3ca"))
    for y in range(20, 260, 40):
        for x in range(-20 + (y // 40 % 2) * 30, 500, 60):
            canvas.fill(box(x, y, 57, 37, 3), "#d3e4dc", None, light=0.06, rim=0.05)
    canvas.shadow(box(240, 137, 440, 16), 0.4, soft=14)
    canvas.fill(box(240, 128, 444, 13, 3), "#a9754a", canvas.thing("shelf/wooden"))
    for words, x, glass, lid in (
        ("TEA", 80, "#8fae72", "#6b4a33"),
        ("SALT", 172, "#b7cede", "#3f6f9c"),
        ("RICE", 264, "#e9dcbc", "#b6493f"),
        ("OATS", 356, "#cfa673", "#2f2a28"),
    ):
        props.jar(Pen(canvas, canvas.thing(f"jar/{words}"), x, 122, 1.28), glass, lid, words)
    plant = Pen(canvas, canvas.thing("plant/in a pot"), 428, 122, 1)
    for dx, dy in ((-17, -62), (-8, -76), (4, -80), (15, -66), (20, -50), (-21, -47)):
        plant.fill(plant.limb((0, -32), (dx, dy), 3, 6), "#4f9460")
    plant.fill(plant.polygon((-17, -34), (17, -34), (13, 0), (-13, 0)) | plant.box(0, -33, 38, 9, 2), "#c8693f")
    canvas.fill(box(240, 292, 500, 66), "#b98453", light=0.12, rim=0.1)
    for y in (276, 294, 312):
        canvas.fill(box(240, y, 490, 1.2), "#9c6b40", None, rim=0)
    props.jar(Pen(canvas, canvas.thing("jar/JAM"), 430, 282, 1.1), "#b93b4c", "#e6d9c3", "JAM")
    mugs = (
        ("blue", 66, 280, 1.3, "#3f7cc0"),
        ("white", 146, 296, 1.3, "#f1eee6"),
        ("blue, small", 376, 300, 0.85, "#3f7cc0"),
    )
    for name, x, y, scale, colour in mugs:
        props.mug(Pen(canvas, canvas.thing(f"mug/{name}"), x, y, scale), colour, spoon=name == "white")
    canvas.shadow(ellipse(262, 297, 70, 9), 0.4, soft=10)
    apples = (("red", 226, 240), ("red", 294, 241), ("green", 260, 232), ("red", 242, 249), ("red", 279, 250))
    for k, (tint, x, y) in enumerate(apples, 1):
        colour = "#86b04a" if tint == "green" else ("#c9403c", "#d6493f")[k % 2]
        props.ball(Pen(canvas, canvas.thing(f"apple/in the bowl, {tint} {k}"), x, y), 19, colour, "#4c8a44")
    bowl = canvas.thing("bowl/white")
    canvas.fill(ellipse(260, 246, 64, 52) & box(260, 280, 140, 56), "#f4f1ea", bowl, light=0.16)
    canvas.fill((ellipse(260, 246, 64, 52) & box(260, 272, 140, 7)), "#4a7fb5", bowl, rim=0.05)
    props.ball(Pen(canvas, canvas.thing("apple/on the table, green"), 338, 276), 18, "#86b04a", "#4c8a44")
    return canvas


def match() -> Canvas:
    """Three players in red and two in white, with numbers on their shirts, and a ball."""
    canvas = _canvas()
    canvas.gradient(
        (0, "#86bfe6"), (0.22, "#cfe6f0"), (0.22, "#4c5a6b"), (0.4, "#5b6878"), (0.4, "#69ad57"), (1, "#4e9143")
    )
    rng = random.Random("match")
    for row in range(6):
        for x in range(4, 480, 9):
            tint = ("#d0574f", "#e9c15b", "#e8e4da", "#5f87c0", "#8a6fae", "#3d4654")[int(rng.random() * 6)]
            canvas.fill(ellipse(x + (row % 2) * 4 + rng.random() * 2, 78 + row * 9, 3.2, 3.6), tint, None, opacity=0.75)
    canvas.fill(box(240, 131, 490, 12), "#e9e6dc", rim=0.1)
    for k in range(7):
        stripe = polygon([(k * 90 - 60, 320), (k * 90 - 15, 320), (k * 66 + 44, 137), (k * 66 + 11, 137)])
        canvas.fill(stripe, "#5ba04c", None, rim=0)
    canvas.fill(box(240, 268, 490, 3), "#f2f5ee", None, rim=0, opacity=0.8)
    red, white = "#cf3a3a", "#e8eaee"
    players = (
        ("white 3", 52, 246, 1.25, "3", Look(white, "#2f4f86", hair="#c9a063"), props.WALKING, 1),
        ("red 10", 146, 288, 1.42, "10", Look(red, "#f0efe9", skin="#a9714b", hair="#1f1a17"), props.WALKING, 1),
        ("red 7", 262, 296, 1.46, "7", Look(red, "#f0efe9"), props.KICKING, 1),
        ("white 8", 372, 280, 1.38, "8", Look(white, "#2f4f86", skin="#8a5a3c", hair="#191512"), props.WALKING, -1),
        ("red 4", 444, 240, 1.22, "4", Look(red, "#f0efe9", hair="#a3502a", long_hair=True), props.STANDING, -1),
    )
    for name, x, y, scale, number, look, legs, flip in sorted(players, key=lambda player: player[2]):
        pen = Pen(canvas, canvas.thing(f"player/{name}"), x, y, scale, flip)
        props.person(pen, look, legs=legs, arms=(((-15, -60), (-21, -49)), ((15, -60), (20, -51))))
        canvas.text(number, *pen.at(0, -61), 17 * scale, "#2f4f86" if look.shirt == white else "#ffffff")
    canvas.shadow(ellipse(322, 291, 12, 3), 0.35)
    football = Pen(canvas, canvas.thing("ball/white"), 320, 279)
    props.ball(football, 11.5, "#f4f4f2")
    for dx, dy in ((0, 0), (-7, -5), (7, -5), (-5, 7), (6, 7)):
        football.fill(football.ellipse(dx, dy, 2.6, 2.6), "#2a2c33", rim=0)
    return canvas


def harbour() -> Canvas:
    """Four sailing boats, one of them named, before a lighthouse on a rock."""
    canvas = _canvas()
    canvas.gradient((0, "#f6c990"), (0.28, "#fbe6c2"), (0.5, "#fdf3df"), (0.5, "#7fb4c4"), (1, "#2f6f90"))
    canvas.gleam(ellipse(150, 128, 30, 30), 0.9, soft=8)
    canvas.gleam(ellipse(150, 128, 70, 60), 0.35, soft=50)
    _ripples(canvas)
    rock = canvas.thing("rock/under the lighthouse")
    canvas.fill(
        polygon([(316, 178), (338, 156), (372, 148), (420, 150), (452, 162), (480, 166), (480, 184), (322, 184)]),
        "#76695f",
        rock,
    )
    tower = canvas.thing("lighthouse/striped")
    body = polygon([(378, 152), (386, 62), (410, 62), (418, 152)])
    canvas.fill(body, "#f3eee4", tower)
    for y in (78, 108, 138):
        canvas.fill(body & box(398, y, 60, 14), "#c8443f", tower, rim=0.06)
    canvas.fill(box(398, 58, 36, 6, 2) | box(398, 31, 28, 5, 2), "#4b4f58", tower)
    canvas.fill(box(398, 45, 20, 24, 2), "#ffe08a", tower, rim=0.05)
    canvas.fill(polygon([(384, 30), (398, 14), (412, 30)]), "#c8443f", tower)
    fleet = (
        ("white, far", 236, 186, 0.62, 1, "#41516b", "#f6f3ea", "", ""),
        ("red", 92, 222, 0.98, 1, "#6d3b2c", "#d2473f", "", ""),
        ("striped", 396, 254, 1.08, -1, "#2f5d7d", "#f6f3ea", "", "#3f86c2"),
        ("LUNA", 216, 292, 1.24, 1, "#27405f", "#f7efdc", "LUNA", ""),
    )
    for kind, x, y, scale, flip, hull, sail, name, stripe in fleet:
        props.sailboat(Pen(canvas, canvas.thing(f"sailboat/{kind}"), x, y, scale, flip), hull, sail, name, stripe)
    return canvas


def _ripples(canvas: Canvas) -> None:
    rng = random.Random("ripples")
    for _ in range(150):
        x, y = rng.random() * WIDTH, 166 + rng.random() * 154
        reach = 3 + (y - 160) / 9
        canvas.fill(limb((x - reach, y), (x + reach, y), 0.7), "#e8f4f2", None, rim=0, opacity=0.35)


def balloons() -> Canvas:
    """Seven hot-air balloons of three sizes over hills."""
    canvas = _canvas()
    canvas.gradient((0, "#5fa4dc"), (0.6, "#cfe8f3"), (0.8, "#fbe9cf"), (1, "#fbe9cf"))
    props.cloud(canvas, 70, 190, 22, 0.7)
    props.cloud(canvas, 400, 60, 20, 0.7)
    props.cloud(canvas, 260, 214, 18, 0.6)
    _hills(canvas, (246, 262, "#8fb3b0"), (276, 262, "#6f9f7c"), (290, 300, "#4f8560"))
    flight = (
        ("orange, small", 322, 62, 0.42, "#ef8a3c", ""),
        ("green, small", 44, 74, 0.4, "#58a55f", ""),
        ("purple, small", 442, 172, 0.44, "#8a63b8", ""),
        ("yellow, striped", 384, 106, 0.7, "#f2c23e", "#d5503f"),
        ("white, striped", 112, 132, 0.74, "#f5f0e4", "#3f78bd"),
        ("blue", 318, 186, 0.72, "#3f7fc4", ""),
        ("red, large", 218, 108, 1.45, "#d8443f", ""),
    )
    for name, x, y, scale, cloth, stripes in flight:
        props.hot_air_balloon(Pen(canvas, canvas.thing(f"hot-air balloon/{name}"), x, y, scale), cloth, stripes)
    return canvas
