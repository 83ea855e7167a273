"""CoNLL files: a word and its tag on each line, an empty line after each document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from likewise.embedder.heads.data import TaggedExample
from likewise.embedder.tables import read_text
from likewise.errors import DataError

SUFFIXES = (".conll", ".bio", ".iob", ".iob2", ".bioes", ".ner", ".txt")

_TAG = re.compile(r"O|[BIES](-.+)?")
# Between two of these no space belongs.
_CJK = re.compile(r"[\u2e80-\u303f\u3040-\u30ff\u31c0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")


def read_conll(path: Path) -> list[TaggedExample]:
    """Read the first column as words and the last one as tags.

    Columns are separated by tabs, or by spaces where there is no tab. `-DOCSTART-` lines are left out.

    Args:
        path: UTF-8, unpacked if its name ends in `.gz`.

    Raises:
        DataError: A line without a tag, a tag that is neither BIO nor BIOES, or no document at all.
    """
    documents: list[TaggedExample] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*read_text(path).split("\n"), ""], start=1):
        line = line.rstrip("\r")
        if not line.strip() or line.startswith("-DOCSTART-"):
            if words:
                documents.append(tagged(words, tags))
                words, tags = [], []
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        cells = [cell.strip() for cell in cells if cell.strip()]
        if len(cells) < 2 or not _TAG.fullmatch(cells[-1]):
            if line.startswith("# "):
                continue  # a comment, as in CoNLL-U; a word "#" has a tag behind it
            raise DataError(
                f"expected a word and a BIO or BIOES tag at line {number} of {path}, found {line.strip()!r}"
            )
        words.append(cells[0])
        tags.append(cells[-1])
    if not documents:
        raise DataError(f"expected at least one document in {path}, found none")
    return documents


def tagged(words: Sequence[str], tags: Sequence[str] | None) -> TaggedExample:
    """A document of words: joined by spaces, but for words of Chinese and Japanese, which have none.

    Args:
        words: Any number.
        tags: One for each word, or None.

    Raises:
        DataError: There are more words than tags, or fewer.

    Example:
        >>> tagged(["Rotate", "keys", "。"], ["O", "B-KEY", "O"])
        TaggedExample(text='Rotate keys 。', words=((0, 6), (7, 11), (12, 13)), tags=('O', 'B-KEY', 'O'))
        >>> tagged(["金", "鑰"], None).text
        '金鑰'
    """
    if tags is not None and len(words) != len(tags):
        raise DataError(f"expected a tag for each of {len(words)} words, found {len(tags)}")
    text = ""
    spans = []
    for word in words:
        if text and word and not (_CJK.match(word[0]) and _CJK.match(text[-1])):
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return TaggedExample(text, tuple(spans), None if tags is None else tuple(tags))
