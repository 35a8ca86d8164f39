"""Texts of other people in cards: shown as they are written, never as markup."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_datasets._util.grid import plain
from bench_datasets.hub.templates import code, literal

MARKUP = st.text(st.sampled_from("<>&\"'`*_[]()!|\\~$:/@#.ww ahtps\n\r\t\u202e\x1b-"), max_size=40)


@given(MARKUP)
def test_literal_any_text_has_no_markup_and_reads_the_same(text: str) -> None:
    found = literal(text)
    assert not re.search(r"[<>`*~$\n\r]|\]\(|\]\[|\]:|://|(?i:www\.)|(?<!\\)\|", found)
    assert re.sub(r"&(#\d+|lt|gt|amp);", "", found).count("&") == 0
    shown = html.unescape(found.replace("\\|", "|")).replace("\u200b", "")
    assert shown == plain(" ".join(text.split()))


@given(MARKUP)
def test_code_any_text_stays_in_its_span_and_cell(text: str) -> None:
    found = code(text)
    assert found[0] == found[-1] == "`"
    assert "`" not in found[1:-1]
    assert not re.search(r"(?<!\\)\||\n|\r", found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acme/net", "acme/net"),
        ("R@20/0.5", "R@20/0.5"),
        ("macro_f1/level_0", "macro_f1/level_0"),
        ("<!-- end -->", "&lt;!-- end --&gt;"),
        ("[x](http://evil)", "[x&#93;(http:&#8203;//evil)"),
        ("![x][y]", "![x&#93;[y]"),
        ("@everybody", "@&#8203;everybody"),
    ],
)
def test_literal_known_texts_give_known_markdown(text: str, expected: str) -> None:
    assert literal(text) == expected
