"""Dense search on scifact against brute force over sentence-transformers' own vectors.

Reports nDCG@10 of both, and how often the two top tens hold the same documents. A difference is a tie when
the two documents' scores differ by less than the float noise between the two runtimes.
"""

from __future__ import annotations

import csv
import math

import numpy as np
from _measure import CACHE, need, read_jsonl, table

from likewise import Encoder
from likewise.embedder.resolve import BASE_ENCODER, resolve
from likewise.index.faiss_store import FaissStore

TIE = 2e-3


def ndcg(ranked: list[str], relevant: dict[str, int], k: int = 10) -> float:
    """nDCG@k with linear gains, as trec_eval computes it."""
    gain = sum(relevant.get(doc, 0) / math.log2(rank + 2) for rank, doc in enumerate(ranked[:k]))
    ideal = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted(relevant.values(), reverse=True)[:k]))
    return gain / ideal if ideal else 0.0


def main() -> None:
    from sentence_transformers import SentenceTransformer

    folder = need("scifact")
    documents = list(read_jsonl(folder, "corpus.jsonl"))
    ids = [row["_id"] for row in documents]
    texts = [f"{row['title']} {row['text']}".strip() for row in documents]
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for query, document, grade in list(csv.reader(file, delimiter="\t"))[1:]:
            qrels.setdefault(query, {})[document] = int(grade)
    queries = [row for row in read_jsonl(folder, "queries.jsonl") if row["_id"] in qrels]

    model = SentenceTransformer(str(resolve(BASE_ENCODER).directory), device="cpu")
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = CACHE / "scifact-sentence-transformers.npy"
    if not kept.exists():
        np.save(kept, model.encode(texts, normalize_embeddings=True))
    reference = np.load(kept)
    reference_scores = model.encode([row["text"] for row in queries], normalize_embeddings=True) @ reference.T

    encoder = Encoder.load()
    store = FaissStore.create(encoder.dimension)
    store.add(np.arange(len(texts), dtype=np.int64), encoder.encode_passages(texts))
    vectors = encoder.encode_queries([row["text"] for row in queries])
    mine, theirs, same, ties = [], [], 0, 0
    for number, row in enumerate(queries):
        found = store.search(vectors[number], 10).ids.tolist()
        brute = np.argsort(-reference_scores[number], kind="stable")[:10].tolist()
        mine.append(ndcg([ids[i] for i in found], qrels[row["_id"]]))
        theirs.append(ndcg([ids[i] for i in brute], qrels[row["_id"]]))
        difference = set(found) ^ set(brute)
        cut = reference_scores[number][brute[-1]]
        same += not difference
        ties += bool(difference) and all(abs(reference_scores[number][i] - cut) < TIE for i in difference)
    table(
        f"scifact, {len(queries)} queries, {len(texts):,} documents",
        ["", "nDCG@10", "same top ten", "same but for ties"],
        [
            ["likewise", float(np.mean(mine)), f"{same}/{len(queries)}", f"{same + ties}/{len(queries)}"],
            ["sentence-transformers, brute force", float(np.mean(theirs)), "", ""],
        ],
    )


if __name__ == "__main__":
    main()
