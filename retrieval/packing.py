"""Choose which hits fit a budget, and cut the first one if none does.

Tokens do not add up: a tokenizer may merge across any border, so only a count of the whole text decides.
Counting it for every hit would be quadratic, hence an estimate from counted parts, and the real count where
the estimate comes near the budget and once at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from likewise.errors import UsageError
from likewise.index.records import StoredPassage
from likewise.index.sentences import sentence_starts
from likewise.retrieval.duplicates import Shingles, overlap, shingles
from likewise.retrieval.fencing import fence_for
from likewise.retrieval.hits import Hit
from likewise.retrieval.prompting import PromptTexts, instructions_and_sources, source_block
from likewise.retrieval.stretches import Stretch, stretches
from likewise.retrieval.tokens import TokenCounter

# Below this share of the budget the estimate is trusted until the last count.
_SURE = 0.9
# Above this one the real count would not come out below the budget either.
_HOPELESS = 1.5
# When so many hits in a row did not fit, what room there is left is too small to go on looking.
_MOST_MISFITS = 16
# Characters of a source below which it says nothing: the shortest cut ends at a sentence or word near this.
_USEFUL = 80

_WORD_END = re.compile(r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|\S(?=\s)")


class Packed(NamedTuple):
    """What was chosen.

    Attributes:
        chosen: Hits that are in, by rank.
        stretches: The sources, in the order of their numbers.
        instructions, body, text: The prompt's two parts, and both.
        tokens: Tokens of `text`.
        duplicates: Hits left out, the passage each repeats, and how much of it is found there.
        too_much: Hits left out because they do not fit.
    """

    chosen: list[Hit]
    stretches: list[Stretch]
    instructions: str
    body: str
    text: str
    tokens: int
    duplicates: list[tuple[Hit, int, float]]
    too_much: list[Hit]


class _Part(NamedTuple):
    """The chosen passages of one document, merged."""

    ids: tuple[int, ...]
    stretches: list[Stretch]
    fence: str


class Packer:
    """Packs hits for one prompt.

    Args:
        counter: Counts tokens.
        budget: Most tokens of the whole text.
        texts: The words around the sources.
    """

    def __init__(self, counter: TokenCounter, budget: int, texts: PromptTexts) -> None:
        self._counter = counter
        self._budget = budget
        self._texts = texts
        self._parts: dict[tuple[int, ...], _Part] = {}
        self._counts: dict[tuple[tuple[int, ...], str], int] = {}
        self._frame = counter.count(texts.instructions)

    def pack(self, hits: Sequence[Hit]) -> Packed:
        """Take hits by rank; one that does not fit is left out and the next one tried.

        Raises:
            UsageError: Not even the beginning of the first hit fits.
        """
        chosen: list[Hit] = []
        seen: list[tuple[StoredPassage, Shingles]] = []
        duplicates: list[tuple[Hit, int, float]] = []
        too_much: list[Hit] = []
        misfits = 0
        for position, hit in enumerate(hits, start=1):
            own = shingles(hit.text)
            if repeated := _repeated(hit.passage, own, seen):
                duplicates.append((hit, *repeated))
            elif misfits < _MOST_MISFITS and self._fits([*chosen, hit]):
                chosen.append(hit)
                seen.append((hit.passage, own))
                misfits = 0
            elif chosen:
                too_much.append(hit)
                misfits += 1
            else:
                return self._finish([hit], [self._cut(hit)], duplicates, list(hits[position:]))
        # The estimate may have been too low.
        while self._tokens(ordered := self._ordered(chosen)) > self._budget:
            if len(chosen) == 1:
                return self._finish(chosen, [self._cut(chosen[0])], duplicates, too_much)
            too_much.append(chosen.pop())
        return self._finish(chosen, ordered, duplicates, too_much)

    def _finish(
        self,
        chosen: list[Hit],
        ordered: list[Stretch],
        duplicates: list[tuple[Hit, int, float]],
        too_much: list[Hit],
    ) -> Packed:
        instructions, body = instructions_and_sources(ordered, self._texts)
        text = f"{instructions}\n\n{body}"
        tokens = self._counter.count(text)
        return Packed(chosen, ordered, instructions, body, text, tokens, duplicates, too_much)

    def _fits(self, hits: Sequence[Hit]) -> bool:
        parts = self._parts_of(hits)
        fence = max((part.fence for part in parts), key=len)
        estimate = self._frame + sum(self._count(part, fence) for part in parts)
        if estimate <= _SURE * self._budget:
            return True
        return estimate <= _HOPELESS * self._budget and self._tokens(self._ordered(hits)) <= self._budget

    def _count(self, part: _Part, fence: str) -> int:
        """Tokens of a document's sources, each counted on its own."""
        known = (part.ids, fence)
        if known not in self._counts:
            # The number in the label does not matter to an estimate, and is not known before the end.
            blocks = (source_block(0, stretch, self._texts, fence) for stretch in part.stretches)
            self._counts[known] = sum(map(self._counter.count, blocks))
        return self._counts[known]

    def _parts_of(self, hits: Sequence[Hit]) -> list[_Part]:
        """Documents by their best hit. One more hit changes one document: the others are known already."""
        documents: dict[str, list[StoredPassage]] = {}
        for hit in hits:
            documents.setdefault(hit.path, []).append(hit.passage)
        parts = []
        for passages in documents.values():
            ids = tuple(passage.id for passage in passages)
            if ids not in self._parts:
                merged = stretches(passages)
                self._parts[ids] = _Part(ids, merged, fence_for(stretch.text for stretch in merged))
            parts.append(self._parts[ids])
        return parts

    def _ordered(self, hits: Sequence[Hit]) -> list[Stretch]:
        """Sources: documents by their best hit, the stretches of a document by their place."""
        return [stretch for part in self._parts_of(hits) for stretch in part.stretches]

    def _tokens(self, ordered: Sequence[Stretch]) -> int:
        """Tokens of the whole text: the only number that decides."""
        return self._counter.count("\n\n".join(instructions_and_sources(ordered, self._texts)))

    def _cut(self, hit: Hit) -> Stretch:
        """The longest beginning of a hit that fits: whole sentences, else whole words."""
        whole = stretches([hit.passage])[0]
        sentences, words = _ends(whole.text)
        for ends in (sentences, words):
            if (end := self._longest(whole, ends)) is not None:
                return whole.up_to(end)
        least = self._tokens([whole.up_to(words[0])])
        raise UsageError(
            f"expected a budget of at least {least} tokens for this question, found {self._budget}: "
            "instructions and labels take most of it",
            remedy=f"--budget {least}",
        )

    def _longest(self, whole: Stretch, ends: Sequence[int]) -> int | None:
        """The largest of the ascending `ends` up to which the text fits, by bisection."""
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            if self._tokens([whole.up_to(ends[middle])]) <= self._budget:
                low = middle + 1
            else:
                high = middle
        return ends[low - 1] if low else None


