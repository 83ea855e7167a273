"""Text to terms: what the lexical index stores, and what a query looks up.

One analyser serves both sides, so that a term in a query is spelt as it was indexed. It must not know about
the index that holds the terms, and it keeps nothing but caches. Who changes a term changes
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

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import Stemmer

from likewise.index.chinese_variants import variants
from likewise.index.language import detect_language
from likewise.index.normal_forms import Normalised
from likewise.index.stop_words import STOP_WORDS

TERM_PUNCTUATION = "."
"""The one character of a term that is neither letter, mark, number nor pictograph."""

MAX_TERM = 64
"""Longest term in characters; the rest of a longer one (a hash, an encoded picture) is ignored."""

# Written without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean (which has
# spaces, but so much inflection attached to its words that pairs of syllables find more).
_UNSPACED = (
    r"\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
"""Vowel signs and accents that are no "word characters" to `re`, as the inside of a set; for scripts without
spaces the whole block."""

_PICTOGRAPHS = r"\u2600-\u27bf\U0001f300-\U0001faff"

_ASCII_TOKEN = re.compile(r"\w+(?:\+\+|#(?!\w))?(?:[-.'@]\w+(?:#(?!\w))?)*|\.(?:NET|net)\b")
# Runs of the unspaced scripts are taken out of a token afterwards: a class with tens of thousands of
# characters in every place of this pattern would take longer to compile than a search takes.
_TOKEN = re.compile(
    rf"[\w{MARKS}]+(?:\+\+|#(?!\w))?(?:[-.'’@\u2010\u2011][\w{MARKS}]+(?:#(?!\w))?)*"
    rf"|\.(?:NET|net)\b|[{_PICTOGRAPHS}]"
)
UNSPACED_RUN = re.compile(rf"([{_UNSPACED}]+)")
"""A run of characters that are written without spaces between words; splitting by it keeps the runs."""

# What a word beside a run may not begin or end with.
_NO_BEGINNING, _NO_END = "-.'’@\u2010\u2011+#", "-.'’@\u2010\u2011"

_NUMBER = re.compile(r"[vV]?(\d+(?:\.\d+)+)")
# A point between digits belongs to the number.
_JOINERS = re.compile(r"[-_'’@\u2010\u2011]+|(?<!\d)\.|\.(?!\d)")
_CONTRACTION = re.compile(r"(.+)['’](?:s|d|m|re|ve|ll|S|D|M|RE|VE|LL)")
_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+(?:\.\d+)*")
_SYMBOLS = (("++", "pp"), ("#", "sharp"))

_BY_SCRIPT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\u0400-\u052f]"), "russian"),
    (re.compile(r"[\u0370-\u03ff]"), "greek"),
    (re.compile(r"[\u0620-\u064a]"), "arabic"),
    (re.compile(r"[\u0531-\u0587]"), "armenian"),
)
_BY_LANGUAGE = {
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "sv": "swedish",
    "tr": "turkish",
}


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
        for token in _ASCII_TOKEN.findall(text):
            terms += lookup(token)
        return terms
    for _, token, is_run in _tokens(unicodedata.normalize("NFKC", text)):
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

    for start, token, is_run in _tokens(normalised.text):
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
    algorithm = _BY_LANGUAGE.get(language, "english")
    capitals = text.isupper()
    kept: list[str] = []
    stopped: list[str] = []
    for _, token, is_run in _tokens(text):
        if is_run:
            for pair in [first + second for first, second in pairwise(token)] or [token]:
                (stopped if pair in stop else kept).append(pair)
            continue
        words = _split(token)
        if _NUMBER.fullmatch(token):
            words = words[:1]
        for word in words:
            # One stem for each word: the index holds both, and looking up both would count the word twice.
            stem = _stem(word, algorithm)
            (stopped if _is_stop(word, token, stop, capitals) else kept).append(stem)
    return kept or stopped


def _tokens(text: str) -> Iterator[tuple[int, str, bool]]:
    """Words and compounds, and runs of characters without spaces: where it begins, and whether it is a run.

    Runs come with their Chinese characters folded, which changes no position.

    Example:
        >>> list(_tokens("學習C++語言, e-mail"))
        [(0, '学习', True), (2, 'C++', False), (5, '语言', True), (9, 'e-mail', False)]
    """
    for match in _TOKEN.finditer(text):
        start, token = match.start(), match[0]
        if token.isascii():
            yield start, token, False
            continue
        for position, piece in enumerate(UNSPACED_RUN.split(token)):
            if position % 2:
                yield start, piece.translate(variants()), True
            elif piece and (word := (rest := piece.lstrip(_NO_BEGINNING)).rstrip(_NO_END)):
                yield start + len(piece) - len(rest), word, False
            start += len(piece)


@lru_cache(maxsize=64)
def _term_cache(language: str, *, capitals: bool) -> Callable[[str], tuple[str, ...]]:
    """The function from token to terms for texts in a language, all in capitals or not."""

    def terms(token: str) -> tuple[str, ...]:
        return cached(token) if len(token) <= MAX_TERM else compute(token)

    def compute(token: str) -> tuple[str, ...]:
        return tuple(
            term for word in _split(token) for term in _stems(word, token, language, capitals=capitals)
        )

    # Long tokens are rarely seen twice and would fill the memory.
    cached = lru_cache(maxsize=1 << 16)(compute)
    return terms


@lru_cache(maxsize=1 << 14)
def _placed_terms(token: str, language: str, *, capitals: bool) -> tuple[Term, ...]:
    """The terms of a token with their places in it."""
    words = _split(token)
    return tuple(
        Term(term, *place)
        for word, place in zip(words, _places(token, words), strict=True)
        for term in _stems(word, token, language, capitals=capitals)
    )


def _places(token: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where in a token each of its words stands; the whole token for one that is spelt another way there.

    Example:
        >>> list(_places("node.js", ("nodejs", "node", "js"))), list(_places("Straße", ("strasse",)))
        ([(0, 7), (0, 4), (5, 7)], [(0, 6)])
    """
    letters = [character.casefold() for character in token]
    folded = "".join(letters)
    origin = [place for place, letter in enumerate(letters) for _ in letter]
    cursor = 0
    for number, word in enumerate(words):
        found = folded.find(word, cursor)
        if found < 0:
            # The parts of a compound come in order, but after them those of fooBar begin anew.
            found = folded.find(word)
        if found < 0 or not word:
            yield 0, len(token)
            continue
        yield origin[found], origin[found + len(word) - 1] + 1
        if number:  # the first word is the whole
            cursor = found + len(word)


