"""Where sentences begin, in any script, without a model.

Cutting points for passages need to be good, not perfect: a missed sentence end costs nothing, a false one
("e.g. | this") tears a sentence apart, so doubtful full stops do not count. This module knows nothing about
tokens or passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Marks that end a sentence wherever they stand (CJK, Urdu, Arabic, Devanagari, Ethiopic, Khmer, Burmese,
# Armenian), and Western ones, which do so only before white space. The parts share no character, so the
# pattern never backtracks and stays linear on a 50 MB line.
_END = re.compile(
    r"(?:(?P<mark>[。！？；｡۔؟।॥።។။։]+)|(?P<stop>[.!?…]+))"
    r"[\"'”’»›」』）】》〉〕)\]}*_`]*"
    r"(?P<space>\s*)"
)
_WORD_BEFORE = re.compile(r"[^\s(\[{\"'“‘「『]*\Z")
_LONGEST_WORD = 16

_ABBREVIATIONS = frozenset(
    (
        *("al", "approx", "art", "bzw", "ca", "cf", "ch", "co", "corp", "dept", "dr", "ed", "eds", "eq"),
        *("etc", "ex", "fig", "figs", "inc", "jr", "ltd", "max", "min", "mr", "mrs", "ms", "no", "nos", "nr"),
        *("op", "pp", "prof", "rev", "sec", "sect", "sr", "st", "tab", "vgl", "vol", "vols", "vs"),
    )
)


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Offsets at which a sentence begins inside `text[start:end]`, the very first one left out.

    Args:
        text: Any text.
        start: First character to look at.
        end: One past the last character to look at; the end of the text if None.

    Yields:
        Ascending offsets, each that of the first character after the white space behind a sentence end.

    Example:
        >>> text = "Dr. No, e.g. a villain, came. He left! 他來了。他走了"
        >>> cuts = [0, *sentence_starts(text), len(text)]
        >>> [text[a:b] for a, b in zip(cuts, cuts[1:])]
        ['Dr. No, e.g. a villain, came. ', 'He left! ', '他來了。', '他走了']
    """
    stop = len(text) if end is None else end
    for match in _END.finditer(text, start, stop):
        after = match.end()
        if after >= stop:
            return
        if match["stop"] and not (match["space"] and _ends_sentence(text, start, match, text[after])):
            continue
        yield after


def _ends_sentence(text: str, start: int, match: re.Match[str], following: str) -> bool:
    """Whether a Western mark before white space really ends a sentence."""
    if match["stop"] != ".":
        return True  # "?", "!", "..." are never part of a word
    if following.islower():
        return False
    mark = match.start()
    window = text[max(start, mark - _LONGEST_WORD) : mark]
    found = _WORD_BEFORE.search(window)
    word = found[0] if found else ""
    if not word:
        return False
    if "." in word or (len(word) == 1 and word.isalpha() and word.isascii()):
        return False  # "e.g.", "U.S.", initials
    if word.isdigit():
        before = window[: len(window) - len(word)].rstrip(" \t")
        numbers_a_list = not before or before[-1] in "\r\n"
        return not (numbers_a_list and len(word) <= 3)
    return word.lower() not in _ABBREVIATIONS
