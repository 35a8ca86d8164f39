"""Suite `masks`: intersections, tubes, suppression and outlines by every peer, on masks of several kinds and sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import synthetic
from bench.clock import alternate, ratio, seconds
from bench.peers import BASELINE, SUM, WITHOUT_NUMBA, Masks, Peer, find_peers

SINGLE_CALLS = 40_000
"""A call a pair is left out above so many pairs: it would take longer than all the rest."""


def run(console: Console, *, quick: bool, seed: int = 0) -> dict[str, Any]:
    """Time every task with every peer; print ratios to the pycocotools loop, and what our checks and ways add to it.

    Returns:
        `cases` (task, kind, sizes, `seconds` and `ratio` by peer), `sweeps` for the plot, and `absent`.
    """
    peers, absent = find_peers()
    for line in absent:
        console.print(line)
    cases = []
    for title, kind, task, make in _cases(quick):
        a, b = make(np.random.default_rng(seed), kind)
        times = measure(peers, task, a, b, quick)
        cases.append(
            {
                "case": title,
                "task": task,
                "kind": kind,
                "masks": len(a.rles),
                "size": a.rles[0]["size"],
                "bytes_per_mask": a.median_bytes,
                "seconds": times,
                "ratio": {name: times[BASELINE] / value for name, value in times.items()},
            }
        )
    _print(console, cases, [peer.name for peer in peers])
    _print_sums(console, cases)
    sweeps = {
        "instances": _sweep_instances(peers, quick, seed),
        "megapixels": _sweep_area(peers, quick, seed),
        "bytes": _sweep_bytes(peers, quick, seed),
    }
    _print_sweeps(console, sweeps, [peer.name for peer in peers])
    return {"absent": absent, "baseline": BASELINE, "cases": cases, "sweeps": sweeps}


def measure(peers: list[Peer], task: str, a: Masks, b: Masks, quick: bool) -> dict[str, float]:
    """Median seconds by peer, after all have been found to agree to the last integer.

    Raises:
        ValueError: two peers differ.
    """
    arguments = (a,) if task == "nms" else (a, b)
    taking_part = {}
    for peer in peers:
        single = peer.name == "pycocotools, a call a pair" and task == "matrix"
        if task in peer.tasks and not (single and len(a.rles) * len(b.rles) > (1_000 if quick else SINGLE_CALLS)):
            taking_part[peer.name] = peer.tasks[task]
    answers = {name: function(*arguments) for name, function in taking_part.items()}
    expected = answers[BASELINE]
    for name, answer in answers.items():
        if not np.array_equal(answer, expected):
            differ = np.flatnonzero(np.ravel(answer != expected))
            raise ValueError(
                f"{task}: {name} and {BASELINE} differ at {len(differ)} of {expected.size} places, first at"
                f" {differ[0]}: {np.ravel(answer)[differ[0]]} and {np.ravel(expected)[differ[0]]}"
            )
    cases = {name: _bind(function, arguments) for name, function in taking_part.items()}
    return alternate(cases, 3 if quick else 9, budget=0.3 if quick else 12)


def _bind(function: Callable[..., Any], arguments: tuple[Masks, ...]) -> Callable[[], Any]:
    return lambda: function(*arguments)


# ---------------------------------------------------------------------- inputs


def aligned(rng: np.random.Generator, kind: str, n: int, size: tuple[int, int], radius: tuple[float, float]) -> Any:
    """Pairs of a blob and what a fair model makes of it."""
    shapes = synthetic.blobs(rng, n, size, radius)
    other = [synthetic.predicted(rng, [blob], missed=0, again=0)[0] for blob in shapes]
    return Masks.of(synthetic.draw_all(shapes, size, kind)), Masks.of(synthetic.draw_all(other, size, kind))


def image(rng: np.random.Generator, kind: str, n: int, size: tuple[int, int], layout: Callable[..., Any]) -> Any:
    """One image's truth and predictions, n each."""
    shapes = layout(rng, n, size)
    other = synthetic.predicted(rng, shapes, missed=0, again=0)
    return Masks.of(synthetic.draw_all(shapes, size, kind)), Masks.of(synthetic.draw_all(other, size, kind))


def video(rng: np.random.Generator, kind: str, frames: int, tubes: int, size: tuple[int, int]) -> Any:
    """Tubes that drift over frames, and a tracker's version of them."""
    shapes = synthetic.sparse(rng, tubes, size)
    speed = rng.uniform(-1.5, 1.5, (tubes, 2))
    sides = []
    for scale, off in ((1.0, 0.0), (1.1, 4.0)):
        rles = [
            synthetic.draw(blob.moved(off + f * speed[k, 0], off + f * speed[k, 1], scale), size, kind)
            for f in range(frames)
            for k, blob in enumerate(shapes)
        ]
        groups = list(range(0, frames * tubes + 1, tubes))
        sides.append(Masks.of(rles, groups, list(range(tubes)) * frames))
    return sides[0], sides[1]


