"""Answers to questions that stand word for word in a text: extractive question answering.

The context is cut into overlapping windows behind the question (Devlin et al. 2019, section 4.3), so that it
may be of any length. An answer is a pair of tokens of one window, and keeps its place in the original text.
Position 0, the first special token, stands for "no answer in this window".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Answer, Example, QuestionExample
from likewise.embedder.heads.metrics import answers as metrics
from likewise.embedder.heads.task import Encoded, Mistake, Row, Scorer, Task, softmax
from likewise.embedder.heads.tokens import Window, WindowTokenizer

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import AnswerObjective

# As in the published scripts: a longer question loses its end, so that the context keeps some room.
_QUESTION_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the context that may be the answer.

    Attributes:
        text: As it stands there; "" for no answer.
        start: Its first character.
        end: The character after its last one.
        score: Sum of both logits.
        probability: Among the best spans of this question, "no answer" included, in [0, 1].
    """

    text: str
    start: int
    end: int
    score: float
    probability: float


@dataclass(frozen=True, eq=False)
class AnswerPrediction:
    """The answer to a question.

    Attributes:
        answer: The best span; its text is "" if the context seems to hold no answer.
        spans: The best spans, best first, "no answer" left out.
        margin: Score of the best span above that of "no answer".
    """

    answer: Span
    spans: tuple[Span, ...]
    margin: float

    def to_json(self) -> dict[str, Any]:
        """The answer, its place, and the best other spans."""
        return {
            **_span_json(self.answer),
            "margin": round(self.margin, 6),
            "spans": [_span_json(span) for span in self.spans],
        }


def _span_json(span: Span) -> dict[str, Any]:
    place = {"start": span.start, "end": span.end} if span.text else {"start": None, "end": None}
    return {"answer": span.text, **place, "probability": round(span.probability, 6)}


