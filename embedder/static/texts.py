"""Texts of a corpus that a static encoder is fitted to: passages and single sentences, each once.

An index asks its encoder about both: passages are what it holds, and queries are as short as a sentence.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from likewise.embedder.sentences import split_sentences

_PARAGRAPHS = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r"[ \t]*\n[ \t]*")
# About 200 tokens of English; Chinese has fewer characters to a token, and its passages come out longer.
_PASSAGE = 1000
# A shorter sentence is a heading's number or a stray mark.
_SHORTEST = 12


def passages_and_sentences(document: str) -> Iterator[str]:
    r"""The passages of a document, and the sentences of those that have several.

    Args:
        document: Any text.

    Example:
        >>> for text in passages_and_sentences("Keys rotate yearly. Ask the owner first.\n\nDone by then."):
        ...     print(text)
        Keys rotate yearly. Ask the owner first.
        Keys rotate yearly.
        Ask the owner first.
        Done by then.
    """
    for block in _PARAGRAPHS.split(document):
        paragraph = _LINE_END.sub(" ", block)  # lines that are broken at a width are no sentences
        bounds = [*split_sentences(paragraph), len(paragraph)]
        sentences = [paragraph[a:b].strip() for a, b in pairwise(bounds)]
        sentences = [sentence for sentence in sentences if len(sentence) >= _SHORTEST]
        for passage in _gathered(sentences):
            if len(passage) > 1:
                yield " ".join(passage)
            yield from passage


def _gathered(sentences: list[str]) -> Iterator[list[str]]:
    """Neighbouring sentences up to the length of a passage."""
    passage: list[str] = []
    length = 0
    for sentence in sentences:
        if passage and length + len(sentence) > _PASSAGE:
            yield passage
            passage, length = [], 0
        passage.append(sentence)
        length += len(sentence)
    if passage:
        yield passage


def sample_texts(texts: Iterable[str], most: int, *, seed: int = 0) -> list[str]:
    """Some of the texts, each once, drawn in proportion to their length, as sentences outnumber passages.

    The draw is decided by digests of the texts, so it takes one pass and does not depend on their order
    (Efraimidis and Spirakis 2006, "Weighted random sampling with a reservoir").

    Args:
        texts: Any number of them.
        most: How many to keep.
        seed: Of the choice.

    Returns:
        In an order of chance, which the seed decides.

    Example:
        >>> sample_texts(["b", "a", "b", "c"], 2) == sample_texts(["c", "b", "a"], 2)
        True
    """
    kept: list[tuple[float, str]] = []  # a heap, the first to be dropped on top
    present: set[str] = set()
    for text in texts:
        if text in present:
            continue
        place = math.log(_chance(text, seed)) / max(1, len(text))
        if len(kept) < most:
            heapq.heappush(kept, (place, text))
            present.add(text)
        elif kept and place > kept[0][0]:
            _, dropped = heapq.heappushpop(kept, (place, text))
            present.remove(dropped)
            present.add(text)
    # By another chance than the one that decided: long texts would come first otherwise.
    return sorted(present, key=lambda text: (_chance(text, -1 - seed), text))


def _chance(text: str, seed: int) -> float:
    """A number in (0, 1] that looks random and is always the same for a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8, key=b"%d" % seed).digest()
    return (int.from_bytes(digest, "big") + 1) / 2**64