def _stems(word: str, token: str, language: str, *, capitals: bool) -> tuple[str, ...]:
    """The terms of one word of a token: none for a stop word, two where the language has its own stemmer."""
    if _is_stop(word, token, _folded_stop_words(language), capitals):
        return ()
    stem = _stem(word, "english")
    algorithm = _BY_LANGUAGE.get(language)
    own = _stem(word, algorithm) if algorithm else stem
    return (stem,) if own == stem else (stem, own)


def _is_stop(word: str, token: str, stop: frozenset[str], capitals: bool) -> bool:
    """Whether a word is a stop word and not an abbreviation that looks like one."""
    return fold(word) in stop and (capitals or len(token) == 1 or not token.isupper())


def _split(token: str) -> tuple[str, ...]:
    """The words that a token stands for, without case: the whole first, then its parts.

    Example:
        >>> _split("parseJSON"), _split("user's"), _split("C#"), _split("v3.11.4")
        (('parsejson', 'parse', 'json'), ('user',), ('csharp',), ('3.11.4', '3.11'))
    """
    if number := _NUMBER.fullmatch(token):
        return tuple(word[:MAX_TERM] for word in _beginnings(number[1]))
    if contraction := _CONTRACTION.fullmatch(token):
        token = contraction[1]
    for symbol, name in _SYMBOLS:
        token = token.replace(symbol, name)
    if token[0] == ".":
        return "dotnet", "net"
    # A piece of accents alone folds to nothing.
    pieces = [piece for piece in _JOINERS.split(token) if fold(piece)]
    if not pieces:
        return ()
    if len(pieces) > 1 and token.lower().endswith(("n't", "n’t")):
        pieces[-2:] = ["".join(pieces[-2:])]
    words = ["".join(pieces)]
    if len(pieces) > 1:
        words += pieces
    for piece in pieces:
        if len(piece) <= MAX_TERM and piece.isascii() and not (piece.isalpha() and _one_case(piece)):
            humps = _CAMEL.findall(piece)
            if len(humps) > 1:
                words += [hump for hump in humps if len(hump) > 2 or not hump.isdigit()]
    found: dict[str, None] = {}
    for position, word in enumerate(words):
        # A single letter beside the whole says nothing: the e of e-mail.
        if position == 0 or len(word) > 1 or word.isdigit():
            found.update(dict.fromkeys(_beginnings(word) if _NUMBER.fullmatch(word) else (word.casefold(),)))
    return tuple(word[:MAX_TERM] for word in found)


