"""Turn relation results that PVSG's research code pickled into `relations.json`, which the package reads.

The package itself never opens a pickle. Run this file where you made the results; it needs nothing but Python:

    python convert_pvsg_relations.py results.pickle --out predictions [--vocabulary pvsg.json] [--video VIDEO_ID]
        [--idx2key idx2key.json]

What is read: a pickle that holds, by video, a list of relations. `{video_id: [relation, ...]}`, a list of
`{"video_id": ..., "relations": [relation, ...]}`, or, with `--video`, one video's list of relations. A relation is a
dictionary with

    subject track     `subject_id`, `subject`, `subject_track` or `sub`
    object track      `object_id`, `object`, `object_track` or `obj`
    predicate         `predicate`, `predicate_id`, `relation` or `rel`: a name, or an index into `--vocabulary`
    score             `score`, `confidence` or `prob`
    spans             `spans`, `span`, `relation_span` or `frames`: [[first, last], ...] (0-based, both ends included),
                      or one 0 or 1 per frame

Other names are given with `--names subject=...,object=...,predicate=...,score=...,spans=...`. What is written:
`OUT/<video_id>/relations.json`, `{"video_id": ..., "relations": [{subject_id, object_id, predicate, score, spans}]}`
in the given order.

The list that the research code's `generate_results` returns has no scores: its order is the ranking. Where no relation
of a video has a score, the first one of n gets the score n, the next n - 1, and so on. Its `subject_index` and
`object_index` are places in the list of a video's tubes, from 0; they are no track ids. `--idx2key` names the file that
maps them: `{video_id: {index: track id}}` or `{video_id: [track id, ...]}` as JSON or as a pickle, or with `--video`
the mapping of that video. Without it such relations are refused, because an index taken as a track id names another
tube. Where `OUT/<video_id>/quantitive/masks.txt` exists, every track id must be in it.

A pickle can hold any program. This reader builds plain values only: numbers, text, lists, dictionaries, and NumPy's
numbers and arrays where NumPy is installed. Everything else, tensors too, is refused and nothing of it is run; store
`tensor.tolist()` instead.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import math
import os
import pickle
import sys
from collections.abc import Iterator
from typing import Any

NAMES = {
    "subject": ("subject_id", "subject", "subject_track", "sub"),
    "object": ("object_id", "object", "object_track", "obj"),
    "predicate": ("predicate", "predicate_id", "relation", "rel"),
    "score": ("score", "confidence", "prob"),
    "spans": ("spans", "span", "relation_span", "frames"),
}
"""Field names that are tried, by what they hold."""

INDICES = {"subject": ("subject_index",), "object": ("object_index",)}
"""Field names of places in the list of a video's tubes."""

MASKS = ("quantitive/masks.txt", "quantitative/masks.txt", "masks.txt")
"""Where a video's tubes may be, in its folder."""

_ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("scalar", "_reconstruct")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
}
_PLAIN = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
}


class Refused(Exception):
    """The results are not what this script can turn into JSON; the message says why."""


