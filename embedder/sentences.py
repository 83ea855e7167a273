"""Where sentences begin, for objectives about sentences. A rule of thumb for many languages, not a parser."""

from __future__ import annotations

import re

# After . ! ? … and what closes a quotation, before white space; after their full-width forms at once; and
# after line ends. White space belongs to the sentence that follows: byte-level tokenizers need it there.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?=\s)|(?<=[。！？])[」』”’）]*(?=.)|(?<=\S)(?=\n)", re.DOTALL)
# "Dr. Who", "e.g. this", "J. S. Bach": a full stop that ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|St|Prof|vs|etc|e\.g|i\.e|cf|No|Fig|al|Inc|Ltd|Co|Jr|Sr)|\b[A-Za-z])\.$"
)


def split_sentences(text: str) -> list[int]:
    r"""Start of each sentence.

    Args:
        text: Any text, in Latin or Chinese punctuation.

    Returns:
        Rising positions, the first 0; empty for an empty text. Together the pieces are the whole text.

    Example:
        >>> text = "It rains. Dr. Who stays in!\n下雨了。他不出門。"
        >>> starts = split_sentences(text)
        >>> [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
        ['It rains.', ' Dr. Who stays in!', '\n下雨了。', '他不出門。']
    """
    if not text:
        return []
    starts = [0]
    for match in _END.finditer(text):
        at = match.end()
        if starts[-1] < at < len(text) and not _ABBREVIATION.search(text, max(0, at - 12), at):
            starts.append(at)
    return starts
