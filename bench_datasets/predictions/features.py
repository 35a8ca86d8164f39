"""The columns in which a model over ground-truth rows gives its predictions, and the model's function made ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from datasets import Dataset, Features, IterableDataset

from bench_datasets import __version__
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import MaskError, plain
from bench_datasets.predictions.coerce import as_list, read_id, read_word, show


class Predictor:
    """A model's function for `Dataset.map` whose arrays, tensors and images have become RLE; see `predictor`."""

    def __init__(self, benchmark: str, function: Callable[..., Mapping[str, Any]]) -> None:
        self.benchmark, self.function = benchmark, function
        self._columns: list[str] | None = None
        self.version = __version__  # `map` remembers results by what its function holds

    def __call__(self, row: Mapping[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The model's columns for a row, or for a batch of rows.

        Raises:
            BenchError: the model gave something else than known columns, values of other types, other columns than for
                the rows before, or columns of the ground truth with other values.
            FaultError: `malformed_mask`, a mask can't be encoded; the message names the row.
        """
        found = self.function(row, *args, **kwargs)
        known = _known(self.benchmark)
        expected = f"expected a dictionary with {' or '.join(known)}"
        if not isinstance(found, Mapping):
            raise BenchError(f"predictor: {expected} from the model's function, found {show(found)}")
        there = [name for name in known if name in found]
        if not there:
            raise BenchError(f"predictor: {expected} from the model's function, found {', '.join(found) or 'nothing'}")
        names = ("key", "id", "height", "width")
        batched = any(isinstance(row[name], (list, tuple)) for name in names if name in row)
        about = {name: row[name] for name in names if name in row}
        who = _called({name: value[0] for name, value in about.items()} if batched else about)
        self._check_columns(row, found, there, who)
        if not batched:
            return {**found, **self._encoded(about, {name: found[name] for name in there}, known)}
        sizes = {name: len(found[name]) for name in there}
        n = next(len(row[name]) for name in names if name in row)
        if set(sizes.values()) != {n}:
            shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise BenchError(f"predictor: expected {n} predictions for a batch of {n} rows, found {shown}")
        columns: dict[str, list[Any]] = {name: [] for name in there}
        for i in range(n):
            one = {name: values[i] for name, values in about.items()}
            for name, value in self._encoded(one, {name: found[name][i] for name in there}, known).items():
                columns.setdefault(name, []).append(value)
        return {**found, **columns}

    def __getstate__(self) -> dict[str, Any]:
        """The state without the columns of earlier rows, so that `map` finds its cached results."""
        return {**self.__dict__, "_columns": None}

    def _check_columns(self, row: Mapping[str, Any], found: Mapping[str, Any], there: list[str], who: str) -> None:
        """Stop at columns of the ground truth, and at other columns than those of the rows before.

        Raises:
            BenchError: there are such columns; `map` would write over ground truth, or leave a column out of all rows.
        """
        labels = ("key", "id", *get_benchmark(self.benchmark).truth_columns)
        changed = [name for name in labels if name in found and name in row and not _same(found[name], row[name])]
        if changed:
            raise BenchError(
                f"{who}: predictor: expected columns of predictions, found {', '.join(changed)} of the ground truth"
                " with other values; return the prediction's columns only"
            )
        there = [*there, *(name for name in get_benchmark(self.benchmark).with_names({}) if name not in there)]
        earlier = self._columns or there
        if set(there) != set(earlier):
            raise BenchError(
                f"{who}: predictor: expected the columns of the rows before ({', '.join(earlier)}), found "
                f"{', '.join(there)}; return the same columns for every row, empty where the model found nothing"
            )
        self._columns = there

    def _encoded(self, about: Mapping[str, Any], values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        """One row's columns in the types of `answer_features`."""
        row = _called(about)
        try:
            shaped = plain(values, height=about.get("height"), width=about.get("width"))
        except MaskError as error:
            raise FaultError("malformed_mask", row, f"predictor: {error}") from error
        shaped = get_benchmark(self.benchmark).with_names(shaped)
        try:
            return {name: _typed(value, known[name], name) for name, value in shaped.items()}
        except BenchError as error:
            raise BenchError(f"{row}: predictor: {error}") from error


def _called(about: Mapping[str, Any]) -> str:
    return next((str(about[name]) for name in ("key", "id") if about.get(name) is not None), "a row")


def _same(found: Any, given: Any) -> bool:
    """Whether a value is that of the row; values that cannot be compared are not."""
    try:
        return found is given or bool(found == given)
    except ValueError:  # arrays
        return False


def _typed(value: Any, feature: Any, place: str) -> Any:
    """A value in the type of its feature, as files of predictions are read: no text becomes a number, nothing is cut.

    Args:
        value: of the model, its masks as RLE.
        feature: its type.
        place: what messages call it, such as `pred_masks[0].size`.

    Raises:
        BenchError: it is of another kind.
    """
    if value is None:
        return None
    if isinstance(feature, Mapping):
        if isinstance(value, Mapping) and set(feature) <= set(value):
            return {name: _typed(value[name], kind, f"{place}.{name}") for name, kind in feature.items()}
        raise BenchError(f"{place}: expected {{{', '.join(feature)}}}, found {show(value)}")
    item = getattr(feature, "feature", None)
    if item is not None:
        items = as_list(value)
        length = getattr(feature, "length", -1)
        if items is None or (length >= 0 and len(items) != length):
            raise BenchError(f"{place}: expected a list{f' of {length}' if length >= 0 else ''}, found {show(value)}")
        return [_typed(one, item, f"{place}[{i}]") for i, one in enumerate(items)]
    kind = feature.dtype
    if kind == "string":
        found: Any = read_word(value) if value != "" else ""
        expected = "text or an integer"
    elif kind.startswith("float"):
        number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        found, expected = float(value) if number else None, "a number"
    else:
        found, expected = None if isinstance(value, (str, np.bool_)) else read_id(value), "an integer"
    if found is None:
        raise BenchError(f"{place}: expected {expected}, found {show(value)}")
    return found


def predictor(benchmark: str, function: Callable[..., Mapping[str, Any]]) -> Predictor:
    """A model's function for `Dataset.map` that may give masks as arrays, tensors or images.

    Args:
        benchmark: its name.
        function: takes a row (or a batch of rows, with `batched=True`) and gives a dictionary of the columns that
            `answer_features` names. PBench and InstanceBench: `pred_masks`, a list of masks or one array of
            `(n, height, width)`. PVSG: `pred_tubes` with such `masks`, and `pred_triplets`. A mask is a
            `(height, width)` array of bool or of 0 and one other integer, a tensor or an image of the same, COCO RLE
            with counts as text, bytes or runs, a list of polygons, or `None`.

    Returns:
        The function to `map`. It gives masks as RLE and the other columns in the types of `answer_features`. It raises
        `FaultError` at the first row with a mask that can't be encoded.

    Raises:
        BenchError: the benchmark is unknown, or `function` can't be called.

    Example:
        >>> import numpy as np
        >>> model = predictor("pbench", lambda row: {"pred_masks": np.ones((1, 2, 3), bool)})
        >>> model({"id": 7})
        {'pred_masks': [{'size': [2, 3], 'counts': '06'}]}
        >>> truth.map(model, features=answer_features("pbench", truth.features))             # doctest: +SKIP
    """
    _known(benchmark)
    if not callable(function):
        raise BenchError(f"predictor: expected the model's function, found {show(function)}")
    return Predictor(benchmark, function)


def answer_features(benchmark: str, features: Any, *columns: str) -> Features:
    """The ground truth's features with those of a model's predictions beside them: what to give to `Dataset.map`.

    Args:
        benchmark: its name.
        features: of the ground truth, or the Dataset or DatasetDict that has them.
        columns: what the model adds; by default `pred_masks`, for PVSG `pred_tubes` and `pred_triplets`. PBench also
            knows `pred_scores`, `pred_centers` (x, y) and `pred_sizes` (height, width; fractions), InstanceBench
            `pred_boxes` (x, y, width, height in pixels) and `pred_candidate_ids`, each aligned with the masks (or, in
            InstanceBench, with the row's expressions).

    Returns:
        Features with all columns of the ground truth and those; the function that is mapped must give each of them.

    Raises:
        BenchError: the benchmark is unknown, or knows no such column (the message names those it knows); or `features`
            are none.

    Example:
        >>> from datasets import Features, Value
        >>> list(answer_features("pbench", Features({"id": Value("int64")}), "pred_masks", "pred_scores"))
        ['id', 'pred_masks', 'pred_scores']
    """
    known = _known(benchmark)
    chosen = columns or get_benchmark(benchmark).predicted_columns
    for name in chosen:
        if name not in known:
            raise BenchError(f"answer_features: {benchmark} knows {', '.join(known)}, got {name!r}")
    return Features({**_features(features), **{name: known[name] for name in chosen}})


def _features(given: Any) -> Mapping[str, Any]:
    """The features that were given, or those of a Dataset or of the splits of a DatasetDict."""
    if isinstance(given, (Dataset, IterableDataset)):
        given = given.features
    if isinstance(given, Mapping) and given and all(isinstance(v, (Dataset, IterableDataset)) for v in given.values()):
        found = [part.features for part in given.values()]
        if any(features != found[0] for features in found):
            raise BenchError(
                f"answer_features: expected splits with the same columns; {', '.join(map(str, given))} differ, so give"
                " the features of one"
            )
        given = found[0]
    if not isinstance(given, Mapping):
        raise BenchError(f"answer_features: expected the ground truth's features (truth.features), found {show(given)}")
    return given


def _known(benchmark: str) -> dict[str, Any]:
    """All prediction columns that ground-truth rows of a benchmark may have, with their features."""
    return dict(get_benchmark(benchmark).prediction_features())
