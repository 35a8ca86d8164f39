"""Tables of texts as values, and their rendering as plain text and as HTML."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Grid:
    """One table: a title, the columns' heads, and rows of cells; the first cell of a row is its name.

    Attributes:
        title: what stands above; empty for none.
        head: a text per column.
        rows: as many cells per row.
        left: positions of the columns that are aligned to the left; the others are aligned to the right.
        hints: longer texts for heads, by head; browsers show them under the pointer.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    left: Sequence[int] = (0,)
    hints: Mapping[str, str] = field(default_factory=dict)


def plain(text: str) -> str:
    r"""Text that a terminal only shows: line ends and control characters are spelled out.

    Example:
        >>> print(plain("level_0/1" + chr(10) + chr(27) + "[31m"))
        level_0/1\n\x1b[31m
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def text_lines(grid: Grid) -> list[str]:
    """A table as lines of aligned text, without its title.

    Example:
        >>> text_lines(Grid("", ["", "value"], [["miou", "7.50"], ["p@0.5", "10.00"]]))
        ['       value', 'miou    7.50', 'p@0.5  10.00']
    """
    table = [[plain(cell) for cell in row] for row in (grid.head, *grid.rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(grid.head))]

    def cell(text: str, k: int) -> str:
        return text.ljust(widths[k]) if k in grid.left else text.rjust(widths[k])

    return ["  ".join(cell(text, k) for k, text in enumerate(row)).rstrip() for row in table]


_GRIDS = """
{%- for grid in grids -%}
<table>{% if grid.title %}<caption>{{ grid.title }}</caption>{% endif %}<thead><tr>
{%- for name in grid.head %}<th{% if grid.hints[name] %} title="{{ grid.hints[name] }}"{% endif %}>{{ name }}</th>
{%- endfor %}</tr></thead><tbody>
{%- for row in grid.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</tbody></table>
{%- endfor %}"""


def html_tables(grids: Sequence[Grid]) -> str:
    """Tables as an HTML fragment; every text is escaped.

    Example:
        >>> html_tables([Grid("", ["<b>"], [["1"]])])
        '<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """
    return render_html(_GRIDS, grids=[_with_hints(grid) for grid in grids])


def _with_hints(grid: Grid) -> dict[str, Any]:
    hints = {name: grid.hints.get(name, "") for name in grid.head}
    return {"title": grid.title, "head": grid.head, "rows": grid.rows, "hints": hints}


def render_html(source: str, **values: Any) -> str:
    """Render a template of this package as HTML; every value is escaped.

    Args:
        source: a Jinja template. It must be the package's own text.
        **values: its variables.

    Raises:
        jinja2.UndefinedError: a variable is absent.

    Example:
        >>> render_html("<p>{{ text }}</p>", text="a < b")
        '<p>a &lt; b</p>'
    """
    return _template(source).render(values)


@functools.cache
def _template(source: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters["plain"] = plain
    return environment.from_string(source)
