"""An evaluation as one HTML page: no scripts, nothing loaded from elsewhere, every text escaped.

Only the words and the order of the page are made here; plots come from `plots`, colours from `report_style`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations

from likewise.retrieval.evaluation.evaluate import Evaluation, Outcome, RunResult, recall_curve
from likewise.retrieval.evaluation.excerpts import Show, Shown, show_plainly
from likewise.retrieval.evaluation.plots import Bar, Line, gain_plot, recall_plot
from likewise.retrieval.evaluation.report_style import COLORS, STYLE
from likewise.retrieval.evaluation.verdicts import decimal, verdict

_CURVE_DEPTH = 100
_TITLE_LENGTH = 120


@dataclass(frozen=True)
class Setting:
    """What a page says about the evaluation itself.

    Attributes:
        title: What was measured, for a person.
        facts: What it was measured with: encoder, index, fusion ...
        notices: What a reader should know before the figures.
        groups: Kinds of questions: name -> query ids; empty for none.
        show: How answers look.
        failures: How many failed questions are listed.
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    show: Show = show_plainly
    failures: int = 20


def html_report(evaluation: Evaluation, setting: Setting) -> str:
    """The page.

    Args:
        evaluation: What was measured.
        setting: What else the page says.
    """
    page = _Page(evaluation, setting)
    title = escape(f"Retrieval report: {setting.title}")
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';',
            " style-src 'unsafe-inline'\">",
            f"<title>{title}</title><style>{STYLE}</style></head><body><main>\n",
            *(f"{part}\n" for part in page.parts() if part),
            "</main></body></html>\n",
        ]
    )


