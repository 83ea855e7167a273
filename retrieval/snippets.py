"""The sentence of a passage that answers best, with the words of the query marked in it.

Works on terms: a word is marked if the analyser makes of it what it makes of a word of the query, so that
inflections, compounds and Chinese pairs of characters are marked as the lexical side found them. Rare words
count more than common ones. A passage that only its vector found has none of the words, and shows how it
begins: no encoder is asked. Nothing here searches, and nothing knows about colours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, NamedTuple

from likewise.index.analyzer import Term, analyze_spans
from likewise.index.segmentation import UNSPACED_RUN
from likewise.index.sentences import sentence_starts

if TYPE_CHECKING:
    from likewise.index.records import Json, StoredPassage

WIDTH = 280
"""Longest snippet, in terminal cells: a Han character takes two."""

_ELLIPSIS = "…"
_END_MARKS = ".!?…。！？｡"
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SPACES = re.compile(r"\s+")
# Where a sentence that is too long may be cut: at white space, or next to a character that has none around.
_CUT = re.compile(r"\s+|(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])|(?<=[\u3040-\u30ff\u3400-\u9fff])")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Part of a passage on one line, and what is marked in it.

    Attributes:
        text: White space is folded; `…` stands where a sentence was cut.
        marks: Half-open character ranges of `text`, ascending, that do not touch.
        start: Offset in the passage's text at which it begins.
    """

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    start: int = field(default=0, repr=False, compare=False)

    def parts(self) -> list[tuple[str, bool]]:
        """The text in pieces, each with whether it is marked.

        Example:
            >>> Snippet("Rotate the key", ((0, 6), (11, 14))).parts()
            [('Rotate', True), (' the ', False), ('key', True)]
        """
        cuts = [0, *(place for mark in self.marks for place in mark), len(self.text)]
        pieces = [(self.text[a:b], bool(number % 2)) for number, (a, b) in enumerate(pairwise(cuts))]
        return [piece for piece in pieces if piece[0]]

    def to_html(self) -> str:
        """The text as HTML, escaped, with `<mark>` around what is marked.

        Example:
            >>> Snippet("a <b> key", ((6, 9),)).to_html()
            'a &lt;b&gt; <mark>key</mark>'
        """
        return "".join(
            f"<mark>{escape(piece)}</mark>" if marked else escape(piece) for piece, marked in self.parts()
        )

    def to_json(self) -> dict[str, Json]:
        """The snippet as `search --json` shows it."""
        return {"text": self.text, "marks": [list(mark) for mark in self.marks]}


