"""What the Chinese extension does: the default encoder beside its base, all-MiniLM-L6-v2 without it.

Retrieval is the engine's own, with default settings: dense, by words, and both. Chinese questions to English
passages (xquad) and passages of news (rgb-zh), Traditional (drcd) and Simplified (cmrc) encyclopaedia;
sentence similarity in both languages; and whether any English vector changed at all.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from _measure import CACHE, corpus_texts, need, read_jsonl, table

from likewise import Encoder, Index
from likewise.embedder.resolve import BASE_ENCODER, DEFAULT_ENCODER
from likewise.index.added import TextDocument
from likewise.retrieval.evaluation.configurations import parse_configurations, search_function
from likewise.retrieval.evaluation.evaluate import evaluate
from likewise.retrieval.evaluation.judgements import Judgements, corpus, load_beir

SETS = ("xquad-xling-en-zh", "rgb-zh", "drcd-dev", "cmrc2018-dev")
ENGLISH = ("adi", "cranfield")
METRIC = "nDCG@10"


def retrieval(name: str, encoder: str, folder: Path, most: int) -> list[str]:
    """nDCG@10 of the three ways to search a collection, whose index is kept in the folder."""
    with Index.open(folder / name / ".likewise", encoder=encoder) as index:
        index.add(TextDocument(row.id, row.text, row.title) for row in corpus(need(name)))
        searches = {
            configuration.name: search_function(index, configuration)
            for configuration in parse_configurations("dense,lexical,hybrid")
        }
        judged = load_beir(need(name))
        qrels = dict(islice(judged.qrels.items(), most))
        questions = Judgements({query: judged.queries[query] for query in qrels}, qrels)
        found = evaluate(searches, questions, metrics=[METRIC], depth=10)
    return [f"{run.interval(METRIC).mean:.4f}" for run in found.runs]


def similarity(encoder: Encoder, language: str) -> str:
    """Spearman's correlation on the test split of the STS benchmark."""
    from scipy.stats import spearmanr

    path = need("stsb", f"stsb-{language}-test.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first, second = (
        encoder.encode_passages([row[key] for row in rows]) for key in ("sentence1", "sentence2")
    )
    [score] = [key for key in rows[0] if "score" in key]
    cosine = (first * second).sum(axis=1)
    return f"{spearmanr(cosine, [float(row[score]) for row in rows]).statistic:.4f}"


def english_texts() -> Iterator[str]:
    """Questions and documents of English collections."""
    yield from corpus_texts(*ENGLISH)
    for name in ENGLISH:
        yield from (row["text"] for row in read_jsonl(need(name), "queries.jsonl"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=500, help="most questions of a collection")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    arguments = parser.parse_args()
    began = time.perf_counter()
    names = (BASE_ENCODER, DEFAULT_ENCODER)
    encoders = [Encoder.load(name) for name in names]
    rows: list[list[object]] = []
    for name in arguments.sets:
        found = [
            retrieval(name, encoder, CACHE / "chinese" / encoder, arguments.questions) for encoder in names
        ]
        rows += [
            [f"{name}, {way}", *values]
            for way, values in zip(("dense", "words", "both"), zip(*found, strict=True), strict=True)
        ]
    for language in ("zh", "en"):
        rows.append([f"STS-B {language} test", *(similarity(encoder, language) for encoder in encoders)])
    table(f"{METRIC}, and Spearman's correlation", ["", "without", "with the extension"], rows)
    texts = list(english_texts())
    before, after = (encoder.encode_passages(texts) for encoder in encoders)
    changed = int((before != after).any(axis=1).sum())
    lowest = float((before * after).sum(axis=1).min())
    print(f"English: {changed:,} of {len(texts):,} vectors differ in any bit; lowest cosine {lowest:.7f}")
    chinese = [text for text in texts if any("\u3000" <= c <= "\u9fff" or c >= "\uff00" for c in text)]
    print(f"{len(chinese):,} of these texts have a Chinese or full-width character")
    print(f"{np.mean([len(text) for text in texts]):.0f} characters on average")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
