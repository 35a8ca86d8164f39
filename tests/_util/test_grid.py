"""Tables as text and as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import jinja2
import pytest

from bench_datasets._util.grid import Grid, html_tables, render_html, text_lines

HOSTILE = "<script>alert('a') & \"b\"</script>"


class Texts(HTMLParser):
    """Collects tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.hints: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.hints += [value for name, value in attrs if name == "title"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_tables_hostile_texts_escaped_everywhere() -> None:
    grid = Grid(HOSTILE, ["name", HOSTILE], [[HOSTILE, "1"]], hints={HOSTILE: HOSTILE})
    page = Texts()
    page.feed(html_tables([grid]))
    assert page.tags == ["table", "caption", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"]
    assert page.texts == [HOSTILE, "name", HOSTILE, HOSTILE, "1"]
    assert page.hints == [HOSTILE]


def test_html_tables_without_title_no_caption() -> None:
    assert "<caption>" not in html_tables([Grid("", ["a"], [["1"]])])


def test_html_tables_several_grids_in_order() -> None:
    page = html_tables([Grid("one", ["a"], []), Grid("two", ["a"], [])])
    assert page.count("<table>") == 2
    assert page.index("one") < page.index("two")


def test_text_lines_left_columns_aligned_left() -> None:
    rows = [["a", "bb", "1"], ["ccc", "d", "10"]]
    assert text_lines(Grid("", ["x", "y", "n"], rows)) == ["x     y   n", "a    bb   1", "ccc   d  10"]
    assert text_lines(Grid("", ["x", "y", "n"], rows, left=(0, 1))) == ["x    y    n", "a    bb   1", "ccc  d   10"]


def test_text_lines_control_characters_spelled_out() -> None:
    assert text_lines(Grid("", ["x"], [["a\nb\x1b[2J"]]))[1] == r"a\nb\x1b[2J"


def test_render_html_absent_variable_raises() -> None:
    with pytest.raises(jinja2.UndefinedError, match="absent"):
        render_html("{{ absent }}")
