"""What the lexical index holds of a passage: the terms of its title, its headings and its text.

The first passage stands for its document, so the document's tags and descriptions are found there: front
matter lies in no passage, and what it says about the document would be lost to a search by words. Nothing
here knows the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from likewise.index.records import Json

# In a term: controls, at which the tokenizer of the lexical index would split, and what SQLite refuses.
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")

_DESCRIBING = frozenset(
    (
        *("alias", "aliases", "categories", "category", "description", "keyword", "keywords", "subject"),
        *("subjects", "subtitle", "summary", "tag", "tags", "topic", "topics"),
    )
)
_MOST_CHARACTERS = 2000


class About(NamedTuple):
    """What of a document counts for the terms of its passages.

    Attributes:
        title: Its title.
        words: Its tags and descriptions, which count for its first passage.
        language: ISO 639-1 code, or "".
    """

    title: str
    words: str
    language: str


class PassageTerms:
    """Makes the columns of the lexical index.

    Args:
        analyze: Terms of a text, given the text and its language code ("" if unknown).

    Example:
        >>> terms = PassageTerms(lambda text, language: text.lower().split())
        >>> terms.columns(About("Keys", "security", "en"), 0, ["Rotation"], "Once a year.")
        ('keys security', 'rotation', 'once a year.')
        >>> terms.columns(About("Keys", "security", "en"), 1, [], "Then delete it.")[0]
        'keys'
    """

    def __init__(self, analyze: Callable[[str, str], Sequence[str]]) -> None:
        self._analyze = analyze
        # Title and headings repeat from passage to passage.
        self._context_terms = lru_cache(maxsize=1024)(self._terms)

    def columns(self, about: About, ordinal: int, headings: Sequence[str], text: str) -> tuple[str, str, str]:
        """Terms of title, headings and text, separated by spaces.

        Args:
            about: The document.
            ordinal: The passage's position in it, from 0.
            headings: Titles that the passage stands under.
            text: Its text.
        """
        title = f"{about.title}\n{about.words}" if ordinal == 0 else about.title
        return (
            self._context_terms(title, about.language),
            self._context_terms("\n".join(headings), about.language),
            self._terms(text, about.language),
        )

    def _terms(self, text: str, language: str) -> str:
        return _UNSTORABLE.sub("", " ".join(self._analyze(text, language)))


def describing_words(metadata: Mapping[str, Json]) -> str:
    r"""The values of a document's metadata that say what it is about, one on each line.

    Example:
        >>> describing_words({"Tags": ["keys", "ops"], "author": "Ann", "description": "How to rotate."})
        'keys\nops\nHow to rotate.'
    """
    found = (text for key, value in metadata.items() if key.lower() in _DESCRIBING for text in _texts(value))
    return "\n".join(found)[:_MOST_CHARACTERS]


def _texts(value: Json) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield item