class _Plain(pickle.Unpickler):
    """Builds plain values and NumPy's; refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return _PLAIN[module, name]
        if module in ("builtins", "__builtin__") and name in ("list", "dict", "set", "int", "float", "str", "tuple"):
            return {"list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str, "tuple": tuple}[
                name
            ]
        if (module, name) == ("_codecs", "encode"):  # how older protocols hold bytes
            return _latin1
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        raise Refused(
            f"the pickle holds {module}.{name}, which is not built; store plain numbers, text, lists and dictionaries "
            "(for tensors: tensor.tolist())"
        )

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("the pickle refers to data outside of itself; store plain values")


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise Refused(f"the pickle holds text in {encoding!r}; expected plain values")
    return text.encode("latin1")


def load(data: bytes) -> Any:
    """The plain value that a pickle holds.

    Raises:
        Refused: it holds anything else, or is broken.
    """
    try:
        return _Plain(io.BytesIO(data)).load()
    except Refused:
        raise
    except Exception as error:  # whatever a broken stream makes it raise
        raise Refused(f"the pickle cannot be read: {type(error).__name__}: {error}") from error


def videos(content: Any, video: str | None = None) -> Iterator[tuple[str, list[Any]]]:
    """Video ids and their relations, in the given order."""
    if video is not None:
        content = {video: content}
    if isinstance(content, dict) and "relations" in content and "video_id" in content:
        content = [content]
    if isinstance(content, dict):
        pairs = [
            (name, value.get("relations", value) if isinstance(value, dict) else value)
            for name, value in content.items()
        ]
    elif isinstance(content, (list, tuple)) and all(isinstance(item, dict) and "video_id" in item for item in content):
        pairs = [(item["video_id"], item.get("relations")) for item in content]
    else:
        raise Refused("expected {video_id: [relation, ...]}; for one video's list name the video with --video")
    for name, relations in pairs:
        name = str(name)
        if not name or name in (".", "..") or any(sign in name for sign in "/\\:\0"):
            raise Refused(f"video id: expected a plain name, found {name!r}")
        if not isinstance(relations, (list, tuple)):
            raise Refused(f"{name}: expected a list of relations, found {type(relations).__name__}")
        yield name, list(relations)


def convert(
    relation: Any,
    place: str,
    names: dict[str, tuple[str, ...]],
    predicates: list[str] | None,
    tracks: dict[int, Any] | None = None,
    rank_score: int | None = None,
) -> dict[str, Any]:
    """One relation as `relations.json` has it.

    Args:
        relation: a dictionary.
        place: what messages call it.
        names: field names to try, by what they hold.
        predicates: names by index, where predicates are indices.
        tracks: track ids by index, where tubes are named by their place in a list.
        rank_score: the score that its rank gives, where no relation has a score.

    Raises:
        Refused: a field is absent, or of another kind; the message names the place.
    """
    if not isinstance(relation, dict):
        raise Refused(f"{place}: expected a dictionary, found {type(relation).__name__}")
    values = {}
    for part, tried in names.items():
        if part == "score" and rank_score is not None:
            values[part] = rank_score
            continue
        if tracks is not None:
            tried = (*INDICES.get(part, ()), *tried)
        found = next((name for name in tried if name in relation), None)
        if tracks is None and part in INDICES and (found or INDICES[part][0]).endswith("_index"):
            index = found or INDICES[part][0]
            if index in relation:
                raise Refused(
                    f"{place}: {index} is a place in a list of tubes, from 0, and no track id; give the mapping with "
                    "--idx2key"
                )
        if found is None:
            raise Refused(
                f"{place}: expected {part} as {' or '.join(tried)}, found {sorted(map(str, relation))}; see --names"
            )
        values[part] = _plain(relation[found])
    score = values["score"]
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise Refused(f"{place}: score: expected a finite number, found {score!r}")
    return {
        "subject_id": _track(values["subject"], place, tracks),
        "object_id": _track(values["object"], place, tracks),
        "predicate": _predicate(values["predicate"], place, predicates),
        "score": score,
        "spans": spans(values["spans"], place),
    }


def spans(value: Any, place: str = "spans") -> list[list[int]]:
    """Spans out of pairs, or out of one 0 or 1 a frame.

    Example:
        >>> spans([[0, 4]]), spans([1, 1, 0, True])
        ([[0, 4]], [[0, 1], [3, 3]])
    """
    if not isinstance(value, list):
        raise Refused(f"{place}: spans: expected a list, found {value!r}")
    if all(isinstance(item, list) for item in value):
        return [_span(item, place) for item in value]
    if any(item not in (0, 1) for item in value):
        raise Refused(f"{place}: spans: expected [first, last] pairs, or one 0 or 1 a frame, found {value!r:.80}")
    found: list[list[int]] = []
    for frame, held in enumerate(value):
        if held and found and found[-1][1] == frame - 1:
            found[-1][1] = frame
        elif held:
            found.append([frame, frame])
    return found


def _span(item: list[Any], place: str) -> list[int]:
    whole = [int(side) for side in item if isinstance(side, (int, float)) and math.isfinite(side) and side == int(side)]
    if len(item) != 2 or len(whole) != 2 or not 0 <= whole[0] <= whole[1]:
        raise Refused(f"{place}: spans: expected [first, last] with 0 <= first <= last, found {item!r:.80}")
    return whole


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, tuples as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _track(value: Any, place: str, tracks: dict[int, Any] | None) -> int | str:
    """A track's id; looked up where the value is an index."""
    if tracks is not None:
        if isinstance(value, bool) or not isinstance(value, int) or value not in tracks:
            raise Refused(f"{place}: expected an index that --idx2key has ({len(tracks)} of them), found {value!r}")
        value = tracks[value]
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise Refused(f"{place}: expected a track's id, an integer or text, found {value!r}")
    return value


def mapping(content: Any, video: str, only: bool) -> dict[int, Any]:
    """Track ids by index, of one video.

    Args:
        content: what the file of `--idx2key` holds.
        video: the video's id.
        only: whether the file may hold that video's mapping alone.

    Example:
        >>> mapping({"v": {"0": 3, "1": 7}}, "v", False), mapping([3, 7], "v", True)
        ({0: 3, 1: 7}, {0: 3, 1: 7})
    """
    found = content.get(video) if isinstance(content, dict) else None
    if found is None and only:
        found = content
    found = _plain(found)
    if isinstance(found, list):
        found = dict(enumerate(found))
    if not isinstance(found, dict):
        raise Refused(f"{video}: expected {{index: track id}} or [track id, ...] in --idx2key, found none")
    tracks = {}
    for index, track in found.items():
        text = str(_plain(index))
        if not (text.isascii() and text.isdigit()):
            raise Refused(f"{video}: --idx2key: expected an index from 0 on, found {index!r}")
        tracks[int(text)] = _plain(track)
    return tracks


