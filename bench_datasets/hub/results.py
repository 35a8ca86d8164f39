"""Publishing a run: scores and numbers into a results repo, an entry and a section into the model's repo."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.hub import client, eval_results
from bench_datasets.hub.commits import CommitResult, Plan, commit, repo_url
from bench_datasets.hub.leaderboard import group
from bench_datasets.hub.model_card import card_table, marks, model_section, with_section
from bench_datasets.hub.repo import Content, Head
from bench_datasets.hub.runs import (
    Run,
    config_of,
    files_of,
    open_run,
    published_runs,
    run_name,
    same_numbers,
    split_of,
    without_source,
)
from bench_datasets.hub.templates import TAG, render, to_yaml
from bench_datasets.results.result import Result

RESULTS_TAG = "bench-datasets-results"
"""What marks a dataset as a results repo."""

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:\r?\n)?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Published:
    """The changes that publishing a run made, or would make.

    Attributes:
        results: in the results repo.
        model: in the model's repo; `None` where that was left alone.
        remarks: what was not done, and why.
    """

    results: CommitResult | Plan
    model: CommitResult | Plan | None
    remarks: list[str] = field(default_factory=list)


@dataclass
class _Job:
    """One run on its way: `result` gives way to one that says the same and is there already."""

    scores: Content
    result: Result
    model: str
    repo: str
    run: str
    overwrite: bool
    published: list[Run]

    @property
    def url(self) -> str:
        """Where the numbers will be."""
        page = repo_url(client.endpoint(), self.repo, "dataset")
        return f"{page}/tree/main/{files_of(self.model, self.run)[1].rsplit('/', 1)[0]}"


def publish_results(
    folder: str | os.PathLike[str],
    *,
    model: str,
    repo: str,
    run: str | None = None,
    dataset: str | None = None,
    direct: bool = False,
    overwrite: bool = False,
    force: bool = False,
    scores_only: bool = False,
    private: bool | None = None,
    with_source: bool = False,
    dry_run: bool = False,
    confirm: Callable[[str], bool] | None = None,
    token: str | None = None,
) -> Published:
    """Publish a run: its scores and numbers, an entry for the Hub's leaderboard, a section of the model's card.

    The results repo is a dataset with a config a run; its card is made from what it holds. What goes into the model's
    repo, `.eval_results/<benchmark>.yaml` and the card's section, is proposed as one pull request. A second time, or
    after a failure, only what is missing is sent.

    Args:
        folder: of the run: `scores.parquet` and `result.json`.
        model: the model's name on the Hub, `ORG/NAME`.
        repo: the results repo, `ORG/NAME`; it is made where it is missing.
        run: the run's name; by default benchmark and protocol.
        dataset: the published copy of the rows, where they were scored from elsewhere.
        direct: commit to the model's repo in place of a pull request.
        overwrite: put the run in the place of another of its name, and its value in the place of another one.
        force: publish a partial or incomparable result all the same; the entry's notes say so.
        scores_only: leave the model's repo alone.
        private: whether a results repo that is made is private; by default as its owner has set.
        with_source: publish the path or URL that the ground truth was read from; by default only the name of a dataset
            on the Hub is published, and anything else is called a copy of the benchmark.
        dry_run: write nothing and give the plans.
        confirm: is asked before a private model's name becomes public; without it, the answer is no.
        token: to sign in with; by default the user's own.

    Raises:
        BenchError: the run may not be published so, or the Hub won't take it; one line says why.

    Example:
        >>> publish_results("run", model="acme/net", repo="acme/results")                    # doctest: +SKIP
    """
    client.check_name(model, "--model")
    client.check_name(repo, "--repo")
    if dataset is not None:
        client.check_name(dataset, "--dataset")
    if repo == model:
        raise BenchError(f"--repo: expected a repo of its own for results, got the model's name; try {repo}-results")
    own, result = open_run(folder)
    scores: Content = own
    if not with_source:
        scores, result = without_source(own, result)
    job = _Job(scores, result, model, repo, run_name(result, run), overwrite, [])
    remarks: list[str] = []
    place, unseen = None, ""
    try:
        place = None if scores_only else eval_results.place_of(result, dataset, token=token)
    except eval_results.NoPlaceError as error:
        if dataset is not None:
            raise BenchError(f"--dataset: {error}") from None
        remarks.append(str(error))
    except client.UnreachableError as error:
        if not dry_run:
            raise
        unseen = str(error)
        remarks.append("the entry for a leaderboard of the Hub is left out: where it belongs stands there")
    if place is not None:
        eval_results.headline_of(result)
    unknown = (
        "; a table out of `map` doesn't know it: score the predictions' file with `bench-datasets score`, or tell"
        " summarize provenance={'dataset': {'source': ..., 'split': 'test', 'revision': ..., 'expected': ROWS}}"
    )
    against = [] if scores_only else eval_results.objections(result, place)
    if against and not force:
        raise BenchError(
            f"{folder}: {'; '.join(against)}{unknown if result.partial is None else ''}; nothing is published."
            " --force does so all the same and says so,"
            " --scores-only leaves the model's repo alone"
        )
    job.published.append(Run(model, job.run, result, str(folder)))
    change = _model_change(job, place, against)
    title = f"Add {get_benchmark(result.benchmark).title} results, protocol {result.protocol['name']}"
    words = f"Scores and everything that belongs to the numbers: {job.url}"
    # Refusals of the model's repo come before anything is written.
    proposal: CommitResult | Plan | None = None
    if not scores_only:
        proposal = commit(
            model, "model", change, title, create_pr=not direct, description=words, token=token, dry_run=True,
            unseen=unseen if dry_run else "",
        )  # fmt: skip
        unseen = getattr(proposal, "unseen", "")
        if unseen and not dry_run:
            raise client.UnreachableError(unseen)
    if not dry_run:
        _ask(job, private, confirm, token)
    done = commit(
        repo,
        "dataset",
        lambda head: _results(job, head),
        f"Add {model}, run {job.run}",
        token=token,
        create=True,
        private=private,
        dry_run=dry_run,
        unseen=unseen,
    )
    if proposal is not None:
        proposal = commit(
            model, "model", change, title, create_pr=not direct, description=words, token=token, dry_run=dry_run,
            unseen=unseen,
        )  # fmt: skip
    return Published(done, proposal, remarks)


def _model_change(
    job: _Job, place: eval_results.Place | None, forced: list[str]
) -> Callable[[Head], Mapping[str, Content]]:
    """The change of the model's repo, given its current content."""
    page = repo_url(client.endpoint(), job.repo, "dataset")

    def files(head: Head) -> dict[str, Content]:
        section = model_section(job.model, job.repo, job.published, page)
        where, name = f"{job.model}: README.md", job.model.split("/")[1]
        found: dict[str, Content] = {
            "README.md": with_section(head.text("README.md"), section, job.repo, where=where, title=name)
        }
        if place is not None:
            entry = eval_results.entry_of(job.result, place, job.url, forced)
            path = f".eval_results/{job.result.benchmark}.yaml"
            found[path] = eval_results.merged(head.text(path), entry, f"{job.model}: {path}", overwrite=job.overwrite)
        return found

    return files


