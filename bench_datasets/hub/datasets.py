"""Publishing a benchmark's truth as a dataset that anybody loads without this package."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset, Features

from bench_datasets._compat import features_for_card
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.hub import cards
from bench_datasets.hub.client import UnreachableError, check_name
from bench_datasets.hub.columns import describe
from bench_datasets.hub.commits import CommitResult, Content, Plan, commit
from bench_datasets.hub.dataset_form import Part
from bench_datasets.hub.export import Truth, open_source
from bench_datasets.hub.preview import Preview, make_preview
from bench_datasets.hub.repo import look
from bench_datasets.hub.shards import Shard, read_shards, write_shards
from bench_datasets.hub.templates import over_ours

PICTURE = "assets/preview.png"
"""The picture's place in the repo."""


@dataclass(frozen=True)
class Built:
    """A dataset that is ready to be sent.

    Attributes:
        files: contents by path in the repo.
        facts: what its card says.
    """

    files: dict[str, Content]
    facts: cards.DatasetFacts


def publish_dataset(
    benchmark: str,
    repo: str,
    *,
    data: str | None = None,
    with_images: bool = False,
    labels_only: bool = False,
    private: bool | None = None,
    dry_run: bool = False,
    token: str | None = None,
    **sizes: int,
) -> CommitResult | Plan:
    """Publish a benchmark's truth rows, in one commit; a second time, nothing is sent.

    The files are plain Parquet with plain features, so that `load_dataset(repo)` works without this package, streaming
    or not. No pixels are sent unless they are asked for: whether you may pass them on is for you to know.

    Args:
        benchmark: its name.
        repo: the dataset's name on the Hub, `ORG/NAME`; it is made where it is missing.
        data: the truth's root: a folder, any fsspec URL, `sample` for the built-in one, or None for the environment's
            or the published one.
        with_images: send the images, too: PBench and InstanceBench get the column `image`, PVSG the config `frames`.
        labels_only: read no image; PBench's and InstanceBench's rows then bear no `image_sha256`.
        private: whether a repo that is made is private; by default as its owner has set.
        dry_run: build everything, send nothing, and give the plan.
        token: to sign in with; by default the user's own.
        sizes: `shard_bytes` and `group_bytes`; see `shards.ShardWriter`.

    Returns:
        What was done, or for a dry run the plan.

    Raises:
        BenchError: the source can't be read, or the Hub won't take it; one line says why.

    Example:
        >>> publish_dataset("pbench", "me/pbench-sample", data="sample")                     # doctest: +SKIP
    """
    check_name(repo, "repo")
    with tempfile.TemporaryDirectory(prefix="bench_datasets-") as folder:
        truth = open_source(benchmark, data, with_images=with_images, labels_only=labels_only)
        built = build_dataset(truth, repo, Path(folder), **sizes)
        title = get_benchmark(benchmark).title
        unseen = ""
        stale: list[str] = []
        try:
            stale = _stale(benchmark, repo, built.files, token)
        except UnreachableError as error:
            if not dry_run:
                raise
            unseen = str(error)
        return commit(
            repo,
            "dataset",
            partial(over_ours, files=built.files),
            f"{title} as Parquet",
            token=token,
            create=True,
            private=private,
            beside=True,
            delete=stale,
            dry_run=dry_run,
            unseen=unseen,
        )


def build_dataset(truth: Truth, repo: str, folder: Path, **sizes: int) -> Built:
    """Make every file of a published dataset.

    Args:
        truth: what is published.
        repo: the dataset's name, for its card.
        folder: where the files are written; no more than a row group is held in memory.
        sizes: `shard_bytes` and `group_bytes`.

    Returns:
        Contents by path in the repo, the same for the same truth, and what the card says.

    Raises:
        BenchError: the source can't be read, or holds no rows.
    """
    written: dict[Part, list[Shard]] = {}
    features: dict[str, Features] = {}
    for part in truth.parts:
        features[part.config], tables = truth.read(part)
        written[part] = write_shards(tables, features[part.config], folder, part.stem, **sizes)
    if not any(written.values()):
        raise BenchError(f"{truth.source}: expected rows of {truth.benchmark}, found none; nothing is published")
    preview = make_preview(truth, written, folder)
    facts = _facts(truth, repo, written, features, preview, folder)
    files: dict[str, Content] = {
        shard.name: shard.file for shards in (*written.values(), *preview.shards.values()) for shard in shards
    }
    if preview.picture is not None:
        files[PICTURE] = preview.picture
    files |= {"README.md": cards.dataset_card(facts), "eval.yaml": cards.eval_yaml(facts)}
    return Built(files, facts)


