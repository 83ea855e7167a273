"""Run questions through a search, score the rankings, compare configurations.

Nothing here knows how a search works: it is a function from a question to hits. Nothing is printed or
written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from likewise.errors import UsageError
from likewise.index.records import Json
from likewise.retrieval.evaluation.judgements import Judgements, Qrels, TrecRun
from likewise.retrieval.evaluation.metrics import DEFAULT_METRICS, parse_metric, trec_order
from likewise.retrieval.evaluation.statistics import Interval, bootstrap_interval, paired_p_value
from likewise.retrieval.hits import Hit

FORMAT_VERSION = 1
"""Version of the JSON that `Evaluation.to_json` gives."""

PASSAGES_PER_DOCUMENT = 3
"""Passages asked for per wanted document, because several passages of one document count once."""

SearchFunction = Callable[[str, int], Sequence[Hit]]
"""`search(question, k)`: at most k hits, best first."""

_PLACE = re.compile(r"^(?P<key>.*)#(?P<unit>line|page)=(?P<number>\d+)$", re.DOTALL)


@dataclass(frozen=True)
class RunResult:
    """One configuration, measured.

    Attributes:
        name: Name of the configuration.
        run: Query id -> answer -> score, the best passage of each document.
        values: Metric -> query id -> value. A query without results scores 0.
        seconds: Query id -> time of the search; empty for a run that was read from a file.
    """

    name: str
    run: TrecRun
    values: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def interval(self, metric: str) -> Interval:
        """Mean over the queries with its 95% bootstrap interval."""
        return bootstrap_interval(list(self.values[metric].values()))


@dataclass(frozen=True)
class Comparison:
    """Second minus first on the same queries.

    Attributes:
        difference: Mean difference and its 95% bootstrap interval.
        p_value: Of a two-sided paired randomisation test.
    """

    metric: str
    first: str
    second: str
    difference: Interval
    p_value: float


@dataclass(frozen=True)
class Failure:
    """A question whose answer was not found where it was looked for."""

    query_id: str
    query: str
    value: float
    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True)
class Evaluation:
    """Everything that was measured."""

    queries: Mapping[str, str]
    qrels: Qrels
    metrics: tuple[str, ...]
    runs: tuple[RunResult, ...]

    def comparisons(self) -> list[Comparison]:
        """Every pair of runs by every metric."""
        return [
            compare(first, second, metric)
            for metric in self.metrics
            for first, second in combinations(self.runs, 2)
        ]

    def failures(self, run: RunResult, *, limit: int = 20) -> list[Failure]:
        """The questions that `run` answers worst by the first metric, those below 1 only."""
        values = run.values[self.metrics[0]]
        worst = sorted((value, query) for query, value in values.items() if value < 1)[:limit]
        return [
            Failure(
                query,
                self.queries.get(query, query),
                value,
                tuple(sorted(answer for answer, grade in self.qrels[query].items() if grade > 0)),
                tuple(trec_order(run.run.get(query, {}))[:3]),
            )
            for value, query in worst
        ]

    def to_json(self) -> dict[str, Json]:
        """The evaluation as `evaluate --json` shows it."""
        return {
            "version": FORMAT_VERSION,
            "queries": len(self.qrels),
            "runs": [
                {
                    "name": run.name,
                    "metrics": {metric: _interval_json(run.interval(metric)) for metric in self.metrics},
                    "per_query": {metric: dict(run.values[metric]) for metric in self.metrics},
                }
                for run in self.runs
            ],
            "comparisons": [
                {
                    "metric": row.metric,
                    "first": row.first,
                    "second": row.second,
                    "difference": _interval_json(row.difference),
                    "p_value": row.p_value,
                }
                for row in self.comparisons()
            ],
        }


def evaluate(
    searches: Mapping[str, SearchFunction],
    judgements: Judgements,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    depth: int = 100,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Search every question with every configuration and score the rankings.

    Args:
        searches: Configurations by name.
        judgements: Questions and their answers.
        metrics: Names that `parse_metric` understands.
        depth: Documents per question that are looked at, at least 1.
        progress: Called with the number of searches done and their total.

    Raises:
        UsageError: A metric is unknown, or nothing is to be evaluated.
    """
    if not searches or not judgements.qrels or depth < 1:
        raise UsageError("expected at least one configuration, one judged question and a depth from 1")
    names = tuple(parse_metric(name).name for name in metrics)
    total, done = len(searches) * len(judgements.qrels), 0
    results = []
    for name, search in searches.items():
        run: dict[str, dict[str, float]] = {}
        seconds: dict[str, float] = {}
        for query, answers in judgements.qrels.items():
            start = time.perf_counter()
            hits = search(judgements.queries[query], depth * PASSAGES_PER_DOCUMENT)
            seconds[query] = time.perf_counter() - start
            run[query] = dict(list(answer_scores(hits, answers).items())[:depth])
            done += 1
            if progress:
                progress(done, total)
        results.append(RunResult(name, run, score_run(run, judgements.qrels, names), seconds))
    return Evaluation(judgements.queries, judgements.qrels, names, tuple(results))


def answer_scores(hits: Sequence[Hit], answers: Mapping[str, int]) -> dict[str, float]:
    """The best score of every document among the hits, or of the place in it that the judgements name.

    A hit that covers a judged page or line stands for that answer; any other hit stands for its document.

    Args:
        hits: Best first.
        answers: The judged answers of the query: `KEY`, `KEY#line=N` or `KEY#page=N`.
    """
    scores: dict[str, float] = {}
    for hit in hits:
        for answer in _matched(hit, answers):
            scores.setdefault(answer, hit.score)
    return scores


def _matched(hit: Hit, answers: Mapping[str, int]) -> list[str]:
    places = [match for match in map(_PLACE.match, answers) if match and match["key"] == hit.path]
    if not places:
        return [hit.path]
    covered = [match[0] for match in places if _covers(hit, match["unit"], int(match["number"]))]
    # Another passage of the same document is a miss of its own, not the document.
    return covered or [f"{hit.path}#passage={hit.passage_id}"]


def _covers(hit: Hit, unit: str, number: int) -> bool:
    return hit.page == number if unit == "page" else hit.lines[0] <= number <= hit.lines[1]


def score_run(run: TrecRun, qrels: Qrels, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Metric -> query -> value, for all judged queries; one that the run lacks scores 0, as in `ir_measures`.

    Example:
        >>> score_run({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}, "r": {"a": 1}}, ["MRR@10"])
        {'MRR@10': {'q': 0.5, 'r': 0.0}}
    """
    values: dict[str, dict[str, float]] = {name: {} for name in metrics}
    parsed = [(name, parse_metric(name)) for name in metrics]
    for query, answers in qrels.items():
        ranked = [answers.get(document, 0) for document in trec_order(run.get(query, {}))]
        judged = list(answers.values())
        for name, metric in parsed:
            values[name][query] = metric.measure(ranked, judged)
    return values


def compare(first: RunResult, second: RunResult, metric: str) -> Comparison:
    """How much better the second run is than the first, and whether chance would do."""
    queries = list(first.values[metric])
    before = [first.values[metric][query] for query in queries]
    after = [second.values[metric][query] for query in queries]
    difference = [b - a for a, b in zip(before, after, strict=True)]
    return Comparison(
        metric, first.name, second.name, bootstrap_interval(difference), paired_p_value(before, after)
    )


def _interval_json(interval: Interval) -> dict[str, Json]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}
