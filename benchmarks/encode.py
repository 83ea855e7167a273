"""Passages per second of `Encoder.encode_passages` against `SentenceTransformer.encode`, and their cosines.

The passages are real abstracts, cut to the wanted number of tokens, in random order. Both sides run at their
defaults and in alternation, so that a busy machine hurts both alike.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from _measure import corpus_texts, table

from likewise import Encoder
from likewise.embedder.resolve import BASE_ENCODER, resolve


def passages(encoder: Encoder, count: int, tokens: int) -> list[str]:
    """`count` texts of exactly `tokens` tokens, taken from the abstracts of scifact."""
    texts = corpus_texts("scifact")
    spans = encoder.token_spans(texts)
    cut = [
        text[: int(span[tokens - 1][1])]
        for text, span in zip(texts, spans, strict=True)
        if len(span) > tokens
    ]
    order = np.random.default_rng(0).permutation(len(cut))
    return [cut[i] for i in order[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=768)
    parser.add_argument("--tokens", type=int, default=185, help="tokens of text; [CLS] and [SEP] come on top")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    from sentence_transformers import SentenceTransformer

    ours = Encoder.load()
    peer = SentenceTransformer(str(resolve(BASE_ENCODER).directory), device="cpu")
    texts = passages(ours, args.count, args.tokens)
    ours.encode_passages(texts[:32])
    peer.encode(texts[:32])

    speeds: dict[str, list[float]] = {"likewise": [], "sentence-transformers": []}
    for _ in range(args.rounds):
        start = time.perf_counter()
        mine = ours.encode_passages(texts)
        speeds["likewise"].append(len(texts) / (time.perf_counter() - start))
        start = time.perf_counter()
        theirs = peer.encode(texts, normalize_embeddings=True)
        speeds["sentence-transformers"].append(len(texts) / (time.perf_counter() - start))
    cosine = np.sum(mine * theirs, axis=1)
    ratios = [a / b for a, b in zip(speeds["likewise"], speeds["sentence-transformers"], strict=True)]
    table(
        f"{len(texts)} passages of {args.tokens + 2} tokens, median of {args.rounds} rounds",
        ["", "passages/s", "ratio", "least cosine"],
        [
            [
                "likewise",
                statistics.median(speeds["likewise"]),
                statistics.median(ratios),
                f"{cosine.min():.6f}",
            ],
            ["sentence-transformers", statistics.median(speeds["sentence-transformers"]), 1.0, "1"],
        ],
    )


if __name__ == "__main__":
    main()