class _Page:
    def __init__(self, evaluation: Evaluation, setting: Setting) -> None:
        self._evaluation = evaluation
        self._setting = setting
        self._first = evaluation.metrics[0]
        self._colors = {run.name: number % COLORS for number, run in enumerate(evaluation.runs)}

    def parts(self) -> list[str]:
        return [
            self._head(),
            self._forest(),
            self._table(),
            self._groups(),
            self._curve(),
            self._gains(),
            self._failures(),
            self._facts(),
        ]

    def _head(self) -> str:
        evaluation, setting = self._evaluation, self._setting
        count = len(evaluation.qrels)
        lines = [
            f"<h1>{escape(setting.title)}</h1>",
            f'<p class="soft">{count:,} question{"" if count == 1 else "s"}, '
            f"{escape(', '.join(run.name for run in evaluation.runs))}</p>",
            *(f'<p class="notice">{escape(notice)}</p>' for notice in setting.notices),
        ]
        verdicts = [verdict(row) for row in evaluation.comparisons([self._first])]
        if verdicts:
            lines.append('<ul class="verdicts">')
            lines += [f"<li>{escape(text[0].upper() + text[1:])}.</li>" for text in verdicts]
            lines.append("</ul>")
        return "\n".join(lines)

    def _forest(self) -> str:
        rows = []
        for run in self._evaluation.runs:
            interval = run.interval(self._first)
            low, mean, high = (
                f"{100 * share:.2f}%" for share in (interval.low, interval.mean, interval.high)
            )
            rows.append(
                f'<span class="key c{self._colors[run.name]}">{escape(run.name)}</span>'
                f'<span class="track c{self._colors[run.name]}">'
                f'<i style="left:{low};width:calc({high} - {low})"></i><b style="left:{mean}"></b></span>'
                f'<span class="value">{decimal(interval.mean)}</span>'
            )
        return (
            f'<h2>{escape(self._first)}</h2><p class="soft small">Mean over the questions, from 0 to 1, with'
            " its 95% interval: other questions of the same kind would give a mean in there.</p>"
            f'<div class="forest">{"".join(rows)}</div>'
        )

    def _table(self) -> str:
        runs = self._evaluation.runs
        head = "".join(f"<th>{escape(run.name)}</th>" for run in runs)
        body = []
        for metric in self._evaluation.metrics:
            intervals = [run.interval(metric) for run in runs]
            means = [interval.mean for interval in intervals]
            cells = "".join(
                f"<td{_best(interval.mean, means)}>"
                f"<b>{decimal(interval.mean)}</b>"
                f'<span class="range">{decimal(interval.low)} to {decimal(interval.high)}</span></td>'
                for interval in intervals
            )
            body.append(f"<tr><th>{escape(metric)}</th>{cells}</tr>")
        return f"<h2>All metrics</h2>{_scrolling(head, body)}"

    def _groups(self) -> str:
        if not self._setting.groups:
            return ""
        runs = self._evaluation.runs
        head = "<th>questions</th>" + "".join(f"<th>{escape(run.name)}</th>" for run in runs)
        body = []
        for name, queries in self._setting.groups.items():
            means = [group_mean(run, self._first, queries) for run in runs]
            cells = "".join(f"<td{_best(mean, means)}><b>{decimal(mean)}</b></td>" for mean in means)
            body.append(f"<tr><th>{escape(name)}</th><td>{len(queries)}</td>{cells}</tr>")
        return f"<h2>{escape(self._first)} by kind of question</h2>{_scrolling(head, body)}"

    def _curve(self) -> str:
        evaluation = self._evaluation
        depth = min(_CURVE_DEPTH, evaluation.depth)
        lines = [
            Line(run.name, recall_curve(run.run, evaluation.qrels, depth), self._colors[run.name])
            for run in evaluation.runs
        ]
        return (
            "<h2>How far down one has to read</h2>"
            '<p class="soft small">Share of the right answers among the first results, by how many of them'
            f" one looks at (1 to {depth}).</p><figure>{self._legend()}{recall_plot(lines)}</figure>"
        )

    def _gains(self) -> str:
        pairs = list(combinations(self._evaluation.runs, 2))
        if not pairs:
            return ""
        # What was asked for last is usually what is to be judged: its comparisons come first.
        pairs.sort(key=lambda pair: -self._evaluation.runs.index(pair[1]))
        figures = [self._gain(*pair) for pair in pairs]
        more = (
            f"<details><summary>{len(figures) - 1} more</summary>{''.join(figures[1:])}</details>"
            if len(figures) > 1
            else ""
        )
        return (
            "<h2>Question by question</h2>"
            f'<p class="soft small">Difference in {escape(self._first)} for each question, the largest gain'
            f" first. Point at a bar to see its question.</p>{figures[0]}{more}"
        )

    def _gain(self, first: RunResult, second: RunResult) -> str:
        before, after = first.values[self._first], second.values[self._first]
        bars = [
            Bar(
                after[query] - before[query],
                f"{_clipped(self._evaluation.queries.get(query, query))}: {decimal(before[query])}"
                f" to {decimal(after[query])}",
            )
            for query in before
        ]
        better, worse = sum(bar.value > 0 for bar in bars), sum(bar.value < 0 for bar in bars)
        plot = gain_plot(bars, gain_color=self._colors[second.name], loss_color=self._colors[first.name])
        return (
            f'<figure><figcaption><span class="key c{self._colors[second.name]}">{escape(second.name)}</span>'
            f' better for {better}, <span class="key c{self._colors[first.name]}">{escape(first.name)}</span>'
            f" for {worse}, equal for {len(bars) - better - worse}</figcaption>{plot}</figure>"
        )

    def _failures(self) -> str:
        best = self._evaluation.best
        failed = self._evaluation.failures(best, limit=self._setting.failures)
        if not failed:
            return ""
        whose = f" by {escape(best.name)}" if len(self._evaluation.runs) > 1 else ""
        return (
            f"<h2>Answered worst{whose}</h2>"
            f'<p class="soft small">The {len(failed)} questions with the lowest {escape(self._first)}.</p>'
            + "".join(map(self._failure, failed))
        )

    def _failure(self, failure: Outcome) -> str:
        scores = ", ".join(
            f"{run.name} {decimal(run.values[self._first][failure.query_id])}"
            for run in self._evaluation.runs
        )
        rank = "not found" if failure.rank is None else f"first right answer at rank {failure.rank}"
        name = "" if failure.query_id == failure.query else f"{failure.query_id}: "
        show = self._setting.show
        expected = "".join(_answer(show(answer), right=True) for answer in failure.expected[:3])
        if len(failure.expected) > 3:
            expected += f'<p class="soft small">and {len(failure.expected) - 3} more</p>'
        found = (
            "".join(_answer(show(answer), right=answer in failure.expected) for answer in failure.found)
            or '<p class="soft small">nothing</p>'
        )
        return (
            f"<article><h3>{escape(failure.query)}</h3>"
            f'<p class="soft small">{escape(f"{name}{rank}; {scores}")}</p><div class="pair">'
            f"<div><h4>Should be found</h4>{expected}</div><div><h4>Was found first</h4>{found}</div></div>"
            "</article>"
        )

    def _facts(self) -> str:
        rows = [
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self._setting.facts.items()
        ]
        return f'<h2>Measured with</h2><table class="settings">{"".join(rows)}</table>' if rows else ""

    def _legend(self) -> str:
        keys = "".join(
            f'<span class="key c{color}">{escape(name)}</span>' for name, color in self._colors.items()
        )
        return f'<div class="legend">{keys}</div>'


def group_mean(run: RunResult, metric: str, queries: Sequence[str]) -> float:
    """Mean of a metric over some of the questions."""
    values = run.values[metric]
    return sum(values[query] for query in queries) / len(queries)


def _best(mean: float, means: Sequence[float]) -> str:
    return ' class="best"' if len(means) > 1 and mean == max(means) else ""


def _scrolling(head: str, body: Sequence[str]) -> str:
    return f'<div class="scroll"><table><tr><th></th>{head}</tr>{"".join(body)}</table></div>'


def _answer(shown: Shown, *, right: bool) -> str:
    label = escape(shown.label)
    if shown.link:
        label = f'<a href="{escape(shown.link)}">{label}</a>'
    title = f' <span class="soft">{escape(shown.title)}</span>' if shown.title else ""
    text = f"<q>{escape(shown.text)}</q>" if shown.text else ""
    kind = "answer right" if right else "answer"
    return f'<div class="{kind}"><span class="where">{label}{title}</span>{text}</div>'


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_LENGTH else line[:_TITLE_LENGTH] + "…"