def _ends(text: str) -> tuple[list[int], list[int]]:
    """Where a text may be cut: after sentences, and after words beginning with the shortest useful one.

    Example:
        >>> _ends("One. Two three. Four.")
        ([4, 15], [4])
    """
    sentences = [len(text[:start].rstrip()) for start in sentence_starts(text)]
    first = sentences[0] if sentences else len(text)
    if first <= _USEFUL:
        return sentences, [first]
    words = [end for end in _word_ends(text, first) if end >= _USEFUL]
    return sentences, words or [first]


def _word_ends(text: str, stop: int) -> Iterator[int]:
    return (match.end() for match in _WORD_END.finditer(text, 0, stop))


def _repeated(
    passage: StoredPassage, own: Shingles, seen: Sequence[tuple[StoredPassage, Shingles]]
) -> tuple[int, float] | None:
    """The earlier passage that this one repeats, and the share of it that is found there."""
    for other, theirs in seen:
        if other.id == passage.id:
            return other.id, 1.0
        if other.key == passage.key and _touch(other, passage):
            continue  # parts of one text, which merging joins without repeating anything
        shared = overlap(own, theirs)
        if shared.is_duplicate:
            return other.id, shared.containment
    return None


def _touch(first: StoredPassage, second: StoredPassage) -> bool:
    a, b = first.passage.span, second.passage.span
    return a.start < b.end and b.start < a.end
