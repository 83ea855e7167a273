"""Continued masked language modelling of the default encoder on one domain: what it learns, what it forgets.

Two domains: the English documentation of FastAPI and the abstracts of cranfield. The encoder has no head that
fills masks, so one is trained first with the body frozen: that is "before". Then everything is trained:
"after". Both are measured on held-out documents with the same masks, and by dense retrieval in the domain:
cranfield by its judgements, FastAPI by known items made here (a section is to be found by the title of its
page and its heading, which are taken out of the text).
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from _measure import need, table

from likewise import Encoder
from likewise.embedder.corpus_build import SourceText, build_corpus
from likewise.embedder.mlm_evaluation import Estimate, evaluate_mlm
from likewise.embedder.packing import CorpusBatches
from likewise.embedder.sequences import Frame
from likewise.embedder.starting_point import StartingPoint, from_encoder, load_tokenizer
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings
from likewise.retrieval.evaluation.evaluate import RunResult, compare, score_run
from likewise.retrieval.evaluation.judgements import Judgements, corpus, load_beir

BASE, LENGTH, METRIC = "all-MiniLM-L6-v2", 128, "nDCG@10"
_HEADING = re.compile(r"^##+ (.+?)(?: \{.*\})?$", re.MULTILINE)


def cranfield() -> tuple[Mapping[str, str], Judgements]:
    """Documents and judged questions."""
    documents = {row.id: f"{row.title}\n{row.text}".strip() for row in corpus(need("cranfield"))}
    return {key: text for key, text in documents.items() if text}, load_beir(need("cranfield"))


def fastapi() -> tuple[Mapping[str, str], Judgements]:
    """Sections of the documentation, and the headings that they are to be found by."""
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    for path in sorted(need("docs-fastapi", "en").rglob("*.md")):
        if path.name == "release-notes.md":  # one line per change, no sections that say anything
            continue
        text = path.read_text(encoding="utf-8")
        title = next(iter(re.findall(r"^# (.+?)(?: \{.*\})?$", text, re.MULTILINE)), path.stem)
        parts = _HEADING.split(text)
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            if len(body) > 200:
                key = f"{path.stem}#{len(documents)}"
                documents[key] = body.strip()
                queries[key] = f"{title}: {heading}"
    return documents, Judgements(queries, {key: {key: 1} for key in queries})


def retrieval(encoder: Encoder, name: str, documents: Mapping[str, str], judgements: Judgements) -> RunResult:
    """Exact dense search over whole documents."""
    keys = list(documents)
    vectors = encoder.encode_passages(list(documents.values()))
    queries = list(judgements.qrels)
    asked = encoder.encode_queries([judgements.queries[query] for query in queries])
    run = {}
    for query, scores in zip(queries, asked @ vectors.T, strict=True):
        top = np.argsort(-scores, kind="stable")[:10]
        run[query] = {keys[at]: float(scores[at]) for at in top}
    return RunResult(name, run, score_run(run, judgements.qrels, [METRIC]))


def adapt(
    documents: Mapping[str, str], budget: dict[str, float], work: Path
) -> tuple[StartingPoint, Estimate, Estimate, int]:
    """Train the head, then all; masked accuracy after each."""
    tokenizer = load_tokenizer(BASE)
    start = from_encoder(BASE, tokenizer, seed=0, offline=True)
    built = build_corpus((SourceText(text) for text in documents.values()), tokenizer, work, held_out=0.1)

    def batches(*, held_out: bool) -> CorpusBatches:
        return CorpusBatches(
            built, Frame.of(tokenizer), length=LENGTH, tokens_per_batch=2048, held_out=held_out
        )

    def accuracy() -> Estimate:
        return evaluate_mlm(start.model, start.objective, batches(held_out=True)).masked_accuracy

    body = start.model.encoder
    steps = 0
    found = []
    for share, trained in ((0.3, False), (0.7, True)):
        body.requires_grad_(trained)
        settings = TrainingSettings(
            **{
                kind: max(1, round(share * size)) if kind == "steps" else share * size
                for kind, size in budget.items()
            },
            learning_rate=1e-4 if trained else 1e-3,
            save_every=None,
        )
        steps += train(start.model, start.objective, batches(held_out=False), settings).step
        found.append(accuracy())
    return start, found[0], found[1], steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=4.0, help="of training per domain")
    parser.add_argument("--steps", type=int, help="steps per domain instead")
    parser.add_argument(
        "--domains", nargs="+", choices=["cranfield", "fastapi"], default=["cranfield", "fastapi"]
    )
    args = parser.parse_args()
    budget = {"steps": args.steps} if args.steps else {"minutes": args.minutes}

    rows = []
    for name in args.domains:
        documents, judgements = {"cranfield": cranfield, "fastapi": fastapi}[name]()
        with tempfile.TemporaryDirectory() as folder:
            start, before, after, steps = adapt(documents, budget, Path(folder) / "corpus")
            start.save(Path(folder) / "adapted")
            base = retrieval(Encoder.load(BASE, offline=True), "before", documents, judgements)
            adapted = Encoder.load(Path(folder) / "adapted", offline=True)
            found = retrieval(adapted, "after", documents, judgements)
            del adapted
        difference = compare(base, found, METRIC)
        rows.append(
            [
                f"{name} ({len(documents)} texts, {len(judgements.qrels)} queries)",
                steps,
                f"{before.value:.3f} [{before.low:.3f}, {before.high:.3f}]",
                f"{after.value:.3f} [{after.low:.3f}, {after.high:.3f}]",
                base.interval(METRIC).mean,
                found.interval(METRIC).mean,
                f"{difference.difference.mean:+.3f} [{difference.difference.low:+.3f}, "
                f"{difference.difference.high:+.3f}] p={difference.p_value:.3f}",
            ]
        )
    table(
        f"Masked language modelling on a domain; masked accuracy and {METRIC}, intervals of 95%",
        ["", "steps", "accuracy before", "after", METRIC, "after", "difference"],
        rows,
    )


if __name__ == "__main__":
    main()
