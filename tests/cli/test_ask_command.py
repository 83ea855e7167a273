"""`likewise ask`: answers with checked citations, and cited context without a generator."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]
QUESTION = "how often is the signing key rotated"


@pytest.fixture
def ask(run: Run, chat_server: Any) -> Run:
    return lambda *arguments, **options: run(
        "ask", QUESTION, "--base-url", chat_server.url, "--model", "demo", *arguments, **options
    )


def test_without_a_generator_the_cited_context_is_printed(run: Run) -> None:
    result = run("ask", QUESTION)
    assert result.exit_code == 0
    assert result.stdout == run("context", QUESTION).stdout
    assert "no generator is configured" in result.stderr and "--base-url" in result.stderr


def test_without_a_generator_json_has_no_answer(run: Run) -> None:
    value = json.loads(run("ask", QUESTION, "--json").stdout)
    assert (value["answer"], value["citations"]) == (None, None)
    assert value["sources"][0]["path"] == "keys.md"
    line = json.loads(run("ask", QUESTION, "--jsonl").stdout)
    assert line == {"version": 1, "type": "answer", **value}


@pytest.mark.parametrize("options", [[], ["--no-stream"]])
def test_an_answer_with_its_sources(options: list[str], ask: Run, chat_server: Any) -> None:
    result = ask(*options)
    assert result.exit_code == 0, result.output
    assert result.stdout == ("Rotate the signing key once a year [1].\n\n[1] keys.md:1-11  Signing keys\n")
    (request,) = chat_server.requests
    assert request["model"] == "demo"
    assert QUESTION in request["messages"][-1]["content"]


def test_the_answer_comes_in_pieces(ask: Run) -> None:
    lines = [json.loads(line) for line in ask("--jsonl").stdout.splitlines()]
    assert [line["type"] for line in lines] == ["piece"] * 8 + ["answer"]
    assert "".join(line["text"] for line in lines[:-1]) == lines[-1]["answer"]
    whole = ask("--jsonl", "--no-stream").stdout.splitlines()
    assert [json.loads(line) for line in whole] == lines[-1:]


def test_a_citation_that_no_source_has_is_reported(ask: Run, chat_server: Any) -> None:
    chat_server.reply = "Every year [9]."
    result = ask()
    assert result.exit_code == 0
    assert "warning: the answer cites [9]" in result.stderr
    assert "[1] keys.md" in result.stdout  # nothing valid is cited: all sources are shown


def test_an_answer_cannot_drive_the_terminal(ask: Run, chat_server: Any) -> None:
    chat_server.reply = "Yearly \x1b[31m [1]."
    assert "Yearly \\x1b[31m [1]." in ask().stdout


def test_a_generator_that_fails(ask: Run, chat_server: Any) -> None:
    chat_server.status = 404
    result = ask()
    assert result.exit_code == 1
    assert "error: " in result.stderr and "demo" in result.stderr


def test_nobody_listens(run: Run) -> None:
    result = run("ask", QUESTION, "--base-url", "http://127.0.0.1:9/v1", "--model", "demo")
    assert result.exit_code == 1
    assert "127.0.0.1:9" in result.stderr


def test_the_environment_names_the_generator(run: Run, chat_server: Any) -> None:
    environment = {"LIKEWISE_BASE_URL": chat_server.url, "LIKEWISE_MODEL": "small"}
    assert run("ask", QUESTION, env=environment).exit_code == 0
    assert chat_server.requests[0]["model"] == "small"


@pytest.mark.parametrize(
    "options",
    [
        ["--base-url", "http://localhost:1/v1", "--local-model", "x"],
        ["--base-url", "http://localhost:1/v1"],
        ["--base-url", "localhost", "--model", "x"],
        ["--model", "x"],
        ["--max-tokens", "0"],
    ],
)
def test_wrong_usage(options: list[str], run: Run) -> None:
    result = run("ask", QUESTION, *options)
    assert (result.exit_code, result.stdout) == (2, "")


def test_nothing_found_calls_no_generator(ask: Run, chat_server: Any) -> None:
    result = ask("--path", "nowhere/**")
    assert result.exit_code == 0
    assert result.stdout == "No passage of the index answers this question.\n"
    assert chat_server.requests == []
