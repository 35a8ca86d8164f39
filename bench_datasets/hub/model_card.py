"""The section of a card that holds results: between marks, made anew each time, everything around it left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench_datasets.faults import BenchError
from bench_datasets.hub.leaderboard import Group, group
from bench_datasets.hub.leaderboard_view import grid
from bench_datasets.hub.runs import Run
from bench_datasets.hub.templates import literal, render


def marks(repo: str) -> tuple[str, str]:
    """The comments around the section of a results repo; several repos may have one each in one card.

    Example:
        >>> marks("acme/results")[1]
        '<!-- bench-datasets results of acme/results: end -->'
    """
    begin = f"<!-- bench-datasets results of {repo}: begin; made anew by `bench-datasets publish results` -->"
    return begin, f"<!-- bench-datasets results of {repo}: end -->"


def model_section(model: str, repo: str, runs: Sequence[Run], url: str) -> str:
    """The section of a model's card: its runs in a results repo, a table for what may be compared.

    Args:
        model: its name.
        repo: the results repo's name.
        runs: all that it holds; those of other models are passed over.
        url: the results repo's page.
    """
    tables = group(run for run in runs if run.model == model)
    return render("model_results.md", repo=repo, url=url, tables=[card_table(table) for table in tables])


def card_table(table: Group) -> dict[str, object]:
    """A table as the cards' templates take it: title, caption, heads and rows of cells.

    Results come from anybody, so every text of theirs is shown as it is written.
    """
    cells = grid(table)
    return {
        "title": literal(table.title),
        "caption": literal(table.caption),
        "head": [literal(text) for text in cells.head],
        "left": [k in cells.left for k in range(len(cells.head))],
        "rows": [[literal(text) for text in row] for row in cells.rows],
        "partial": table.partial,
    }


def with_section(text: str | None, section: str, repo: str, *, where: str, title: str = "") -> str:
    r"""A card with the section in its place: where it stood, else at the end.

    Args:
        text: the card as it is; `None` where there is none.
        section: what is to stand between the marks.
        repo: the results repo that it is of.
        where: the card's name in messages.
        title: of a card that is made.

    Raises:
        BenchError: one mark is there without the other, or the first one twice.

    Example:
        >>> card = with_section("# Net\n", "Old.", "acme/results", where="README.md")
        >>> card = with_section(card, "New.", "acme/results", where="README.md")
        >>> "Old." in card, card.count("New."), card.startswith("# Net\n")
        (False, 1, True)
    """
    begin, end = marks(repo)
    if text is None:
        text = f"# {title}\n" if title else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join([begin, "", *section.strip().splitlines(), "", end])
    starts, ends = ([m.span(1) for m in _on_its_own(mark, text)] for mark in (begin, end))
    if not starts and not ends:
        gap = "" if not text else newline if text.endswith(newline) else 2 * newline
        return f"{text}{gap}{block}{newline}"
    if len(starts) != 1 or not ends or ends[-1] <= starts[0]:
        raise BenchError(f"{where}: expected the marks around the results of {repo} once each; mend the card first")
    # Marks within other lines are texts of somebody's results, and so is an end before the last one.
    return text[: starts[0][0]] + block + text[ends[-1][1] :]


def _on_its_own(mark: str, text: str) -> Iterator[re.Match[str]]:
    """Where a mark is a line of its own."""
    return re.finditer(rf"^[ \t]*({re.escape(mark)})[ \t]*\r?$", text, re.MULTILINE)
