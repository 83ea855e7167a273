"""Exact phrases: the same words in the same order, whatever stands between them.

The lexical index knows stems and no stop words, so it cannot find "to be or not to be". A phrase is therefore
compared with the stored text itself, after folding what nobody means to search by: width and compatibility
forms (NFKC), case, accents, Traditional and Simplified characters, punctuation and line breaks between words.
The lexical index only narrows down where to look. Nothing here reads it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from likewise.index.analyzer import analyze
from likewise.index.chinese_variants import variants
from likewise.index.folding import fold
from likewise.index.segmentation import MARKS, UNSPACED_RUN
from likewise.index.stop_words import STOP_WORDS

# A point between digits belongs to the word, and so does the n't of "don't".
_WORD = re.compile(
    rf"[\w{MARKS}]+?n't(?![\w{MARKS}])"
    rf"|[\w{MARKS}]+(?:(?<=\d)\.\d+[\w{MARKS}]*)*(?:\+\+|#(?!\w))?"
    r"|[\u2600-\u27bf\U0001f300-\U0001faff]"
)
_VERSION = re.compile(r"v(\d+(?:\.\d+)+)")

# What the analyser takes off a word behind an apostrophe, and never makes a term.
_ENDINGS = frozenset(("s", "d", "m", "re", "ve", "ll"))


@dataclass(frozen=True, slots=True)
class Near:
    """Terms that must all stand within so many terms of each other.

    Attributes:
        terms: At least one.
        distance: Most other terms between the first and the last of them.
    """

    terms: tuple[str, ...]
    distance: int


class Phrase:
    r"""Words to be found side by side.

    Args:
        text: What must occur; it must hold a word (see `has_words`).

    Example:
        >>> Phrase("to be or not").occurs_in(["To be, or\nNOT to be"]), Phrase("to be").occurs_in(["be to"])
        (True, False)
        >>> Phrase("簽署金鑰").occurs_in(["先更换签署金\n钥。"]), Phrase("金").occurs_in(["白金卡"])
        (True, True)
        >>> Phrase("key").occurs_in(["keys"]), Phrase("signing key").occurs_in(["the signing-key's"])
        (False, True)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = tuple(_words(text))
        if not self._words:
            raise ValueError(f"expected a phrase with words, found {text!r}")
        self._spelling = _spelt(self._words)

    def occurs_in(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts holds the phrase."""
        return any(self._may_be_in(text) and self._spelling in _spelt(_words(text)) for text in texts)

    def needs(self) -> list[Near]:
        """What the terms of every text that holds the phrase have: a fast test that may let others through.

        Empty for a phrase of stop words: then every text must be looked at.
        """
        found: dict[Near, None] = {}
        run: list[str] = []
        for word in (*self._words, ""):
            if UNSPACED_RUN.fullmatch(word):
                run.append(word)
                continue
            if run:
                # A text has the pair of each two neighbours between them, unless a line break parts them.
                found[Near(tuple(run), 2 * len(run))] = None
                run = []
            if _is_safe(word):
                found.update((Near((term,), 0), None) for term in analyze(word)[:1])
        return list(found)

    def _may_be_in(self, text: str) -> bool:
        """A cheap test that spares most texts the exact one."""
        if not text.isascii():
            return True
        lowered = text.lower()
        return all(word in lowered for word in self._words)


def has_words(text: str) -> bool:
    """Whether a text has anything that a phrase can consist of.

    Example:
        >>> has_words("to be"), has_words("金"), has_words("->"), has_words("🔑")
        (True, True, False, True)
    """
    return next(_words(text), None) is not None


def is_plain_word(text: str) -> bool:
    """Whether a text is one word that the lexical index has as one term: no compound, no stop word.

    Example:
        >>> is_plain_word("keys"), is_plain_word("the"), is_plain_word("e-mail"), is_plain_word("金鑰")
        (True, False, False, False)
    """
    words = list(_words(text))
    return len(words) == 1 and _is_safe(words[0]) and len(analyze(text)) == 1


def _words(text: str) -> Iterator[str]:
    """The words of a text in the spelling that phrases are compared in; each unspaced character is one."""
    normal = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    for match in _WORD.finditer(normal):
        token = match[0]
        if token.isascii():
            version = _VERSION.fullmatch(token)
            yield version[1] if version else token
            continue
        for position, piece in enumerate(UNSPACED_RUN.split(token)):
            if position % 2:
                yield from piece.translate(variants())
            elif folded := fold(piece):
                yield folded


def _spelt(words: Iterable[str]) -> str:
    return " " + " ".join(words) + " "


def _is_safe(word: str) -> bool:
    """Whether every text with this word has its first term, whatever the text's language."""
    return (
        len(word) > 1
        and word.isascii()
        and not any(mark in word for mark in "._'+#")
        and word not in _ENDINGS
        and word not in _all_stop_words()
    )


@lru_cache(maxsize=1)
def _all_stop_words() -> frozenset[str]:
    """Words that are no terms in one language or another."""
    return frozenset(fold(piece) for words in STOP_WORDS.values() for word in words for piece in _words(word))