def _results(job: _Job, head: Head) -> dict[str, Content]:
    """The change of the results repo, given its current content: the run, and a card of all runs."""
    card = head.text("README.md")
    tags = _metadata(card, f"{job.repo}: README.md").get("tags") if card else None
    if card and card.strip() and RESULTS_TAG not in (tags or []):
        raise BenchError(
            f"{job.repo}: expected a results repo or a new name, found a dataset with a card of its own; publish to"
            f" another, such as {job.repo}-results"
        )
    scores_path, result_path = files_of(job.model, job.run)
    runs, _ = published_runs(head)
    before = next((run for run in runs if (run.model, run.name) == (job.model, job.run)), None)
    files: dict[str, Content] = {scores_path: job.scores, result_path: job.result.to_json()}
    if result_path in head.files or scores_path in head.files:
        if before is not None and same_numbers(before.result, job.result):
            # When it was scored is no news.
            job.result = before.result
            files.pop(result_path)
            if scores_path in head.files:
                files.pop(scores_path)
        elif not job.overwrite:
            raise BenchError(
                f"{job.repo}: holds another run {job.run} of {job.model}; --run gives this one a name of its own,"
                " --overwrite puts it in the other's place"
            )
    if before is None or result_path in files:
        place = f"{job.repo}: {result_path}"
        runs = [run for run in runs if run is not before] + [Run(job.model, job.run, job.result, place)]
    runs.sort(key=lambda run: (run.model, run.name))
    job.published[:] = runs
    files["README.md"] = results_card(card, job.repo, runs)
    return files


