"""`likewise evaluate`: how good the search is, by labelled questions or by some made from the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import index_option, index_path
from likewise.cli.output import Format, note, output_options
from likewise.cli.progress import Progress
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.evaluation.configurations import Configuration
    from likewise.retrieval.evaluation.evaluate import SearchFunction
    from likewise.retrieval.evaluation.judgements import Judgements, TrecRun
    from likewise.retrieval.evaluation.subjects import Subject

EPILOG = """\b
Examples:
  likewise evaluate --questions-from-documents
  likewise evaluate --questions questions.csv --html report.html
  likewise evaluate scifact --compare lexical,hybrid:rrf,hybrid --failures 5
  likewise evaluate scifact --encoder ./my-encoder --save-run run.txt
  likewise evaluate --run theirs.txt --run ours.txt --qrels qrels.txt --json

A CSV has the columns question and file, and perhaps page, line, grade and id. In a pipe each figure is one
line, separated by tabs under a header: configuration, metric, mean, low, high, and for a comparison its
p-value. --failures follow behind an empty line, under a header of their own.
"""

_SELF_QUESTIONS = 200
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Measure how good the search is.", epilog=EPILOG)
@click.argument("collection", metavar="[FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--questions", metavar="CSV", type=_FILE, help="Questions with the files that answer them, for an index."
)
@click.option(
    "--questions-from-documents",
    "self_questions",
    is_flag=False,
    flag_value=_SELF_QUESTIONS,
    type=click.IntRange(min=1),
    metavar="[N]",
    help=f"Make N questions ({_SELF_QUESTIONS} without N) from the index itself: titles, headings, sentences,"
    " searched in a copy of the index that lacks them.",
)
@click.option(
    "--qrels", metavar="FILE", type=_FILE, help="Judgements for --run, in the form of TREC or BEIR."
)
@click.option(
    "--run", "runs", multiple=True, metavar="FILE", type=_FILE, help="Score a TREC run. Repeatable."
)
@click.option(
    "--compare",
    metavar="LIST",
    help="What to search with: dense, lexical, hybrid, hybrid:FUSION, each perhaps with +rerank."
    " [default: dense,lexical,hybrid; nothing if there is a --run]",
)
@click.option(
    "--fusion",
    metavar="LIST",
    help="Fusion rules that hybrid stands for, such as standardised@0.6,standardised@0.8.",
)
@click.option("--reranker", metavar="NAME", help="Cross-encoder for +rerank: a model folder or a hub id.")
@click.option(
    "--metrics",
    metavar="LIST",
    help="nDCG, recall, MRR, MAP, success, each perhaps with @K; the first one decides."
    " [default: nDCG,recall,recall@100,MRR,MAP,success@1,success@5]",
)
@click.option(
    "-k",
    "--k",
    "cutoff",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Cut-off of metrics that name none.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Documents of each ranking that count.",
)
@click.option(
    "--split", default="test", show_default=True, metavar="NAME", help="Which judgements of FOLDER to use."
)
@click.option(
    "--encoder", metavar="NAME", help="Encoder for the corpus of FOLDER. [default: all-MiniLM-L6-v2-zh]"
)
@click.option("--no-cache", is_flag=True, help="Do not keep the index of FOLDER's corpus for the next time.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Of intervals, tests and the choice of questions.",
)
@click.option(
    "--failures",
    type=click.IntRange(min=0),
    metavar="N",
    help="List the N questions that are answered worst.",
)
@click.option("--html", metavar="FILE", type=_FILE, help="Write a report with plots.")
@click.option("--csv", "csv_file", metavar="FILE", type=_FILE, help="Write every metric of every question.")
@click.option(
    "--save-run",
    metavar="FILE",
    type=_FILE,
    help="Write the rankings for trec_eval; of several, each to a file with its name in it.",
)
@click.option("--save-qrels", metavar="FILE", type=_FILE, help="Write the judgements for trec_eval.")
@click.option("--save-questions", metavar="FILE", type=_FILE, help="Write the questions as a CSV.")
@index_option
@output_options
def evaluate(
    collection: Path | None,
    questions: Path | None,
    self_questions: int | None,
    qrels: Path | None,
    runs: tuple[Path, ...],
    compare: str | None,
    fusion: str | None,
    reranker: str | None,
    metrics: str | None,
    cutoff: int,
    depth: int,
    split: str,
    encoder: str | None,
    no_cache: bool,
    seed: int,
    failures: int | None,
    html: Path | None,
    csv_file: Path | None,
    save_run: Path | None,
    save_qrels: Path | None,
    save_questions: Path | None,
    index_folder: Path | None,
    format: Format,
) -> None:
    """Measure how good the search is, and whether one way to search is better than another.

    The questions come from FOLDER (BEIR's form: queries, qrels and a corpus, gzipped or not), from a CSV,
    from --qrels for runs that are there already, or from the documents themselves. The corpus of FOLDER is
    indexed for it; with --index, its judgements name documents of that index instead.
    """
    from likewise.cli import evaluation_output as output
    from likewise.retrieval.evaluation import subjects
    from likewise.retrieval.evaluation.configurations import DEFAULT_CONFIGURATIONS, parse_configurations
    from likewise.retrieval.evaluation.evaluate import evaluate as measure

    _check_sources(collection, questions, self_questions, qrels, runs, compare)
    searched = compare or ("" if runs else DEFAULT_CONFIGURATIONS)
    rules = [rule.strip() for rule in fusion.split(",")] if fusion else []
    configurations = parse_configurations(searched, fusions=rules) if searched else []
    if reranker is None and (reranked := [each.name for each in configurations if each.rerank]):
        raise UsageError(
            f"{reranked[0]} needs a cross-encoder, and none is given",
            remedy="--reranker NAME, a model folder or a hub id",
        )
    names = metric_names(metrics, cutoff, depth)
    rankings = _load_runs(runs)
    with Progress() as progress:

        def report(phase: str, done: int, total: int | None = None) -> None:
            progress.show(phase, done=done, total=total)

        def opened() -> Index:
            return _open(index_folder, encoder)

        searching = bool(configurations)
        if qrels is not None:
            source = subjects.of_qrels(qrels)
        elif questions is not None:
            source = subjects.of_questions(questions, opened if searching else None)
        elif self_questions is not None:
            source = subjects.of_documents(opened(), count=self_questions, seed=seed, progress=report)
        elif collection is None:
            raise AssertionError("one source is given")
        elif index_folder is not None or not searching:
            source = subjects.of_judged_index(collection, opened if searching else None, split=split)
        else:
            source = subjects.of_collection(
                collection, encoder=encoder, split=split, keep=not no_cache, progress=report
            )
        with source as subject:
            notices = [*subject.notices, *_overlap(rankings, subject.judgements)]
            searches = _searches(subject, configurations, reranker)
            measured = measure(
                searches,
                subject.judgements,
                metrics=names,
                depth=depth,
                runs=rankings,
                seed=seed,
                progress=lambda done, total: report("searching", done, total),
            )
            progress.clear()
            facts = dict(subject.facts) | output.settings_facts(measured, configurations, reranker)
            for notice in notices:
                note(notice)
            if html:
                output.write_html(html, measured, subject, facts, notices, failures)
            if csv_file:
                output.write_csv(csv_file, measured)
            if save_run:
                output.write_runs(save_run, measured)
            if save_qrels:
                output.write_qrels(save_qrels, subject)
            if save_questions:
                output.write_questions(save_questions, subject)
            output.print_evaluation(measured, subject, format, failures=failures or 0)


def metric_names(text: str | None, cutoff: int, depth: int) -> list[str]:
    """Metrics by their full names; of the default ones those that do not look deeper than the ranking.

    Example:
        >>> metric_names("ndcg,recall@50", 10, 100)
        ['nDCG@10', 'recall@50']
        >>> metric_names(None, 5, 20)
        ['nDCG@5', 'recall@5', 'MRR@5', 'MAP', 'success@1', 'success@5']
    """
    from likewise.retrieval.evaluation.metrics import parse_metric

    wanted = text or "nDCG,recall,recall@100,MRR,MAP,success@1,success@5"
    parsed = [parse_metric(name, k=cutoff) for name in wanted.split(",")]
    if text is None:
        parsed = [metric for metric in parsed if metric.cutoff is None or metric.cutoff <= max(depth, cutoff)]
    return list(dict.fromkeys(metric.name for metric in parsed))


def _check_sources(
    collection: Path | None,
    questions: Path | None,
    self_questions: int | None,
    qrels: Path | None,
    runs: Sequence[Path],
    compare: str | None,
) -> None:
    sources = {
        "a FOLDER": collection,
        "--questions": questions,
        "--questions-from-documents": self_questions,
        "--qrels": qrels,
    }
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        raise UsageError(
            f"expected one of {', '.join(sources)}, found {' and '.join(given) or 'none'}",
            remedy=None if given else "likewise evaluate --questions-from-documents",
        )
    if qrels is not None and not runs:
        raise UsageError("--qrels judges runs, found no --run", remedy="--run FILE, or a FOLDER with queries")
    if qrels is not None and compare:
        raise UsageError("--compare searches for the questions, whose texts --qrels does not hold")
    if self_questions is not None and runs:
        raise UsageError("--run cannot answer questions that are made only now", remedy="leave --run away")


def _open(index_folder: Path | None, encoder: str | None) -> Index:
    """The index that is meant, with its encoder checked before anything long begins."""
    from likewise.index.index import Index

    index = Index.open(index_path(index_folder), encoder=encoder)
    if encoder is not None:
        _ = index.encoder  # raises if the vectors come from another one
    return index


def _load_runs(files: Sequence[Path]) -> dict[str, TrecRun]:
    from likewise.retrieval.evaluation.trec import load_run

    names = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    if len(set(names)) < len(names):
        raise UsageError("a run is named twice")
    return {name: load_run(file) for name, file in zip(names, files, strict=True)}


def _overlap(rankings: Mapping[str, TrecRun], judgements: Judgements) -> list[str]:
    from likewise.retrieval.evaluation.matching import check_overlap

    return list(check_overlap(rankings, judgements)) if rankings else []


def _searches(
    subject: Subject, configurations: Sequence[Configuration], reranker: str | None
) -> dict[str, SearchFunction]:
    from likewise.retrieval.evaluation.configurations import search_function

    index = subject.index
    if index is None:
        return {}
    model = None
    if reranker is not None and any(each.rerank for each in configurations):
        from likewise.retrieval.rerank.cross_encoder import CrossEncoderReranker

        model = CrossEncoderReranker(reranker)
        model.load()  # now rather than within the time of the first search
    return {
        each.name: search_function(index, each, reranker=model, as_typed=subject.as_typed)
        for each in configurations
    }
