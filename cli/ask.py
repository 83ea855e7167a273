"""`likewise ask`: question to cited answer, streamed; without a generator, to cited context."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.context import print_context
from likewise.cli.extractive import check_reader, load_reader, print_extraction, reader_option
from likewise.cli.options import (
    filter_options,
    index_option,
    k_option,
    make_filter,
    mode_option,
    open_index,
    relevance_option,
)
from likewise.cli.output import Format, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.refine import Refine, refine_options
from likewise.cli.terminal import one_line, path_text, printable
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.index.records import Filter, Json
    from likewise.retrieval.answer import Answer, AnswerStream
    from likewise.retrieval.context import Context, Source
    from likewise.retrieval.generators.base import Generator
    from likewise.retrieval.hits import Mode

EPILOG = """\b
Examples:
  likewise ask "how do I rotate a signing key" \\
      --base-url http://localhost:11434/v1 --model qwen3:8b
  likewise ask 如何輪替簽署金鑰 --local-model ~/models/Qwen3-0.6B
  LIKEWISE_API_KEY=... likewise ask "who signs releases" \\
      --base-url https://api.example.com/v1 --model NAME --json
  likewise ask "how often is the key rotated" --extractive -m reader

Ollama, llama.cpp server, vLLM and every other server with the OpenAI chat
protocol work with --base-url. The key comes from LIKEWISE_API_KEY or
OPENAI_API_KEY; local servers need none. Without a generator the cited context
is printed instead, and the exit status is 0.

