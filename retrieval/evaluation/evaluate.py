"""Run questions through a search, score the rankings, compare configurations.

Nothing here knows how a search works: it is a function from a question to hits. Nothing is printed or
written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from likewise.errors import UsageError
from likewise.index.records import Json
from likewise.retrieval.evaluation.judgements import Judgements, Place, Qrels, TrecRun
from likewise.retrieval.evaluation.metrics import DEFAULT_METRICS, parse_metric, trec_order
from likewise.retrieval.evaluation.statistics import Interval, bootstrap_interval, paired_p_value
from likewise.retrieval.hits import Hit

FORMAT_VERSION = 1
"""Version of the JSON that `Evaluation.to_json` gives."""

# Passages asked for per wanted document, because several passages of one document count once; the second
# number where the first does not give enough documents.
_PASSAGES_PER_DOCUMENT = (3, 10)

SearchFunction = Callable[[str, int], Sequence[Hit]]
"""`search(question, k)`: at most k hits, best first."""


@dataclass(frozen=True)
class RunResult:
    """One configuration, measured.

    Attributes:
        name: Name of the configuration.
        run: Query id -> answer -> score, the best passage of each document.
        values: Metric -> query id -> value. A query without results scores 0.
        seconds: Query id -> time of the search; empty for a run that was read from a file.
        seed: Of the bootstrap.
    """

    name: str
    run: TrecRun
    values: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    def interval(self, metric: str) -> Interval:
        """Mean over the queries with its 95% bootstrap interval."""
        return bootstrap_interval(list(self.values[metric].values()), seed=self.seed)


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
class Outcome:
    """One question with one configuration: what should be found, and what was.

    Attributes:
        value: Of the first metric.
        rank: Of the first answer that was found, from 1; None if none was.
        expected: The answers, the best first.
        found: The first three that were found.
    """

    query_id: str
    query: str
    value: float
    rank: int | None
    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True)
class Evaluation:
    """Everything that was measured.

    Attributes:
        queries: Text of every judged query, by id; of a run that was read from a file it may be missing.
        qrels: What answers them.
        metrics: Names, the one that matters most first.
        runs: In the order in which they were asked for.
        depth: Documents of each ranking that count.
        seed: Of intervals and tests.
    """

    queries: Mapping[str, str]
    qrels: Qrels
    metrics: tuple[str, ...]
    runs: tuple[RunResult, ...]
    depth: int = 100
    seed: int = 0

    @property
    def best(self) -> RunResult:
        """The run with the highest mean of the first metric; the earlier of two that are equal."""
        return max(self.runs, key=lambda run: sum(run.values[self.metrics[0]].values()))

    def comparisons(self, metrics: Sequence[str] | None = None) -> list[Comparison]:
        """Every pair of runs by every metric, or by some of them."""
        return [
            compare(first, second, metric, seed=self.seed)
            for metric in metrics or self.metrics
            for first, second in combinations(self.runs, 2)
        ]

    def failures(self, run: RunResult, *, limit: int = 20) -> list[Outcome]:
        """The questions that `run` answers worst by the first metric, those below 1 only.

        Questions without any right answer are left out: no search could answer them.
        """
        values = run.values[self.metrics[0]]
        worst = sorted((value, query) for query, value in values.items() if value < 1)
        failed = [query for _, query in worst if _relevant(self.qrels[query])]
        return [self.outcome(run, query) for query in failed[:limit]]

    def outcome(self, run: RunResult, query: str) -> Outcome:
        """What one question should have found with a run, and what it found.

        Args:
            run: One of `runs`.
            query: Id of a judged query.
        """
        expected = _relevant(self.qrels[query])
        ranked = trec_order(run.run.get(query, {}))
        rank = next((rank for rank, found in enumerate(ranked, start=1) if found in expected), None)
        value = run.values[self.metrics[0]][query]
        return Outcome(query, self.queries.get(query, query), value, rank, expected, tuple(ranked[:3]))

    def to_json(self) -> dict[str, Json]:
        """The evaluation as `evaluate --json` shows it."""
        return {
            "version": FORMAT_VERSION,
            "queries": len(self.qrels),
            "runs": [
                {
                    "name": run.name,
                    "metrics": {metric: _interval_json(run.interval(metric)) for metric in self.metrics},
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
    runs: Mapping[str, TrecRun] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Search every question with every configuration and score the rankings.

    Args:
        searches: Configurations by name.
        judgements: Questions and their answers.
        metrics: Names that `parse_metric` understands.
        depth: Documents per question that are looked at, at least 1.
        runs: Rankings that are there already, by name; they come first, and count to the same depth.
        seed: Of intervals and tests.
        progress: Called with the number of searches done and their total.

    Raises:
        UsageError: A metric is unknown or looks deeper than `depth`, two configurations have one name, or
            nothing is to be evaluated.
    """
    runs = runs or {}
    if not (searches or runs) or not judgements.qrels or depth < 1:
        raise UsageError("expected at least one configuration, one judged question and a depth from 1")
    both = sorted(set(searches) & set(runs))
    if both:
        raise UsageError(f"two configurations are called {both[0]!r}", remedy="rename the run's file")
    parsed = [parse_metric(name) for name in metrics]
    for metric in parsed:
        if metric.cutoff is not None and metric.cutoff > depth:
            raise UsageError(
                f"{metric.name} looks deeper than the {depth} documents that are ranked",
                remedy=f"--depth {metric.cutoff}",
            )
    names = tuple(dict.fromkeys(metric.name for metric in parsed))
    total, done = len(searches) * len(judgements.qrels), 0
    results = []
    for name, given in runs.items():
        cut = {query: {key: given[query][key] for key in trec_order(given[query])[:depth]} for query in given}
        results.append(RunResult(name, cut, score_run(cut, judgements.qrels, names), seed=seed))
    for name, search in searches.items():
        run: dict[str, dict[str, float]] = {}
        seconds: dict[str, float] = {}
        for query, answers in judgements.qrels.items():
            start = time.perf_counter()
            run[query] = _ranked(search, judgements.queries[query], answers, depth)
            seconds[query] = time.perf_counter() - start
            done += 1
            if progress:
                progress(done, total)
        results.append(RunResult(name, run, score_run(run, judgements.qrels, names), seconds, seed))
    return Evaluation(judgements.queries, judgements.qrels, names, tuple(results), depth, seed)


