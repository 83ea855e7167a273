"""What can be evaluated: questions with what answers them, and the index that they are asked of.

One context manager for each source of questions. All that is opened or made for it is gone when its `with`
block ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.retrieval.evaluation.excerpts import Show, show_from, show_plainly
from likewise.retrieval.evaluation.judgements import Judgements, load_beir, load_qrels
from likewise.retrieval.evaluation.matching import match_judgements
from likewise.retrieval.evaluation.questions import load_questions

if TYPE_CHECKING:
    from likewise.index.index import Index

Progress = Callable[[str, int, "int | None"], None]
"""Told what is being done, how much of it, and out of how many where that is known."""

OpenIndex = Callable[[], "Index"]


@dataclass(frozen=True)
class Subject:
    """What is evaluated.

    Attributes:
        title: For a heading.
        judgements: Questions and answers.
        index: What is searched; None where only runs that are there already are scored.
        notices: What a person should know.
        facts: What it is, by name.
        groups: Kinds of questions: name -> query ids; empty for none.
        show: How answers look.
        as_typed: Whether the questions are in the query language, as people type them.
    """

    title: str
    judgements: Judgements
    index: Index | None = None
    notices: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    show: Show = show_plainly
    as_typed: bool = False


@contextmanager
def of_qrels(path: Path) -> Iterator[Subject]:
    """Judgements alone, for runs.

    Raises:
        DataError: They cannot be read.
    """
    yield Subject(path.name, Judgements({}, load_qrels(path)), facts={"judgements": str(path)})


@contextmanager
def of_questions(path: Path, index: OpenIndex | None) -> Iterator[Subject]:
    """A CSV of questions, for an index or, without one, for runs.

    Raises:
        DataError: It cannot be read, or the index holds none of its answers.
        IndexFolderError: The index cannot be used.
    """
    with _judged(load_questions(path), path.name, {"questions": str(path)}, index, path.parent) as subject:
        yield replace(subject, as_typed=True)


@contextmanager
def of_judged_index(folder: Path, index: OpenIndex | None, *, split: str = "test") -> Iterator[Subject]:
    """A BEIR folder whose judgements name documents of an index that is there already.

    Raises:
        DataError: The folder is malformed, or the index holds none of the documents that it names.
        IndexFolderError: The index cannot be used.
    """
    facts = {"collection": str(folder), "split": split}
    with _judged(load_beir(folder, split=split), folder.resolve().name, facts, index, None) as subject:
        yield subject


@contextmanager
def of_collection(
    folder: Path,
    *,
    encoder: str | None = None,
    split: str = "test",
    keep: bool = True,
    progress: Progress | None = None,
) -> Iterator[Subject]:
    """A whole BEIR folder, its corpus indexed for it.

    Args:
        folder: Holds queries, qrels and a corpus.
        encoder: Name of the encoder; None for the default.
        split: Which qrels to use.
        keep: Keep the index in the cache for the next time.
        progress: Told how far indexing is.

    Raises:
        DataError: The folder is malformed.
        EncoderError: The encoder cannot be loaded.
    """
    from likewise.embedder import load_encoder
    from likewise.index.report import SyncEvent
    from likewise.retrieval.evaluation.collection import collection_index

    def report(event: SyncEvent) -> None:
        if progress is not None:
            progress("indexing", event.done, event.total)

    judgements = load_beir(folder, split=split)
    indexing = collection_index(folder, encoder=load_encoder(encoder), keep=keep, progress=report)
    with indexing as index, index.view() as view:
        matched = match_judgements(judgements, view, base=index.base)
        facts = {"collection": str(folder), "split": split} | _facts(index)
        show = show_from(view)
        title = folder.resolve().name
        yield Subject(title, matched.judgements, index, matched.notices, facts, show=show)


@contextmanager
def of_documents(
    index: Index, *, count: int = 200, seed: int = 0, progress: Progress | None = None
) -> Iterator[Subject]:
    """Questions that an index asks of itself; the subject's index is a copy that lacks them.

    Args:
        index: Any index; it is only read, and closed at the end.
        count: How many questions are wanted.
        seed: Equal seeds choose equal questions.
        progress: Told how far the preparations are.

    Raises:
        DataError: No question can be made.
        IndexFolderError: The index cannot be used.
    """
    from likewise.retrieval.evaluation.masking import self_test
    from likewise.retrieval.evaluation.self_questions import KINDS, to_judgements

    with (
        index,
        self_test(index, count=count, seed=seed, progress=progress) as test,
        test.index.view() as view,
    ):
        judgements = to_judgements(test.questions)
        notices: tuple[str, ...] = ()
        if len(test.questions) < count:
            notices = (f"the documents gave {len(test.questions)} questions of the {count} that were wanted",)
        groups = {
            kind: [query for query in judgements.queries if query.startswith(f"{kind}-")] for kind in KINDS
        }
        facts = _facts(index) | {
            "questions": f"made from the documents (seed {seed}), searched in a copy of the index in which"
            f" {test.rewritten} passages were embedded anew without them"
        }
        yield Subject(
            title=f"Questions from {index.base.name or index.base}",
            judgements=judgements,
            index=test.index,
            notices=notices,
            facts=facts,
            groups={kind: queries for kind, queries in groups.items() if queries},
            show=show_from(view, base=index.base),
        )


@contextmanager
def _judged(
    judgements: Judgements, title: str, facts: Mapping[str, str], index: OpenIndex | None, near: Path | None
) -> Iterator[Subject]:
    if index is None:
        yield Subject(title, judgements, facts=facts)
        return
    with index() as opened, opened.view() as view:
        matched = match_judgements(judgements, view, base=opened.base, near=near)
        facts = {**facts, **_facts(opened)}
        show = show_from(view, base=opened.base)
        yield Subject(title, matched.judgements, opened, matched.notices, facts, show=show)


def _facts(index: Index) -> dict[str, str]:
    status = index.status()
    return {
        "index": str(index.folder),
        "documents": f"{status.counts.documents:,}",
        "passages": f"{status.counts.passages:,}",
        "encoder": f"{status.encoder_name}, fingerprint {status.fingerprint[:12]}",
    }
