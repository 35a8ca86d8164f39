"""`doctor`: checks this installation and says how to add missing parts."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets import __version__
from bench_datasets._util.cpus import usable_cpus
from bench_datasets.benchmark import BENCHMARKS, import_error
from bench_datasets.cli import options
from bench_datasets.cli.console import clean, echo, out, working
from bench_datasets.plugins import PluginWarning

if TYPE_CHECKING:
    from rich.console import Console

PACKAGES = (
    "datasets", "evaluate", "filelock", "fsspec", "huggingface_hub", "jinja2", "matplotlib", "msgspec", "numpy",
    "pillow", "pyarrow", "pycocotools", "pyyaml", "rich", "scipy", "threadpoolctl", "typer",
)  # fmt: skip
"""What the package needs, by the names of the distributions."""

EXTRAS = {
    "fast": ("numba", "the numba engine: the same numbers, sooner"),
    "video": ("av", "PVSG: frames out of the videos themselves"),
    "ray": ("ray", "scoring on a cluster"),
    "docs": ("mkdocs", "building the documentation"),
}
"""Optional features: the module that tells whether one is there, and what it is for."""

TIMEOUT = 3.0
"""Seconds to wait for the Hub."""


def doctor(
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait for the Hub at most; 0: don't ask it.")
    ] = TIMEOUT,
    as_json: options.Json = False,
) -> None:
    """Check this installation and list missing parts. Exit code 1 if a part that every command needs is broken.

    Example: bench-datasets doctor
    """
    with working("looking around"):
        found = examine(timeout)
    if as_json:
        echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(out(), found)
    if not found["ok"]:
        raise typer.Exit(1)


def examine(timeout: float = TIMEOUT) -> dict[str, Any]:
    """The findings of `doctor` as plain values.

    Args:
        timeout: seconds to wait for the Hub; 0 not to ask it.
    """
    problems: list[str] = []
    packages = {name: _version(name) for name in PACKAGES}
    problems += [f"{name} is not installed: pip install {name}" for name, version in packages.items() if not version]
    hub = _hub(timeout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # told below
        known = list(BENCHMARKS)
    broken = BENCHMARKS.broken
    found = {
        "bench_datasets": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "packages": packages,
        "names": _checked(problems, "load_dataset by name", _names),
        "engines": _checked(problems, "the mask engines", _engines),
        "extras": {name: _extra(name, module, use) for name, (module, use) in EXTRAS.items()},
        "hub": hub,
        "cache": _cache(),
        "data": {name: _data(name, hub) for name in known},
        "plugins": {
            name: {
                "package": plugin.package,
                "wrong": str(broken[name])
                if name in broken
                else import_error(BENCHMARKS[name]) or _headline_problem(name),
            }
            for name, plugin in BENCHMARKS.plugins.items()
        },
    }
    return {"ok": not problems, "problems": problems, **found}


def _checked(problems: list[str], what: str, look: Callable[[], Any]) -> Any:
    """The result of a check; an exception becomes a problem."""
    try:
        return look()
    except Exception as error:  # a broken installation may raise anything
        problems.append(f"{what}: {type(error).__name__}: {error}")
        return None


def _names() -> list[str]:
    """The names that `load_dataset` knows through this package."""
    from bench_datasets.data import register_all
    from bench_datasets.data.registry import registered

    register_all()
    return registered()


def _extra(name: str, module: str, use: str) -> dict[str, Any]:
    """Whether an optional package is installed and imports."""
    wrong = None
    if importlib.util.find_spec(module) is None:
        return {"ready": False, "for": use, "get": _install(name), "wrong": wrong}
    if module == "numba":
        from bench_datasets.masks import engine_problem

        wrong = engine_problem(module)
    else:
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken installation may raise anything
            wrong = f"{module} does not import ({type(error).__name__}: {error})"
    return {"ready": wrong is None, "for": use, "get": _install(name), "wrong": wrong}


def _engines() -> dict[str, Any]:
    """The engines that compute with masks; each is tried on one."""
    from bench_datasets.masks import MaskColumn, available_engines, get_engine, using_engine

    there = list(available_engines())
    for name in there:
        with using_engine(name):
            area = int(MaskColumn.from_dense([[[True, False], [True, True]]]).areas()[0])
        if area != 3:
            raise ValueError(f"{name} counts {area} pixels where there are 3")
    return {"available": there, "used": get_engine().name, "cores": usable_cpus()}


def _hub(timeout: float) -> dict[str, Any]:
    """Whether the Hub answers; never longer than the timeout, even where names are not resolved."""
    import huggingface_hub
    from huggingface_hub import constants

    found: dict[str, Any] = {
        "endpoint": constants.ENDPOINT,
        "signed_in": huggingface_hub.get_token() is not None,
        "reachable": None,
    }
    if constants.HF_HUB_OFFLINE:
        return {**found, "text": "not asked: HF_HUB_OFFLINE is set"}
    if timeout == 0:
        return {**found, "text": "not asked"}
    answer: list[str] = []
    asking = threading.Thread(target=_ask, args=(constants.ENDPOINT, timeout, answer), daemon=True)
    asking.start()
    asking.join(timeout + 0.5)
    text = answer[0] if answer else f"no answer within {timeout:g} s"
    return {**found, "reachable": text == "answers", "text": text}


def _ask(endpoint: str, timeout: float, answer: list[str]) -> None:
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=timeout):
            answer.append("answers")
    except urllib.error.HTTPError:  # it is there, whatever it thinks of the question
        answer.append("answers")
    except (OSError, ValueError) as error:
        answer.append(str(getattr(error, "reason", None) or error) or type(error).__name__)


def _cache() -> dict[str, Any]:
    """Where built datasets lie, and whether there is room."""
    import datasets

    place = Path(datasets.config.HF_DATASETS_CACHE)
    there = place
    while not there.exists() and there != there.parent:
        there = there.parent
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return {"datasets": str(place), "writable": writable, "free_bytes": shutil.disk_usage(there).free}


def _data(name: str, hub: dict[str, Any]) -> dict[str, Any]:
    """Where a benchmark's truth would come from."""
    source = BENCHMARKS[name].source
    given = os.environ.get(source.env) or None
    sample = f"name a copy with --data or {source.env}; --data sample is built in"
    if given is not None:
        gone = "://" not in given and not Path(given).expanduser().is_dir()
        return {"from": given, "ready": not gone, "advice": f"{source.env}: there is no such folder" if gone else None}
    if not source.repo:
        return {"from": None, "ready": False, "advice": f"no public source; {sample}"}
    ready = hub["reachable"]
    return {"from": f"hf://datasets/{source.repo}", "ready": ready, "advice": None if ready else sample}


