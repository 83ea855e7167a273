"""Batches of sentence pairs of one part of a corpus, for objectives such as NSP and SOP.

Pairs are drawn anew in each epoch; how many a document gives depends on chance. So a batch is planned as a
group of *sections*, runs of whole sentences of one document, whose number is known beforehand.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.corpus import TokenCorpus
from likewise.embedder.examples import Example
from likewise.embedder.packing import Order, PlannedBatches
from likewise.embedder.sentence_pairs import next_sentence_pairs, sentence_order_pairs
from likewise.errors import UsageError

PairKind = Literal["nsp", "sop"]
# Sections hold about this many pairs: enough that few sentences fall on a border, few enough to fill batches.
_PAIRS = 4


class Sections(Sequence[list[NDArray[np.integer]]]):
    """Runs of whole sentences, none longer than `room` tokens unless a single sentence is.

    Args:
        corpus: The token ids.
        room: Most tokens in a section.

    Attributes:
        documents: int64 of shape (sections,): the document that each is a part of.
        lengths: int64 of shape (sections,): its tokens.
    """

    def __init__(self, corpus: TokenCorpus, room: int) -> None:
        self._corpus = corpus
        found: list[tuple[int, int]] = []  # first sentence and the one after the last
        owners: list[int] = []
        sentences = corpus.sentences
        for number, (first, stop) in enumerate(itertools.pairwise(corpus.documents.tolist())):
            while first < stop:
                end = int(np.searchsorted(sentences[: stop + 1], sentences[first] + room, side="right")) - 1
                end = min(max(end, first + 1), stop)
                found.append((first, end))
                owners.append(number)
                first = end
        self._bounds = np.array(found, dtype=np.int64).reshape(-1, 2)
        self.documents: NDArray[np.int64] = np.array(owners, dtype=np.int64)  # rising
        self.lengths: NDArray[np.int64] = sentences[self._bounds[:, 1]] - sentences[self._bounds[:, 0]]

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, at: int) -> list[NDArray[np.integer]]: ...
    @overload
    def __getitem__(self, at: slice) -> list[list[NDArray[np.integer]]]: ...
    def __getitem__(self, at: int | slice) -> list[NDArray[np.integer]] | list[list[NDArray[np.integer]]]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        first, end = self._bounds[at].tolist()
        edges = self._corpus.sentences[first : end + 1].tolist()
        return [self._corpus.tokens[begin:stop] for begin, stop in itertools.pairwise(edges)]


class Elsewhere(Sequence[list[NDArray[np.integer]]]):
    """The sections of other documents than one.

    Args:
        sections: All sections.
        among: int64, ascending: the sections to choose from.
        document: The document to leave out.
    """

    def __init__(self, sections: Sections, among: NDArray[np.int64], document: int) -> None:
        self._sections, self._among = sections, among
        owners = sections.documents[among]
        # Those of the document stand together.
        begin, end = np.searchsorted(owners, [document, document + 1]).tolist()
        self._begin, self._end = int(begin), int(end)

    def __len__(self) -> int:
        return len(self._among) - (self._end - self._begin)

    @overload
    def __getitem__(self, at: int) -> list[NDArray[np.integer]]: ...
    @overload
    def __getitem__(self, at: slice) -> list[list[NDArray[np.integer]]]: ...
    def __getitem__(self, at: int | slice) -> list[NDArray[np.integer]] | list[list[NDArray[np.integer]]]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        place = at if at < self._begin else at + self._end - self._begin
        return self._sections[int(self._among[place])]


class PairBatches:
    """Batches of sentence pairs.

    What NSP takes from elsewhere is of another document of the same part, of a long one more often than of
    a short one; only a held-out part of a single document borrows from the rest.

    Args:
        corpus: The token ids, with sentences.
        kind: "nsp" (does the second text follow?) or "sop" (which of the two came first?).
        cls_id: Id of the token before a pair.
        sep_id: Id of the token after each of its texts.
        length: Longest pair, special tokens included.
        tokens_per_batch: Tokens of the corpus in a micro-batch; what NSP takes from elsewhere comes on top.
        held_out: Which part.
        seed: Of the order and of the pairs.
        order: See `packing.plan_epoch`.

    Raises:
        DataError: The part is empty.
        UsageError: A batch has no room for a pair.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        kind: PairKind,
        *,
        cls_id: int,
        sep_id: int,
        length: int,
        tokens_per_batch: int,
        held_out: bool = False,
        seed: int = 0,
        order: Order = "packed",
    ) -> None:
        if tokens_per_batch < length:
            raise UsageError(
                f"expected batches with room for a pair of {length} tokens, found {tokens_per_batch} tokens"
            )
        self._kind, self._cls, self._sep = kind, cls_id, sep_id
        self._length, self._seed, self._shuffle = length, seed, not held_out
        self._sections = Sections(corpus, min(_PAIRS * length, tokens_per_batch))
        in_part = corpus.held_out[self._sections.documents] == held_out
        # A lone token makes no pair.
        self._mine = np.flatnonzero(in_part & (self._sections.lengths > 1))
        alone = len(np.unique(self._sections.documents[in_part])) < 2
        self._others = np.arange(len(self._sections)) if held_out and alone else np.flatnonzero(in_part)
        self._planned = PlannedBatches(
            # A single sentence can be longer than a section; the pairs cut it.
            np.minimum(self._sections.lengths[self._mine], tokens_per_batch),
            capacity=tokens_per_batch,
            seed=seed,
            order=order,
            shuffle=not held_out,
        )
        settings = repr(
            (corpus.fingerprint, kind, cls_id, sep_id, length, tokens_per_batch, held_out, seed, order)
        )
        self.fingerprint = hashlib.blake2b(settings.encode(), digest_size=8).hexdigest()

    def length(self, epoch: int) -> int:
        """Number of batches in the epoch."""
        return len(self._planned.plan(epoch))

    def batch(self, epoch: int, index: int) -> list[Example]:
        """Pairs of one batch."""
        examples = []
        for at in self._mine[self._planned.plan(epoch)[index]].tolist():
            rng = np.random.default_rng((self._seed, epoch if self._shuffle else 0, at))
            if self._kind == "nsp":
                other = Elsewhere(self._sections, self._others, int(self._sections.documents[at]))
                pairs = next_sentence_pairs(self._sections[at], other, rng, max_tokens=self._length)
            else:
                pairs = sentence_order_pairs(self._sections[at], rng, max_tokens=self._length)
            # Sections are numbered over both parts, so that no two examples share a key.
            examples += [
                pair.example(cls_id=self._cls, sep_id=self._sep, key=(at << 20) + number)
                for number, pair in enumerate(pairs)
            ]
        return examples
