"""What pages hold that is the code's own.

A line `<!-- generate: WHAT [ARGUMENT] -->` gives way to a table made here, `<!-- include: FILE -->` to a file's text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
MARK = re.compile(r"^<!-- generate: (\w+)(?: (.+?))? -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what is generated or included into a page."""
    if str(ROOT) not in sys.path:  # a copy that is not installed
        sys.path.insert(0, str(ROOT))
    markdown = INCLUDE.sub(
        lambda found: f"```python\n{(ROOT / found[1]).read_text(encoding='utf-8').rstrip()}\n```", markdown
    )
    return MARK.sub(lambda found: "\n".join(MAKERS[found[1]](*(found[2] or "").split())), markdown)


def faults(place: str) -> Iterator[str]:
    """The faults of predictions, or of a benchmark's rows."""
    from bench_datasets.faults import FAULTS

    yield from table("code", "by default", "meaning")
    for code, kind in FAULTS.items():
        if kind.where == place.replace("-", " "):
            yield row(f"`{code}`", kind.default, kind.meaning)


def protocols(benchmark: str) -> Iterator[str]:
    """A benchmark's protocols."""
    entry = get(benchmark)
    yield from table("protocol", "version", "meaning", "headline", "a complete run is comparable to")
    for name, protocol in entry.metric_module().PROTOCOLS.items():
        shown = f"`{name}`" + (" (default)" if name == entry.protocols[0] else "")
        published = protocol.comparable_to or "nothing published"
        yield row(shown, protocol.version, protocol.meaning, f"`{entry.headline[name]}`", published)


def columns(benchmark: str) -> Iterator[str]:
    """A benchmark's score table."""
    yield from table("column", "type", "meaning")
    for name, (feature, meaning) in get(benchmark).metric_module().SCORE_COLUMNS.items():
        yield row(f"`{name}`", kind(feature), meaning)


def source(benchmark: str) -> Iterator[str]:
    """Where a benchmark's rows are from."""
    found = get(benchmark).source
    yield from table("what", "where")
    yield row("default source", f"`{found.repo}`, revision `{found.revision}`" if found.repo else "none is public")
    yield row("environment variable", f"`{found.env}`")
    yield row("published rows", ", ".join(f"{part} {rows:,}" for part, rows in found.rows.items()))
    yield row("licence of the data", found.licence)


def citation(benchmark: str) -> Iterator[str]:
    """How to cite a benchmark."""
    yield from ("```bibtex", get(benchmark).citation, "```")


def commands() -> Iterator[str]:
    """Every command with its arguments and options, from the tree that parses them."""
    import typer

    from bench_datasets.cli import app

    yield from command(typer.main.get_command(app), ["bench-datasets"])


def command(found: Any, path: list[str]) -> Iterator[str]:
    """One command, then those below it."""
    yield from ("", f"{'#' * min(len(path) + 1, 4)} `{' '.join(path)}`", "")
    text, *examples = re.split(r"\s*Example: ", found.help or "", maxsplit=1)
    yield from (cell(text), "")
    for example in examples:
        yield from ("```text", " ".join(example.split()), "```", "")
    shown = [param for param in found.params if getattr(param, "help", None) and not getattr(param, "hidden", False)]
    if shown:
        yield from table("argument or option", "default", "meaning")
        for param in shown:
            default = param.default
            named = default is not None and default != () and default is not False and not callable(default)
            needed = "needed" if param.required else f"`{default}`" if named and "Sentinel" not in repr(default) else ""
            yield row(f"`{signature(param)}`", needed, cell(param.help))
    for name in sorted(getattr(found, "commands", {})):
        yield from command(found.commands[name], [*path, name])


def signature(param: Any) -> str:
    """How an argument or option is written."""
    value = param.metavar or ("" if getattr(param, "is_flag", False) else param.name.upper())
    if param.param_type_name == "argument":
        return str(value)
    flags = "/".join([*param.opts, *param.secondary_opts])
    return flags if getattr(param, "is_flag", False) else f"{flags} {value}"


def get(benchmark: str) -> Any:
    """A benchmark's entry."""
    from bench_datasets.benchmarks import get_benchmark

    return get_benchmark(benchmark)


def kind(feature: Any) -> str:
    """A feature's type in a few words."""
    inner = getattr(feature, "feature", None)
    if inner is not None:
        return f"list of {kind(inner)}"
    return str(getattr(feature, "dtype", "struct"))


def table(*heads: str) -> Iterator[str]:
    """The head of a table."""
    yield from ("", row(*heads), row(*["---"] * len(heads)))


def row(*cells: object) -> str:
    """A row of a table."""
    return f"| {' | '.join(cell(str(text)) for text in cells)} |"


def cell(text: str) -> str:
    """Text that stays within its cell; a bar in code is no end of one."""
    text = " ".join(text.split())
    return text if "`" in text else text.replace("|", "\\|").replace("<", "&lt;")


MAKERS: dict[str, Callable[..., Iterator[str]]] = {
    "faults": faults,
    "protocols": protocols,
    "columns": columns,
    "source": source,
    "citation": citation,
    "commands": commands,
}
"""What can be generated, by name."""
