"""Retrieval quality on public test collections: dense, lexical, reciprocal ranks and the default fusion.

The engine as it is, with the default encoder and default settings: every collection is indexed whole, its
documents cut into passages, and a document counts by its best passage. No labels are used anywhere, and
nothing is set per collection. The constants were fitted on adi, cranfield, cisi and lisa (marked *). The
others are not untouched: results on npl-vaswani, scifact and rgb-zh had been seen when the query was left
uncentred, when the form of the relevance features was settled, and when the weight of the encoder's
coverage was squared. Expect a little less on collections that nobody looked at.

Prints nDCG@10 with 95% bootstrap intervals over the queries, the gain over reciprocal ranks with its p-value,
the share of queries for which the encoder is called unfit, and how well relevance tells questions of a
collection from those of the others, beside the best cosine threshold.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
from _measure import CACHE, need, table
from numpy.typing import NDArray

from likewise import Index, Retriever
from likewise.index.added import TextDocument
from likewise.retrieval.evaluation.configurations import parse_configurations, search_function
from likewise.retrieval.evaluation.evaluate import Evaluation, compare, evaluate
from likewise.retrieval.evaluation.judgements import Judgements, corpus, load_beir
from likewise.retrieval.grammar import literal
from likewise.retrieval.hits import Mode

ENGLISH = ("adi", "cranfield", "cisi", "lisa", "npl-vaswani", "scifact")
CHINESE = ("rgb-zh", "drcd-dev", "cmrc2018-dev", "xquad-xling-en-zh")
CHOSEN_ON = ("adi", "cranfield", "cisi", "lisa")

CONFIGURATIONS = "dense,lexical,hybrid:rrf,hybrid"
METRIC = "nDCG@10"

_TIMED = 40  # questions whose searches are timed


def collection(name: str) -> Path:
    """The index folder of a collection, made or brought up to date."""
    folder = CACHE / "quality" / name / ".likewise"
    with Index.open(folder) as index:
        index.add(TextDocument(row.id, row.text, row.title) for row in corpus(need(name)))
    return folder


def questions(name: str, most: int) -> Judgements:
    """The judged questions of a collection, the first `most` of them."""
    judgements = load_beir(need(name))
    qrels = dict(islice(judgements.qrels.items(), most))
    return Judgements({query: judgements.queries[query] for query in qrels}, qrels)


def measure(name: str, most: int) -> Evaluation:
    """All configurations on one collection."""
    with Index.open(collection(name)) as index:
        searches = {
            configuration.name: search_function(index, configuration)
            for configuration in parse_configurations(CONFIGURATIONS)
        }
        return evaluate(searches, questions(name, most), metrics=[METRIC], depth=10)


def cost(name: str, texts: Sequence[str]) -> float:
    """Time of a hybrid search over that of the slower side: medians, each query's best of three rounds.

    The modes take turns, so that whatever else the machine does slows them alike.
    """
    modes: tuple[Mode, ...] = get_args(Mode)
    best: dict[Mode, dict[str, float]] = {mode: {} for mode in modes}
    with Index.open(collection(name)) as index:
        retriever = Retriever(index)
        retriever.search(literal(texts[0]))  # loads encoder and vectors
        for _ in range(3):
            for text in texts:
                for mode, times in best.items():
                    began = time.perf_counter()
                    retriever.search(literal(text), mode=mode)
                    times[text] = min(times.get(text, np.inf), time.perf_counter() - began)
    medians = {mode: float(np.median(list(times.values()))) for mode, times in best.items()}
    return medians["hybrid"] / max(medians["dense"], medians["lexical"])


def quality_rows(names: Sequence[str], most: int) -> list[list[object]]:
    """One row for each collection, and the mean of the English ones."""
    rows: list[list[object]] = []
    means: list[list[float]] = []
    for name in names:
        found = measure(name, most)
        intervals = [run.interval(METRIC) for run in found.runs]
        rrf, ours = found.runs[-2:]
        gain = compare(rrf, ours, METRIC)
        rows.append(
            [
                name + ("*" if name in CHOSEN_ON else ""),
                len(found.qrels),
                *(f"{each.mean:.4f} [{each.low:.3f}, {each.high:.3f}]" for each in intervals),
                f"{gain.difference.mean:+.4f} (p {gain.p_value:.3f})",
                f"{intervals[-1].mean - max(intervals[0].mean, intervals[1].mean):+.4f}",
                f"{cost(name, list(found.queries.values())[:_TIMED]):.2f}",
            ]
        )
        if name in ENGLISH:
            means.append([each.mean for each in intervals])
    if means:
        mean = np.mean(means, axis=0)
        rows.append(
            [
                "mean of English",
                "",
                *(f"{value:.4f}" for value in mean),
                f"{mean[-1] - mean[-2]:+.4f}",
                f"{mean[-1] - max(mean[:2]):+.4f}",
                "",
            ]
        )
    return rows


# -- relevance -------------------------------------------------------------------------------------------


class Signals:
    """What one index says of a set of questions: best relevance and best cosine of each, and warnings."""

    def __init__(self, retriever: Retriever, texts: Sequence[str]) -> None:
        relevance, cosine, warned = [], [], 0
        for text in texts:
            found = retriever.search(literal(text), k=10)
            relevance.append(max((hit.relevance or 0.0 for hit in found), default=0.0))
            cosine.append(max((hit.scores.dense or 0.0 for hit in found), default=0.0))
            warned += any(notice.startswith("the encoder ") for notice in found.notices)
        self.relevance = np.array(relevance)
        self.cosine = np.array(cosine)
        self.warned = warned / max(1, len(texts))


def auc(own: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Area under the ROC curve: how often an own question scores above another's, ties counting half."""
    above = (own[:, None] > others[None, :]).mean()
    return float(above + 0.5 * (own[:, None] == others[None, :]).mean())