def _headline_problem(name: str) -> str | None:
    """A headline that is no metric of a plug-in's own sample, in words; None too where the sample can't be scored."""
    from datasets import Dataset

    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.score import score

    for protocol, key in BENCHMARKS[name].headline.items():
        try:
            features = BENCHMARKS[name].prediction_form().features
            nothing = Dataset.from_dict({column: [] for column in features}, features)
            scores = score(name, "sample", nothing, protocol, missing="empty", on_fault="skip-and-report")
            metrics = summarize(name, scores, draws=0).metrics
        except Exception:  # whatever somebody else's code does; scoring tells it
            return None
        if metrics and key not in metrics:
            return f"its headline {key!r} ({protocol}) is none of its metrics: {', '.join(list(metrics)[:8])}"
    return None


def _install(extra: str) -> str:
    return f"pip install 'bench-datasets[{extra}]'"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _show(console: Console, found: dict[str, Any]) -> None:
    from rich.text import Text

    def line(state: bool | None, name: str, text: str, advice: str | None = None) -> None:
        mark, style = {True: ("ok", "green"), False: ("no", "yellow"), None: ("--", "dim")}[state]
        shown = Text.assemble((f"{mark:3}", style), (f"{name:15}", "bold"), clean(text))
        if advice:
            shown.append(f"  {clean(advice)}", style="dim")
        console.print(shown, soft_wrap=True)

    def head(text: str) -> None:
        console.print()
        console.print(Text(text, style="bold"))

    console.print(
        Text(f"bench-datasets {found['bench_datasets']}, Python {found['python']}, {found['platform']}", style="bold")
    )
    console.print(Text(", ".join(f"{name} {version or 'absent'}" for name, version in found["packages"].items())))
    head("engines")
    for name in (found["engines"] or {}).get("available", ()):
        used = name == found["engines"]["used"]
        line(True, name, "in use" if used else "works; --engine chooses it")
    head("optional (-- is not installed or not set up; install what you need)")
    for name, extra in found["extras"].items():
        absent = None if extra["wrong"] is None else False
        line(extra["ready"] or absent, name, extra["for"], extra["wrong"] or (None if extra["ready"] else extra["get"]))
    head("Hub and cache")
    hub, cache = found["hub"], found["cache"]
    line(hub["reachable"], "hub", f"{hub['endpoint']}: {hub['text']}")
    line(hub["signed_in"] or None, "signed in", "publishing needs it", None if hub["signed_in"] else "hf auth login")
    advice = None if cache["writable"] else "cannot be written, so nothing is kept: set HF_HOME to another folder"
    line(cache["writable"], "cache", f"{cache['datasets']}, {cache['free_bytes'] / 1e9:,.1f} GB free", advice)
    head("benchmarks")
    for name, data in found["data"].items():
        missing = False if data["from"] is not None and "://" not in data["from"] else None
        line(data["ready"] or missing, name, data["from"] or "no default source", data["advice"])
    for name, plugin in found["plugins"].items():
        line(plugin["wrong"] is None, name, f"a plug-in of {plugin['package']}", plugin["wrong"])
    console.print()
    for problem in found["problems"]:
        console.print(Text(clean(problem), style="bold red"), soft_wrap=True)
    if found["ok"]:
        console.print(Text("everything that every command needs works", style="green"))
