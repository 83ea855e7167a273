"""What `likewise evaluate` prints and writes. Nothing is measured here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.cli.output import Format, columns, count_text, screen, write, write_json, write_jsonl
from likewise.cli.terminal import Screen, cells, clip, one_line, wrap
from likewise.errors import DataError
from likewise.retrieval.evaluation.evaluate import Evaluation
from likewise.retrieval.evaluation.verdicts import decimal, interval_text, verdict

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.evaluation.configurations import Configuration
    from likewise.retrieval.evaluation.excerpts import Shown
    from likewise.retrieval.evaluation.subjects import Subject

_REPORTED_FAILURES = 20


def print_evaluation(evaluation: Evaluation, subject: Subject, format: Format, *, failures: int) -> None:
    """Print the figures; for a person also what they say."""
    if format is Format.JSON:
        write_json(evaluation.to_json())
    elif format is Format.JSONL:
        write_jsonl(_per_query(evaluation))
    else:
        place = screen()
        lines = _table(evaluation, subject, place) if place.is_terminal else _plain(evaluation)
        for line in lines:
            write(line)
        for line in _failures(evaluation, subject, place, limit=failures):
            write(line)


def _plain(evaluation: Evaluation) -> Iterator[str]:
    """One figure on each line under a header, columns separated by tabs."""
    yield "\t".join(("configuration", "metric", "mean", "low", "high", "p"))
    for run in evaluation.runs:
        for metric in evaluation.metrics:
            interval = run.interval(metric)
            yield "\t".join(
                (
                    one_line(run.name),
                    metric,
                    *(f"{v:.4f}" for v in (interval.mean, interval.low, interval.high)),
                    "",
                )
            )
    for row in evaluation.comparisons():
        d = row.difference
        figures = (f"{value:+.4f}" for value in (d.mean, d.low, d.high))
        pair = f"{one_line(row.second)} - {one_line(row.first)}"
        yield "\t".join((pair, row.metric, *figures, f"{row.p_value:.4f}"))


def _table(evaluation: Evaluation, subject: Subject, place: Screen) -> Iterator[str]:
    runs, metrics = evaluation.runs, evaluation.metrics
    yield place.style(
        f"{one_line(subject.title)}: {count_text(len(evaluation.qrels), 'question')}", bold=True
    )
    texts = {(run.name, metric): interval_text(run.interval(metric)) for run in runs for metric in metrics}
    wide = [("", *(run.name for run in runs))]
    wide += [(metric, *(texts[run.name, metric] for run in runs)) for metric in metrics]
    lines = columns(wide)
    if max(map(cells, lines)) > place.width:  # too many configurations to stand side by side
        lines = columns([(metric, run.name, texts[run.name, metric]) for metric in metrics for run in runs])
    yield from lines
    if subject.groups:
        from likewise.retrieval.evaluation.report import group_mean

        yield ""
        yield place.style(f"{metrics[0]} by kind of question", bold=True)
        yield from columns(
            [
                ("", "questions", *(run.name for run in runs)),
                *(
                    (kind, str(len(ids)), *(decimal(group_mean(run, metrics[0], ids)) for run in runs))
                    for kind, ids in subject.groups.items()
                ),
            ]
        )
    rows = evaluation.comparisons(metrics[:1])
    if rows:
        yield ""
    for row in rows:
        yield from wrap(one_line(verdict(row)), place.width)


def _failures(evaluation: Evaluation, subject: Subject, place: Screen, *, limit: int) -> Iterator[str]:
    best = evaluation.best
    failures = evaluation.failures(best, limit=limit) if limit else []
    if failures and not place.is_terminal:
        yield ""
        yield "\t".join(("configuration", evaluation.metrics[0], "question", "expected", "found"))
    for failure in failures:
        if not place.is_terminal:
            yield "\t".join(
                (
                    one_line(best.name),
                    f"{failure.value:.4f}",
                    one_line(failure.query),
                    " | ".join(one_line(subject.show(answer).label) for answer in failure.expected),
                    " | ".join(one_line(subject.show(answer).label) for answer in failure.found),
                )
            )
            continue
        yield ""
        yield place.style(clip(one_line(failure.query), place.width), bold=True)
        yield place.style(
            f"    {evaluation.metrics[0]} {decimal(failure.value)} by {one_line(best.name)}", dim=True
        )
        yield from _answers("should be", map(subject.show, failure.expected[:3]), place)
        yield from _answers("found", map(subject.show, failure.found), place)


def _answers(label: str, shown: Iterable[Shown], place: Screen) -> Iterator[str]:
    for number, each in enumerate(shown):
        head = f"    {label if not number else '':<10}{place.style(one_line(each.label), color='cyan')}"
        yield head
        if each.text:
            yield " " * 14 + place.style(clip(one_line(each.text), max(20, place.width - 14)), dim=True)


def _per_query(evaluation: Evaluation) -> Iterator[Mapping[str, Json]]:
    for run in evaluation.runs:
        for query in evaluation.qrels:
            outcome = evaluation.outcome(run, query)
            yield {
                "version": 1,
                "run": run.name,
                "query_id": query,
                "query": evaluation.queries.get(query),
                "metrics": {metric: run.values[metric][query] for metric in evaluation.metrics},
                "rank": outcome.rank,
                "expected": list(outcome.expected),
                "found": list(outcome.found),
            }


def settings_facts(
    evaluation: Evaluation, configurations: Sequence[Configuration], reranker: str | None
) -> dict[str, str]:
    """How it was measured, for a reader of the report."""
    from likewise.version import __version__

    facts = {}
    rules = sorted({each.fusion for each in configurations if each.mode == "hybrid"})
    if rules:
        facts["fusion"] = ", ".join(rules)
    if reranker and any(each.rerank for each in configurations):
        facts["reranker"] = reranker
    facts["depth"] = f"{evaluation.depth} documents of each ranking"
    facts["intervals"] = f"bootstrap of the questions, 95%, seed {evaluation.seed}"
    facts["tests"] = "two-sided paired randomisation, 10,000 samples"
    for run in evaluation.runs:
        if run.seconds:
            middle = sorted(run.seconds.values())[len(run.seconds) // 2]
            facts[f"time of {run.name}"] = f"{1000 * middle:.1f} ms in the median, at this depth"
    facts["likewise"] = __version__
    return facts


def write_html(
    path: Path,
    evaluation: Evaluation,
    subject: Subject,
    facts: Mapping[str, str],
    notices: Sequence[str],
    failures: int | None,
) -> None:
    """Write the report."""
    from likewise.retrieval.evaluation.report import Setting, html_report

    setting = Setting(
        subject.title,
        facts=facts,
        notices=notices,
        groups=subject.groups,
        show=subject.show,
        failures=_REPORTED_FAILURES if failures is None else failures,
    )
    _save(path, html_report(evaluation, setting))


def write_csv(path: Path, evaluation: Evaluation) -> None:
    """Write one row for each configuration and question."""
    rows: list[tuple[object, ...]] = [("run", "query_id", "query", *evaluation.metrics, "seconds")]
    for run in evaluation.runs:
        for query in evaluation.qrels:
            values = (run.values[metric][query] for metric in evaluation.metrics)
            seconds = f"{run.seconds[query]:.6f}" if query in run.seconds else ""
            rows.append((run.name, query, evaluation.queries.get(query, ""), *values, seconds))
    _save(path, _csv(rows))


def write_runs(path: Path, evaluation: Evaluation) -> None:
    """Write the rankings: one file, or one for each configuration with its name before the suffix."""
    from likewise.retrieval.evaluation.trec import run_lines

    for run in evaluation.runs:
        file = (
            path
            if len(evaluation.runs) == 1
            else path.with_name(f"{path.stem}.{_slug(run.name)}{path.suffix}")
        )
        _save(file, "".join(f"{line}\n" for line in run_lines(run.run, run.name)))


def write_qrels(path: Path, subject: Subject) -> None:
    """Write the judgements."""
    from likewise.retrieval.evaluation.trec import qrels_lines

    _save(path, "".join(f"{line}\n" for line in qrels_lines(subject.judgements.qrels)))


def write_questions(path: Path, subject: Subject) -> None:
    """Write the questions with their answers."""
    from likewise.retrieval.evaluation.questions import question_rows

    if not subject.judgements.queries:
        raise DataError("the questions cannot be written: judgements alone do not hold their texts")
    _save(path, _csv(question_rows(subject.judgements)))


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _slug(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_+" else "-" for character in name)


def _save(path: Path, text: str) -> None:
    try:
        # A lone surrogate, as file names may hold, cannot be written; it is shown as what it is.
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
