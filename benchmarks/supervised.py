"""SciFact after training on its training claims, and what that does to the collections it never saw.

Claims and the abstracts that answer them, with hard negatives mined by our own hybrid search among all
abstracts, train the default encoder with the ranking loss, and so do the titles of abstracts, a thousand in
an epoch. Another data set without labels holds the space in its place: the vectors of paragraphs of an
encyclopaedia and of speeches, and of some abstracts, shall stay what they were. Texts are cut at 128 tokens
in training, embeddings are frozen, nothing is dropped out. Every collection is indexed anew and searched as
`quality.py` does.

A fifth of the training claims is kept back first and decides how things are done, such as the weight of the
dense side in hybrid search. Then the encoder is trained on all of them. The test claims are measured only:
dense, hybrid with the default weight, and hybrid with the chosen one, against the base with the default
weight. Differences are per question, with 95% intervals.

    python benchmarks/supervised.py
    python benchmarks/supervised.py --hold 0 --sets scifact cisi     # without the data that hold
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from _measure import CACHE, need, table
from _texts import english_documents
from quality import ENGLISH, METRIC, collection, questions

from likewise import Encoder, Index, Retriever
from likewise.embedder.resolve import BASE_ENCODER
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.embedder.siamese.miner import Mined, MiningSettings, mine
from likewise.embedder.siamese.pairs import PairData, make_pairs
from likewise.embedder.siamese.saving import save_sentence_model
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.tasks import LossSettings, loss_kind
from likewise.embedder.siamese.train import train_siamese
from likewise.embedder.training_settings import TrainingSettings
from likewise.index.added import TextDocument
from likewise.retrieval.evaluation.configurations import Configuration, parse_configurations, search_function
from likewise.retrieval.evaluation.evaluate import Evaluation, compare, evaluate
from likewise.retrieval.evaluation.judgements import Judgements, corpus, load_beir
from likewise.retrieval.grammar import literal
from likewise.retrieval.mining import cosine_score

MOST_LETTERS = 500  # of a text that is held
WEIGHTS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)  # of the dense side


def abstracts() -> dict[str, str]:
    """Title and text of every document, by id."""
    return {row.id: f"{row.title}\n\n{row.text}".strip() for row in corpus(need("scifact"))}


def mined_claims(negatives: int) -> PairData:
    """Every training claim with an abstract that answers it and others that only look as if they did."""
    texts = abstracts()
    judged = load_beir(need("scifact"), split="train")
    rows = [
        {"anchor": judged.queries[query], "positive": texts[document]}
        for query, documents in judged.qrels.items()
        for document, grade in documents.items()
        if grade > 0
    ]
    with Index.open(collection("scifact")) as index:
        retriever = Retriever(index)

        def search(query: str, k: int) -> Sequence[str]:
            hits = retriever.search(literal(query), k=2 * k)
            return list(dict.fromkeys(texts[hit.path] for hit in hits))[:k]

        found: Mined = mine(
            make_pairs(rows, loss_kind("ranking"), name="claims"),
            search,
            MiningSettings(negatives=negatives),
            score=cosine_score(Encoder.load()),
        )
    return found.data


def kept_back(claim: str) -> bool:
    """Whether a claim is one of the fifth that is not trained on."""
    return sha256(claim.encode()).digest()[0] % 5 == 0


def titles() -> PairData:
    """Every title with its abstract."""
    rows = [
        {"anchor": row.title, "positive": row.text}
        for row in corpus(need("scifact"))
        if row.title and row.text
    ]
    return make_pairs(rows, loss_kind("ranking"), name="titles")


def held(most: int) -> PairData:
    """Texts whose vectors shall stay: three quarters have nothing to do with any of the collections."""
    paragraphs = [part.strip() for text in english_documents() for part in text.split("\n")]
    own = list(abstracts().values())
    texts: list[str] = []
    for found, count in (
        ([text for text in paragraphs if len(text) > 100], most - most // 4),
        (own, most // 4),
    ):
        distinct = list(dict.fromkeys(found))
        order = np.random.default_rng(len(texts)).permutation(len(distinct))[:count]
        texts += [distinct[at] for at in order]
    rows = [{"anchor": text[:MOST_LETTERS]} for text in texts]
    return make_pairs(rows, loss_kind("distillation"), name="held")


def trained(args: argparse.Namespace, data: PairData, folder: Path) -> Path:
    """Train; the encoder is in the folder afterwards."""
    ranking = LossSettings(scale=args.scale)
    sets = [TrainingData(source=data, loss="ranking", settings=ranking)]
    if args.hold:
        stay = LossSettings(measure="cosine", factor=args.factor)
        sets.append(TrainingData(source=held(args.hold), loss="distillation", settings=stay))
    if args.titles:
        pairs = titles()
        share = args.titles / len(pairs)  # another part of them in every epoch
        sets.append(TrainingData(source=pairs, loss="ranking", settings=ranking, weight=share))
    result = train_siamese(
        sets,
        folder,
        SiameseSettings(
            training=TrainingSettings(
                epochs=args.epochs,
                learning_rate=args.lr,
                warmup=0.1,
                average=args.average,
                seed=args.seed,
                save_every=None,
            ),
            batch_size=args.batch,
            max_tokens=args.tokens,
            teacher=BASE_ENCODER if args.hold else None,
            dropout=args.dropout,
            freeze=args.freeze,
            blend=args.blend,
            held_out=0.0,
            device="cpu",
        ),
    )
    # Used at the length of the base: what was learned on the beginnings of texts holds for whole ones.
    found = load_sentence_model(folder)
    save_sentence_model(found.model, replace(found.spec, max_tokens=Encoder.load().max_tokens), folder)
    steps, minutes = result.training.step, result.training.seconds / 60
    print(f"{len(data)} claims and abstracts, {steps} steps, {minutes:.1f} minutes", flush=True)
    return folder


def indexed(name: str, encoder: Path, folder: Path) -> Path:
    """An index of a collection with the encoder."""
    with Index.open(folder / name / ".likewise", encoder=str(encoder)) as index:
        index.add(TextDocument(row.id, row.text, row.title) for row in corpus(need(name)))
    return folder / name / ".likewise"


def chosen_fusion(place: Path) -> str:
    """The fusion rule with the weight of the dense side that answers the claims kept back best."""
    judged = load_beir(need("scifact"), split="train")
    asked = {query: judged.queries[query] for query in judged.qrels if kept_back(judged.queries[query])}
    rules = [f"standardised@{weight}" for weight in WEIGHTS]
    with Index.open(place) as index:
        found = evaluate(
            {rule: search_function(index, Configuration(rule, "hybrid", rule)) for rule in rules},
            Judgements(asked, {query: judged.qrels[query] for query in asked}),
            metrics=[METRIC],
            depth=10,
        )
    for run in found.runs:
        print(f"claims kept back, {run.name}: {run.interval(METRIC).mean:.4f}", flush=True)
    return max(found.runs, key=lambda run: run.interval(METRIC).mean).name


def measured(name: str, place: Path, fusion: str | None) -> Evaluation:
    """Dense and hybrid search on a collection, and hybrid search by another fusion rule if one is given."""
    wanted = list(parse_configurations("dense,hybrid"))
    if fusion is not None:
        wanted.append(Configuration("hybrid, chosen weight", "hybrid", fusion))
    with Index.open(place) as index:
        searches = {found.name: search_function(index, found) for found in wanted}
        return evaluate(searches, questions(name, 500), metrics=[METRIC], depth=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=ENGLISH, default=list(ENGLISH))
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--scale", type=float, default=20.0)
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of a text in training")
    parser.add_argument("--negatives", type=int, default=1)
    parser.add_argument("--titles", type=int, default=1000, help="titles with their abstracts in an epoch")
    parser.add_argument("--hold", type=int, default=1700, help="texts whose vectors shall stay")
    parser.add_argument("--factor", type=float, default=20.0, help="of their loss")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--average", type=float, default=0.35)
    parser.add_argument("--freeze", type=int, default=0, help="lowest layers to freeze")
    parser.add_argument("--blend", type=float, default=0.0, help="share of the base in the weights")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="keep the encoder here")
    parser.add_argument("--encoder", type=Path, help="measure this one instead of training")
    parser.add_argument("--fusion", help="of that one, instead of choosing")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        work = Path(folder)
        encoder, fusion = args.encoder, args.fusion
        if encoder is None:
            data = mined_claims(args.negatives)
            kept = [kept_back(claim) for claim in data.columns["anchor"]]
            part = data.take([row for row, out in enumerate(kept) if not out])
            fusion = chosen_fusion(indexed("scifact", trained(args, part, work / "part"), work / "chosen"))
            encoder = trained(args, data, args.output or work / "encoder")
        for name in args.sets:
            own = fusion if name == "scifact" else None
            before = measured(name, collection(name), own and "standardised")
            after = measured(name, indexed(name, encoder, work), own)
            for old, new in zip(before.runs, after.runs, strict=True):
                gain = compare(old, new, METRIC).difference
                rows.append(
                    [
                        name,
                        new.name,
                        f"{old.interval(METRIC).mean:.4f}",
                        f"{new.interval(METRIC).mean:.4f}",
                        f"{gain.mean:+.4f} [{gain.low:+.3f}, {gain.high:+.3f}]",
                    ]
                )
                print(*rows[-1], sep="\t", flush=True)
    table(METRIC, ["", "search", "before", "after", "gain"], rows)


if __name__ == "__main__":
    main()
