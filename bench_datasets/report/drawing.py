"""Drawings of the page, as SVG that takes its colours from the page's style: ladders, differences, intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from markupsafe import Markup

from bench_datasets.report.page_data import Ladder, Lane
from bench_datasets.results.compare import Difference
from bench_datasets.results.result import Metric
from bench_datasets.results.tables import n_of

SHAPES = 8
"""Runs that are told apart by colour and shape; later ones begin anew."""

WHOLE, WIDE, MIDDLE, NARROW = 1120, 760, 640, 380
"""Widths that drawings are made for, in pixels; the style shows the one that fits."""

MARGIN = 160
"""Pixels right of a wide ladder: room for `100.0 [100.0, 100.0]`."""

_OUTLINES: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    2: ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
    3: ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    4: ((0, 1.25), (1.15, -0.85), (-1.15, -0.85)),
    5: ((-0.45, -1.3), (0.45, -1.3), (0.45, -0.45), (1.3, -0.45), (1.3, 0.45), (0.45, 0.45), (0.45, 1.3),
        (-0.45, 1.3), (-0.45, 0.45), (-1.3, 0.45), (-1.3, -0.45), (-0.45, -0.45)),
    6: ((-0.6, -1.2), (0.6, -1.2), (1.25, 0), (0.6, 1.2), (-0.6, 1.2), (-1.25, 0)),
    7: ((-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)),
}  # fmt: skip
"""The corners of signs that are no circles, for a radius of 1."""


def marker(run: int, x: float, y: float, r: float = 5) -> Markup:
    """The sign of a run, `r` pixels in radius, at a place."""
    kind = run % SHAPES
    points = _OUTLINES.get(kind)
    if points is None:
        return Markup('<circle class="run{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(kind, x, y, r)
    path = " ".join(f"{x + r * a:.1f},{y + r * b:.1f}" for a, b in points)
    return Markup('<polygon class="run{}" points="{}"/>').format(kind, path)


def sign(run: int) -> Markup:
    """A run's sign alone, for legends."""
    return Markup('<svg class="sign" viewBox="0 0 16 16" aria-hidden="true">{}</svg>').format(marker(run, 8, 8, 5))


def percent(metric: Metric | None) -> str:
    """A number in percent with one digit, or a dash."""
    return "–" if metric is None or not math.isfinite(metric.value) else f"{100 * metric.value:.1f}"


def ladder(ladder: Ladder, names: Sequence[str], width: int) -> Markup:
    """A ladder: a line a part, each run's sign with its interval, others' numbers as grey ticks.

    Args:
        ladder: what to draw.
        names: the runs'.
        width: of the drawing, in pixels.
    """
    left, right, step = (150, MARGIN, 15) if width > NARROW else (12, 134, 15)
    head = 0 if width > NARROW else 17
    label = 13 if width > NARROW else 12
    span = width - left - right
    parts, y = [], 8.0

    def x(value: float) -> float:
        return left + span * min(max(value, 0.0), 1.0)

    # Two lines of text need their height even where one run needs less.
    heights = [head + max(14 + step * len(lane.metrics), 0 if head else 42) for lane in ladder.lanes]
    bottom = y + sum(heights) + 8 * sum(lane.apart for lane in ladder.lanes)
    for tick in range(0, 101, 20 if width > NARROW else 25):
        parts.append(Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="4" y2="{1:.1f}"/>'
                            '<text class="tick" x="{0:.1f}" y="{2:.1f}" text-anchor="middle">{3}</text>')
                     .format(x(tick / 100), bottom, bottom + 16, tick))  # fmt: skip
    for lane, height in zip(ladder.lanes, heights, strict=True):
        y += 8 if lane.apart else 0
        parts.append(_lane(lane, names, (left, y, width - right, height), head, step, label, x))
        y += height
    text = Markup(
        '<svg class="ladder" viewBox="0 0 {w} {h:.0f}" width="{w}" height="{h:.0f}" role="img" aria-label="{title}">'
        "<title>{title}</title>{body}</svg>"
    )
    return text.format(w=width, h=bottom + 24, title=_words(ladder, names), body=Markup("").join(parts))


