"""What a text needs to be worth a pair, and how much of a long one is taken."""

from __future__ import annotations

import re

from likewise.index.records import Passage, Span, passage_context
from likewise.retrieval.evaluation.self_questions import bare, has_words, without_line

ANCHOR_WORDS = 2
"""Distinct terms that an anchor needs, to mean one thing."""
POSITIVE_WORDS = 8
"""Distinct terms that must be left of a positive."""

_MOST = 900  # in letters, of which about four are a token; encoders that take 256 tokens see all of it
_PROSE = 0.7  # share of letters among all characters but white space
_HAN_WEIGHT = 3  # a Chinese character says as much as so many letters
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_PARAGRAPH_END = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)\s*|\Z")


def weight(text: str) -> int:
    """Length of a text in letters, a Chinese character counting three.

    Example:
        >>> weight("keys"), weight("金鑰")
        (4, 6)
    """
    return len(text) + (_HAN_WEIGHT - 1) * len(_HAN.findall(text))


def asks(text: str) -> bool:
    """Whether a text can be an anchor."""
    return has_words(text, ANCHOR_WORDS)


def answers(text: str) -> bool:
    """Whether a text can be a positive."""
    return has_words(text, POSITIVE_WORDS)


def is_prose(text: str) -> bool:
    """Whether most of a text are letters, unlike those of logs, dumps and markup.

    Example:
        >>> is_prose("Rotate keys yearly."), is_prose('{"Min"=0,"Flags"=0,"Usage"=173}')
        (True, False)
    """
    letters = sum(map(str.isalpha, text))
    return letters >= _PROSE * sum(not character.isspace() for character in text)


def beginning(text: str, span: Span) -> Span:
    r"""The first paragraphs of a stretch, as many as an encoder takes whole, without space at the edges.

    Example:
        >>> text = "\n\nRotate keys.\n\nAsk first.\n"
        >>> beginning(text, Span(0, len(text))).of(text)
        'Rotate keys.\n\nAsk first.'
    """
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    taken = start
    for match in _PARAGRAPH_END.finditer(text, start, end):
        if taken > start and weight(text[start : match.start()]) > _MOST:
            break
        taken = match.start()
    return Span(start, min(taken, start + _MOST))


def with_context(title: str, passage: Passage, text: str, *, unless: str = "") -> str:
    r"""A passage's text behind the line that says where it stands, as the index embeds it.

    Args:
        title: Of the document.
        passage: Where the text is from.
        text: What is left of it.
        unless: A name that must not stand in the line, because it is what the anchor says.

    Example:
        >>> passage = Passage(0, "Rotate.", Span(0, 7), (3, 3), headings=("Keys", "Rotation"))
        >>> with_context("Guide", passage, "Rotate.", unless="rotation")
        'Guide > Keys\nRotate.'
    """
    gone = bare(unless)
    headings = tuple(heading for heading in passage.headings if bare(heading) != gone)
    line = passage_context("" if bare(title) == gone else title, headings)
    return f"{line}\n{text}" if line else text


def without_name(title: str, passage: Passage, name: str) -> str:
    """A passage as the index embeds it, without a title or heading in line and text."""
    return with_context(title, passage, without_line(passage.text, name), unless=name)
