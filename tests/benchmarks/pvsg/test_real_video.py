"""The real video: the known numbers, the same through every door."""

from __future__ import annotations

from typing import Any

import evaluate
import pytest
from datasets import Dataset, concatenate_datasets

import bench_datasets as bd
from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.benchmarks.pvsg.protocol import PROTOCOLS, get_protocol
from bench_datasets.benchmarks.pvsg.relation_matching import Hits
from bench_datasets.masks import available_engines, quotient, using_engine
from bench_datasets.scoring.options import ScoreOptions

from ...support import dense_pvsg as dense
from ...support.pvsg_rows import batch, summed_up

KNOWN = {
    "official": {
        "R@1/0.5": 1 / 11, "R@3/0.5": 2 / 11, "R@5/0.1": 4 / 11, "R@20/0.5": 6 / 11, "mR@20/0.5": 0.45,
    },
    "volume": {
        "R@1/0.5": 1 / 11, "R@3/0.5": 2 / 11, "R@5/0.1": 4 / 11, "R@20/0.5": 5 / 11, "mR@20/0.5": 0.40,
    },
}  # fmt: skip
SINGLE = {(2, "wearing", 9, 1): (0.753425, 0.653802), (4, "wearing", 7, 0): (0.897810, 0.737164),
          (2, "next to", 3, 9): (0.770642, 0.647148)}  # fmt: skip
K = (1, 3, 5, 20)


@pytest.fixture(scope="module")
def table(mini_batch: dict[str, Any]) -> Any:
    return BENCHMARK.score_table(mini_batch, ScoreOptions("official"))


@pytest.mark.parametrize("protocol", ["official", "volume"])
def test_known_numbers(mini_batch: dict[str, Any], protocol: str) -> None:
    found, _ = summed_up(BENCHMARK.score_table(mini_batch, ScoreOptions(protocol)), protocol, K)
    assert {key: found[key].value for key in KNOWN[protocol]} == pytest.approx(KNOWN[protocol])
    assert {found[key].n for key in found if key.startswith("R@")} == {11}
    assert found["mR@20/0.5"].n == 5


def test_single_overlaps(table: Any) -> None:
    hits = Hits.read(table, get_protocol("official"))
    row = table.to_pylist()[0]
    ids, found = row["object_id"], {}
    for i in range(len(hits.relation)):
        r = int(hits.relation[i])
        ends = ids[row["relation_subject"][r]], row["relation_predicate"][r], ids[row["relation_object"][r]]
        if hits.same[i]:
            found[(*ends, int(hits.rank[i]))] = (float(hits.recall[i]), float(hits.volume[i]))
    for name, values in SINGLE.items():
        assert found[name] == pytest.approx(values, abs=5e-7)


def test_overlaps_are_those_of_dense_masks(table: Any, mini_video: dense.Video) -> None:
    """One pair, over all frames and pixels, from files that the package has not read."""
    hits = Hits.read(table, get_protocol("official"))
    ranked = mini_video.ranked()
    chosen = [i for i in range(len(hits.relation)) if hits.same[i] and hits.volume[i] > 0]
    for i in chosen[1:2]:
        triplet, relation = ranked[hits.triplet[i]], mini_video.relations[hits.relation[i]]
        assert hits.recall[i] == dense.frame_overlap(mini_video, triplet, relation)
        assert hits.volume[i] == dense.volume_overlap(mini_video, triplet, relation)


def test_engines_agree(mini_batch: dict[str, Any], table: Any) -> None:
    for name in available_engines():
        with using_engine(name):
            assert BENCHMARK.score_table(mini_batch, ScoreOptions("official")).equals(table)


def test_real_video_entry_points_give_same_numbers(mini_truth: Dataset, mini_predictions: Dataset, table: Any) -> None:
    direct = summed_up(table)[0]
    result = bd.summarize("pvsg", bd.score("pvsg", mini_truth, mini_predictions), draws=0)
    same = {key: metric.value for key, metric in result.metrics.items()}
    assert same == {key: metric.value for key, metric in direct.items()}
    assert result.comparable_to is None
    assert result.statistics["unit"] == "video"
    assert {code: entry["count"] for code, entry in result.faults.items()} == {
        "span_clipped": 1,
        "unknown_predicate": 1,
    }
    joined = concatenate_datasets(
        [mini_truth, mini_predictions.select_columns(["pred_tubes", "pred_triplets"])], axis=1
    )
    mapped = bd.summarize("pvsg", bd.map_score(joined, "pvsg"), draws=0)
    assert {key: metric.value for key, metric in mapped.metrics.items()} == same
    stream = bd.summarize("pvsg", bd.map_score(joined.to_iterable_dataset(), "pvsg"), draws=0)
    assert {key: metric.value for key, metric in stream.metrics.items()} == same
    module = evaluate.load(bd.metric_path("pvsg"))
    given = {name: mini_predictions[0][f"pred_{name}"] for name in ("tubes", "triplets")}
    assert module.compute(predictions=[given], references=[mini_truth[0]]) == same


def test_the_row_hash_is_of_the_truth_alone(mini_batch: dict[str, Any], table: Any) -> None:
    hashes = table["row_sha256"].to_pylist()
    other = {**mini_batch, "pred_triplets": [[]]}
    assert BENCHMARK.score_table(other, ScoreOptions("volume"))["row_sha256"].to_pylist() == hashes
    assert BENCHMARK.score_table({**other, "fps": [6.0]}, ScoreOptions("volume"))["row_sha256"].to_pylist() != hashes
    assert len(hashes[0]) == 64


def test_perfect_tubes(mini_truth: Dataset) -> None:
    """The truth's tubes and relations as the prediction: every number is what it can be at best."""
    row = mini_truth[0]
    name = mini_truth.features["objects"].feature["category"].int2str
    predicate = mini_truth.features["relations"].feature["predicate"].int2str
    tubes = [
        {"tube_id": str(item["object_id"]), "category": name(item["category"]), **tube}
        for item, tube in zip(row["objects"], row["tubes"], strict=True)
    ]
    triplets = [{**item, "predicate": predicate(item["predicate"]), "score": 1.0} for item in row["relations"]]
    for protocol in PROTOCOLS:
        scored = BENCHMARK.score_table(batch([row], [{"tubes": tubes, "triplets": triplets}]), ScoreOptions(protocol))
        for key, metric in summed_up(scored, protocol, (20,))[0].items():
            assert metric.value == (0.0 if key.startswith("loss/") else 1.0), key


def test_volumes_are_in_the_table(table: Any) -> None:
    row = table.to_pylist()[0]
    for name in ("subject", "object"):
        shared = row[f"pair_{name}_shared"]
        both = [
            a + row[f"relation_{name}_area"][r]
            for a, r in zip(row[f"pair_{name}_area"], row["pair_relation"], strict=True)
        ]
        iou = quotient(shared, [b - s for b, s in zip(both, shared, strict=True)])
        assert ((iou >= 0) & (iou <= 1)).all()
