"""Documents put together by hand, cut by the model-free encoder as an index would cut them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.chunker import chunk
from likewise.index.language import detect_language
from likewise.index.readers.base import Source
from likewise.index.readers.registry import read as extract
from likewise.index.records import Extraction
from likewise.index.settings import ChunkSettings
from likewise.retrieval.pairs.documents import PairDocument, links_in


@pytest.fixture
def read() -> Callable[..., PairDocument]:
    """Reads a text under a name, in this process."""

    def make(key: str, text: str, *, tokens: int = 400, overlap: int = 0) -> PairDocument:
        name = key.rpartition("/")[2]
        suffix = "." + name.rpartition(".")[2]
        found = extract(Source(text.encode(), suffix=suffix, name=name))
        assert isinstance(found, Extraction)
        settings = ChunkSettings(target_tokens=tokens, overlap_tokens=overlap)
        passages = chunk(found, tokenizer=HashEncoder(max_tokens=512), settings=settings)
        language = found.language or detect_language(text)
        return PairDocument(key, found.title, language, tuple(passages), lambda: links_in(found))

    return make
