"""Quoted answers, with readers that find what a test wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from likewise.embedder.heads.data import QuestionExample
from likewise.embedder.heads.questions import AnswerPrediction, Span
from likewise.errors import UsageError
from likewise.index.records import Filter, Passage, StoredPassage
from likewise.index.records import Span as Place
from likewise.retrieval import extractive
from likewise.retrieval.extractive import Extract, extract_answers
from likewise.retrieval.hits import Hit, HitScores, SearchResult
from likewise.retrieval.search import Retriever

MakeIndex = Callable[..., Any]
QUESTION = "How often do signing keys rotate?"


class Finder:
    """Finds phrases, each with its logits; none is found where `silent` stands."""

    def __init__(self, scores: dict[str, float], *, silent: str = "\0") -> None:
        self.scores, self.silent = scores, silent
        self.asked: list[QuestionExample] = []

    def predict(self, examples: Sequence[QuestionExample]) -> list[AnswerPrediction]:
        self.asked += examples
        return [self._find(example.context) for example in examples]

    def _find(self, context: str) -> AnswerPrediction:
        spans = [
            Span(phrase, at, at + len(phrase), score, 0.5)
            for phrase, score in self.scores.items()
            if (at := context.find(phrase)) >= 0
        ]
        spans.sort(key=lambda span: -span.score)
        nothing = Span("", 0, 0, 0.0, 0.5)
        best = spans[0] if spans and self.silent not in context else nothing
        return AnswerPrediction(best, tuple(spans), 0.0)


class Found:
    """A retriever that has found its hits already."""

    def __init__(self, *passages: tuple[str, float | None]) -> None:
        hits = []
        for rank, (text, relevance) in enumerate(passages, start=1):
            place = Place(100 * rank, 100 * rank + len(text))
            passage = Passage(0, text, place, (10 * rank, 10 * rank + text.count("\n")))
            stored = StoredPassage(rank, f"{rank}.md", "", "en", "00ff", passage)
            hits.append(Hit(rank, 1 / rank, HitScores(), stored, relevance))
        self.hits = SearchResult(tuple(hits), QUESTION, "hybrid", ("a notice",), text=QUESTION)

    def search(self, *_: object, **__: object) -> SearchResult:
        return self.hits


def extract(found: Found, reader: Finder, **options: Any) -> extractive.Extraction:
    retriever: Any = found
    return extract_answers(retriever, QUESTION, reader, **options)


def test_the_best_span_of_an_index_with_its_citation(make_index: MakeIndex) -> None:
    reader = Finder({"every year": 5.0})
    result = extract_answers(Retriever(make_index()), QUESTION, reader)
    best = result.answers[0]
    assert best.text == "every year" and best.probability == pytest.approx(1.0)
    assert best.hit.text[best.start : best.end] == "every year"
    assert {example.question for example in reader.asked} == {QUESTION}
    assert [example.context for example in reader.asked] == [hit.text for hit in result.hits]
    value = result.to_json()
    assert value["answer"] == "every year" and value["passages"] == len(result.hits)
    [first] = value["answers"]
    assert first["path"] == best.path and first["lines"] == list(best.lines)


def test_chinese_keeps_its_places(make_index: MakeIndex) -> None:
    result = extract_answers(Retriever(make_index()), "簽署金鑰多久輪替一次？", Finder({"每年": 4.0}))
    best = result.answers[0]
    assert (best.path, best.text) == ("docs/zh/金鑰.md", "每年")
    assert best.quote(6) == ("…金鑰", "每年", "輪替…")


def test_place_of_an_answer_in_its_document() -> None:
    result = extract(Found(("Keys are red.\nThey rotate\nevery year.", 0.9)), Finder({"rotate\nevery": 1.0}))
    [best] = result.answers
    assert best.lines == (11, 12)
    assert (best.span.start, best.span.end) == (100 + 19, 100 + 31)


def test_relevance_counts_with_the_readers_logits() -> None:
    """4.0 in a passage of relevance .9 beats 4.5 in one of .3: 4 + ln .9 = 3.89 > 4.5 + ln .3 = 3.30."""
    result = extract(Found(("yearly", 0.3), ("daily", 0.9)), Finder({"yearly": 4.5, "daily": 4.0}))
    assert [answer.text for answer in result.answers] == ["daily", "yearly"]
    scores = [4 + math.log(0.9), 4.5 + math.log(0.3)]
    assert [answer.score for answer in result.answers] == pytest.approx(scores)
    shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    assert [answer.probability for answer in result.answers] == pytest.approx(shares)


def test_unknown_and_no_relevance_are_no_error() -> None:
    result = extract(Found(("yearly", None), ("daily", 0.0)), Finder({"yearly": 1.0, "daily": 1.0}))
    assert [answer.text for answer in result.answers] == ["yearly", "daily"]
    assert [answer.score for answer in result.answers] == pytest.approx(
        [1 + math.log(0.5), 1 + math.log(0.01)]
    )


def test_the_same_answer_in_two_passages_is_one_with_both_probabilities() -> None:
    reader = Finder({"every year": 2.0, "Every  Year": 2.0, "year": 1.0, "red": 0.0})
    result = extract(Found(("every year", 0.5), ("Every  Year, red", 0.5)), reader)
    assert [answer.text for answer in result.answers] == ["every year", "red"]
    assert result.answers[0].path == "1.md", "equal scores: the better passage is cited"
    weights = [math.exp(2), math.exp(1), math.exp(2), math.exp(0)]
    assert result.answers[0].probability == pytest.approx(sum(weights[:3]) / sum(weights))
    assert len(extract(Found(("every year", 0.5), ("red", 0.5)), reader, answers=1).answers) == 1


def test_a_passage_without_an_answer_is_passed_over() -> None:
    reader = Finder({"yearly": 9.0, "daily": 1.0}, silent="nothing")
    result = extract(Found(("nothing yearly", 0.9), ("daily", 0.9)), reader)
    assert [answer.text for answer in result.answers] == ["daily"]
    silent = extract(Found(("nothing yearly", 0.9)), reader)
    assert silent.answers == () and silent.to_json()["answer"] is None
    assert silent.notices == ("a notice", "no answer seems to stand in the passages that were read (1)")


def test_nothing_found_reads_nothing(make_index: MakeIndex) -> None:
    reader = Finder({"year": 1.0})
    result = extract_answers(Retriever(make_index()), QUESTION, reader, filter=Filter(paths=("nowhere/**",)))
    assert result.answers == () and not reader.asked and len(result.notices) == 1
    with pytest.raises(UsageError, match="at least 1 answer"):
        extract_answers(Retriever(make_index()), QUESTION, reader, answers=0)


@pytest.mark.parametrize("width", [0, 5, 11, 40, 1000])
def test_quotes_fit_and_hold_the_answer(width: int) -> None:
    text = "Keys are kept in the vault and rotate every\n\nyear, as the handbook says in another place."
    [hit] = Found((text, 0.5)).hits
    start = text.index("every")
    answer = Extract(text[start : start + 11], start, start + 11, 1.0, 0.0, hit)
    before, middle, behind = answer.quote(width)
    assert middle == "every year" and "\n" not in before + behind
    assert len(before) + len(behind) <= max(0, width - 11) + 2  # and an ellipsis on each side
    if width == 1000:
        assert before + middle + behind == " ".join(text.split())
