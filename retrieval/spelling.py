"""Mistyped words: one that no passage holds is looked up as the nearest one that some passage does.

The vocabulary of the lexical index consists of stems, so a typed word is compared with the words that a stem
may come from (`sign`: sign, signs, signed, signing ...), which the stemmer itself confirms. Only the lexical
side is corrected: the encoder copes with typing errors in its own way, and its result stays reproducible.
Nothing here changes what the person reads as their query.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from likewise.index.analyzer import analyze, analyze_spans
from likewise.index.folding import fold
from likewise.retrieval.alignment import Alignments

if TYPE_CHECKING:
    from likewise.index.view import IndexView

# Words of one case or with a capital; `fooBar`, `E1042` and `WHO` are names that mean what they say.
_WORD = re.compile(r"(?<![\w.@/\\:'’+#-])[^\W\d_][^\W\dA-Z_]{3,}(?![\w@/\\'’+#]|[-.:][\w/\\])")

_LONG = 8
# Whoever types more words than this pastes a text, and looking up a mistyped word takes some milliseconds.
_MOST_WORDS = 24
_MOST_CORRECTED = 3

# What English adds to a stem; the stemmer says which of the words it makes belong to the stem.
_ENDINGS = (
    *("", "e", "s", "es", "ed", "d", "ing", "er", "ers", "or", "ors", "ion", "ions", "ation", "ations"),
    *("ment", "ments", "al", "ally", "ly", "able", "ance", "ence", "ity", "ities", "ive", "ness", "ous"),
    *(
        "ful",
        "y",
        "ies",
        "ied",
        "ier",
        "ize",
        "ized",
        "izing",
        "ization",
        "ism",
        "ist",
        "ists",
        "ical",
        "ant",
    ),
    *(
        "ent",
        "ate",
        "ates",
        "ated",
        "ating",
        "ative",
        "ator",
        "ators",
        "icate",
        "icates",
        "icated",
        "ication",
    ),
)
_SORTED_ENDINGS = sorted(_ENDINGS)
_LONGEST_ENDING = 7
# Passages that are read to show a correction as a word that really occurs.
_READ = 3


class Correction(NamedTuple):
    """A word, and what stands in for it.

    Attributes:
        word: As typed.
        instead: A word that the vocabulary knows.
        term: Its term.
    """

    word: str
    instead: str
    term: str


def correct(view: IndexView, text: str, spared: Collection[str] = ()) -> tuple[str, list[Correction]]:
    """The text with mistyped words replaced, for the lexical side.

    A word is corrected if it consists of at least four Latin letters, no passage holds it, and a word at
    distance 1 (2 from eight letters on) with the same first letter is known. The nearest wins, then the one
    that most passages hold. Texts of more than 24 such words are left alone, and three words are corrected.

    Args:
        view: The index.
        text: What to look for, without operators.
        spared: Texts whose words are never corrected: the phrases of the query.

    Returns:
        The text, and what was replaced in it.
    """
    words = {match[0]: fold(match[0].casefold()) for match in _WORD.finditer(text)}
    if len(words) > _MOST_WORDS:
        return text, []
    kept = {part for phrase in spared for part in re.findall(r"\w+", phrase)}
    terms = {
        word: folded_terms[0]
        for word, folded in words.items()
        if word not in kept and folded.isascii() and (folded_terms := analyze(folded))
    }
    if not terms:
        return text, []
    known = view.passages_with(list(terms.values()))
    found: dict[str, Correction] = {}
    for word, term in terms.items():
        if term in known or len(found) == _MOST_CORRECTED:
            continue
        folded = words[word]
        shortest = max(2, len(folded) - _limit(folded) - _LONGEST_ENDING)
        vocabulary = view.terms_beginning(folded[0], shortest, len(folded) + _limit(folded))
        if near := nearest(folded, vocabulary):
            found[word] = Correction(word, _as_written(view, folded, near), near[1])
    if not found:
        return text, []
    corrected = _WORD.sub(lambda match: found[match[0]].instead if match[0] in found else match[0], text)
    return corrected, list(found.values())


def notice(correction: Correction) -> str:
    """What the person is told.

    Example:
        >>> notice(Correction("signnig", "signing", "sign"))
        "nothing contains 'signnig'; searched for 'signing'"
    """
    return f"nothing contains '{correction.word}'; searched for '{correction.instead}'"


def nearest(word: str, vocabulary: Mapping[str, int]) -> tuple[str, str] | None:
    """The known word nearest to a mistyped one, and its term; None if there is none near enough.

    Args:
        word: In small letters, ASCII.
        vocabulary: Terms with the number of passages that hold them.

    Example:
        >>> nearest("signnig", {"sign": 12, "signal": 3, "key": 9}), nearest("zzzz", {"sign": 12})
        (('signing', 'sign'), None)
    """
    limit = _limit(word)
    letters = set(word)
    endings = _endings_of(word, limit)
    alignments = Alignments(word, limit)
    best: tuple[int, int, str, str] | None = None
    for term in sorted(vocabulary):  # neighbours begin alike, so they share most of their alignment
        # Each letter that the word lacks costs an edit; this spares most terms the rest.
        if len(set(term) - letters) > limit or not term.isalpha():
            continue
        passages = vocabulary[term]
        if best is not None and best[0] == 1 and -passages > best[1]:
            continue  # no nearer, and rarer
        if alignments.is_hopeless(term):
            continue
        for candidate in _candidates(alignments, term, endings):
            steps = distance(word, candidate, limit)
            if steps <= limit and candidate[0] == word[0] and _stems_to(candidate, term):
                found = (steps, -passages, term, candidate)
                best = found if best is None or found[:3] < best[:3] else best
    return None if best is None else (best[3], best[2])


def _endings_of(word: str, limit: int) -> list[list[tuple[str, int]]]:
    """For each place in a word, the endings that the rest of it may be mistyped from, with the distance."""
    found: list[list[tuple[str, int]]] = []
    for place in range(len(word) + 1):
        rest = len(word) - place
        if rest > _LONGEST_ENDING + limit:  # most of a long word, and nearly all of a pasted one
            found.append([])
            continue
        alignments = Alignments(word[place:], limit)
        steps = {end: alignments.of(end)[-1] for end in _SORTED_ENDINGS if abs(len(end) - rest) <= limit}
        found.append([(end, steps[end]) for end in _ENDINGS if steps.get(end, limit + 1) <= limit])
    return found


def _candidates(alignments: Alignments, term: str, endings: list[list[tuple[str, int]]]) -> Iterator[str]:
    """Words that may have this stem and may be what was meant; few that are neither."""
    word, limit = alignments.word, alignments.limit
    bases = [term, term + term[-1]]
    if term[-1] == "i":
        bases.append(term[:-1] + "y")
    for base in bases:
        for place, steps in enumerate(alignments.of(base)):
            if steps > limit:
                continue
            for ending, more in endings[place]:
                # Two letters exchanged across the joint count as one edit for the word, as two here.
                swapped = ending[:1] == word[place - 1 : place] and base[-1] == word[place : place + 1]
                if steps + more <= limit + swapped:
                    yield base + ending


def distance(a: str, b: str, limit: int) -> int:
    """Restricted Damerau-Levenshtein distance, or `limit + 1` if it is larger than `limit`.

    Example:
        >>> distance("signnig", "signing", 2), distance("kitten", "sitting", 3), distance("ca", "abc", 3)
        (1, 3, 3)
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    return Alignments(b, limit).of(a)[-1]


def _limit(word: str) -> int:
    return 2 if len(word) >= _LONG else 1


def _stems_to(word: str, term: str) -> bool:
    return analyze(word) == [term]


def _as_written(view: IndexView, word: str, near: tuple[str, str]) -> str:
    """The known word as a passage has it, for `rotat` alone could be rotate, rotates or a made-up rotat."""
    made, term = near
    written = {
        passage.passage.text[place.start : place.end].casefold()
        for passage in view.passages(view.containing(term)[:_READ]).values()
        for place in analyze_spans(passage.passage.text, passage.language)
        if place.text == term
    }
    usual = [form for form in written if form.isalpha() and _stems_to(form, term)]
    return min(usual, key=lambda form: (distance(word, form, len(word)), form), default=made)
