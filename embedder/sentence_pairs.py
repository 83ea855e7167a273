"""Pairs of texts for sentence-level objectives, from documents that keep their sentences apart.

Next sentence prediction (NSP; BERT, 1810.04805): does the second text follow the first, or does it come
from another document? Sentence order prediction (SOP; ALBERT, 1909.11942): are two neighbouring texts in
their order, or swapped? SOP is the harder one: the topic does not give the answer away.

Pure functions: a document in, its pairs out. Every token of the document is used once as the first text or
as the true continuation; what NSP takes from another document comes on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.examples import Example
from likewise.errors import DataError, UsageError

#: Ids of one sentence, without special tokens.
Sentence = NDArray[np.integer]
#: Sentences of one document, in order.
Document = Sequence[Sentence]

#: Classes of `Pair.label`, as in Hugging Face's BertForNextSentencePrediction and AlbertForPreTraining.
IN_ORDER = 0
NOT_IN_ORDER = 1

# [CLS] first [SEP] second [SEP]
_SPECIAL_TOKENS = 3


class Pair(NamedTuple):
    """Two texts and their relation.

    Attributes:
        first: int64 of shape (n,), n >= 1.
        second: int64 of shape (m,), m >= 1.
        label: 0: the second follows the first; 1: it comes from elsewhere (NSP) or stood before it (SOP).
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    label: int

    def example(self, *, cls_id: int, sep_id: int, key: int = 0) -> Example:
        """The pair as [CLS] first [SEP] second [SEP], segment 1 from the second text on.

        Example:
            >>> pair = Pair(np.array([7, 8]), np.array([9]), IN_ORDER)
            >>> example = pair.example(cls_id=2, sep_id=3)
            >>> example.ids.tolist(), example.segment_ids.tolist()
            ([2, 7, 8, 3, 9, 3], [0, 0, 0, 0, 1, 1])
        """
        ids = np.concatenate(([cls_id], self.first, [sep_id], self.second, [sep_id])).astype(np.int64)
        special = np.zeros(len(ids), dtype=bool)
        special[[0, len(self.first) + 1, -1]] = True
        segments = np.zeros(len(ids), dtype=np.int64)
        segments[len(self.first) + 2 :] = 1
        return Example(ids, special, key, segment_ids=segments, pair_label=self.label)


def next_sentence_pairs(
    document: Document,
    elsewhere: Sequence[Document],
    rng: np.random.Generator,
    *,
    max_tokens: int,
    short_share: float = 0.1,
) -> list[Pair]:
    """Pairs for NSP from one document, each with even odds a continuation or a text of another document.

    A continuation that was not used because the coin fell for another document is put back and begins the
    next pair. A lone token at the end that cannot be continued is left out.

    Args:
        document: The document to cut into pairs.
        elsewhere: Texts that do not follow are taken from these: other documents, or parts of them.
        rng: Source of randomness.
        max_tokens: Longest pair, its three special tokens included; at least 5.
        short_share: Share of the pairs that are made shorter, so that the model meets short inputs too.

    Raises:
        DataError: Nothing there has text.
        UsageError: `max_tokens` has no room for a pair.

    Example:
        >>> document, other = [np.array([5, 6]), np.array([7, 8])], [np.array([90, 91])]
        >>> pairs = next_sentence_pairs(document, [other], np.random.default_rng(1), max_tokens=16)
        >>> [(pair.first.tolist(), pair.second.tolist(), pair.label) for pair in pairs]
        [([5, 6], [90, 91], 1), ([7, 8], [90, 91], 1)]
    """
    room = _room(max_tokens)
    pieces = _pieces(document, room)
    pairs = []
    begin = 0
    while begin < len(pieces):
        end = _chunk_end(pieces, begin, _target(room, short_share, rng))
        follows = rng.random() < 0.5
        if follows:
            if split := _split(pieces[begin:end], rng):
                pairs.append(Pair(*split, IN_ORDER))
            begin = end
        else:
            # At least one piece is left out of the first text, unless there is only one.
            cut = begin + 1 if end - begin < 2 else int(rng.integers(begin + 1, end))
            first = np.concatenate(pieces[begin:cut])[: room - 1]
            other = _text_from(elsewhere, room - len(first), rng)
            pairs.append(Pair(first, other, NOT_IN_ORDER))
            begin = cut
    return pairs