def false_alarms(own: NDArray[np.float64], others: NDArray[np.float64], threshold: float) -> str:
    """Share of answerable questions kept by a threshold, and of the others that pass it."""
    return f"{(own >= threshold).mean():.2f} / {(others >= threshold).mean():.2f}"


def relevance_rows(names: Sequence[str], most: int) -> list[list[object]]:
    """One row for each collection of a language, its own questions against those of the others."""
    texts = {name: list(questions(name, most).queries.values()) for name in names}
    own: dict[str, Signals] = {}
    others: dict[str, list[Signals]] = {}
    for name in names:
        with Index.open(collection(name)) as index:
            retriever = Retriever(index)
            own[name] = Signals(retriever, texts[name])
            others[name] = [Signals(retriever, texts[other]) for other in names if other != name]
    foreign = {
        signal: {name: np.concatenate([getattr(each, signal) for each in others[name]]) for name in names}
        for signal in ("relevance", "cosine")
    }
    # One limit for all: it keeps 95% of the own questions of the collections that it may be chosen on.
    chosen = [name for name in names if name in CHOSEN_ON] or list(names)
    limits = {
        signal: float(np.mean([np.quantile(getattr(own[name], signal), 0.05) for name in chosen]))
        for signal in foreign
    }
    rows: list[list[object]] = []
    for name in names:
        row: list[object] = [name + ("*" if name in CHOSEN_ON else "")]
        for signal in foreign:
            mine, theirs = getattr(own[name], signal), foreign[signal][name]
            at95 = (theirs >= np.quantile(mine, 0.05)).mean()
            row += [f"{auc(mine, theirs):.3f}", f"{at95:.2f}", false_alarms(mine, theirs, limits[signal])]
        rows.append([*row, f"{own[name].warned:.2f}"])
    mean: list[object] = ["mean"]
    for signal in foreign:
        values = [(getattr(own[name], signal), foreign[signal][name]) for name in names]
        mean += [
            f"{np.mean([auc(*pair) for pair in values]):.3f}",
            f"{np.mean([(theirs >= np.quantile(mine, 0.05)).mean() for mine, theirs in values]):.2f}",
            "{:.2f} / {:.2f}".format(
                *np.mean(
                    [[(side >= limits[signal]).mean() for side in pair] for pair in values],
                    axis=0,
                )
            ),
        ]
    return [*rows, [*mean, f"{np.mean([own[name].warned for name in names]):.2f}"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=[*ENGLISH, *CHINESE], default=[*ENGLISH, *CHINESE])
    parser.add_argument("--questions", type=int, default=500, help="most questions of a collection")
    parser.add_argument("--no-relevance", action="store_true", help="leave out the second table")
    arguments = parser.parse_args()
    began = time.perf_counter()
    table(
        f"{METRIC} (95% interval), at most {arguments.questions} questions of each collection",
        ["", "queries", "dense", "lexical", "rrf", "likewise", "over rrf", "over the better side", "cost"],
        quality_rows(arguments.sets, arguments.questions),
    )
    print("cost: time of the default's searches over that of the slower side")
    if not arguments.no_relevance:
        for language, group in (("English", ENGLISH), ("Chinese", CHINESE[:3])):
            names = [name for name in arguments.sets if name in group]
            if len(names) > 1:
                table(
                    f"{language}: own questions against those of the other collections",
                    [
                        "",
                        "relevance AUC",
                        "false at 95%",
                        "one limit",
                        "cosine AUC",
                        "false at 95%",
                        "one limit",
                        "warned",
                    ],
                    relevance_rows(names, min(200, arguments.questions)),
                )
        print("false at 95%: others that pass where 95% of a collection's own questions do")
        print("one limit: own kept / others passed, with one limit for all collections")
        print("warned: share of the own questions for which the encoder is called unfit")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
