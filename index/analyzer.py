"""Text to terms: what the lexical index stores, and what a query looks up.

One analyser serves both sides, so that a term in a query is spelt as it was indexed. The text is cut into
tokens (`segmentation`), tokens into words (`compounds`), and words are stemmed (`stemming`). It must not know
about the index that holds the terms, and it keeps nothing but caches. Who changes a term changes
`analyzer_version`.

What becomes one term:

- Letters are compared after NFKC, without case and (Latin, Greek, Arabic, Hebrew) without accents.
- Words are reduced to their stem (Snowball): Cyrillic as Russian, Greek, Arabic and Armenian by script, all
  other words as English. A text in a further language with a Snowball stemmer gets that language's stem
  *besides* the English one, so a query finds it whether or not its own language can be told.
- A compound gives its parts and the whole run together: `foo_bar`, `fooBar` and `foo-bar` all give `foobar`,
  `foo`, `bar`; `e-mail` meets `email`, and `node.js` meets `nodejs`.
- Numbers with points stay whole, and a version also gives its beginnings: `3.11.4` is found by `3.11`.
- `C++`, `C#` and `.NET` are `cpp`, `csharp` and `dotnet`: terms that any tokenizer keeps in one piece.
- Scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping pairs of
  characters, which is what most words are made of. A text also gives every single character, but a query
  only does so for a character that stands alone: the single ones are there to be found, and as no longer
  query looks them up they cannot crowd out the pairs in the ranking.
- Chinese is compared as if all of it were written in Simplified characters (`chinese_variants`).
- Emoji and other pictographs are terms of one character.

Stop words of the text's language are no terms, except in capitals among other words (WHO, IT, US). A query of
nothing else keeps them, for the texts of unknown language have them still.

Repetition counts on both sides: in a long question a word said twice matters twice (on CISI and LISA that is
worth .07 of nDCG@10).

A term consists of letters, marks, digits, pictographs and `.` (between digits): `TERM_PUNCTUATION` names what
a store's own tokenizer must be told to keep.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from likewise.index.chinese_variants import variants
from likewise.index.compounds import MAX_TERM, is_number, places, split
from likewise.index.folding import fold
from likewise.index.language import detect_language
from likewise.index.normal_forms import Normalised
from likewise.index.segmentation import ascii_tokens, tokens
from likewise.index.stemming import STEMMERS, stem_of
from likewise.index.stop_words import STOP_WORDS

TERM_PUNCTUATION = "."
"""The one character of a term that is neither letter, mark, number nor pictograph."""


class Term(NamedTuple):
    """A term and where it stands.

    Attributes:
        text: The term, as `analyze` gives it.
        start: First character in the text.
        end: One past the last character.
    """

    text: str
    start: int
    end: int


def analyze(text: str, language: str = "") -> list[str]:
    """Terms of a text that is to be indexed, in text order, repeated as often as they occur.

    Args:
        text: Any text.
        language: ISO 639-1 code of its language, or "" if unknown.

    Example:
        >>> analyze("The signing keys are rotated", "en")
        ['sign', 'key', 'rotat']
        >>> analyze("簽署金鑰")
        ['签', '签署', '署', '署金', '金', '金钥', '钥']
        >>> analyze("C++ and node.js 18.2.1")
        ['cpp', 'and', 'nodej', 'node', 'js', '18.2.1', '18.2']
    """
    terms: list[str] = []
    lookup = _term_cache(language, capitals=text.isupper())
    if text.isascii():
        for token in ascii_tokens(text):
            terms += lookup(token)
        return terms
    for _, token, is_run in tokens(unicodedata.normalize("NFKC", text)):
        if is_run:
            for first, second in pairwise(token):
                terms += (first, first + second)
            terms.append(token[-1])
        else:
            terms += lookup(token)
    return terms


def analyze_spans(text: str, language: str = "") -> list[Term]:
    """The terms of `analyze`, in the same order, each with the characters of the text that it comes from.

    Args:
        text: Any text.
        language: ISO 639-1 code of its language, or "" if unknown.

    Example:
        >>> text = "Rotating the ﬁles: 簽署"
        >>> [(term, text[start:end]) for term, start, end in analyze_spans(text, "en")]
        [('rotat', 'Rotating'), ('file', 'ﬁles'), ('签', '簽'), ('签署', '簽署'), ('署', '署')]
        >>> [(term.text, term.start, term.end) for term in analyze_spans("node.js")]
        [('nodej', 0, 7), ('node', 0, 4), ('js', 5, 7)]
    """
    normalised = Normalised(text)
    capitals = text.isupper()
    terms: list[Term] = []

    def add(term: str, start: int, end: int) -> None:
        terms.append(Term(term, *normalised.span(start, end)))

    for start, token, is_run in tokens(normalised.text):
        if is_run:
            for place, (first, second) in enumerate(pairwise(token), start):
                add(first, place, place + 1)
                add(first + second, place, place + 2)
            add(token[-1], start + len(token) - 1, start + len(token))
        else:
            for term, begin, end in _placed_terms(token, language, capitals=capitals):
                add(term, start + begin, start + end)
    return terms


def analyze_query(text: str, language: str = "") -> list[str]:
    """Terms to look up for a query, in query order, repeated as often as they occur.

    Args:
        text: What the user typed; nothing in it is an operator.
        language: ISO 639-1 code of its language; "" tells it from the text.

    Returns:
        Empty if the text has neither letters, digits nor pictographs.

    Example:
        >>> analyze_query("How do I rotate the signing keys?")
        ['rotat', 'sign', 'key']
        >>> analyze_query("更換金鑰"), analyze_query("鍵")
        (['更换', '换金', '金钥'], ['键'])
        >>> analyze_query("to be or not to be")
        ['to', 'be', 'or', 'not', 'to', 'be']
    """
    text = unicodedata.normalize("NFKC", text)
    language = language or detect_language(text)
    stop = _folded_stop_words(language or "en")
    algorithm = STEMMERS.get(language, "english")
    capitals = text.isupper()
    kept: list[str] = []
    stopped: list[str] = []
    for _, token, is_run in tokens(text):
        if is_run:
            for pair in [first + second for first, second in pairwise(token)] or [token]:
                (stopped if pair in stop else kept).append(pair)
            continue
        words = split(token)
        if is_number(token):
            words = words[:1]
        for word in words:
            # One stem for each word: the index holds both, and looking up both would count the word twice.
            stem = stem_of(word, algorithm)
            (stopped if _is_stop(word, token, stop, capitals) else kept).append(stem)
    return kept or stopped


@lru_cache(maxsize=64)
def _term_cache(language: str, *, capitals: bool) -> Callable[[str], tuple[str, ...]]:
    """The function from token to terms for texts in a language, all in capitals or not."""

    def terms(token: str) -> tuple[str, ...]:
        return cached(token) if len(token) <= MAX_TERM else compute(token)

    def compute(token: str) -> tuple[str, ...]:
        return tuple(
            term for word in split(token) for term in _stems(word, token, language, capitals=capitals)
        )

    # Long tokens are rarely seen twice and would fill the memory.
    cached = lru_cache(maxsize=1 << 16)(compute)
    return terms


@lru_cache(maxsize=1 << 14)
def _placed_terms(token: str, language: str, *, capitals: bool) -> tuple[Term, ...]:
    """The terms of a token with their places in it."""
    words = split(token)
    return tuple(
        Term(term, *place)
        for word, place in zip(words, places(token, words), strict=True)
        for term in _stems(word, token, language, capitals=capitals)
    )


def _stems(word: str, token: str, language: str, *, capitals: bool) -> tuple[str, ...]:
    """The terms of one word of a token: none for a stop word, two where the language has its own stemmer."""
    if _is_stop(word, token, _folded_stop_words(language), capitals):
        return ()
    stem = stem_of(word, "english")
    algorithm = STEMMERS.get(language)
    own = stem_of(word, algorithm) if algorithm else stem
    return (stem,) if own == stem else (stem, own)


def _is_stop(word: str, token: str, stop: frozenset[str], capitals: bool) -> bool:
    """Whether a word is a stop word and not an abbreviation that looks like one."""
    return fold(word) in stop and (capitals or len(token) == 1 or not token.isupper())


@lru_cache(maxsize=64)
def _folded_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, spelt as `split` gives them; none for a language without a list."""
    words = STOP_WORDS.get(language, frozenset())
    return frozenset(fold(piece).translate(variants()) for word in words for piece in split(word)[:1])
