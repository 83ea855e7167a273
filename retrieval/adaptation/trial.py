"""The place where encoders are compared: questions about held-out documents, and a copy of the index.

The copy lacks what the questions were made from (see `evaluation.masking`). Each encoder gets a copy of its
own, embedded by it, and is asked the same questions. The index itself is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.index.lock import WriterLock
from likewise.index.reembed import reembed
from likewise.index.rows import DeleteDocument
from likewise.index.scratch import scratch_copy
from likewise.index.snapshot import publish
from likewise.retrieval.adaptation.feedback import feedback_search
from likewise.retrieval.evaluation.configurations import Configuration, search_function
from likewise.retrieval.evaluation.evaluate import RunResult, compare, evaluate
from likewise.retrieval.evaluation.judgements import Judgements
from likewise.retrieval.evaluation.masking import self_test
from likewise.retrieval.evaluation.self_questions import to_judgements
from likewise.retrieval.evaluation.statistics import Interval

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

METRIC = "nDCG@10"
DENSE, HYBRID, FEEDBACK = "dense", "hybrid", "dense with feedback"

_DEPTH = 10
# Share of the questions that choose; the verdict needs more of them, for a narrow interval.
_CHOOSING = 1 / 3

Progress = Callable[[str, int, "int | None"], None]
"""Told what is being done, how much of it, and out of how many where that is known."""
Runs = Mapping[str, RunResult]
"""What an encoder reached, by configuration."""


@dataclass(frozen=True)
class Trial:
    """Questions in two sets, and the index folder that they are asked of.

    Attributes:
        folder: The copy, embedded by the encoder of the index.
        encoder: That encoder.
        choosing: Questions that choose among candidates.
        verdict: Questions that decide.
        passages: In the copy.
    """

    folder: Path
    encoder: TextEncoder
    choosing: Judgements
    verdict: Judgements
    passages: int

    def base(self, questions: Judgements, progress: Progress) -> Runs:
        """What the encoder of the index reaches, with and without feedback."""
        with Index.open(self.folder, encoder=self.encoder) as index:
            return _runs(index, questions, progress, feedback=True)

    @contextmanager
    def candidate(self, encoder: TextEncoder, progress: Progress) -> Iterator[Callable[[Judgements], Runs]]:
        """Embed a copy with another encoder; gives the function that asks it questions."""
        with scratch_copy(self.folder) as folder:
            with Index.open(folder) as copy:
                chunking = copy.settings
            with WriterLock(folder), Catalogue.open(folder, mode="write") as catalogue:
                reembed(
                    catalogue,
                    encoder,
                    name=encoder.name,
                    chunking=chunking,
                    progress=lambda done, total: progress("embedding for the trial", done, total),
                )
                publish(catalogue, folder)
            with Index.open(folder, encoder=encoder) as index:
                yield lambda questions: _runs(index, questions, progress, feedback=False)


@contextmanager
def trial(
    index: Index,
    *,
    choosing: frozenset[str],
    verdict: frozenset[str],
    questions: int,
    most_passages: int,
    seed: int = 0,
    progress: Progress,
) -> Iterator[Trial]:
    """Prepare the comparison, for the length of a `with` block.

    Args:
        index: Only read.
        choosing: Documents whose questions choose.
        verdict: Documents whose questions decide.
        questions: How many for both together; few documents give fewer.
        most_passages: Passages in the copy: documents that nobody asks about are left out beyond that.
        seed: Of questions, and of what is left out.
        progress: Told how far it is.

    Raises:
        DataError: No question can be made about one of the two sets of documents.
        IndexFolderError: The index cannot be read, or there is no space for the copy.
    """
    for_choosing = max(1, round(questions * _CHOOSING))
    with (
        self_test(index, count=for_choosing, seed=seed, about=choosing, progress=progress) as first,
        self_test(
            first.index, count=max(1, questions - for_choosing), seed=seed, about=verdict, progress=progress
        ) as second,
    ):
        folder = second.index.folder
        with WriterLock(folder), Catalogue.open(folder, mode="write") as catalogue:
            surplus = _surplus(catalogue, choosing | verdict, most_passages, Random(seed))
            if surplus:
                catalogue.apply([DeleteDocument(key) for key in surplus])
                publish(catalogue, folder)
            passages = catalogue.counts().passages
        yield Trial(
            folder, index.encoder, to_judgements(first.questions), to_judgements(second.questions), passages
        )


def _surplus(catalogue: Catalogue, asked: frozenset[str], most: int, random: Random) -> list[str]:
    """Documents to leave out so that no more passages than `most` remain, none of those asked about."""
    rows = [row for row in catalogue.documents() if row.passages]
    others = [row for row in rows if row.key not in asked]
    random.shuffle(others)
    room = most - sum(row.passages for row in rows if row.key in asked)
    surplus = []
    for row in others:
        room -= row.passages
        if room < 0:
            surplus.append(row.key)
    return surplus


def _runs(index: Index, questions: Judgements, progress: Progress, *, feedback: bool) -> Runs:
    searches = {
        DENSE: search_function(index, Configuration(DENSE, "dense")),
        HYBRID: search_function(index, Configuration(HYBRID, "hybrid")),
    }
    if feedback:
        searches[FEEDBACK] = feedback_search(index)
    measured = evaluate(
        searches,
        questions,
        metrics=[METRIC],
        depth=_DEPTH,
        progress=lambda done, total: progress("searching", done, total),
    )
    return {run.name: run for run in measured.runs}


def gain(before: RunResult, after: RunResult) -> Interval:
    """Mean difference of the metric on the same questions."""
    return compare(before, after, METRIC).difference


def values(run: RunResult) -> Sequence[float]:
    """The metric of each question."""
    return list(run.values[METRIC].values())


def mean(run: RunResult) -> float:
    """The metric over all questions."""
    return run.interval(METRIC).mean
