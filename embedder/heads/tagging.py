"""A tag for every word of a document: BIO or BIOES, on words that the tokenizer may cut into several tokens.

Documents of any length are tagged whole. Windows overlap, and each word takes its tag from the window in
which it has the most text around it. The first token of a word carries its tag. A word without any token,
such as a lone control character, is tagged O, so that no gold tag is ever left out of a score.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example, TaggedExample, TextExample
from likewise.embedder.heads.metrics.entities import (
    Entity,
    add_entities,
    all_types,
    count_entities,
    entities,
)
from likewise.embedder.heads.task import IGNORED, Encoded, Mistake, Row, Scorer, Task, softmax
from likewise.embedder.heads.tokens import Window, WindowTokenizer
from likewise.errors import DataError

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import TaggingObjective

OUTSIDE = "O"
# One word: a character of a script without spaces; what stands between spaces, without the punctuation at
# its ends, but with the @ or # of a name; or a single mark.
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]|[@#]?[^\W{_HAN}](?:[^\s{_HAN}]*[^\W{_HAN}])?|\S")


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity in a text.

    Attributes:
        type: Such as "person".
        start: Its first character in the text.
        end: The character after its last one.
        text: As it stands there.
        probability: Of its least sure word, in [0, 1].
    """

    type: str
    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True, eq=False)
class TagPrediction:
    """Tags of a document.

    Attributes:
        text: The document.
        words: Begin and end of each word in it.
        tags: One for each word.
        probabilities: Of each tag, in [0, 1].
    """

    text: str
    words: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def entities(self) -> list[FoundEntity]:
        """What the tags say is an entity, in order."""
        return [self._found(entity) for entity in entities(self.tags)]

    def _found(self, entity: Entity) -> FoundEntity:
        start, end = self.words[entity.start][0], self.words[entity.end][1]
        sure = min(self.probabilities[entity.start : entity.end + 1])
        return FoundEntity(entity.type, start, end, self.text[start:end], sure)

    def marked(self) -> str:
        """The text with its entities in brackets.

        Example:
            >>> TagPrediction("Ann left.", ((0, 3), (4, 8), (8, 9)), ("B-PER", "O", "O"), (1, 1, 1)).marked()
            '[Ann](PER) left.'
        """
        parts, at = [], 0
        for found in self.entities:
            parts += [self.text[at : found.start], f"[{found.text}]({found.type})"]
            at = found.end
        return "".join([*parts, self.text[at:]])

    def to_json(self) -> dict[str, Any]:
        """Entities with their places in the text."""
        return {
            "entities": [
                {
                    "type": found.type,
                    "start": found.start,
                    "end": found.end,
                    "text": found.text,
                    "probability": round(found.probability, 6),
                }
                for found in self.entities
            ]
        }