class Highlighter:
    """Finds and marks the words of one query.

    Args:
        terms: What the lexical side looked up.
        passages_with: How many passages hold each of the terms; terms that none holds may be left out.
        total: How many passages there are.

    Example:
        >>> highlighter = Highlighter(["rotat", "key"], {"rotat": 1, "key": 3}, 10)
        >>> text = "Keys are secret. They are rotated every year. Ask for help."
        >>> highlighter.snippet_of(text, "en")
        Snippet(text='Keys are secret. They are rotated every year.', marks=((0, 4), (26, 33)))
        >>> Highlighter(["kangaroo"], {}, 10).snippet_of(text).text
        'Keys are secret.'
    """

    def __init__(self, terms: Sequence[str], passages_with: Mapping[str, int], total: int) -> None:
        self._weights = {term: _weight(passages_with.get(term, 0), total) for term in dict.fromkeys(terms)}

    def snippet(self, passage: StoredPassage) -> Snippet:
        """The best part of a passage."""
        return self.snippet_of(passage.passage.text, passage.language)

    def snippet_of(self, text: str, language: str = "", *, width: int = WIDTH) -> Snippet:
        """The best part of a text.

        Args:
            text: Of a passage.
            language: ISO 639-1 code of its language, or "".
            width: Longest snippet, in cells.
        """
        found = self._found(text, language)
        sentences = _sentences(text)
        if not sentences:
            return Snippet("")
        chosen = self._chosen(sentences, found, text, width)
        start, end = self._cut(chosen, found, text, width)
        marks = [(max(start, term.start), min(end, term.end)) for term in found]
        return _one_line(
            text, start, end, [mark for mark in marks if mark[0] < mark[1]], whole=(start, end) == chosen
        )

    def marks(self, text: str, language: str = "") -> list[tuple[int, int]]:
        """Ranges of a text that the query's words stand in, ascending, that do not touch."""
        return _merged([(term.start, term.end) for term in self._found(text, language)])

    def _found(self, text: str, language: str) -> list[Term]:
        if not self._weights:
            return []
        for known in dict.fromkeys((language, "")):
            # A query of stop words alone looks for terms that texts of a known language have not.
            if found := [term for term in analyze_spans(text, known) if term.text in self._weights]:
                return found
        return []

    def _chosen(
        self, sentences: Sequence[_Stretch], found: Sequence[Term], text: str, width: int
    ) -> _Stretch:
        """The sentence with the most weight, and its neighbours as long as they add to it and fit."""
        words = [_inside(found, sentence) for sentence in sentences]
        # The earliest of several that are equally good, but a sentence before a heading or a label.
        ended = [text[sentence.end - 1] in _END_MARKS for sentence in sentences]
        best = max(range(len(sentences)), key=lambda place: (self._total(words[place]), ended[place], -place))
        first = last = best
        known = words[best]
        while True:
            options = []
            for place in (first - 1, last + 1):
                if not 0 <= place < len(sentences):
                    continue
                whole = (sentences[min(first, place)].start, sentences[max(last, place)].end)
                gain = self._total(words[place] - known)
                if gain and _cells(text[slice(*whole)]) <= width:
                    options.append((gain, -place))
            if not options:
                # A heading or a label says little without what stands under it.
                follows = sentences[min(last + 1, len(sentences) - 1)].end
                if not ended[last] and _cells(text[sentences[first].start : follows]) <= width:
                    return _Stretch(sentences[first].start, follows)
                return _Stretch(sentences[first].start, sentences[last].end)
            place = -max(options)[1]
            first, last = min(first, place), max(last, place)
            known = known | words[place]

    def _cut(self, chosen: _Stretch, found: Sequence[Term], text: str, width: int) -> _Stretch:
        """The part of a stretch that fits: the one with the most weight, with some words before it."""
        if _cells(text[chosen.start : chosen.end]) <= width:
            return chosen
        room = width - 2
        cuts = [chosen.start, *(m.end() for m in _CUT.finditer(text, chosen.start, chosen.end)), chosen.end]
        cuts = sorted(set(cuts))
        inside = [term for term in found if chosen.start <= term.start and term.end <= chosen.end]
        best = _Stretch(chosen.start, _reach(text, chosen.start, chosen.end, cuts, room))
        weight = self._total(_inside(inside, best))
        for term in inside:
            before = _back(text, term.start, chosen.start, cuts, room // 4)
            stretch = _Stretch(before, _reach(text, before, chosen.end, cuts, room))
            if (more := self._total(_inside(inside, stretch))) > weight:
                best, weight = stretch, more
        return best

    def _total(self, terms: frozenset[str]) -> float:
        return sum(self._weights[term] for term in sorted(terms))


class _Stretch(NamedTuple):
    start: int
    end: int


def _weight(passages: int, total: int) -> float:
    """Inverse document frequency as BM25 has it (Robertson & Zaragoza 2009), never 0."""
    return log(1 + (max(total, passages) - passages + 0.5) / (passages + 0.5))


def _inside(found: Sequence[Term], stretch: _Stretch) -> frozenset[str]:
    return frozenset(term.text for term in found if stretch.start <= term.start and term.end <= stretch.end)


def _sentences(text: str) -> list[_Stretch]:
    """The sentences of a text without the white space around them; a paragraph ends one too."""
    cuts = {0, len(text), *sentence_starts(text), *(match.end() for match in _PARAGRAPH.finditer(text))}
    places = sorted(cuts)
    found = []
    for start, end in pairwise(places):
        inside = text[start:end].strip()
        if inside:
            begin = start + text[start:end].index(inside)
            found.append(_Stretch(begin, begin + len(inside)))
    return found


def _cells(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(map(len, UNSPACED_RUN.findall(text)))


def _reach(text: str, start: int, end: int, cuts: Sequence[int], room: int) -> int:
    """The last cut up to which the text from `start` fits; the middle of a word if there is none."""
    stop = start
    while stop < end and room > 0:
        room -= _cells(text[stop])
        stop += 1
    inside = [cut for cut in cuts if start < cut <= stop]
    return inside[-1] if inside else stop


def _back(text: str, place: int, least: int, cuts: Sequence[int], room: int) -> int:
    """The first cut from which on the text before `place` fits."""
    start = place
    while start > least and room > 0:
        start -= 1
        room -= _cells(text[start])
    inside = [cut for cut in cuts if start <= cut <= place]
    return inside[0] if inside else place


def _merged(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(marks):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _one_line(text: str, start: int, end: int, marks: Sequence[tuple[int, int]], *, whole: bool) -> Snippet:
    """A stretch with its white space folded, and the marks moved along."""
    line = ""
    places = [0] * (end - start + 1)  # of each character of the stretch in the line
    cursor = start
    for match in _SPACES.finditer(text, start, end):
        places[cursor - start : match.start() - start] = range(len(line), len(line) + match.start() - cursor)
        line += text[cursor : match.start()]
        # At the edges of a cut there is nothing to part.
        blank = " " if line and match.end() < end else ""
        places[match.start() - start : match.end() - start] = [len(line)] * len(match[0])
        line += blank
        cursor = match.end()
    places[cursor - start : end - start] = range(len(line), len(line) + end - cursor)
    line += text[cursor:end]
    places[end - start] = len(line)
    moved = [(places[a - start], places[b - 1 - start] + 1) for a, b in marks]
    if whole:
        return Snippet(line, tuple(_merged(moved)), start)
    shift = 0
    if text[:start].strip():
        line, shift = _ELLIPSIS + line, 1
    if text[end:].strip():
        line += _ELLIPSIS
    return Snippet(line, tuple(_merged([(a + shift, b + shift) for a, b in moved])), start)
