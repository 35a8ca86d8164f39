"""Base of the benchmarks' `evaluate` modules: rows are validated when they are added and scored at the end."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import evaluate
from datasets import Features

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import FAULTS, BenchError, BenchWarning, stops
from bench_datasets.results.result import Result


class RowMetric(evaluate.Metric):  # type: ignore[misc]
    """A metric over `compute`, `add_batch`, `add` and `combine`, of which a benchmark says the rest.

    Attributes:
        BENCHMARK: its name.
        DESCRIPTION: a sentence for people.
        INPUTS: arguments and what comes back, for people.
        FEATURES: of rows as they are kept until they are scored.
        COLUMNS: what must be handed over beside predictions and references.
        OPTIONS: what `compute` takes beside rows.
    """

    BENCHMARK: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    INPUTS: ClassVar[str]
    FEATURES: ClassVar[Features]
    COLUMNS: ClassVar[tuple[str, ...]] = ()
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    _late: Mapping[str, Any] = {}
    """Columns that `compute` was given for rows that were added before."""

    @abstractmethod
    def _validated(
        self, predictions: Any, references: Any, ids: Any, *, strict: bool = True, **columns: Any
    ) -> dict[str, list[Any]]:
        """Convert rows to `FEATURES`; an invalid value raises an error that names the row.

        Where it is not `strict`, an unsound mask is kept as something that the scoring finds to be unsound.
        """

    @abstractmethod
    def _result(self, predictions: list[Any], references: list[Any], **given: Any) -> Result:
        """Of all that was added; `given` are `COLUMNS` and options."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=self.DESCRIPTION,
            citation=get_benchmark(self.BENCHMARK).citation,
            inputs_description=self.INPUTS,
            features=self.FEATURES,
        )

    def _feature_names(self) -> list[str]:
        """The fields that callers such as `combine` must give; ids may be left out."""
        return ["predictions", "references", *self.COLUMNS]

    def add_batch(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        on_fault: str = "stop",
        **columns: Any,
    ) -> None:
        """Add rows, each validated here: later, Arrow would have turned them into something else.

        With another `on_fault` than `stop`, faulty rows are kept, and `compute` must be given the same `on_fault`.
        """
        self._refuse(columns, self.COLUMNS, "add_batch")
        rows = self._validated(predictions, references, ids, strict=on_fault == "stop", **columns)
        if self.writer is None:
            self.selected_feature_format = self.features
            self._init_writer()
        self.writer.write_batch(self.selected_feature_format.encode_batch(rows))

    def add(
        self, *, prediction: Any = None, reference: Any = None, ids: Any = None, on_fault: str = "stop", **columns: Any
    ) -> None:
        """Add one row; see `add_batch`. `predictions=` and `references=`, as `evaluate` has it, mean the same."""
        prediction = columns.pop("predictions", prediction)
        reference = columns.pop("references", reference)
        self._refuse(columns, self.COLUMNS, "add")
        self.add_batch(
            predictions=[prediction],
            references=[reference],
            ids=None if ids is None else [ids],
            on_fault=on_fault,
            **{name: [value] for name, value in columns.items() if value is not None},
        )

    def compute(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        **given: Any,
    ) -> dict[str, float] | None:
        """Compute the metric over the added rows and the rows given here."""
        self._refuse(given, (*self.COLUMNS, *self.OPTIONS), "compute")
        columns = {name: given.pop(name) for name in self.COLUMNS if name in given}
        self._late = {}
        if predictions is not None or references is not None:
            on_fault = given.get("on_fault", "stop")
            self.add_batch(predictions=predictions, references=references, ids=ids, on_fault=on_fault, **columns)
        elif self.writer is None:
            raise BenchError("compute: expected predictions and references, here or by add_batch before; found none")
        else:
            self._late = {name: value for name, value in columns.items() if value is not None}
        result: dict[str, float] | None = evaluate.Metric.compute(self, **given)
        return result

    def _compute(self, predictions: list[Any], references: list[Any], **given: Any) -> dict[str, float]:
        result = self._result(predictions, references, **given)
        _warn_of_faults(result)
        return {key: metric.value for key, metric in result.metrics.items()}

    def _refuse(self, given: Iterable[str], known: Sequence[str], what: str) -> None:
        """Words that are not known are an error."""
        if unknown := sorted(set(given) - set(known)):
            expected = f"{', '.join(known)} or " if known else ""
            raise BenchError(f"{what}: expected {expected}predictions, references and ids, found {', '.join(unknown)}")


def _warn_of_faults(result: Result) -> None:
    """Warn of rows that are left out or count as wrong, and of probable mistakes."""
    found = [
        f"{code} {fault['count']} (for example {', '.join(fault['examples'][:2])})"
        for code, fault in result.faults.items()
        if code not in FAULTS or stops(code) or FAULTS[code].where == "predictions"
    ]
    if found:
        scored = result.dataset["rows"]["scored"]
        warnings.warn(f"{scored} rows scored; faults: {'; '.join(found)}", BenchWarning, stacklevel=5)


def check_aligned(predictions: Any, references: Any, ids: Any, each: str, **columns: Any) -> int:
    """Check that everything that is given is a list, and that all are of one length.

    Args:
        predictions: of the rows.
        references: of the rows.
        ids: of the rows, or `None`.
        each: what stands for each row, for the message.
        columns: further ones by name.

    Returns:
        The number of rows.

    Raises:
        BenchError: one is no list, or of another length than the references.

    Example:
        >>> check_aligned([[]], [[]], None, "a list of masks a row")
        1
    """
    named = {"predictions": predictions, "references": references}
    for name, column in named.items():
        if not is_list(column):
            raise BenchError(f"{name}: expected a list with {each}, found {type(column).__name__}")
    for name, column in {**named, **columns, **({} if ids is None else {"ids": ids})}.items():
        if len(column) != len(references):
            raise BenchError(f"{name}: expected as many as references ({len(references)}), got {len(column)}")
    return len(references)


def is_list(value: Any) -> bool:
    """Whether a value can be gone through by position: a list, a tuple, an array, but no text and no record.

    Example:
        >>> is_list((1, 2)), is_list("no"), is_list(None)
        (True, False, False)
    """
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))