class Questions(Task):
    """Extractive question answering.

    Args:
        labels: Not used; Hugging Face's class has two nameless outputs.
        length: Most tokens in a window.
        overlap: Tokens of the context that neighbouring windows share.
        answer_tokens: Most tokens in an answer.
        n_best: Spans to keep.
        no_answer: Margin below which there is said to be no answer; None if there always is one.
    """

    kind = "questions"
    auto_class = "AutoModelForQuestionAnswering"
    primary = "f1"

    def __init__(
        self,
        labels: Sequence[str] = (),
        *,
        length: int = 384,
        overlap: int = 128,
        answer_tokens: int = 48,
        n_best: int = 5,
        no_answer: float | None = None,
    ) -> None:
        del labels
        self.labels = ()
        self.outputs = 2
        self.length, self.overlap = length, overlap
        self.answer_tokens, self.n_best, self.no_answer = answer_tokens, n_best, no_answer

    @classmethod
    def learn(cls, examples: Sequence[Example], **options: Any) -> Questions:
        """With "no answer" as an answer if the training examples have it."""
        unanswered = any(_question(example).answers == () for example in examples)
        return cls(no_answer=0.0 if unanswered else None, **options)

    def settings(self) -> dict[str, Any]:
        """See `Task.settings`."""
        names = ("length", "overlap", "answer_tokens", "n_best", "no_answer")
        return {name: getattr(self, name) for name in names}

    def encode(self, examples: Sequence[Example], tokenizer: WindowTokenizer) -> Encoded:
        """Windows of question and context."""
        asked = [_question(example) for example in examples]
        limit = max(1, min(_QUESTION_TOKENS, self.length // 4))
        counts = tokenizer.count([example.question for example in asked])
        questions = [
            tokenizer.head(example.question, limit) if count > limit else example.question
            for example, count in zip(asked, counts, strict=True)
        ]
        # A window must move on by something, whatever the length of the question.
        room = self.length - limit - tokenizer.special_tokens(pair=True)
        overlap = min(self.overlap, max(0, room // 2))
        contexts = [example.context for example in asked]
        return Encoded.of(tokenizer.all(questions, contexts, length=self.length, overlap=overlap))

    def rows(self, examples: Sequence[Example], encoded: Encoded) -> list[Row]:
        """A row for each window: the place of the answer, or 0 and 0 where it holds none."""
        rows = []
        for window, owner in zip(encoded.windows, encoded.owner.tolist(), strict=True):
            example = _question(examples[owner])
            known = [answer for answer in example.answers or () if answer.start >= 0]
            if example.answers and not known:
                continue  # an answer that is not in its context teaches nothing
            target = _target(window, known[0]) if known else (0, 0)
            rows.append(Row(window, np.array(target, dtype=np.int64)))
        return rows

    def objective(self, *, pad_id: int) -> AnswerObjective:
        """Cross-entropy over start and end."""
        from likewise.embedder.heads.losses import AnswerObjective

        return AnswerObjective(pad_id=pad_id)

    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[AnswerPrediction]:
        """The best spans of each question."""
        found = []
        groups = zip(encoded.groups(encoded.windows), encoded.groups(logits), strict=True)
        for example, (windows, scores) in zip(examples, groups, strict=True):
            found.append(self._answer(_question(example).context, windows, scores))
        return found

    def tuned(self, examples: Sequence[Example], predictions: Sequence[AnswerPrediction]) -> Questions:
        """With the margin below which "no answer" gives the best F1 on these examples."""
        if self.no_answer is None:
            return self
        always = [replace_answer(found, found.spans[0] if found.spans else None) for found in predictions]
        gain = []
        for example, found in zip(examples, always, strict=True):
            golds, language = _golds(_question(example))
            answered = metrics.f1(found.answer.text, golds, language=language)
            gain.append(answered - metrics.f1("", golds, language=language))
        # Answering all questions above a margin: the sum of the gains above it, for every margin.
        order = np.argsort([-found.margin for found in predictions], kind="stable")
        sums = np.concatenate(([0.0], np.cumsum(np.array(gain)[order])))
        best = int(sums.argmax())
        margins = np.array([predictions[number].margin for number in order.tolist()])
        if best == 0:
            threshold = float(margins[0]) + 1.0
        elif best == len(margins):
            threshold = float(margins[-1]) - 1.0
        else:
            threshold = float(margins[best - 1] + margins[best]) / 2
        settings = self.settings() | {"no_answer": round(threshold, 6)}
        return Questions(**settings)

    def decide(self, found: AnswerPrediction) -> AnswerPrediction:
        """The same prediction under this task's margin for "no answer"."""
        best = found.spans[0] if found.spans else None
        if best is None or (self.no_answer is not None and found.margin < self.no_answer):
            return replace_answer(found, None)
        return replace_answer(found, best)

    def scorer(self, examples: Sequence[Example], predictions: Sequence[AnswerPrediction]) -> Scorer:
        """Exact match and F1, by SQuAD's rules or CMRC's, as the language of the context asks."""
        table = []
        for example, found in zip(examples, predictions, strict=True):
            golds, language = _golds(_question(example))
            text = found.answer.text
            exact = metrics.exact_match(text, golds, language=language)
            table.append((metrics.f1(text, golds, language=language), exact))
        scores = np.array(table, dtype=np.float64).reshape(-1, 2)
        return lambda chosen: dict(
            zip(("f1", "exact_match"), scores[chosen].mean(axis=0).tolist(), strict=True)
        )

    def mistakes(self, examples: Sequence[Example], predictions: Sequence[AnswerPrediction]) -> list[Mistake]:
        """Answers without a word in common with a gold one, the most confident first."""
        wrong = []
        for example, found in zip(examples, predictions, strict=True):
            asked = _question(example)
            golds, language = _golds(asked)
            if metrics.f1(found.answer.text, golds, language=language) == 0:
                gold = " | ".join(golds) or "(no answer)"
                said = found.answer.text or "(no answer)"
                wrong.append(Mistake(asked.question, gold, said, found.answer.probability))
        return sorted(wrong, key=lambda mistake: -mistake.confidence)

    def _answer(
        self, context: str, windows: Sequence[Window], scores: Sequence[NDArray[np.float32]]
    ) -> AnswerPrediction:
        candidates: dict[tuple[int, int], float] = {}
        for window, logits in zip(windows, scores, strict=True):
            for start, end, score in _best_spans(window, logits, self.answer_tokens, self.n_best):
                place = (int(window.spans[start, 0]), int(window.spans[end, 1]))
                candidates[place] = max(score, candidates.get(place, -np.inf))
        # The least of all windows: in most windows of a long text there is no answer.
        none = min(float(logits[0].sum()) for logits in scores)
        best = sorted(candidates.items(), key=lambda item: (-item[1], item[0]))[: self.n_best]
        shares = softmax(np.array([none, *(score for _, score in best)])).tolist()
        spans = tuple(
            Span(context[start:end], start, end, score, share)
            for ((start, end), score), share in zip(best, shares[1:], strict=True)
        )
        nothing = Span("", 0, 0, none, shares[0])
        margin = spans[0].score - none if spans else -float("inf")
        return self.decide(AnswerPrediction(nothing, spans, margin))


def replace_answer(found: AnswerPrediction, span: Span | None) -> AnswerPrediction:
    """The same prediction with another answer; None is "no answer"."""
    if span is None:
        rest = max(0.0, 1 - sum(other.probability for other in found.spans))
        span = Span("", 0, 0, 0.0, rest)
    return replace(found, answer=span)


def _best_spans(
    window: Window, logits: NDArray[np.float32], tokens: int, count: int
) -> list[tuple[int, int, float]]:
    """The best pairs of first and last token in the context: at most `tokens` long, best first."""
    inside = np.flatnonzero(window.part == 1)
    if not len(inside):
        return []
    starts, ends = logits[inside, 0].astype(np.float64), logits[inside, 1].astype(np.float64)
    scores = starts[:, None] + ends[None, :]  # (context, context)
    distance = np.arange(len(inside))[None, :] - np.arange(len(inside))[:, None]
    scores[(distance < 0) | (distance >= tokens)] = -np.inf
    flat = scores.ravel()
    wanted = min(count, len(flat))
    top = np.argpartition(-flat, wanted - 1)[:wanted]
    top = top[np.argsort(-flat[top], kind="stable")]
    first, last = np.divmod(top, len(inside))
    return [
        (int(inside[a]), int(inside[b]), float(flat[number]))
        for a, b, number in zip(first.tolist(), last.tolist(), top.tolist(), strict=True)
        if np.isfinite(flat[number]) and window.spans[inside[b], 1] > window.spans[inside[a], 0]
    ]


def _target(window: Window, answer: Answer) -> tuple[int, int]:
    """First and last token of an answer; (0, 0) if the window does not hold all of it."""
    inside = np.flatnonzero(window.part == 1)
    spans = window.spans[inside]
    end = answer.start + len(answer.text)
    touching = np.flatnonzero((spans[:, 1] > answer.start) & (spans[:, 0] < end))
    if not len(touching):
        return 0, 0
    first, last = int(touching[0]), int(touching[-1])
    # The tokens next to the answer tell that nothing of it was cut off; so does the end of the context.
    begins = spans[first, 0] <= answer.start or first > 0
    stops = spans[last, 1] >= end or last < len(spans) - 1
    return (int(inside[first]), int(inside[last])) if begins and stops else (0, 0)


def _golds(example: QuestionExample) -> tuple[list[str], metrics.Language]:
    return [answer.text for answer in example.answers or ()], metrics.language_of(example.context)


def _question(example: Example) -> QuestionExample:
    assert isinstance(example, QuestionExample)
    return example