With --extractive nothing is generated: a model from likewise finetune qa reads
the passages, and the best span of them is quoted with its place.
"""

NO_GENERATOR = (
    "no generator is configured, so here is the cited context; for an answer add"
    " --base-url http://localhost:11434/v1 --model NAME (Ollama and others),"
    " or --local-model FOLDER (a Hugging Face model)"
)


@click.command(short_help="Answer a question from the index, with citations.", epilog=EPILOG)
@click.argument("question")
@click.option(
    "--base-url",
    metavar="URL",
    envvar="LIKEWISE_BASE_URL",
    show_envvar=True,
    help="Address of a server with the OpenAI chat protocol.",
)
@click.option(
    "--model",
    metavar="NAME",
    envvar="LIKEWISE_MODEL",
    show_envvar=True,
    help="Model, as the server names it.",
)
@click.option(
    "--local-model",
    metavar="NAME",
    envvar="LIKEWISE_LOCAL_MODEL",
    show_envvar=True,
    help="Hugging Face model to run in this process: a folder or a hub id.",
)
@click.option(
    "--extractive",
    is_flag=True,
    help="Quote the best span of the passages, found by a model for questions; nothing is generated.",
)
@reader_option
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most tokens of the answer. [default: the server's, 512 with --local-model]",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="TOKENS",
    help="Most tokens of the sources with their instructions.",
)
@click.option(
    "--tokenizer",
    metavar="NAME",
    help="Count the budget as the generator does: a tokenizer.json, a model folder or a hub id. [default: the"
    " local model's, else the index's encoder]",
)
@click.option("--no-stream", is_flag=True, help="Print the answer when it is whole and checked.")
@k_option(20)
@mode_option
@relevance_option
@filter_options
@refine_options
@index_option
@output_options
def ask(
    question: str,
    base_url: str | None,
    model: str | None,
    local_model: str | None,
    extractive: bool,
    reader: Path | None,
    max_tokens: int | None,
    budget: int,
    tokenizer: str | None,
    no_stream: bool,
    k: int,
    mode: Mode,
    min_relevance: float,
    filters: tuple[str, ...],
    paths: tuple[str, ...],
    suffixes: tuple[str, ...],
    languages: tuple[str, ...],
    refine: Refine,
    index_folder: Path | None,
    format: Format,
) -> None:
    """Answer QUESTION from the passages that the index holds, with citations [1] [2].

    The citations are checked afterwards: numbers that no source has and sentences without a source are
    reported on standard error.
    """
    from likewise.retrieval.answer import stream_answer
    from likewise.retrieval.context import pack_context
    from likewise.retrieval.extractive import extract_answers
    from likewise.retrieval.tokens import load_token_counter

    wanted: Filter = make_filter(filters, paths, suffixes, languages)
    parsed = refine.query(question)
    check_reader(reader, extractive=extractive)
    if extractive:
        finder = load_reader(reader)
        with open_index(index_folder) as index:
            found = extract_answers(
                refine.retriever(index),
                parsed,
                finder,
                k=k,
                mode=mode,
                filter=wanted,
                min_relevance=min_relevance,
            )
        print_extraction(found, format)
        return
    counter = load_token_counter(tokenizer) if tokenizer else None
    generator = _generator(base_url, model, local_model, max_tokens)
    with open_index(index_folder) as index:
        retriever = refine.retriever(index)
        if generator is None:
            hits = retriever.search(parsed, k=k, mode=mode, filter=wanted, min_relevance=min_relevance)
            _print_context(pack_context(hits, budget=budget, tokenizer=counter), format)
            return
        stream = stream_answer(
            retriever,
            parsed,
            generator,
            k=k,
            mode=mode,
            filter=wanted,
            min_relevance=min_relevance,
            budget=budget,
            tokenizer=counter,
        )
        try:
            _print_answer(stream, format, whole=no_stream)
        finally:
            stream.close()


def _generator(
    base_url: str | None, model: str | None, local_model: str | None, max_tokens: int | None
) -> Generator | None:
    if local_model and base_url:
        raise UsageError(
            "expected --base-url or --local-model, found both",
            remedy="leave one of them out (also of the environment)",
        )
    if local_model:
        from likewise.retrieval.generators.transformers_local import TransformersGenerator

        return TransformersGenerator(local_model, max_new_tokens=max_tokens or 512)
    if base_url:
        from likewise.retrieval.generators.openai_compatible import OpenAICompatible

        return OpenAICompatible(base_url, model or "", max_tokens=max_tokens)
    if model:
        raise UsageError(
            f"expected the address of the server that has {model}, found none",
            remedy="--base-url http://localhost:11434/v1",
        )
    return None


def _print_context(packed: Context, format: Format) -> None:
    if format is Format.TEXT:
        note(NO_GENERATOR)
        print_context(packed, format)
        return
    value: dict[str, Json] = {
        "version": 1,
        "question": packed.query,
        "answer": None,
        "generator": "",
        "finish_reason": None,
        "citations": None,
        "sources": [source.to_json() for source in packed.sources],
        "notices": [NO_GENERATOR, *packed.notices],
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([{"version": 1, "type": "answer", **value}])


def _print_answer(stream: AnswerStream, format: Format, *, whole: bool) -> None:
    if format is Format.JSON:
        write_json(stream.result().to_json())
        return
    if format is Format.JSONL:
        if not whole:
            write_jsonl({"version": 1, "type": "piece", "text": piece} for piece in stream)
        write_jsonl([{"version": 1, "type": "answer", **stream.result().to_json()}])
        return
    if not whole:
        for piece in stream:
            click.echo(printable(piece), nl=False)
    result = stream.result()
    write(printable(result.text) if whole else "")
    for line in _source_lines(result):
        write(line)
    for notice in result.notices:
        warn(notice)


def _source_lines(result: Answer) -> list[str]:
    """The sources that the answer cites; all of them if it cites none."""
    cited = [source for source in result.context.sources if source.number in result.citations.cited]
    sources = cited or list(result.context.sources)
    return ["", *map(_source_line, sources)] if sources else []


def _source_line(source: Source) -> str:
    first, last = source.lines
    lines = f"{first}" if first == last else f"{first}-{last}"
    page = f" (page {source.page})" if source.page is not None else ""
    heading = f"  {one_line(source.heading)}" if source.heading else ""
    return f"[{source.number}] {path_text(source.path)}:{lines}{page}{heading}"
