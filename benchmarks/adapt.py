"""What `likewise adapt` makes of collections, judged by questions that it never saw.

The command learns from an index without labels, and decides by questions that it makes from held-out
documents. Here the encoder that it chose is measured by the collection's own questions and judgements,
whether or not the command adopted it, beside the free alternative: adding the mean vector of the first three
hybrid hits to the query's. The documentation of FastAPI has no judgements; its questions are the texts of
links to documents that were not learned from, and the document that each leads to is the answer.

    python benchmarks/adapt.py --minutes 3
    python benchmarks/adapt.py --sets cranfield fastapi-zh --minutes 1

Prints nDCG@10 with 95% intervals over the questions. "command" is what a user gets: the gain if the encoder
was adopted, and nothing where it was left alone.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _measure import CACHE, need, table
from quality import CHINESE, collection, questions

from likewise import Index
from likewise.embedder import load_encoder
from likewise.errors import DataError
from likewise.index.added import TextDocument
from likewise.retrieval.adaptation.adapt import adapt
from likewise.retrieval.adaptation.candidates import Recipe
from likewise.retrieval.adaptation.decision import Decision, decide, signed
from likewise.retrieval.adaptation.records import Adaptation, AdaptSettings
from likewise.retrieval.adaptation.split import split_documents
from likewise.retrieval.adaptation.trial import Trial
from likewise.retrieval.evaluation.judgements import Judgements, corpus
from likewise.retrieval.evaluation.verdicts import decimal, interval_text
from likewise.retrieval.pairs.collect import make_pairs
from likewise.retrieval.pairs.documents import IndexDocuments

JUDGED = ("cranfield", "cisi", "npl-vaswani", "scifact", "drcd-dev")
DOCUMENTATION = {"fastapi-en": "en", "fastapi-zh": "zh"}
SETS = (*JUDGED, *DOCUMENTATION)


@dataclass(frozen=True)
class Row:
    """One collection: what the command said, and what its own questions say."""

    name: str
    done: Adaptation
    real: Decision | None
    seconds: float


def copy_of(name: str) -> Path:
    """An index folder to adapt, and to throw away."""
    folder = CACHE / "adapt" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name in DOCUMENTATION:
        shutil.copytree(need("docs-fastapi", DOCUMENTATION[name]), folder, dirs_exist_ok=True)
        with Index.open(folder / ".likewise") as index:
            index.sync([folder])
    elif name in CHINESE:
        with Index.open(folder / ".likewise") as index:
            index.add(TextDocument(row.id, row.text, row.title) for row in corpus(need(name)))
    else:
        shutil.copytree(collection(name), folder / ".likewise")
    return folder / ".likewise"


def real_questions(name: str, index: Index, settings: AdaptSettings, most: int) -> Judgements:
    """Questions that people asked, or for documentation the texts of links to documents not learned from."""
    if name in JUDGED:
        return questions(name, most)
    with index.view() as view:
        documents = IndexDocuments(view)
        learned = split_documents(list(documents), held_out=settings.held_out, seed=settings.seed).learned
        links = [pair for pair in make_pairs(documents, kinds=["link"]).pairs if pair.source not in learned]
    texts = {f"link-{number}": pair for number, pair in enumerate(links)}
    return Judgements(
        {query: pair.anchor for query, pair in texts.items()},
        {query: {pair.source: 1} for query, pair in texts.items()},
    )


def measure(name: str, settings: AdaptSettings, most: int) -> Row:
    """Adapt one collection, and judge the result by its own questions."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place, Index.open(copy_of(name)) as index:
        asked = real_questions(name, index, settings, most)
        target = Path(place) / "encoder"
        done = adapt(index, settings, output=target, dry_run=True)
        seconds = time.perf_counter() - began
        real = None
        if target.is_dir():
            compared = Trial(index.folder, index.encoder, asked, asked, 0)
            with compared.candidate(load_encoder(str(target)), lambda phase, at, total: None) as ask:
                real = decide(compared.base(asked, lambda phase, at, total: None), ask(asked))
        return Row(name, done, real, seconds)


def line(row: Row) -> list[object]:
    """A row of the table."""
    own, real = row.done.decision, row.real
    adopted = own is not None and own.adopt
    head: list[object] = [row.name, "adopted" if adopted else "left alone"]
    head += ["", ""] if own is None else [signed(own.gain.difference), signed(own.free.difference)]
    if real is None:
        return [*head, "", "", "", "", "", ".000", f"{row.seconds:.0f}"]
    return [
        *head,
        real.questions,
        interval_text(real.before),
        signed(real.free.difference),
        signed(real.gain.difference),
        signed(real.hybrid.difference),
        decimal(real.gain.difference.mean if adopted else 0.0, signed=True),
        f"{row.seconds:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--minutes", type=float, default=3.0, help="of training, for each set")
    parser.add_argument("--questions", type=int, default=300, help="most real questions of a set")
    parser.add_argument("--passages", type=int, default=2500, help="most passages of the command's own trial")
    parser.add_argument("--lr", type=float, default=Recipe().learning_rate)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = AdaptSettings(
        recipe=Recipe(minutes=arguments.minutes, learning_rate=arguments.lr, seed=arguments.seed),
        most_passages=arguments.passages,
        seed=arguments.seed,
    )
    lines: list[list[object]] = []
    for name in arguments.sets:
        try:
            row = measure(name, settings, arguments.questions)
        except DataError as error:  # a collection of single sentences, such as npl-vaswani
            print(f"{name}: {error.message}", flush=True)
            lines.append([name, "nothing to learn from", *[""] * 7, ".000", ""])
            continue
        lines.append(line(row))
        means = ", ".join(f"{key} {value:.3f}" for key, value in row.done.choosing.items())
        kinds = {} if row.done.decision is None else row.done.decision.kinds
        gains = ", ".join(f"{kind} {signed(gained)}" for kind, gained in kinds.items())
        print(f"{name}: {row.done.steps} steps; {means}; {gains}; {row.done.reason}", flush=True)
    table(
        f"nDCG@10 of dense search, {arguments.minutes:g} minutes of training for each set",
        [
            "",
            "verdict",
            "own questions",
            "feedback there",
            "queries",
            "real: before",
            "feedback",
            "chosen encoder",
            "in hybrid",
            "command",
            "s",
        ],
        lines,
    )


if __name__ == "__main__":
    main()
