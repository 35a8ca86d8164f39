"""What pages hold that is the code's own.

Between `<!-- generate: WHAT [ARGUMENT] -->` and `<!-- end -->` stands a table made here, between
`<!-- include: FILE -->` and `<!-- end -->` a file's text. Both are in the pages, which are so read whole without being
built; `python docs/hooks.py` makes them anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(
    r"^<!-- (generate|include): (\S+)(?: ([^\n]+?))? -->$(?:\n.*?^<!-- end -->$)?", re.MULTILINE | re.DOTALL
)
"""What is made, its marks around it; the second mark may be missing before it is made for the first time."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page as it is built: what is made, made anew, without the marks."""
    return MARK.sub(_made, markdown)


def fill(markdown: str) -> str:
    """A page with what is made in it made anew, between its marks."""
    return MARK.sub(lambda found: f"{found[0].splitlines()[0]}\n{_made(found)}\n<!-- end -->", markdown)


def _made(found: re.Match[str]) -> str:
    if str(ROOT) not in sys.path:  # a copy that is not installed
        sys.path.insert(0, str(ROOT))
    if found[1] == "include":
        return f"```python\n{(ROOT / found[2]).read_text(encoding='utf-8').rstrip()}\n```"
    return "\n".join(MAKERS[found[2]](*(found[3] or "").split()))


def main() -> None:
    """Make anew what is made in all pages."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = fill(old)
        if new != old:
            page.write_text(new, encoding="utf-8", newline="\n")
            print(f"wrote {page.relative_to(ROOT)}")


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
    for name, protocol in entry.protocols.items():
        shown = f"`{name}`" + (" (default)" if name == entry.default_protocol else "")
        published = protocol.comparable_to or "nothing published"
        yield row(shown, protocol.version, protocol.meaning, f"`{entry.headline[name]}`", published)


def columns(benchmark: str) -> Iterator[str]:
    """A benchmark's score table."""
    yield from table("column", "type", "meaning")
    for name, (feature, meaning) in get(benchmark).score_columns.items():
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

    from bench_datasets.benchmark import BENCHMARKS
    from bench_datasets.cli import app

    installed, own = ", ".join(BENCHMARKS), ", ".join(BENCHMARKS.own)  # plug-ins are not the package's
    for line in command(typer.main.get_command(app), ["bench-datasets"]):
        yield line.replace(installed, own)


def command(found: Any, path: list[str]) -> Iterator[str]:
    """One command, then those below it."""
    yield from ("", f"{'#' * min(len(path) + 1, 4)} `{' '.join(path)}`", "")
    text, *examples = re.split(r"\s*Example: ", found.help or "", maxsplit=1)
    yield cell(text)
    for example in examples:
        yield from ("", "```text", " ".join(example.split()), "```")
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
    from bench_datasets.benchmark import get_benchmark

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

if __name__ == "__main__":
    main()