def _facts(
    truth: Truth,
    repo: str,
    written: Mapping[Part, list[Shard]],
    features: Mapping[str, Features],
    preview: Preview,
    folder: Path,
) -> cards.DatasetFacts:
    main = truth.parts[0].config
    names = dict.fromkeys(part.config for part in written)
    configs = [_config(truth, written, name, features[name], features[main]) for name in names]
    configs += [_alias(part, shards) for part, shards in written.items() if part.alias and shards]
    configs += [_preview_config(truth.benchmark, preview)] if preview.shards else []
    hashes, faults = {}, dict[str, dict[str, Any]]()
    for split, shards in _by_split(written, main).items():
        hashes[split], found = _hash(truth.benchmark, shards, features[main], folder)
        for code, fault in found.items():
            old = faults.get(code, {"count": 0, "examples": []})
            faults[code] = {"count": old["count"] + fault["count"], "examples": old["examples"] + fault["examples"]}
    form = get_benchmark(truth.benchmark).dataset_form()
    counted = [name for name in form.counted if name in features[main]]
    rows = (
        (main, split, table)
        for split, shards in _by_split(written, main).items()
        for table in read_shards(shards, counted)
    )
    return cards.DatasetFacts(
        benchmark=truth.benchmark,
        repo=repo,
        source=truth.source,
        revision=truth.revision,
        configs=configs,
        tallies=[tally for tally in form.count(rows) if tally.rows],
        hashes=hashes,
        faults=dict(sorted(faults.items())),
        preview_rows=sum(shard.rows for shards in preview.shards.values() for shard in shards),
        picture=preview.picture is not None,
        over_images=preview.over_images,
        with_images=truth.with_images,
        hashed_images=any("image_sha256" in columns for columns in features.values()),
    )


def _by_split(written: Mapping[Part, list[Shard]], config: str) -> dict[str, list[Shard]]:
    found: dict[str, list[Shard]] = {}
    for part, shards in written.items():
        if part.config == config and shards:
            found.setdefault(part.split, []).extend(shards)
    return found


def _config(
    truth: Truth, written: Mapping[Part, list[Shard]], config: str, features: Features, main: Features
) -> cards.Config:
    """A config of the dataset; columns that the main one has just so are not explained again."""
    form = get_benchmark(truth.benchmark).dataset_form()
    own = {name: feature for name, feature in features.items() if features is main or main.get(name) != feature}
    splits = _by_split(written, config)
    paths: dict[str, list[str]] = {}
    for part, shards in written.items():
        if part.config == config and shards:
            paths.setdefault(part.split, []).append(f"{part.stem}-*")
    return cards.Config(
        name=config,
        paths=paths,
        meaning=form.configs.get(config, f"a row of {get_benchmark(truth.benchmark).title}"),
        features=features_for_card(features),
        columns=list(describe(truth.benchmark, config, Features(own))),
        default=config == form.default_config,
        **_sums(splits),
    )


def _alias(part: Part, shards: Sequence[Shard]) -> cards.Config:
    """A config that is some rows of another."""
    return cards.Config(
        name=str(part.alias),
        paths={part.split: [f"{part.stem}-*"]},
        meaning=f"as `{part.config}`, the part `{part.alias}` alone",
        features=None,
        columns=(),
        **_sums({part.split: shards}),
    )


def _preview_config(benchmark: str, preview: Preview) -> cards.Config:
    features = get_benchmark(benchmark).dataset_form().preview
    return cards.Config(
        name="preview",
        paths={split: [f"preview/{split}-*"] for split in preview.shards},
        meaning="a picture of a row, to look through",
        features=features_for_card(features),
        columns=list(describe(benchmark, "preview", features)),
        **_sums(preview.shards),
    )


def _sums(splits: Mapping[str, Sequence[Shard]]) -> dict[str, Any]:
    return {
        "rows": {split: sum(shard.rows for shard in shards) for split, shards in splits.items()},
        "bytes": {split: sum(shard.bytes for shard in shards) for split, shards in splits.items()},
        "size": sum(shard.size for shards in splits.values() for shard in shards),
    }


def _hash(
    benchmark: str, shards: Sequence[Shard], features: Features, folder: Path
) -> tuple[str, dict[str, dict[str, Any]]]:
    """A split's content hash and its rows' faults, as a result over the published rows has them."""
    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.score import score

    metric = get_benchmark(benchmark)
    names = [name for name in metric.truth_columns if name in features]
    labels = Features({name: features[name] for name in names})
    nothing = Dataset(get_benchmark(benchmark).prediction_form().features.arrow_schema.empty_table())
    with tempfile.TemporaryDirectory(dir=folder, prefix=".labels-") as place:
        file = Path(place) / "labels.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, labels.arrow_schema) as writer:
            for table in read_shards(shards, names):
                writer.write_table(table.select(names).cast(labels.arrow_schema))
        truth = Dataset.from_file(str(file))
        # Scored against nothing: that validates every mask, and hashes the rows as any scoring does.
        scores = score(benchmark, truth, nothing, missing="empty", on_fault="skip-and-report")
        result = summarize(benchmark, scores, draws=0)
        del truth
    return str(result.dataset["content_sha256"]), result.faults


def _stale(benchmark: str, repo: str, files: Mapping[str, Content], token: str | None) -> list[str]:
    """Shards of an earlier publication that this one has no more.

    Raises:
        UnreachableError: the Hub gives no answer.
    """
    try:
        there = look(repo, token=token).files
    except UnreachableError:
        raise
    except BenchError:
        return []  # there is none yet; what else may be wrong, the commit says
    folders = "|".join((*get_benchmark(benchmark).dataset_form().folders, "preview"))
    shard = re.compile(rf"(?:{folders})/[a-z_0-9]+-\d{{5}}-of-\d{{5}}\.parquet")
    return [path for path in there if shard.fullmatch(path) and path not in files]