def sentence_order_pairs(
    document: Document, rng: np.random.Generator, *, max_tokens: int, short_share: float = 0.1
) -> list[Pair]:
    """Pairs for SOP from one document: neighbouring texts, swapped with even odds.

    Args:
        document: The document to cut into pairs; one of fewer than two tokens has none.
        rng: Source of randomness.
        max_tokens: Longest pair, its three special tokens included; at least 5.
        short_share: Share of the pairs that are made shorter.

    Raises:
        UsageError: `max_tokens` has no room for a pair.

    Example:
        >>> document = [np.array([5, 6]), np.array([7, 8])]
        >>> [pair] = sentence_order_pairs(document, np.random.default_rng(0), max_tokens=16, short_share=0)
        >>> pair.first.tolist(), pair.second.tolist(), pair.label
        ([7, 8], [5, 6], 1)
    """
    room = _room(max_tokens)
    pieces = _pieces(document, room)
    pairs = []
    begin = 0
    while begin < len(pieces):
        end = _chunk_end(pieces, begin, _target(room, short_share, rng))
        if split := _split(pieces[begin:end], rng):
            first, second = split
            swapped = rng.random() < 0.5
            pairs.append(Pair(second, first, NOT_IN_ORDER) if swapped else Pair(first, second, IN_ORDER))
        begin = end
    return pairs


def _room(max_tokens: int) -> int:
    if max_tokens < _SPECIAL_TOKENS + 2:
        raise UsageError(f"sentence pairs need at least 5 tokens of room, found {max_tokens}")
    return max_tokens - _SPECIAL_TOKENS


def _pieces(document: Document, room: int) -> list[NDArray[np.int64]]:
    """The sentences, those longer than a whole pair cut, empty ones left out."""
    return [
        np.asarray(sentence[begin : begin + room], dtype=np.int64)
        for sentence in document
        for begin in range(0, len(sentence), room)
    ]


def _target(room: int, short_share: float, rng: np.random.Generator) -> int:
    """Tokens to fill: mostly all there are, sometimes fewer, as in the original code."""
    return int(rng.integers(2, room + 1)) if rng.random() < short_share else room


def _chunk_end(pieces: Sequence[Sentence], begin: int, target: int) -> int:
    """End of the longest run of pieces from `begin` with at most `target` tokens; at least one piece."""
    end, tokens = begin + 1, len(pieces[begin])
    while end < len(pieces) and tokens + len(pieces[end]) <= target:
        tokens += len(pieces[end])
        end += 1
    return end


def _split(
    pieces: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Cut between two sentences at random, or inside if there is only one; None for a lone token."""
    if len(pieces) == 1:
        tokens = pieces[0]
        if len(tokens) < 2:
            return None
        cut = int(rng.integers(1, len(tokens)))
        return tokens[:cut], tokens[cut:]
    cut = int(rng.integers(1, len(pieces)))
    return np.concatenate(pieces[:cut]), np.concatenate(pieces[cut:])


def _text_from(documents: Sequence[Document], room: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """At most `room` tokens from a random sentence on, of a random document."""
    # A few guesses find a document with text at once in any usual corpus; then all are tried in turn.
    guesses = (int(guess) for guess in rng.integers(len(documents), size=8 if len(documents) else 0))
    for guess in (*guesses, *range(len(documents))):
        sentences = [sentence for sentence in documents[guess] if len(sentence)]
        if sentences:
            start = int(rng.integers(len(sentences)))
            return np.concatenate(sentences[start:])[:room].astype(np.int64)
    raise DataError(
        f"next sentence prediction needs at least two documents with text; beside this one are "
        f"{len(documents)}, none of them with text",
        remedy="use an objective without NSP (recipe roberta), or add documents",
    )