def convert_video(
    video: str,
    relations: list[Any],
    names: dict[str, tuple[str, ...]],
    predicates: list[str] | None,
    tracks: dict[int, Any] | None,
) -> tuple[list[dict[str, Any]], bool]:
    """One video's relations, and whether their scores are made of their order.

    Raises:
        Refused: see `convert`.
    """
    scored = any(isinstance(item, dict) and any(name in item for name in names["score"]) for item in relations)
    ranked = bool(relations) and not scored and names["score"] == NAMES["score"]
    found = [
        convert(item, f"{video}, relation {i}", names, predicates, tracks, len(relations) - i if ranked else None)
        for i, item in enumerate(relations)
    ]
    return found, ranked


def refuse_strangers(video: str, relations: list[dict[str, Any]], folder: str) -> None:
    """Stop at track ids that the video's masks.txt lacks, where there is one.

    Raises:
        Refused: there is such an id; the message names it.
    """
    path = next((path for name in MASKS if os.path.isfile(path := os.path.join(folder, *name.split("/")))), None)
    if path is None:
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        known = {parts[1] for line in file if len(parts := line.split(None, 2)) > 1}
    for i, relation in enumerate(relations):
        for end in ("subject_id", "object_id"):
            if str(relation[end]) not in known:
                some = ", ".join(sorted(known)[:5]) or "none"
                raise Refused(
                    f"{video}, relation {i}: {end} {relation[end]!r}: expected a track of {path} ({some}, ...), found "
                    "none of this id; are these places in a list (see --idx2key)?"
                )


def _predicate(value: Any, place: str, predicates: list[str] | None) -> str:
    if isinstance(value, str):
        return value
    if predicates is None:
        raise Refused(f"{place}: predicate: found {value!r}; an index needs --vocabulary pvsg.json")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(predicates):
        raise Refused(
            f"{place}: predicate: expected a name, or an index from 0 to {len(predicates) - 1}, found {value!r}"
        )
    return predicates[value]


def _names(text: str) -> dict[str, tuple[str, ...]]:
    chosen = dict(NAMES)
    for part in filter(None, text.split(",")):
        name, sign, field = part.partition("=")
        if name not in NAMES or not sign or not field:
            raise Refused(f"--names: expected {', '.join(f'{name}=FIELD' for name in NAMES)}, found {part!r}")
        chosen[name] = (field,)
    return chosen


def main(arguments: list[str] | None = None) -> int:
    """The command; gives its exit code."""
    parser = argparse.ArgumentParser(description="PVSG's pickled relation results into relations.json")
    parser.add_argument("results", help="the pickle")
    parser.add_argument("--out", required=True, help="folder of predictions; one folder per video is made in it")
    parser.add_argument("--idx2key", help="JSON or pickle with track ids by index, where tubes are named by index")
    parser.add_argument("--video", help="the video's id, where the pickle holds one video's list")
    parser.add_argument("--vocabulary", help="pvsg.json, where predicates are indices")
    parser.add_argument("--names", default="", help="other field names: subject=...,object=...,predicate=...,...")
    given = parser.parse_args(arguments)
    try:
        names = _names(given.names)
        predicates = None
        if given.vocabulary:
            with open(given.vocabulary, encoding="utf-8") as file:
                predicates = json.load(file)["relations"]
        with open(given.results, "rb") as file:
            content = load(file.read())
        keys = None
        if given.idx2key:
            with open(given.idx2key, "rb") as file:
                data = file.read()
            keys = load(data) if data[:1] == b"\x80" else json.loads(data)
        converted, ranked = [], 0
        for name, relations in videos(content, given.video):
            tracks = None if keys is None else mapping(keys, name, given.video is not None)
            found, by_rank = convert_video(name, relations, names, predicates, tracks)
            refuse_strangers(name, found, os.path.join(given.out, name))
            converted.append((name, found))
            ranked += by_rank
    except (Refused, OSError, KeyError, ValueError) as error:
        print(f"{given.results}: {error}", file=sys.stderr)
        return 1
    for name, relations in converted:
        os.makedirs(os.path.join(given.out, name), exist_ok=True)
        with open(os.path.join(given.out, name, "relations.json"), "w", encoding="utf-8") as file:
            json.dump({"video_id": name, "relations": relations}, file)
            file.write("\n")
    print(f"{len(converted)} videos, {sum(len(relations) for _, relations in converted)} relations")
    if ranked:
        print(f"{ranked} videos without scores: their relations are ranked by their order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