class Tagging(Task):
    """Tagging of words.

    Args:
        labels: All tags.
        length: Most tokens in a window.
        overlap: Tokens that neighbouring windows share.
    """

    kind = "tagging"
    auto_class = "AutoModelForTokenClassification"
    primary = "f1"

    def __init__(self, labels: Sequence[str], *, length: int = 256, overlap: int = 64) -> None:
        self.labels = tuple(labels)
        self.outputs = len(self.labels)
        self.length, self.overlap = length, overlap
        self._numbers = {label: number for number, label in enumerate(self.labels)}

    @classmethod
    def learn(cls, examples: Sequence[Example], **options: Any) -> Tagging:
        """With the tags of the training examples; O comes first.

        Raises:
            DataError: There is no entity to learn.
        """
        tags = {tag for example in examples for tag in _document(example).tags or ()} - {OUTSIDE}
        if not tags:
            raise DataError("expected at least one entity to learn from, found nothing but the tag O")
        return cls((OUTSIDE, *sorted(tags)), **options)

    def settings(self) -> dict[str, Any]:
        """See `Task.settings`."""
        return {"length": self.length, "overlap": self.overlap}

    def encode(self, examples: Sequence[Example], tokenizer: WindowTokenizer) -> Encoded:
        """Overlapping windows of each document."""
        texts = [_document(example).text for example in examples]
        return Encoded.of(tokenizer.all(texts, length=self.length, overlap=self.overlap))

    def rows(self, examples: Sequence[Example], encoded: Encoded) -> list[Row]:
        """A row for each window; every word has its target in one of them."""
        rows: list[Row] = []
        for example, windows in zip(examples, encoded.groups(encoded.windows), strict=True):
            document = _document(example)
            if document.tags is None:
                raise DataError("expected tags for every document, found none for one")
            targets = [np.full(len(window), IGNORED, dtype=np.int64) for window in windows]
            for tag, place in zip(document.tags, places(document.words, windows), strict=True):
                if place is not None:
                    window, token = place
                    targets[window][token] = self._numbers.get(tag, IGNORED)
            rows += [Row(window, target) for window, target in zip(windows, targets, strict=True)]
        # A window that only repeats its neighbours would teach nothing.
        return [row for row in rows if (row.target != IGNORED).any()]

    def objective(self, *, pad_id: int) -> TaggingObjective:
        """Cross-entropy."""
        from likewise.embedder.heads.losses import TaggingObjective

        return TaggingObjective(pad_id=pad_id)

    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[TagPrediction]:
        """The likeliest tag of each word."""
        found = []
        groups = zip(encoded.groups(encoded.windows), encoded.groups(logits), strict=True)
        for example, (windows, scores) in zip(examples, groups, strict=True):
            document = _document(example)
            tags, sure = [], []
            probabilities = [softmax(score) for score in scores]
            for place in places(document.words, windows):
                if place is None:
                    tags.append(OUTSIDE)
                    sure.append(1.0)
                    continue
                row = probabilities[place[0]][place[1]]
                best = int(row.argmax())
                tags.append(self.labels[best])
                sure.append(float(row[best]))
            found.append(TagPrediction(document.text, document.words, tuple(tags), tuple(sure)))
        return found

    def scorer(self, examples: Sequence[Example], predictions: Sequence[TagPrediction]) -> Scorer:
        """Entity precision, recall and F1, and the share of right tags, over all words of all documents."""
        gold = [_document(example).tags or () for example in examples]
        counts = [
            all_types(count_entities(tags, found.tags)) for tags, found in zip(gold, predictions, strict=True)
        ]
        right = [sum(map(str.__eq__, tags, p.tags)) for tags, p in zip(gold, predictions, strict=True)]
        table = np.array(
            [[*c, r, len(tags)] for c, r, tags in zip(counts, right, gold, strict=True)], dtype=np.int64
        ).reshape(-1, 5)

        def score(chosen: NDArray[np.int64]) -> dict[str, float]:
            entity_right, predicted, wanted, tags_right, words = table[chosen].sum(axis=0).tolist()
            total = predicted + wanted
            return {
                "f1": 2 * entity_right / total if total else 0.0,
                "precision": entity_right / predicted if predicted else 0.0,
                "recall": entity_right / wanted if wanted else 0.0,
                "tag_accuracy": tags_right / words if words else 0.0,
            }

        return score

    def extra_scores(
        self, examples: Sequence[Example], predictions: Sequence[TagPrediction]
    ) -> Mapping[str, float]:
        """F1 of each type of entity."""
        counts = [
            count_entities(_document(example).tags or (), found.tags)
            for example, found in zip(examples, predictions, strict=True)
        ]
        return {f"f1 {kind}": total.f1 for kind, total in add_entities(counts).items()}

    def mistakes(self, examples: Sequence[Example], predictions: Sequence[TagPrediction]) -> list[Mistake]:
        """Documents with a wrong tag, the most confident wrong tag first."""
        wrong = []
        for example, found in zip(examples, predictions, strict=True):
            document = _document(example)
            tags = document.tags or ()
            sure = [p for a, b, p in zip(tags, found.tags, found.probabilities, strict=True) if a != b]
            if sure:
                ones = (1.0,) * len(tags)
                gold = TagPrediction(document.text, document.words, tags, ones).marked()
                wrong.append(Mistake(document.text, gold, found.marked(), max(sure)))
        return sorted(wrong, key=lambda mistake: -mistake.confidence)


def split_words(text: str) -> TaggedExample:
    """A raw text as a document of words.

    Example:
        >>> document = split_words("It's @ann, 在台北。")
        >>> [document.text[start:end] for start, end in document.words]
        ["It's", '@ann', ',', '在', '台', '北', '。']
    """
    return TaggedExample(text, tuple(match.span() for match in _WORD.finditer(text)))


def places(words: Sequence[tuple[int, int]], windows: Sequence[Window]) -> list[tuple[int, int] | None]:
    """Window and token where each word is tagged: its first token, where most text is around it.

    Args:
        words: Begin and end of each word in the text, ascending.
        windows: Of the text, in order.

    Returns:
        None for a word that has no token.
    """
    begins = np.array([start for start, _ in words], dtype=np.int64)
    ends = np.array([end for _, end in words], dtype=np.int64)
    nowhere = np.iinfo(np.int64).max
    opened = np.full(len(words), nowhere)  # where the first token of each word begins
    found = []
    for window in windows:
        inside = np.flatnonzero(window.part == 0)
        if not len(inside):
            found.append((0, np.zeros(len(words), np.int64), np.zeros(len(words), bool), begins))
            continue
        spans = window.spans[inside].astype(np.int64)
        # The first token that ends behind the word's begin: its first one, if this window has that, since a
        # token may begin with the space in front of its word or stand for several words.
        token = np.searchsorted(np.maximum.accumulate(spans[:, 1]), begins, side="right")
        held = token < len(inside)
        token = np.minimum(token, len(inside) - 1)
        held &= (spans[token, 0] < ends) & (spans[token, 1] > begins)
        np.minimum(opened, np.where(held, spans[token, 0], nowhere), out=opened)
        found.append((len(window), inside[token], held, spans[token, 0]))
    best: list[tuple[int, int] | None] = [None] * len(words)
    room = np.full(len(words), -1)
    for number, (size, token, held, start) in enumerate(found):
        around = np.minimum(token, size - 1 - token)
        better = held & (start == opened) & (around > room)
        room[better] = around[better]
        for word in np.flatnonzero(better).tolist():
            best[word] = (number, int(token[word]))
    return best


def _document(example: Example) -> TaggedExample:
    if isinstance(example, TextExample):
        return split_words(example.texts[0])
    assert isinstance(example, TaggedExample)
    return example
