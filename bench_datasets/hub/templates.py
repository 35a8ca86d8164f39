"""Templates of `cards/` with their values put in, and the metadata that stands above a card."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench_datasets._util.grid import plain
from bench_datasets.faults import BenchError
from bench_datasets.hub.commits import Content, Head

TAG = "bench-datasets"
"""What marks a repo as one of ours."""

_FIRST = {".gitattributes", "README.md", "index.html", "style.css"}
"""What the Hub itself puts into a new Space."""

_PACKAGE = Path(__file__).resolve().parents[1]


def front_matter(metadata: Mapping[str, Any]) -> str:
    """A card's metadata as the Hub reads it."""
    return f"---\n{to_yaml(metadata)}---\n"


def over_ours(head: Head, files: Mapping[str, Content]) -> Mapping[str, Content]:
    """The files for a repo, unless it is somebody's own.

    Args:
        head: the repo as it is.
        files: what it is to hold.

    Raises:
        BenchError: it has a card with metadata that lacks our tag.
    """
    import yaml

    text = head.text("README.md") or ""
    found = re.match(r"\s*---\r?\n(.*?)\n---", text, re.DOTALL)
    try:
        metadata = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        metadata = None
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    untouched = head.repo_type == "space" and set(head.files) <= _FIRST
    if text.strip() and TAG not in (tags or []) and not untouched:
        raise BenchError(
            f"{head.repo_id}: expected a new repo or one that this command has published, found one whose card lacks"
            f" the tag {TAG}; publish under another name, or add the tag to the card there first"
        )
    return files


def render(template: str, **values: Any) -> str:
    """A template of `cards/` with its values, without runs of empty lines.

    Args:
        template: the file's name.
        values: what it asks for; a value that is missing is an error.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_folder()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"cell": _cell, "literal": literal, "code": code}
    lines: list[str] = []
    for line in environment.get_template(template).render(**values).splitlines():
        if line.strip() or (lines and lines[-1].strip()):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"


def bibtex(entry: str) -> str:
    """A BibTeX entry, a field a line.

    Example:
        >>> print(bibtex("@misc{a, title={B, c}, year={2026}}"))
        @misc{a,
          title={B, c},
          year={2026}
        }
    """
    return re.sub(r"\}\}$", "}\n}", re.sub(r", (?=\w+=\{)", ",\n  ", entry.strip()))


def _folder() -> Path:
    """Where the templates lie: in the package, or beside it in a copy of the repository."""
    for folder in (_PACKAGE / "cards", _PACKAGE.parent / "cards"):
        if (folder / "dataset_card.md").is_file():
            return folder
    raise BenchError(f"cards: expected the templates in {_PACKAGE / 'cards'}, found none; install the package again")


def _cell(text: Any) -> str:
    r"""Text that can stand in a cell of a Markdown table.

    Example:
        >>> _cell("a | b")
        'a \\| b'
    """
    return " ".join(str(text).split()).replace("|", "\\|")


_MARKUP = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*~$"})
_LINKS = (
    (re.compile(r"\](?=[(\[:])"), "&#93;"),
    (re.compile(r"(?<!\w)_|_(?!\w)"), "&#95;"),
    (re.compile(r"(?i)(www)(?=\.)|(:)(?=//)|(@)(?=[a-z])"), r"\1\2\3&#8203;"),
)
"""Characters of Markdown links, emphasis and mentions; a zero-width space breaks addresses."""


def literal(text: Any) -> str:
    r"""A foreign text as Markdown and HTML show it: no tag, link, image, emphasis or mention comes of it.

    Example:
        >>> literal("<b>[x](http://y)")
        '&lt;b&gt;[x&#93;(http:&#8203;//y)'
        >>> literal("macro_f1/level_0 [84.12, 86.01] | 7")
        'macro_f1/level_0 [84.12, 86.01] \\| 7'
    """
    found = html.escape(plain(" ".join(str(text).split())), quote=False).translate(_MARKUP)
    for pattern, safe in _LINKS:
        found = pattern.sub(safe, found)
    return found.replace("|", "\\|")


def code(text: Any) -> str:
    r"""A foreign text as a code span, which may stand in a cell of a table.

    Example:
        >>> print(code("a`b|c"))
        `a'b\|c`
    """
    return f"`{_cell(plain(str(text))).replace('`', chr(39)) or ' '}`"


def to_yaml(content: Mapping[str, Any]) -> str:
    """YAML in the order given."""
    import yaml

    text: str = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=110)
    return text
