"""Names of rows in the paths of files, for formats of one file or folder a row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bench_datasets.benchmark import known_parts
from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.mask_rows import Row

Name = tuple[str | None, str]
"""Level, if the path names one, and id."""


def row_of(level: str | None, name: str, shown: str) -> Row:
    """The row that a file or folder called `<id>` (in `<level>`) speaks of.

    Example:
        >>> row = row_of("level_0", "7#2", "masks/level_0/7#2")
        >>> row.key, row_of(None, "12", "masks/12").id
        ('level_0/7#2', 12)
    """
    if level is not None and level not in known_parts():
        problem = f"expected one of the levels {', '.join(known_parts())}, found {level!r}"
    elif level is not None and re.fullmatch(r"-?[0-9]{1,18}(#[0-9]+)?", name):
        return Row(key=f"{level}/{name}")
    elif level is None and re.fullmatch(r"-?[0-9]{1,18}", name):
        return Row(id=int(name))
    else:
        problem = f"expected the row's id as the name, found {name!a}"
    return Row(faults=[("unknown_row", f"{shown}: {problem}")])


def name_in(relative: str) -> Name:
    """The level, if there is one, and the row's name in a file's path: `<id>`, `<level>__<id>` or `<level>/<id>`.

    Example:
        >>> name_in("7.npz"), name_in("level_0__7.npz"), name_in("dense/7#2.npy")
        ((None, '7'), ('level_0', '7'), ('dense', '7#2'))
    """
    folder, _, file = relative.rpartition("/")
    stem = file.rpartition(".")[0] or file
    level, _, name = (folder, "", stem) if folder else stem.rpartition("__")
    return level or None, name


@dataclass
class RowFolder:
    """The folder of one row and its content."""

    name: Name
    shown: str
    files: list[Location] = field(default_factory=list)
    folders: list[Location] = field(default_factory=list)

    def row(self) -> Row:
        """The row, with the faults of the folder's name and content."""
        row = row_of(*self.name, self.shown)
        if row.faults:
            code, text = row.faults[0]
            row.faults = [(code, f"{text}; if it holds one file <id> per row, give this folder itself")]
        if self.folders:
            found = f"found a folder {self.folders[0].name}/"
            text = f"{self.shown}: expected masks directly in the row's folder, {found}"
            row.faults.append(("unreadable_mask", text))
        return row


def rows_in(location: Location, ending: str) -> tuple[list[RowFolder], list[tuple[str, Location]]]:
    """The folders of rows in a folder, `<id>/` or `<level>/<id>/`, and the files directly in it or in a `<level>/`.

    Args:
        location: a folder.
        ending: how the names of the files to be read end.

    Returns:
        The folders, and the path of each file with the file.

    Raises:
        BenchError: there is no folder of a row, and no file with this ending.
    """
    folders: dict[Name, RowFolder] = {}
    files: list[tuple[str, Location]] = []
    for relative, item, is_folder in location.inside():
        parts = relative.split("/")
        level = parts.pop(0) if parts[0] in known_parts() or len(parts) == 3 else None
        if not parts:
            continue
        if is_folder or len(parts) == 2:
            own = folders.setdefault((level, parts[0]), RowFolder((level, parts[0]), item.shown))
            if len(parts) == 2:
                (own.folders if is_folder else own.files).append(item)
        else:
            files.append((relative, item))
    if not folders and not any(item.name.lower().endswith(ending) for _, item in files):
        wanted = f"expected files <id>{ending} or <id>/<k>{ending}"
        raise BenchError(f"{location.shown}: {wanted}, found none in the folder; see format=")
    # A folder that holds folders of rows is a level of another name, not a row.
    levels = {level for level, _ in folders if level is not None}
    return [own for name, own in folders.items() if not (name[0] is None and name[1] in levels)], files


def note_ignored(row: Row, names: list[str]) -> None:
    """Name the files of a row's folder that are not read, in a fault `ignored_file`."""
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        row.faults.append(("ignored_file", f"{', '.join(map(ascii, names[:3]))}{more}: not read"))


def note_names(row: Row, own: RowFolder, ending: str) -> None:
    """Note mask files of a row's folder whose names do not count masks.

    Where some names are numbers, a name that is none (`union.png` beside `0.png`) is probably no mask of its own: a
    fault `odd_file_name`. One number twice (`1.png` and `01.png`) is a fault `duplicate_prediction`.

    Args:
        row: receives the faults.
        own: its folder.
        ending: of the mask files' names.
    """
    stems = [file.name[: -len(ending)] for file in own.files if file.name.lower().endswith(ending)]
    numbers: dict[str, str] = {}
    for stem in filter(str.isdecimal, stems):
        other = numbers.setdefault(stem.lstrip("0") or "0", stem)
        if other != stem:
            text = f"{own.shown}: {other}{ending} and {stem}{ending} both hold mask {int(stem)}; keep one"
            row.faults.append(("duplicate_prediction", text))
    others = [stem + ending for stem in stems if not stem.isdecimal()]
    if numbers and others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        text = f"{', '.join(map(ascii, others[:3]))}{more} beside files with numbers as names: each counts as a mask"
        row.faults.append(("odd_file_name", f"{own.shown}: {text}; move it elsewhere if it is none"))