def _ranked(search: SearchFunction, query: str, answers: Mapping[str, int], depth: int) -> dict[str, float]:
    """The first `depth` documents, or as many as a good number of passages are of."""
    found: dict[str, float] = {}
    for passages in (depth * each for each in _PASSAGES_PER_DOCUMENT):
        hits = search(query, passages)
        found = answer_scores(hits, answers)
        if len(found) >= depth or len(hits) < passages:
            break
    return dict(list(found.items())[:depth])


def answer_scores(hits: Sequence[Hit], answers: Mapping[str, int]) -> dict[str, float]:
    """The best score of every document among the hits, or of the place in it that the judgements name.

    A hit that covers a judged page or line stands for that answer; any other hit stands for its document.

    Args:
        hits: Best first.
        answers: The judged answers of the query: `KEY`, `KEY#line=N` or `KEY#page=N`.
    """
    places: dict[str, list[Place]] = {}
    for place in map(Place.of, answers):
        if place.unit:
            places.setdefault(place.key, []).append(place)
    scores: dict[str, float] = {}
    for hit in hits:
        for answer in _matched(hit, places.get(hit.path, ())):
            scores.setdefault(answer, hit.score)
    return scores


def _matched(hit: Hit, places: Sequence[Place]) -> list[str]:
    if not places:
        return [hit.path]
    covered = [str(place) for place in places if covers(place, hit.lines, hit.page)]
    # Another passage of the same document is a miss of its own, not the document.
    return covered or [f"{hit.path}#passage={hit.passage_id}"]


def covers(place: Place, lines: tuple[int, int], page: int | None) -> bool:
    """Whether a passage holds the place, given that it is of the place's document."""
    if place.unit == "page":
        return page == place.number
    return not place.unit or lines[0] <= place.number <= lines[1]


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


def compare(first: RunResult, second: RunResult, metric: str, *, seed: int = 0) -> Comparison:
    """How much better the second run is than the first, and whether chance would do."""
    queries = list(first.values[metric])
    before = [first.values[metric][query] for query in queries]
    after = [second.values[metric][query] for query in queries]
    difference = [b - a for a, b in zip(before, after, strict=True)]
    interval = bootstrap_interval(difference, seed=seed)
    return Comparison(metric, first.name, second.name, interval, paired_p_value(before, after, seed=seed))


def recall_curve(run: TrecRun, qrels: Qrels, depth: int) -> list[float]:
    """Mean recall at 1, 2, ... `depth` over the queries that have an answer.

    Example:
        >>> recall_curve({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, 3)
        [0.0, 1.0, 1.0]
    """
    total, queries = [0.0] * depth, 0
    for query, answers in qrels.items():
        relevant = set(_relevant(answers))
        if not relevant:
            continue
        queries += 1
        ranked = trec_order(run.get(query, {}))
        found = 0
        for rank in range(depth):
            found += rank < len(ranked) and ranked[rank] in relevant
            total[rank] += found / len(relevant)
    return [value / queries if queries else 0.0 for value in total]


def _relevant(answers: Mapping[str, int]) -> tuple[str, ...]:
    """Right answers, the best first."""
    return tuple(sorted((a for a, grade in answers.items() if grade > 0), key=lambda a: (-answers[a], a)))


def _interval_json(interval: Interval) -> dict[str, Json]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}
