"""A small index in memory, with brute-force dense and lexical rankings as oracles."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.analyzer import analyze
from likewise.index.background import Background
from likewise.index.catalogue_filter import glob_matches
from likewise.index.coverage import Coverage
from likewise.index.phrases import Phrase
from likewise.index.records import Filter, Passage, Span, StoredPassage
from likewise.index.rows import Ranking

Documents = Mapping[str, Sequence[str]]


def stored(
    id_: int,
    text: str,
    *,
    key: str = "docs/keys.md",
    ordinal: int = 0,
    start: int = 0,
    line: int = 1,
    page: int | None = None,
    headings: tuple[str, ...] = (),
    title: str = "",
) -> StoredPassage:
    """A passage as the catalogue would return it."""
    span = Span(start, start + len(text))
    lines = (line, line + text.count("\n"))
    digest = hashlib.sha256(key.encode()).hexdigest()
    return StoredPassage(id_, key, title, "", digest, Passage(ordinal, text, span, lines, page, headings))


class MemoryView:
    """What `IndexView` promises, computed the slow way."""

    def __init__(self, passages: Sequence[StoredPassage], encoder: HashEncoder) -> None:
        self.notices: tuple[str, ...] = ()
        self.fingerprint = encoder.fingerprint
        self._passages = {passage.id: passage for passage in passages}
        self._ids = np.array(sorted(self._passages), dtype=np.int64)
        texts = [self._passages[int(id_)].passage.text for id_ in self._ids]
        self._vectors = encoder.encode_passages(texts)
        self._terms = [Counter(analyze(text)) for text in texts]

    @property
    def passage_count(self) -> int:
        return len(self._ids)

    def select(self, filter: Filter) -> np.ndarray[Any, Any] | None:
        if not filter:
            return None
        kept = [
            id_
            for id_ in self._ids
            if (key := self._passages[int(id_)].key)
            and (not filter.paths or any(glob_matches(glob, key) for glob in filter.paths))
            and not any(glob_matches(glob, key) for glob in filter.exclude_paths)
        ]
        return np.array(kept, dtype=np.int64)

    def dense(self, vector: Any, k: int, allowed: Any = None) -> Ranking:
        return self._best(self._vectors @ vector, k, allowed)

    def lexical(self, terms: Sequence[str], k: int, allowed: Any = None) -> Ranking:
        n = len(self._terms)
        average = sum(map(sum, (counts.values() for counts in self._terms))) / n
        scores = np.zeros(n, dtype=np.float32)
        for term in terms:
            holding = sum(term in counts for counts in self._terms)
            idf = math.log(1 + (n - holding + 0.5) / (holding + 0.5))
            for row, counts in enumerate(self._terms):
                if tf := counts[term]:
                    length = 0.25 + 0.75 * sum(counts.values()) / average
                    scores[row] += idf * tf * 2.2 / (tf + 1.2 * length)
        ranking = self._best(scores, n, allowed)
        found = ranking.scores > 0
        return Ranking(ranking.ids[found][:k], ranking.scores[found][:k])

    def background(self) -> Background:
        return Background.of([self._vectors], dimension=self._vectors.shape[1])

    def coverage(self) -> Coverage:
        return Coverage(0.0, 0.0, 1.0)

    def passages_with(self, terms: Sequence[str]) -> dict[str, int]:
        counts = {term: sum(term in passage for passage in self._terms) for term in terms}
        return {term: count for term, count in counts.items() if count}

    def containing(self, wanted: str | Phrase, allowed: Any = None) -> np.ndarray[Any, Any]:
        texts = [[p.passage.text, p.title, *p.passage.headings] for p in self._passages.values()]
        holds = [
            wanted.occurs_in(each) if isinstance(wanted, Phrase) else wanted in analyze(" ".join(each))
            for each in texts
        ]
        found = self._ids[np.array(holds, dtype=bool)]
        return found if allowed is None else np.intersect1d(found, allowed)

    def everything(self) -> np.ndarray[Any, Any]:
        return self._ids

    def terms_beginning(self, letter: str, shortest: int, longest: int) -> dict[str, int]:
        known = {term for counts in self._terms for term in counts}
        kept = [term for term in known if term[0] == letter and shortest <= len(term) <= longest]
        return self.passages_with(kept)

    def passages(self, ids: Any) -> dict[int, StoredPassage]:
        return {int(id_): self._passages[int(id_)] for id_ in ids if int(id_) in self._passages}

    def vectors(self, ids: Any) -> np.ndarray[Any, Any]:
        return self._vectors[np.searchsorted(self._ids, ids)]

    def document_passages(self, key: str) -> list[StoredPassage]:
        return [passage for passage in self._passages.values() if passage.key == key]

    def documents(self) -> Iterator[Any]:
        for key in sorted({passage.key for passage in self._passages.values()}):
            yield SimpleNamespace(key=key, state="ok")

    def _best(self, scores: Any, k: int, allowed: Any) -> Ranking:
        keep = np.ones(len(self._ids), bool) if allowed is None else np.isin(self._ids, allowed)
        order = [row for row in np.lexsort((self._ids, -scores)) if keep[row]][:k]
        return Ranking(self._ids[order], scores[order].astype(np.float32))


class MemoryIndex:
    """As much of `Index` as a retriever uses; counts how often the encoder was asked for."""

    def __init__(self, passages: Sequence[StoredPassage], base: Path) -> None:
        self.base = base
        self.encoder_uses = 0
        self.views = 0
        self._encoder = HashEncoder()
        self.memory = MemoryView(passages, self._encoder)

    @property
    def encoder(self) -> HashEncoder:
        self.encoder_uses += 1
        return self._encoder

    def encoder_of(self, view: MemoryView) -> HashEncoder:
        return self.encoder

    @contextmanager
    def view(self) -> Iterator[MemoryView]:
        self.views += 1
        yield self.memory


def passages_of(documents: Documents) -> list[StoredPassage]:
    """Passages of documents, each document's parts separated by an empty line."""
    passages: list[StoredPassage] = []
    for key, texts in documents.items():
        start, line = 0, 1
        for ordinal, text in enumerate(texts):
            passages.append(stored(len(passages) + 1, text, key=key, ordinal=ordinal, start=start, line=line))
            start += len(text) + 2
            line += text.count("\n") + 2
    return passages


HANDBOOK: Documents = {
    "docs/keys.md": (
        "Signing keys rotate every year. Ask the security team before you rotate a key.",
        "A leaked signing key is revoked at once, and everything signed with it is signed again.",
    ),
    "docs/holidays.md": ("Every employee has thirty days of holiday. Ask your manager early.",),
    "docs/zh/金鑰.md": ("簽署金鑰每年輪替一次。輪替之前請先詢問資安團隊。", "外洩的金鑰必須立即撤銷。"),
    "docs/zh/假期.md": ("每位員工每年有三十天假期。請提早告訴主管。",),
    "old/keys.md": ("Signing keys never rotate. This page is out of date.",),
}


@pytest.fixture
def make_index(tmp_path: Path) -> Callable[..., MemoryIndex]:
    """Builds an index in memory from documents; the small handbook by default."""

    def make(documents: Documents = HANDBOOK) -> MemoryIndex:
        return MemoryIndex(passages_of(documents), tmp_path)

    return make


@pytest.fixture
def make_passage() -> Callable[..., StoredPassage]:
    """Builds one stored passage."""
    return stored
