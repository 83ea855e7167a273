"""Whether judgements and an index speak of the same documents: what is missing is counted and named.

Keys are understood as people write them: as the index shows them, or as paths seen from the working
directory or from the file that holds the questions. Nothing is searched or scored here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import DataError, UsageError
from likewise.retrieval.evaluation.evaluate import covers
from likewise.retrieval.evaluation.judgements import Judgements, Place, TrecRun
from likewise.retrieval.similar import document_keys

if TYPE_CHECKING:
    from likewise.index.view import IndexView

_NAMED = 3  # how many of a long list a message names


@dataclass(frozen=True)
class Matched:
    """Judgements with the keys of an index, and what a person should know about them."""

    judgements: Judgements
    notices: tuple[str, ...]


def match_judgements(
    judgements: Judgements, view: IndexView, *, base: Path, near: Path | None = None
) -> Matched:
    """The judgements with every document under its key in the index.

    Args:
        judgements: Answers name documents, and perhaps pages or lines of them.
        view: The index.
        base: Folder that its keys are relative to.
        near: Folder that the answers may be relative to as well.

    Raises:
        DataError: The index holds none of the right answers, or no question has one.
    """
    notices = list(check_relevant(judgements))
    documents = {row.key: row.passages for row in view.documents()}
    judged = {Place.of(answer).key for answers in judgements.qrels.values() for answer in answers}
    keys = {key: _known_key(key, documents, base, near) for key in judged}
    right = sorted(
        {Place.of(a).key for q in judgements.qrels.values() for a, grade in q.items() if grade > 0}
    )
    missing = [key for key in right if keys[key] is None]
    if len(missing) == len(right):
        raise DataError(
            f"none of the {len(right)} documents that should be found is in the index, such as"
            f" {_names(missing)}",
            remedy=f"name documents as likewise status --documents shows them, relative to {base}",
        )
    if missing:
        notices.append(
            f"{len(missing)} of the {len(right)} documents that should be found are not in the index and"
            f" count as not found: {_names(missing)}"
        )
    silent = [key for key in right if (known := keys[key]) is not None and not documents[known]]
    if silent:
        notices.append(f"documents that should be found but have no text in the index: {_names(silent)}")
    renamed = Judgements(
        judgements.queries,
        {
            query: {_renamed(answer, keys): grade for answer, grade in answers.items()}
            for query, answers in judgements.qrels.items()
        },
    )
    nowhere = sorted(str(place) for place in _uncovered(renamed, view, documents))
    if nowhere:
        notices.append(f"places that no passage covers, so that they cannot be found: {_names(nowhere)}")
    return Matched(renamed, tuple(notices))


def check_relevant(judgements: Judgements) -> Iterator[str]:
    """Notices about questions without a right answer.

    Raises:
        DataError: No question has one.
    """
    without = [q for q, answers in judgements.qrels.items() if not any(g > 0 for g in answers.values())]
    if len(without) == len(judgements.qrels):
        raise DataError("no question has a right answer: expected grades from 1 on")
    if without:
        yield (
            f"{len(without)} of {len(judgements.qrels)} questions have no right answer and score 0, as in"
            f" trec_eval: {_names(without)}"
        )


def check_overlap(runs: Mapping[str, TrecRun], judgements: Judgements) -> Iterator[str]:
    """Notices about queries that are only in a run or only in the judgements.

    Raises:
        UsageError: A run and the judgements have no query in common.
    """
    yield from check_relevant(judgements)
    for name, run in runs.items():
        both = [query for query in judgements.qrels if query in run]
        if not both:
            raise UsageError(
                f"the run {name} and the judgements have no query in common: the run has"
                f" {_names(list(run))}, the judgements have {_names(list(judgements.qrels))}"
            )
        if len(both) < len(judgements.qrels):
            lacking = [query for query in judgements.qrels if query not in run]
            yield (
                f"the run {name} lacks {len(lacking)} of {len(judgements.qrels)} judged queries, which"
                f" score 0: {_names(lacking)}"
            )
        if len(both) < len(run):
            yield f"{len(run) - len(both)} queries of the run {name} are not judged and do not count"
        if not any(document in judgements.qrels[query] for query in both for document in run[query]):
            yield f"no document of the run {name} is judged: are its ids those of the judgements?"


def _known_key(key: str, documents: Mapping[str, int], base: Path, near: Path | None) -> str | None:
    if key in documents:
        return key
    spellings = list(document_keys(key, base))
    if near is not None:
        spellings += document_keys(str(near / key), base)
    return next((spelling for spelling in spellings if spelling in documents), None)


def _renamed(answer: str, keys: Mapping[str, str | None]) -> str:
    place = Place.of(answer)
    known = keys[place.key]
    return answer if known is None else str(place._replace(key=known))


def _uncovered(judgements: Judgements, view: IndexView, documents: Mapping[str, int]) -> set[Place]:
    places = {
        place
        for answers in judgements.qrels.values()
        for answer, grade in answers.items()
        if grade > 0 and (place := Place.of(answer)).unit and documents.get(place.key)
    }
    return {
        place
        for place in places
        if not any(
            covers(place, stored.passage.lines, stored.passage.page)
            for stored in view.document_passages(place.key)
        )
    }


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
