"""A token to the words that it stands for: those of a compound, the beginnings of a version, C++ and C#.

Words come without case; they are not stemmed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from likewise.index.folding import fold

MAX_TERM = 64
"""Longest term in characters; the rest of a longer one (a hash, an encoded picture) is ignored."""

_NUMBER = re.compile(r"[vV]?(\d+(?:\.\d+)+)")
# A point between digits belongs to the number.
_JOINERS = re.compile(r"[-_'’@\u2010\u2011]+|(?<!\d)\.|\.(?!\d)")
_CONTRACTION = re.compile(r"(.+)['’](?:s|d|m|re|ve|ll|S|D|M|RE|VE|LL)")
_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+(?:\.\d+)*")
_SYMBOLS = (("++", "pp"), ("#", "sharp"))


def split(token: str) -> tuple[str, ...]:
    """The words that a token stands for, without case: the whole first, then its parts.

    Example:
        >>> split("parseJSON"), split("user's"), split("C#"), split("v3.11.4")
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


def is_number(token: str) -> bool:
    """Whether a token is a number with points, such as a version.

    Example:
        >>> is_number("v3.11"), is_number("3")
        (True, False)
    """
    return _NUMBER.fullmatch(token) is not None


def places(token: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where in a token each of its words stands; the whole token for one that is spelt another way there.

    Example:
        >>> list(places("node.js", ("nodejs", "node", "js"))), list(places("Straße", ("strasse",)))
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