def results_card(text: str | None, repo: str, runs: list[Run]) -> str:
    """The card of a results repo: configs and tables of its runs; words of others around them stay.

    Args:
        text: the card as it is; `None` where there is none.
        repo: the repo's name.
        runs: all that it holds, at least one.
    """
    first = runs[0]
    section = render(
        "results_tables.md",
        repo=repo,
        tables=[card_table(table) for table in group(runs)],
        config=config_of(first.model, first.name),
        split=split_of(first.result),
        benchmark=first.result.benchmark,
        runs=[
            {
                "config": config_of(run.model, run.name),
                "model": run.model,
                "name": run.name,
                "benchmark": run.result.benchmark,
                "rows": run.result.dataset["rows"]["scored"],
                "created": run.result.created,
            }
            for run in runs
        ],
    )
    where = f"{repo}: README.md"
    begin, end = marks(repo)
    if not (text or "").strip():
        body, metadata = render("results_card.md", repo=repo, begin=begin, section=section, end=end), {}
    else:
        metadata = _metadata(str(text), where)
        body = with_section(_FRONT.sub("", str(text), count=1), section, repo, where=where).lstrip("\r\n")
    tags = metadata.get("tags")
    metadata["tags"] = list(dict.fromkeys([*(tags if isinstance(tags, list) else ()), TAG, RESULTS_TAG]))
    metadata["configs"] = [
        {
            "config_name": config_of(run.model, run.name),
            "data_files": [{"split": split_of(run.result), "path": files_of(run.model, run.name)[0]}],
        }
        for run in runs
    ]
    return f"---\n{to_yaml(metadata)}---\n\n{body}"


def _metadata(card: str, where: str) -> dict[str, Any]:
    """The metadata above a card."""
    import yaml

    found = _FRONT.match(card)
    try:
        content = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:120]
        raise BenchError(f"{where}: expected YAML metadata above the card ({reason}); mend it there first") from None
    return content if isinstance(content, dict) else {}


def _ask(job: _Job, private: bool | None, confirm: Callable[[str], bool] | None, token: str | None) -> None:
    """Go on unless a private model's name would become public.

    Raises:
        BenchError: it would, and nobody said yes.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    api = client.connect(token)

    def is_private(repo: str, kind: str) -> bool | None:
        try:
            return bool(api.repo_info(repo, repo_type=kind).private)
        except RepositoryNotFoundError:
            return None

    if not client.trying(lambda: is_private(job.model, "model"), job.model, "model", api):
        return
    hidden = client.trying(lambda: is_private(job.repo, "dataset"), job.repo, "dataset", api)
    if hidden or (hidden is None and private):
        return
    text = f"{job.model} is private and {job.repo} is not: its name and numbers will be seen by everybody."
    if confirm is None or not confirm(text):
        raise BenchError(f"{text} Nothing was sent; --private makes a new results repo private, --yes goes on")
