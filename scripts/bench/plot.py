"""The mask suite's sweeps as one picture: time against instances, area and bytes, log-log."""

from __future__ import annotations

from typing import Any

PANELS = (
    ("instances", "instances on each side", "one image's matrix, 4 MP, ragged", "seconds"),
    ("megapixels", "megapixels", "50 x 50 ragged instances", "seconds"),
    ("bytes", "bytes a mask (median)", "an aligned pair, 1 MP", "seconds a pair"),
)
STYLES = {
    "pycocotools loop": ("#222222", "-", "o"),
    "pycocotools grouped": ("#888888", "--", "s"),
    "pycocotools, a call a pair": ("#888888", ":", "s"),
    "faster-coco-eval": ("#8c6d31", "-", "^"),
    "hotcoco": ("#c77f1a", "-", "v"),
    "rlemasklib": ("#7a4fa3", "-", "D"),
    "ours, pycocotools": ("#1f77b4", "-", "o"),
    "ours, numba, 1 thread": ("#0a8f5b", "-", "o"),
    "ours, numba, 2 threads": ("#0a8f5b", "--", "o"),
}
OTHER = ("#cc3377", "-", "x")


def plot(sweeps: dict[str, list[dict[str, Any]]], path: str, caption: str) -> None:
    """Write the picture.

    Args:
        sweeps: what the mask suite gave.
        path: a file that matplotlib can write (PNG, SVG, PDF).
        caption: machine and versions, below the picture.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(15, 5.6), layout="constrained")
    lines: dict[str, Any] = {}
    for axis, (key, label, title, unit) in zip(axes, PANELS, strict=True):
        points = sweeps[key]
        for name in dict.fromkeys(name for point in points for name in point["seconds"]):
            colour, dashes, marker = STYLES.get(name, OTHER)
            some = sorted((point["x"], point["seconds"][name]) for point in points if name in point["seconds"])
            wide = 2.2 if name.startswith("ours") else 1.3
            (line,) = axis.plot(
                *zip(*some, strict=True), color=colour, linestyle=dashes, marker=marker, markersize=4, linewidth=wide
            )
            lines.setdefault(name, line)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(label)
        axis.set_ylabel(unit)
        axis.set_title(title, fontsize=11)
        if key != "bytes":
            axis.set_xticks([point["x"] for point in points])
            axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.xaxis.set_minor_formatter("")
        axis.yaxis.set_major_formatter(FuncFormatter(_seconds))
        axis.grid(True, which="major", color="#dddddd", linewidth=0.8)
        axis.spines[["top", "right"]].set_visible(False)
    order = [name for name in STYLES if name in lines] + [name for name in lines if name not in STYLES]
    figure.legend(
        [lines[name] for name in order], order, loc="outside lower center", ncols=min(5, len(order)), frameon=False
    )
    title = "Mask intersections: time, less is better. Ours validates every mask, the others none"
    figure.suptitle(f"{title}\n", fontsize=13)
    figure.text(0.5, 0.925, caption, fontsize=8.5, color="#666666", horizontalalignment="center")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _seconds(value: float, _: Any) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 0.999:
            return f"{value * factor:g} {unit}"
    return f"{value * 1e6:g} us"
