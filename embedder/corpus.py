"""A corpus of token ids on disk: every document is tokenised once, then read through a memory map.

Layout of the folder:

    tokens.bin      uint16 or uint32: the ids of all documents, end to end, without special tokens
    sentences.bin   int64 of shape (sentences + 1,): where each sentence begins in tokens.bin
    documents.bin   int64 of shape (documents + 1,): where each document begins in sentences.bin
    held-out.bin    uint8 of shape (documents,): 1 where the document is held out
    corpus.json     counts, data type and fingerprint

This module only reads; `corpus_build` writes. Neither draws random numbers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DataError

FORMAT = 1


@dataclass(frozen=True)
class CorpusCounts:
    """What went into a corpus.

    Attributes:
        documents: Documents in the corpus.
        held_out: Of these, documents held out.
        sentences: Sentences in all of them.
        tokens: Tokens in all of them, without special tokens.
        characters: Characters they were made of.
        duplicates: Documents left out because an identical one was there already.
        empty: Documents left out because they have no token.
    """

    documents: int
    held_out: int
    sentences: int
    tokens: int
    characters: int
    duplicates: int
    empty: int


class TokenCorpus:
    """A corpus that was built; opening it reads a few bytes, whatever its size.

    Args:
        folder: What `build_corpus` wrote.

    Raises:
        DataError: No corpus, a damaged one, or one of another format.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            record = json.loads((folder / "corpus.json").read_text("utf-8"))
            if record["format"] != FORMAT:
                raise DataError(f"expected a corpus of format {FORMAT}, found {record['format']} in {folder}")
            self.counts = CorpusCounts(**record["counts"])
            self.fingerprint: str = record["fingerprint"]
            self.tokens: NDArray[Any] = _read(folder / "tokens.bin", record["dtype"], self.counts.tokens)
            self.sentences = _read(folder / "sentences.bin", "<i8", self.counts.sentences + 1)
            self.documents = _read(folder / "documents.bin", "<i8", self.counts.documents + 1)
            self.held_out = _read(folder / "held-out.bin", "u1", self.counts.documents).astype(bool)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"no readable corpus in {folder}: {error}", remedy=f"remove {folder}, it is then built anew"
            ) from error

    def __len__(self) -> int:
        return self.counts.documents

    def bounds(self, *, held_out: bool) -> NDArray[np.int64]:
        """Where the documents of one part begin and end in `tokens`: int64 of shape (documents, 2)."""
        edges = self.sentences[self.documents]
        pairs: NDArray[np.int64] = np.stack((edges[:-1], edges[1:]), axis=1)
        chosen: NDArray[np.int64] = pairs[self.held_out == held_out]
        return chosen

    def part(self, *, held_out: bool) -> DocumentsView:
        """The documents of one part, as sequences of sentences."""
        return DocumentsView(self, np.flatnonzero(self.held_out == held_out))

    def sentences_of(self, document: int) -> list[NDArray[np.integer]]:
        """Ids of each sentence of a document."""
        edges = self.sentences[self.documents[document] : self.documents[document + 1] + 1]
        return [self.tokens[begin:end] for begin, end in itertools.pairwise(edges.tolist())]


class DocumentsView(Sequence[list[NDArray[np.integer]]]):
    """Some documents of a corpus, read only when asked for.

    Args:
        corpus: The corpus.
        numbers: Which documents.
    """

    def __init__(self, corpus: TokenCorpus, numbers: NDArray[np.int64]) -> None:
        self._corpus = corpus
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> list[NDArray[np.integer]]: ...
    @overload
    def __getitem__(self, at: slice) -> DocumentsView: ...
    def __getitem__(self, at: int | slice) -> list[NDArray[np.integer]] | DocumentsView:
        if isinstance(at, slice):
            return DocumentsView(self._corpus, self.numbers[at])
        return self._corpus.sentences_of(int(self.numbers[at]))


def _read(path: Path, dtype: str, count: int) -> NDArray[Any]:
    size = path.stat().st_size
    expected = count * np.dtype(dtype).itemsize
    if size != expected:
        raise ValueError(f"{path.name} has {size} bytes, expected {expected}")
    return np.memmap(path, dtype=dtype, mode="r") if count else np.empty(0, dtype)
