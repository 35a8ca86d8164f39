"""`.eval_results/<benchmark>.yaml`: a result as an entry of the Hub's leaderboard of a dataset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.hub.repo import Head, look
from bench_datasets.hub.runs import HUB_ID
from bench_datasets.results.result import Metric, Result
from bench_datasets.results.tables import without_prediction

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry


@dataclass(frozen=True)
class Place:
    """Where an entry belongs.

    Attributes:
        dataset: the benchmark's dataset on the Hub.
        task: the task's id there.
        revision: the dataset's commit, where it is known.
        own: whether the dataset is one of ours, which declares our tasks; else it is the benchmark's source.
    """

    dataset: str
    task: str
    revision: str | None
    own: bool


class NoPlaceError(BenchError):
    """No dataset on the Hub has a task that a result is of; scores can be published all the same."""


def place_of(result: Result, dataset: str | None = None, *, token: str | None = None) -> Place:
    """Where a result's entry belongs.

    Args:
        result: the run's.
        dataset: a published copy of the rows, where they were read elsewhere; by default the result's source.
        token: to sign in with.

    Raises:
        NoPlaceError: the source is not on the Hub, or declares no such task.
        BenchError: `dataset` does not hold the rows that were scored, or can't be read.
    """
    entry, protocol = get_benchmark(result.benchmark), str(result.protocol["name"])
    source = str(result.dataset["source"] or "")
    chosen = dataset or source
    if result.headline != entry.headline.get(protocol):
        raise NoPlaceError(
            f"no entry for a leaderboard of the Hub: its tasks are about {entry.headline.get(protocol)}, and this run's"
            f" headline number is {result.headline}; summarise it with that K among --k"
        )
    if not HUB_ID.fullmatch(chosen):
        raise NoPlaceError(
            "no entry for a leaderboard of the Hub: the rows were not read from there; name the published copy that"
            " holds them with --dataset ORG/NAME"
        )
    if chosen == entry.source.repo:
        return _at_the_source(entry, protocol, result)
    head = look(chosen, token=token)
    task = f"{protocol}/{entry.headline[protocol]}"
    if task not in _tasks(head):
        raise NoPlaceError(f"no entry for a leaderboard of the Hub: {chosen} declares no task {task} in its eval.yaml")
    content = str(result.dataset["content_sha256"])
    if dataset is not None and dataset != source and content not in (head.text("README.md") or ""):
        raise BenchError(
            f"--dataset: expected the copy that holds the rows that were scored, but the card of {dataset} does not"
            f" name their content {content}; publish the rows there first, or score those that are there"
        )
    return Place(chosen, task, _commit(result.dataset["revision"]) if chosen == source else head.sha, True)


def _at_the_source(entry: Benchmark, protocol: str, result: Result) -> Place:
    if protocol not in entry.task_ids:
        raise NoPlaceError(
            f"no entry for a leaderboard of the Hub: {entry.source.repo} has no task for the protocol {protocol}"
        )
    revision = result.dataset["revision"] if result.dataset["source"] == entry.source.repo else None
    return Place(entry.source.repo, entry.task_ids[protocol], _commit(revision), False)


def _tasks(head: Head) -> list[str]:
    import yaml

    try:
        content = yaml.safe_load(head.text("eval.yaml") or "")
    except yaml.YAMLError:
        return []
    tasks = content.get("tasks") if isinstance(content, dict) else None
    return [str(task.get("id")) for task in tasks or () if isinstance(task, dict)]


def _commit(revision: str | None) -> str | None:
    whole = revision is not None and len(revision) == 40 and all(c in "0123456789abcdef" for c in revision)
    return revision if whole else None


def headline_of(result: Result) -> Metric:
    """The number that a result is published with.

    Raises:
        BenchError: it is undefined.
    """
    metric = result.metrics.get(result.headline or "")
    if metric is None or math.isnan(metric.value):
        raise BenchError(f"result.json: expected a number as {result.headline}, found none; nothing can be published")
    return metric


def objections(result: Result, place: Place | None) -> list[str]:
    """Why a result should not stand on a leaderboard; none for one that may.

    Args:
        result: the run's.
        place: where it is to stand.
    """
    rows = result.dataset["rows"]
    found = []
    if result.partial is None:
        found.append("how many rows the source holds was not recorded")
    elif result.partial:
        found.append(f"partial run: {rows['scored']:,} of {rows['expected']:,} rows were scored")
    if result.settings.get("thresholds") is not None:
        found.append("thresholds of one's own")
    if place is not None and not place.own and not result.comparable_to:
        found.append(f"not comparable to published numbers, as the leaderboard of {place.dataset} asks for")
    return found


def entry_of(result: Result, place: Place, url: str, forced: list[str]) -> EvalResultEntry:
    """The entry, its value on the scale of 0 to 100.

    Args:
        result: the run's.
        place: where it belongs.
        url: of the scores.
        forced: objections that were set aside; they are told in the notes.
    """
    from huggingface_hub import EvalResultEntry

    metric = headline_of(result)
    return EvalResultEntry(
        dataset_id=place.dataset,
        task_id=place.task,
        value=round(100 * metric.value, 4),
        dataset_revision=place.revision,
        date=result.created,
        source_url=url,
        source_name="bench-datasets scores",
        notes=_notes(result, metric, forced),
    )


def _notes(result: Result, metric: Metric, forced: list[str]) -> str:
    notes = [
        f"protocol {result.protocol['name']} (version {result.protocol['version']})",
        f"{result.headline}, n = {_counted(result, metric.n)}",
    ]
    if metric.ci95:
        notes.append(f"95 % interval {100 * metric.ci95[0]:.2f} to {100 * metric.ci95[1]:.2f}")
    notes += without_prediction(result)
    notes.append(f"bench-datasets {result.packages.get('bench_datasets', 'of an unknown version')}")
    if forced:
        notes.append(f"forced although: {', '.join(forced)}")
    return "; ".join(notes)


def _counted(result: Result, n: int) -> str:
    """The n of a headline number with its unit, and the number of scored rows."""
    rows, what = result.dataset["rows"]["scored"], get_benchmark(result.benchmark).counted
    if what == "rows":
        return f"{n} of {rows} rows"
    return f"{n} {what} in {rows} rows" if what else f"{n}; {rows} rows scored"


def merged(text: str | None, entry: EvalResultEntry, where: str, *, overwrite: bool = False) -> str:
    """The file with an entry put in: every other one stays, and an earlier one of the same scores is replaced.

    Args:
        text: the file as it is, `None` where there is none.
        entry: what it is to hold.
        where: the file's name in messages.
        overwrite: replace another value of the same task, too.

    Raises:
        BenchError: the file is no list of entries, or holds another value of the same task.
    """
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    found = _entries(text, where)
    new = eval_result_entries_to_yaml([entry])[0]
    kept: list[Any] = []
    at: int | None = None
    for item in found:
        dataset = item["dataset"]
        if (dataset["id"], dataset["task_id"]) != (entry.dataset_id, entry.task_id):
            kept.append(item)
            continue
        source = item.get("source")
        url = source.get("url") if isinstance(source, dict) else None
        if url != entry.source_url and not overwrite:
            raise BenchError(
                f"{where}: holds {item['value']} for {entry.dataset_id}, task {entry.task_id}, from"
                f" {url or 'elsewhere'}; --overwrite puts {entry.value} in its place"
            )
        at = len(kept) if at is None else at
        if item == new:
            return str(text)
    kept.insert(len(kept) if at is None else at, new)
    return str(yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=110))


def _entries(text: str | None, where: str) -> list[Any]:
    import yaml
    from huggingface_hub import parse_eval_result_entries

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Dates stay the text that they are."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        found = yaml.load(text or "[]", Loader)
        if found is None:
            return []
        if not isinstance(found, list):
            raise ValueError(f"found {type(found).__name__}")
        parse_eval_result_entries(found)
        [(item["dataset"]["id"], item["dataset"]["task_id"], item["value"]) for item in found]
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise BenchError(f"{where}: expected a list of evaluation results ({reason}); mend it there first") from None
    return found
