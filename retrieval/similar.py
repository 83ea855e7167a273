"""Find the passage or document that a person points at, and its neighbours.

The stored vectors are the query, so no encoder is needed. Nothing here formats hits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from likewise.errors import UsageError
from likewise.index.records import DocumentState

if TYPE_CHECKING:
    from likewise.index.records import StoredPassage
    from likewise.index.view import IndexView
    from likewise.retrieval.fusion.base import Ids

Exclude = Literal["passage", "document"]

_DOCUMENTS = "likewise status --documents, to see what the index holds"
_WITH_LINE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})", re.DOTALL)


class Similar(NamedTuple):
    """Neighbours of a target: its name for people, passage ids best first, cosines in the same order."""

    label: str
    ids: Ids
    scores: list[float]


class _Target(NamedTuple):
    label: str
    ids: list[int]  # whose vectors are the query
    excluded: list[int]


def similar_passages(
    view: IndexView,
    target: str | int | os.PathLike[str],
    *,
    k: int,
    allowed: Ids | None,
    exclude: Exclude,
    base: Path,
) -> Similar:
    """Passages nearest to a target; the arguments are those of `Retriever.similar`.

    Raises:
        UsageError: The target is not in the index, has no passages, or `exclude` is unknown.
    """
    if exclude not in ("passage", "document"):
        raise UsageError(f"expected to exclude passage or document, found {exclude!r}")
    found = _resolve(view, target, exclude, base)
    vectors = view.vectors(np.array(found.ids, dtype=np.int64))  # (n, dimension)
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0.0:
        # The vectors of a document cancel out exactly: its first passage still stands for it.
        mean, length = vectors[0], 1.0
    query = np.asarray(mean / length, dtype=np.float32)
    ranking = view.dense(query, k + len(found.excluded), allowed)
    keep = ~np.isin(ranking.ids, np.array(found.excluded, dtype=np.int64))
    return Similar(found.label, ranking.ids[keep][:k], [float(score) for score in ranking.scores[keep][:k]])


def _resolve(view: IndexView, target: str | int | os.PathLike[str], exclude: Exclude, base: Path) -> _Target:
    if isinstance(target, int):
        return _by_id(view, target, exclude)
    text = os.fspath(target)
    for key in document_keys(text, base):
        if passages := view.document_passages(key):
            ids = [passage.id for passage in passages]
            return _Target(key, ids, ids)
    if match := _WITH_LINE.fullmatch(text):
        for key in document_keys(match["file"], base):
            if passages := view.document_passages(key):
                passage = _at_line(passages, int(match["line"]))
                label = f"{key}:{match['line']}"
                return _Target(label, [passage.id], _excluded(passage, passages, exclude))
    if text.isdecimal():
        return _by_id(view, int(text), exclude)
    raise _not_found(view, text, base)


def _by_id(view: IndexView, id_: int, exclude: Exclude) -> _Target:
    passage = view.passages([id_]).get(id_)
    if passage is None:
        raise UsageError(
            f"no passage {id_} in the index: it never was, or its text has changed since",
            remedy="search again to see the ids of today, or name FILE:LINE",
        )
    siblings = view.document_passages(passage.key) if exclude == "document" else [passage]
    return _Target(f"passage {id_}", [id_], _excluded(passage, siblings, exclude))


def _excluded(passage: StoredPassage, siblings: list[StoredPassage], exclude: Exclude) -> list[int]:
    return [sibling.id for sibling in siblings] if exclude == "document" else [passage.id]


def _at_line(passages: list[StoredPassage], line: int) -> StoredPassage:
    """The passage that covers a line best, else the nearest one; the earlier of two that do equally well."""

    def distance(stored: StoredPassage) -> tuple[int, float, int]:
        first, last = stored.passage.lines
        outside = max(first - line, line - last, 0)
        return outside, abs((first + last) / 2 - line), stored.passage.ordinal

    return min(passages, key=distance)


def document_keys(text: str, base: Path) -> Iterator[str]:
    """Keys that a path may have: as typed, then as seen from the working directory."""
    typed = text.replace("\\", "/")
    yield PurePosixPath(typed).as_posix()
    if typed != text:
        yield text  # a POSIX file name may hold a backslash
    path = Path(os.path.abspath(os.path.expanduser(text)))
    for folder in dict.fromkeys((base.absolute(), base.resolve())):
        for file in dict.fromkeys((path, path.parent.resolve() / path.name)):
            if file.is_relative_to(folder):
                yield file.relative_to(folder).as_posix()
    yield path.as_posix()


def _not_found(view: IndexView, text: str, base: Path) -> UsageError:
    match = _WITH_LINE.fullmatch(text)
    wanted = set(document_keys(text, base)) | (set(document_keys(match["file"], base)) if match else set())
    names: list[str] = []
    for document in view.documents():
        if document.key in wanted:
            state = DocumentState(document.state)
            return UsageError(
                f"{document.key} is in the index but has no passages: its state is {state}",
                remedy="likewise status",
            )
        names.append(document.key)
    file = match["file"] if match else text
    name = file.replace("\\", "/").rpartition("/")[2]
    near = [key for key in names if key.rpartition("/")[2] == name][:3] or get_close_matches(file, names, n=3)
    if os.path.isdir(file):
        return UsageError(f"expected a file or a passage id, found the folder {file}", remedy=_DOCUMENTS)
    if near:
        hint = f"likewise similar {near[0]}"
    elif os.path.exists(file):
        inside = Path(os.path.realpath(file)).is_relative_to(os.path.realpath(base))
        hint = "likewise index, to bring the index up to date" if inside else f"likewise index {file}"
    else:
        hint = _DOCUMENTS
    return UsageError(f"{file} is not in the index, and is no passage id", remedy=hint)
