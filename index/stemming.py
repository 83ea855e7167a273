"""Words to stems, by Snowball: which stemmer a word is for, and one of each for every thread."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import Stemmer

from likewise.index.folding import fold

_BY_SCRIPT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\u0400-\u052f]"), "russian"),
    (re.compile(r"[\u0370-\u03ff]"), "greek"),
    (re.compile(r"[\u0620-\u064a]"), "arabic"),
    (re.compile(r"[\u0531-\u0587]"), "armenian"),
)
STEMMERS = {
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
"""Names of Snowball stemmers by language, beside the English one that every word is given."""


def stem_of(word: str, algorithm: str) -> str:
    """Stem and fold a word.

    The English stemmer works on the folded word, so that "résumé" meets "resume"; the others know their
    language's accents and work on the word as written.

    Args:
        word: Not empty, in lower case.
        algorithm: "english" or one of `STEMMERS`, for words whose script does not decide.

    Example:
        >>> stem_of("résumés", "english"), stem_of("schlüssel", "german"), stem_of("ключей", "english")
        ('resum', 'schlussel', 'ключ')
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
