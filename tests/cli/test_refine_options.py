"""The query language, snippets and refinements as the commands offer them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from likewise.cli import hits
from likewise.cli.terminal import Screen
from likewise.retrieval.snippets import Snippet

Run = Callable[..., Result]


def paths(result: Result) -> set[str]:
    assert result.exit_code == 0, result.output
    return {hit["path"] for hit in json.loads(result.stdout)["hits"]}


def test_phrases_exclusions_and_fields(run: Run) -> None:
    assert paths(run("search", '"retire the old one"', "--json")) == {"keys.md"}
    assert paths(run("search", "「簽署金鑰」", "--json")) == {"zh/金鑰.md"}
    assert paths(run("search", "“签署金钥”", "--json")) == {"zh/金鑰.md"}
    assert "backups.md" not in paths(run("search", "key -backup", "--json"))
    assert paths(run("search", "key path:zh/**", "--path", "*.md", "--json")) == {"zh/金鑰.md", "zh/备份.md"}


def test_raw_takes_the_query_as_it_is(run: Run) -> None:
    value = json.loads(run("search", '"no such phrase" -key path:x', "--raw", "--json").stdout)
    assert value["hits"] and value["query"] == '"no such phrase" -key path:x'
    assert not any("phrase" in notice or "filter" in notice for notice in value["notices"])


def test_fusion_of_both_sides(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def order(*arguments: str) -> list[int]:
        value = json.loads(run("search", "retire key backup", *arguments, "--json").stdout)
        return [hit["passage_id"] for hit in value["hits"]]

    lexical, dense = (order("--mode", mode, "-k", "3") for mode in ("lexical", "dense"))
    assert lexical[0] != dense[0]
    assert order("--fusion", "standardised@0", "-k", "3")[: len(lexical)] == lexical
    assert order("--fusion", "weighted@1", "-k", "3") == dense
    monkeypatch.setenv("LIKEWISE_FUSION", "weighted@1")
    assert order("-k", "3") == dense
    explained = run(
        "search", "rotate the signing key", "--fusion", "rrf", "--explain", "--rerank-seconds", "1"
    )
    assert "rrf(k=60)" in explained.stdout
    assert order("--mode", "lexical", "-k", "3") == lexical, "what the environment says is for hybrid search"
    refused = run("search", "key", "--mode", "dense", "--fusion", "rrf")
    assert refused.exit_code == 2 and "--fusion rrf is for hybrid search" in refused.stderr
    for command in ("search", "context", "ask"):
        refused = run(command, "key", "--fusion", "convexx")
        assert refused.exit_code == 2 and "expected a fusion rule out of convex, rrf" in refused.stderr


def test_context_and_ask_read_it_too(run: Run) -> None:
    packed = json.loads(run("context", '"retire the old one"', "--json").stdout)
    assert {source["path"] for source in packed["sources"]} == {"keys.md"}
    value = json.loads(run("ask", '"retire the old one"', "--json").stdout)
    assert {source["path"] for source in value["sources"]} == {"keys.md"}
    assert run("ask", "").exit_code == run("context", " ").exit_code == 2


def test_a_generator_is_asked_without_operators(run: Run, chat_server: object) -> None:
    run("ask", 'rotate "signing key" -draft', "--base-url", chat_server.url, "--model", "m")  # type: ignore[attr-defined]
    (request,) = chat_server.requests  # type: ignore[attr-defined]
    assert request["messages"][1]["content"].endswith("rotate signing key")


def test_a_mistyped_word_is_reported(run: Run) -> None:
    result = run("search", "signnig", "--mode", "lexical")
    assert "nothing contains 'signnig'; searched for 'signing'" in result.stderr


def test_snippets_in_json(run: Run) -> None:
    (hit,) = json.loads(run("search", "retiring", "-k", "1", "--mode", "lexical", "--json").stdout)["hits"]
    snippet = hit["snippet"]
    assert [snippet["text"][a:b] for a, b in snippet["marks"]] == ["retire"]
    line = run("search", "retiring", "-k", "1", "--mode", "lexical", "--jsonl").stdout
    assert json.loads(line)["snippet"] == snippet


SNIPPET = Snippet("Rotate the 金鑰 and the signing key", ((0, 6), (11, 13), (22, 33)))


def test_marks_are_styled_across_lines() -> None:
    plain = Screen(is_terminal=True, width=80, color=False)
    assert hits._marked_lines(SNIPPET, plain, 16) == ["Rotate the 金鑰", "and the signing", "key"]
    colored = Screen(is_terminal=True, width=80, color=True)
    lines = hits._marked_lines(SNIPPET, colored, 16)
    bold, end = "\x1b[33m\x1b[1m", "\x1b[0m"
    assert lines == [
        f"{bold}Rotate{end} the {bold}金鑰{end}",
        f"and the {bold}signing{end}",
        f"{bold}key{end}",
    ]


def test_control_characters_of_a_snippet_are_written_out() -> None:
    plain = Screen(is_terminal=True, width=80, color=False)
    assert hits._marked_lines(Snippet("a \x1b[2J key", ((7, 10),)), plain, 40) == ["a \\x1b[2J key"]


def test_diversity_and_expansion(run: Run) -> None:
    value = json.loads(run("search", "rotate the key", "--expand", "document", "--json").stdout)
    texts = [hit["text"] for hit in value["hits"] if hit["path"] == "keys.md"]
    assert len(texts) == 1 and "Rotate the signing key" in texts[0] and "duty officer" in texts[0]
    assert len(paths(run("search", "key", "--diversity", "1", "-k", "3", "--json"))) >= 2


@pytest.mark.parametrize(
    "options",
    [["--diversity", "2"], ["--expand", "page"], ["--candidates", "0"], ["--rerank-seconds", "0"],
     ["--expand-tokens", "0"]],
)  # fmt: skip
def test_options_out_of_range(options: list[str], run: Run) -> None:
    assert run("search", "key", *options).exit_code == 2


def test_a_missing_reranker_is_an_error_before_any_search(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    result = run("search", "key", "--rerank", "no-such/model")
    assert result.exit_code == 1 and "no-such/model" in result.stderr