def crowd(rng: np.random.Generator, kind: str, n: int, size: tuple[int, int]) -> Any:
    """`n` predictions of a third as many things, for suppression."""
    shapes = synthetic.sparse(rng, n // 3, size)
    again = [blob for _ in range(3) for blob in synthetic.predicted(rng, shapes, missed=0, again=0)]
    masks = Masks.of(synthetic.draw_all(again, size, kind))
    return masks, masks


def _cases(quick: bool) -> list[tuple[str, str, str, Callable[..., Any]]]:
    """Title, kind of mask, task, and what makes its inputs."""
    one, four = synthetic.image_size(1), synthetic.image_size(4)
    pairs, n, frames, crowded, outlined = (500, 60, 20, 90, 4) if quick else (5000, 200, 300, 300, 20)
    result: list[tuple[str, str, str, Callable[..., Any]]] = []
    for kind in ("smooth",) if quick else synthetic.KINDS:
        result.append(
            (f"{pairs:,} aligned pairs, 1 MP", kind, "pairs",
             lambda rng, kind: aligned(rng, kind, pairs, one, (20, 250)))
        )  # fmt: skip
        result.append(
            (f"{n} x {n} sparse, 4 MP", kind, "matrix",
             lambda rng, kind: image(rng, kind, n, four, synthetic.sparse))
        )  # fmt: skip
        if kind != "speckled":
            result.append(
                (f"{n} x {n} overlapping, 4 MP", kind, "matrix",
                 lambda rng, kind: image(rng, kind, n, four, synthetic.overlapping))
            )  # fmt: skip
        result.append(
            (f"tubes, {frames} frames of 20 x 20", kind, "tubes",
             lambda rng, kind: video(rng, kind, frames, 20, one))
        )  # fmt: skip
        result.append(
            (f"outlines of {outlined} pairs, 1 MP", kind, "outlines",
             lambda rng, kind: aligned(rng, kind, outlined, one, (20, 250)))
        )  # fmt: skip
        result.append((f"NMS of {crowded}", kind, "nms", lambda rng, kind: crowd(rng, kind, crowded, four)))
    return result


# ---------------------------------------------------------------------- sweeps


def _sweep_instances(peers: list[Peer], quick: bool, seed: int) -> list[dict[str, Any]]:
    """An image's matrix from 1 to 800 instances at 4 MP, ragged."""
    size = synthetic.image_size(4)
    points = []
    for n in (1, 10, 100) if quick else (1, 3, 10, 30, 100, 300, 800):
        a, b = image(np.random.default_rng(seed), "ragged", n, size, synthetic.sparse)
        points.append({"x": n, "seconds": measure(peers, "matrix", a, b, quick)})
    return points


def _sweep_area(peers: list[Peer], quick: bool, seed: int) -> list[dict[str, Any]]:
    """50 instances that grow with the image, from 0.3 to 16 MP, ragged."""
    points = []
    for megapixels in (0.3, 4) if quick else (0.3, 1, 2, 4, 8, 16):
        size = synthetic.image_size(megapixels)
        a, b = image(np.random.default_rng(seed), "ragged", 50, size, synthetic.sparse)
        points.append({"x": megapixels, "seconds": measure(peers, "matrix", a, b, quick)})
    return points


def _sweep_bytes(peers: list[Peer], quick: bool, seed: int) -> list[dict[str, Any]]:
    """500 aligned pairs at 1 MP from tens of bytes a mask (small, smooth) to tens of thousands (large, speckled)."""
    size = synthetic.image_size(1)
    steps: tuple[tuple[str, float], ...] = (
        ("smooth", 12), ("smooth", 40), ("smooth", 120), ("ragged", 120), ("speckled", 60), ("speckled", 120),
        ("speckled", 240),
    )  # fmt: skip
    points = []
    for kind, radius in steps[::3] if quick else steps:
        n = 50 if quick else 500
        a, b = aligned(np.random.default_rng(seed), kind, n, size, (radius * 0.9, radius * 1.1))
        times = measure(peers, "pairs", a, b, quick)
        points.append(
            {"x": a.median_bytes, "kind": kind, "seconds": {name: value / n for name, value in times.items()}}
        )
    return points


# ---------------------------------------------------------------------- print


def _print(console: Console, cases: list[dict[str, Any]], names: list[str]) -> None:
    table = Table(title=f"times as fast as the {BASELINE} (medians; ours validates every mask, the others none)")
    table.add_column("task")
    table.add_column("masks")
    table.add_column("B/mask", justify="right")
    table.add_column(BASELINE, justify="right")
    for name in names:
        if name != BASELINE:
            table.add_column(name, justify="right")
    for case in cases:
        table.add_row(
            case["case"],
            case["kind"],
            f"{case['bytes_per_mask']:,.0f}",
            seconds(case["seconds"][BASELINE]),
            *(ratio(case["ratio"].get(name)) for name in names if name != BASELINE),
        )
    console.print(table)


def _print_sums(console: Console, cases: list[dict[str, Any]]) -> None:
    """What is left to say of the engine without numba: whether anything but pycocotools and the validator costs."""
    table = Table(title=f"without numba: {WITHOUT_NUMBA}, times as fast as")
    for name in ("task", "masks"):
        table.add_column(name)
    for name in (SUM, BASELINE):
        table.add_column(name, justify="right")
    for case in cases:
        times = case["seconds"]
        if SUM in times:
            ours = times[WITHOUT_NUMBA]
            table.add_row(case["case"], case["kind"], f"{times[SUM] / ours:.2f}", f"{times[BASELINE] / ours:.2f}")
    console.print(table)


def _print_sweeps(console: Console, sweeps: dict[str, list[dict[str, Any]]], names: list[str]) -> None:
    titles = {
        "instances": "one image's matrix at 4 MP, ragged, by instances on each side",
        "megapixels": "50 x 50 ragged instances, by megapixels",
        "bytes": "an aligned pair at 1 MP, by bytes a mask",
    }
    for key, points in sweeps.items():
        table = Table(title=titles[key])
        table.add_column("")
        for point in points:
            table.add_column(f"{point['x']:,g}", justify="right")
        for name in names:
            if any(name in point["seconds"] for point in points):
                table.add_row(
                    name,
                    *(seconds(point["seconds"][name]) if name in point["seconds"] else "-" for point in points),
                )
        console.print(table)