def _lane(lane: Lane, names: Sequence[str], box: tuple[float, float, float, float], head: int, step: int,
          label: int, place: Callable[[float], float]) -> Markup:  # fmt: skip
    left, y, right, height = box
    n = n_of(lane.metrics)
    kind = "apart" if lane.apart else "lane"
    parts = [Markup('<line class="{}" x1="0" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(kind, right + MARGIN, y, y)]
    if head:
        parts.append(Markup('<text class="part" x="{:.1f}" y="{:.1f}">{} <tspan class="n">n = {}</tspan></text>')
                     .format(left, y + 15, lane.name, n))  # fmt: skip
    else:
        parts.append(Markup('<text class="part" x="4" y="{:.1f}">{}</text><text class="n" x="4" y="{:.1f}">n = {}'
                            "</text>").format(y + height / 2 - 1, lane.name, y + height / 2 + 14, n))  # fmt: skip
    top = y + head + (height - head - step * len(lane.metrics)) / 2
    for point in lane.published:
        parts.append(Markup('<line class="published" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"><title>{3}: '
                            "{4:g}</title></line>").format(place(point.percent / 100), y + head + 8, y + height - 7,
                                                           point.name, point.percent))  # fmt: skip
    for k, metric in enumerate(lane.metrics):
        at = top + step * k + step / 2
        if metric is None or not math.isfinite(metric.value):
            parts.append(Markup('<text class="value" x="{:.1f}" y="{:.1f}">–</text>').format(right + 10, at + 4))
            continue
        if metric.ci95:
            low, high = (place(bound) for bound in metric.ci95)
            parts.append(Markup('<line class="whisker run{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
                         .format(k % SHAPES, low, high, at, at))  # fmt: skip
        shown = percent(metric)
        bounds = "" if not metric.ci95 else f" [{100 * metric.ci95[0]:.1f}, {100 * metric.ci95[1]:.1f}]"
        parts.append(Markup("<g>{}<title>{}: {}{}</title></g>").format(
            marker(k, place(metric.value), at, 4.4), names[k], shown, bounds))  # fmt: skip
        interval = Markup(' <tspan class="n">{}</tspan>').format(bounds.strip())
        parts.append(Markup('<text class="value" x="{:.1f}" y="{:.1f}" font-size="{}">{}{}</text>')
                     .format(right + 10, at + 4, label - 1, shown, interval))  # fmt: skip
    return Markup("").join(parts)


def _words(ladder: Ladder, names: Sequence[str]) -> str:
    """The drawing in words, for those who do not see it."""
    said = []
    for lane in ladder.lanes:
        values = ", ".join(f"{name} {percent(metric)}" for name, metric in zip(names, lane.metrics, strict=True))
        said.append(f"{lane.name}: {values}")
    return f"{ladder.title}. " + "; ".join(said)


def forest(found: Sequence[Difference], names: Sequence[str], runs: Sequence[int], width: int) -> Markup:
    """Differences of two runs with their intervals, around zero.

    Args:
        found: differences.
        names: of the two runs, A and B.
        runs: their places in the report.
        width: of the drawing.
    """
    shown = [item for item in found if math.isfinite(item.difference)]
    left, right, step = (166, 226, 26) if width > NARROW else (12, 112, 46)
    reach = max((abs(v) for d in shown for v in (d.difference, *(d.ci95 or ()))), default=0.0)
    reach = max(reach * 1.05, 0.01)
    span, bottom = width - left - right, 24.0 + step * len(shown)

    def x(value: float) -> float:
        return left + span * (0.5 + value / (2 * reach))

    prefixes = Counter(item.metric.rpartition("/")[0] for item in shown)
    better = [Markup("{} better").format(name) for name in names]
    parts = [
        Markup('<text class="n" x="{:.1f}" y="14">◂ {}</text>').format(left, better[0]),
        Markup('<text class="n" x="{:.1f}" y="14" text-anchor="end">{} ▸</text>').format(left + span, better[1]),
    ]
    narrow = width <= NARROW  # a name stands above its bar there, so that the zero line is drawn bar by bar
    zeros = [(24 + step * k + 16, 24 + step * (k + 1) - 4) for k in range(len(shown))] if narrow else [(20, bottom)]
    parts += [
        Markup('<line class="zero" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>').format(x(0), *ends)
        for ends in zeros
    ]
    for k, item in enumerate(shown):
        y = 24 + step * k + step / 2 + (6 if narrow else 0)
        side = {"A": runs[0], "B": runs[1]}.get(item.verdict or "")
        sign = 1 if item.higher_is_better else -1
        low, high = sorted(x(sign * v) for v in (item.ci95 or (item.difference,) * 2))
        kind = "unsettled" if side is None else f"run{side % SHAPES}"
        name_at = (left - 10, y + 4, "end") if width > NARROW else (left, y - 17, "start")
        bounds = "" if item.ci95 is None else f"[{100 * item.ci95[0]:.1f}, {100 * item.ci95[1]:.1f}]"
        name = _short(item.metric, prefixes)
        value = f"{100 * item.difference:+.1f}"
        parts.append(
            Markup('<text class="part" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
                   '<line class="whisker {}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
                   '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"/>'
                   '<text class="value" x="{:.1f}" y="{:.1f}">{} <tspan class="n">{}</tspan></text>'
                   '<text class="n" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>'
                   '<text class="n" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>')
            .format(*name_at, name, kind, low, high, y, y, kind, x(sign * item.difference), y,
                    left + span + 10, y + 4, value, "" if narrow else bounds,
                    width - 4, y + 4, chance(item.p_holm), width - 4, y - 17, bounds if narrow else "")
        )  # fmt: skip
    said = "; ".join(f"{d.metric} {100 * d.difference:+.1f} {chance(d.p_holm)}".strip() for d in shown)
    title = f"{names[1]} minus {names[0]}, in points: {said}"
    return Markup(
        '<svg class="forest" viewBox="0 0 {w} {h:.0f}" width="{w}" height="{h:.0f}" role="img" aria-label="{title}">'
        "<title>{title}</title>{body}</svg>"
    ).format(w=width, h=bottom + 8, title=title, body=Markup("").join(parts))


def chance(p: float) -> str:
    """A p-value in short.

    Example:
        >>> chance(0.0637), chance(0.0001), chance(1.0)
        ('p .064', 'p < .001', 'p 1')
    """
    if not math.isfinite(p):
        return ""
    if p < 0.001:
        return "p < .001"
    return "p 1" if p > 0.9995 else f"p {p:.3f}".replace("0.", ".")


def _short(metric: str, prefixes: Counter[str]) -> str:
    """A metric's name without what several of those shown begin with."""
    prefix, slash, last = metric.rpartition("/")
    return last.replace("_", " ") if slash and prefixes[prefix] > 1 else metric


def both_widths(draw: Callable[[int], Markup], wide: int = WIDE) -> Markup:
    """A drawing for wide and one for narrow screens; the style shows one of them."""
    return Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(draw(wide), draw(NARROW))


def gauge(metric: Metric, run: int) -> Markup:
    """A number's place from 0 to 100 with its interval, as a small strip."""
    low, high = metric.ci95 or (metric.value, metric.value)
    ends = [4 + 192 * min(max(v, 0.0), 1.0) for v in (low, high, metric.value)]
    return Markup(
        '<svg class="gauge" viewBox="0 4 200 12" aria-hidden="true">'
        '<line class="grid" x1="4" x2="196" y1="10" y2="10"/>'
        '<line class="whisker run{}" x1="{:.1f}" x2="{:.1f}" y1="10" y2="10"/>{}</svg>'
    ).format(run % SHAPES, ends[0], ends[1], marker(run, ends[2], 10, 5))