def _one_case(word: str) -> bool:
    return word.islower() or word.isupper() or word.istitle()


def _beginnings(number: str) -> tuple[str, ...]:
    """The number and, for a version of three or four parts, what it begins with."""
    parts = number.split(".")
    shorter = range(min(len(parts) - 1, 3), 1, -1)
    return (number, *(".".join(parts[:count]) for count in shorter))


def _stem(word: str, algorithm: str) -> str:
    """Stem and fold a word.

    The English stemmer works on the folded word, so that "résumé" meets "resume"; the others know their
    language's accents and work on the word as written.
    """
    if word[0].isdigit():
        return word
    if word.isascii():
        return _stemmer(algorithm)(word)
    for letters, own in _BY_SCRIPT:
        if letters.search(word):
            return fold(_stemmer(own)(word))
    if algorithm == "english":
        return _stemmer(algorithm)(fold(word))
    return fold(_stemmer(algorithm)(word))


def _stemmer(algorithm: str) -> Callable[[str], str]:
    """The stemmer of the current thread: one object must not be used by two threads at once."""
    stemmers: dict[str, Callable[[str], str]] = _threads.__dict__
    if algorithm not in stemmers:
        # Our own caches see every word first, so Snowball's would only copy them.
        stemmers[algorithm] = Stemmer.Stemmer(algorithm, 0).stemWord
    return stemmers[algorithm]


_threads = threading.local()


def fold(word: str) -> str:
    """A word without accents and points, in letters that people type.

    Example:
        >>> fold("naïve"), fold("ελλάδα"), fold("ёлка"), fold("ガ")
        ('naive', 'ελλαδα', 'елка', 'ガ')
    """
    return word if word.isascii() else word.translate(_fold_table())


@lru_cache(maxsize=1)
def _fold_table() -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    # Latin and Greek lose their accents. Cyrillic й and kana ガ are letters of their own and stay.
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        letters = unicodedata.normalize("NFD", chr(code))
        if len(letters) > 1:
            table[code] = "".join(letter for letter in letters if not unicodedata.combining(letter))
    # Letters that Unicode does not take apart, each before what people type for it.
    table.update({ord(pair[0]): pair[1:] for pair in ["øo", "đd", "łl", "ħh", "ıi", "æae", "œoe", "ёе"]})
    for first, last in ((0x300, 0x36F), (0x591, 0x5C7), (0x610, 0x61A), (0x64B, 0x65F), (0x670, 0x670)):
        table.update(dict.fromkeys(range(first, last + 1)))
    return table


@lru_cache(maxsize=64)
def _folded_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, spelt as `_split` gives them; none for a language without a list."""
    words = STOP_WORDS.get(language, frozenset())
    return frozenset(fold(piece).translate(variants()) for word in words for piece in _split(word)[:1])
