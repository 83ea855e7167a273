"""Documents in passages, and results that pack them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.chunker import chunk
from likewise.index.records import Extraction, StoredPassage
from likewise.index.settings import ChunkSettings
from likewise.retrieval.hits import Hit, HitScores, SearchResult
from likewise.retrieval.tokens import EncoderTokenCounter

MakePassage = Callable[..., StoredPassage]
WORDS = EncoderTokenCounter(HashEncoder)

GUIDE = """# Keys

Signing keys rotate every year. Ask the security team first!

## Steps

1. Make a key.
2. Publish it; wait a day.

```python
def rotate(key):
    return key.next()
```

輪替之前請先詢問資安團隊。輪替之後，舊的金鑰仍會保留三十天。

The old key stays valid for thirty days. Then it is revoked. Nobody has to do anything for that.
"""

FAQ = "假期有幾天？每位員工每年有三十天假期。\n\n" + " ".join(
    f"Question {n} has answer {n}." for n in range(30)
)


def passages_of(key: str, text: str, first_id: int, overlap: int) -> list[StoredPassage]:
    chunks = chunk(
        Extraction(text, reader="text/1"),
        tokenizer=HashEncoder(max_tokens=24),
        settings=ChunkSettings(target_tokens=20, overlap_tokens=overlap),
    )
    return [
        StoredPassage(first_id + position, key, "", "", "00ff", passage)
        for position, passage in enumerate(chunks)
    ]


LIBRARY = {
    overlap: [*passages_of("guide.md", GUIDE, 1, overlap), *passages_of("faq/假期.md", FAQ, 100, overlap)]
    for overlap in (0, 10)
}

TEXTS = {"guide.md": GUIDE, "faq/假期.md": FAQ}


def hits_of(passages: Sequence[StoredPassage]) -> list[Hit]:
    return [
        Hit(rank, 1 / rank, HitScores(fused=1 / rank), passage)
        for rank, passage in enumerate(passages, start=1)
    ]


def result_of(passages: Sequence[StoredPassage], query: str = "How often do keys rotate?") -> SearchResult:
    return SearchResult(tuple(hits_of(passages)), query, "hybrid", (), WORDS)


def check_source(source: Any) -> None:
    """A source is what stands at its place in the file, white space aside, and so is every piece."""
    original = source.span.of(TEXTS[source.path])
    assert source.text.split() == original.split()
    first = TEXTS[source.path].count("\n", 0, source.span.start) + 1
    assert source.lines == (first, first + original.count("\n"))
    for piece in source.stretch.pieces:
        assert piece.span.of(TEXTS[source.path]) == piece.text
        assert source.text[piece.offset : piece.offset + len(piece.text)] == piece.text
