"""Tell whether a passage repeats another one, by the word sequences they share.

Comparison of sets of shingles (Broder 1997: On the resemblance and containment of documents). Meaning does
not count: a paraphrase is not a duplicate. Nothing here decides what to do about one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple, TypeAlias

Shingles: TypeAlias = frozenset[tuple[str, ...]]

SHINGLE_TOKENS = 4
"""Words (or CJK characters) in a shingle."""

JACCARD_LIMIT = 0.8
"""From this share of common shingles on, two passages are near-duplicates."""

CONTAINMENT_LIMIT = 0.9
"""From this share of its shingles found in the other on, a passage brings nothing new."""

_CJK = r"\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


class Overlap(NamedTuple):
    """How much two sets of shingles share.

    Attributes:
        jaccard: Common shingles by all shingles, in [0, 1].
        containment: Common shingles by those of the first text, in [0, 1].
    """

    jaccard: float
    containment: float

    @property
    def is_duplicate(self) -> bool:
        """Whether the first text adds nothing worth reading to the second."""
        return self.jaccard >= JACCARD_LIMIT or self.containment >= CONTAINMENT_LIMIT


def shingles(text: str) -> Shingles:
    """Runs of `SHINGLE_TOKENS` words or CJK characters, without case, punctuation and width.

    A text with fewer words is one shingle.

    Example:
        >>> sorted(shingles("Keys rotate every year."))
        [('keys', 'rotate', 'every', 'year')]
        >>> len(shingles("金鑰每年輪替"))
        3
    """
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())
    if not tokens:
        return frozenset()
    last = max(1, len(tokens) - SHINGLE_TOKENS + 1)
    return frozenset(tuple(tokens[i : i + SHINGLE_TOKENS]) for i in range(last))


def overlap(first: Shingles, second: Shingles) -> Overlap:
    """What two texts have in common.

    Example:
        >>> overlap(shingles("a b c d e"), shingles("a b c d"))
        Overlap(jaccard=0.5, containment=0.5)
    """
    common = len(first & second)
    if not common:
        return Overlap(0.0, 0.0)
    return Overlap(common / len(first | second), common / len(first))
