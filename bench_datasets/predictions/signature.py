"""`Signature`: fields, files and words that tell predictions of a form from those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Signature:
    """Fields, files and words that tell predictions of a form from those of others.

    Attributes:
        fields: what a prediction consists of, for messages.
        expected: what `read_predictions` reads, for messages.
        own: fields of which a prediction has one at least.
        row_names: fields that name a row in this form alone.
        certain: sets of fields that only this form has; one set is enough.
        hints: fields by which a record is taken for this form where nothing else tells.
        truth: fields that rows of ground truth have.
        beside: fields that show that predictions stand beside the ground truth.
        truth_advice: what to do with a row of ground truth.
        truth_files: file names of ground truth.
        truth_columns: columns of ground truth in Parquet files of the Hub.
        truth_fields: fields of ground truth in JSON Lines.
        format_of: the format of a file of JSON by its first record, given the file's name for messages.
        array: name of the array in .npz files; empty if arrays and PNG files of single masks are not read.
        png: names of PNG files, for messages.
        folders: sets of file or folder names that show a format, by format.
        instead: what to do with a pickle.
        advice: what to do with a folder of files with these endings that is not read.
        parts_of_folder: names of files that belong to a folder and are not read alone.
        line: pattern of the beginning of a text file that belongs elsewhere, and where.
    """

    fields: str
    expected: str
    own: frozenset[str]
    format_of: Callable[[Mapping[str, Any], str], str]
    row_names: frozenset[str] = frozenset()
    certain: tuple[frozenset[str], ...] = ()
    hints: frozenset[str] = frozenset()
    truth: tuple[str, ...] = ()
    beside: frozenset[str] = frozenset()
    truth_advice: str = "name what is predicted pred_... where both stand side by side"
    truth_files: tuple[str, ...] = ()
    truth_columns: frozenset[str] = frozenset()
    truth_fields: frozenset[str] = frozenset()
    array: str = ""
    png: str = ""
    folders: Mapping[str, tuple[frozenset[str], ...]] | None = None
    instead: str = "write JSON Lines instead"
    advice: tuple[tuple[tuple[str, ...], str], ...] = ()
    parts_of_folder: tuple[str, ...] = ()
    line: tuple[bytes, str] | None = None
