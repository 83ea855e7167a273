"""Latency of dense, lexical and hybrid search in one process, at 10,000 and 100,000 passages.

The small index holds real abstracts. The large one holds the same words in new passages: sentences of the
abstracts drawn at random, with vectors drawn around the real ones, because embedding 100,000 passages would
take an hour without changing what is measured here.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np
from _folders import abstracts_index
from _measure import CACHE, need, read_jsonl, table

from likewise import Encoder, Index, Retriever
from likewise.index.catalogue import Catalogue
from likewise.index.records import Passage, Span
from likewise.index.rows import PassageRow, WriteDocument
from likewise.index.snapshot import publish


def enlarge(source: Path, passages: int) -> Path:
    """An index of `passages` passages mixed from those of `source`."""
    folder = CACHE / f"mixed-{passages}" / ".likewise"
    if folder.exists():
        return folder
    rng = np.random.default_rng(0)
    with Index.open(source) as index, index.view() as view:
        stored = [row for document in view.documents() for row in view.document_passages(document.key)]
        vectors = view.vectors([row.id for row in stored])
    sentences = [part for row in stored for part in row.passage.text.split(". ") if part]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Index.open(folder) as index:
        (folder.parent / "seed.txt").write_text("A first page, so that the index exists.", encoding="utf-8")
        index.sync([folder.parent])
    catalogue = Catalogue.open(folder, mode="write")
    for start in range(0, passages, 1000):
        changes = []
        for number in range(start, start + 1000):
            text = ". ".join(sentences[i] for i in rng.integers(len(sentences), size=6))
            vector = vectors[rng.integers(len(vectors))] + rng.normal(0, 0.03, vectors.shape[1])
            vector = (vector / np.linalg.norm(vector)).astype(np.float32)
            digest = hashlib.sha256(text.encode()).digest()
            passage = Passage(0, text, Span(0, len(text)), (1, 1))
            changes.append(
                WriteDocument(
                    key=f"mixed/{number}.txt",
                    path_bytes=f"mixed/{number}.txt".encode(),
                    size=len(text),
                    mtime_ns=0,
                    content_hash=digest.hex(),
                    reader="benchmark/1",
                    language="en",
                    passages=[PassageRow(passage, digest, vector)],
                )
            )
        catalogue.apply(changes)
    publish(catalogue, folder)
    catalogue.close()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    queries = [
        row["text"]
        for name in ("scifact", "cisi", "cranfield")
        for row in read_jsonl(need(name), "queries.jsonl")
    ]
    queries = [queries[i] for i in np.random.default_rng(1).permutation(len(queries))[: args.queries]]
    small = abstracts_index(7500)
    encoder = Encoder.load()
    rows = []
    for folder in (small, enlarge(small, 100_000)):
        with Index.open(folder, encoder=encoder) as index:
            retriever = Retriever(index)
            with index.view() as view:
                count = view.passage_count
            for mode in ("dense", "lexical", "hybrid"):
                retriever.search(queries[0], mode=mode)
                times = []
                for query in queries:
                    start = time.perf_counter()
                    retriever.search(query, mode=mode)
                    times.append((time.perf_counter() - start) * 1000)
                rows.append(
                    [
                        f"{count:,} passages, {mode}",
                        float(np.percentile(times, 50)),
                        float(np.percentile(times, 95)),
                    ]
                )
    table(
        f"milliseconds per query, query encoding included, {len(queries)} queries", ["", "p50", "p95"], rows
    )


if __name__ == "__main__":
    main()
