"""`likewise search`, `similar` and `context`: what they print, and what they refuse."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from likewise.cli import hits, output
from likewise.cli.terminal import Screen
from likewise.index.records import Passage, Span, StoredPassage
from likewise.retrieval.hits import Hit, HitScores, SearchResult

Run = Callable[..., Result]
MakeHit = Callable[..., Hit]


def paths(result: Result) -> list[str]:
    return [hit["path"] for hit in json.loads(result.stdout)["hits"]]


@pytest.mark.parametrize(
    ("query", "path"),
    [("rotate the signing key", "keys.md"), ("輪替簽署金鑰", "zh/金鑰.md"), ("恢复备份", "zh/备份.md")],
)
@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_the_right_document_comes_first(query: str, path: str, mode: str, run: Run) -> None:
    result = run("search", query, "--mode", mode, "--json")
    assert paths(result)[0] == path
    assert result.stderr == ""


def test_a_pipe_gets_one_line_per_hit(run: Run) -> None:
    result = run("search", "rotate the signing key", "-k", "2")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    place, score, heading, text = lines[0]
    assert place == "keys.md:7"
    assert float(score) > float(lines[1][1])
    assert heading == "Signing keys"
    assert text == "Rotate the signing key once a year."


def test_what_a_pipe_shows_stands_in_the_line_it_names(run: Run, indexed: Path) -> None:
    for query in ("duty officer", "noon canteen", "輪替簽署金鑰", "恢复归档", "thirty days"):
        place, _, _, text = run("search", query, "-k", "1").stdout.rstrip("\n").split("\t")
        path, _, line = place.rpartition(":")
        lines = (indexed / path).read_text(encoding="utf-8").splitlines()
        assert text in lines[int(line) - 1], query


def test_a_long_passage_is_one_short_line_in_a_pipe(
    make_hit: MakeHit, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = make_hit(text="rotate\nkeys " * 500, lines=(4, 504), page=2, path="a.pdf")
    hits.print_result(SearchResult((hit,), "9", "similar"), output.Format.TEXT, full=False, explain=False)
    [line] = capsys.readouterr().out.splitlines()
    place, _, _, text = line.split("\t")
    assert place == "a.pdf:4 (page 2)"
    assert text.startswith("rotate keys rotate") and text.endswith("…") and len(text) <= 280


def test_full_prints_whole_passages(run: Run) -> None:
    result = run("search", "rotate the signing key", "-k", "1", "--full")
    assert " 1  keys.md:1-11  relevance " in result.stdout
    assert "    A revoked key is listed in the bulletin." in result.stdout


def test_explain_shows_both_ranks(run: Run) -> None:
    result = run("search", "rotate the signing key", "-k", "1", "--explain")
    assert "(rank 1) | BM25 " in result.stdout
    assert "standardised(weight=0.6): dense " in result.stdout and " sd above the index) + " in result.stdout


def test_at_a_terminal_hits_are_wrapped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "screen", lambda: Screen(is_terminal=True, width=44, color=True))
    result = run("search", "輪替簽署金鑰", "-k", "1", color=True)
    assert "\x1b[36m\x1b[1mzh/金鑰.md:1-7\x1b[0m" in result.stdout
    # The best sentence with the query's words marked, folded at two cells a character.
    bold, end = "\x1b[33m\x1b[1m", "\x1b[0m"
    assert f"    {bold}簽署金鑰{end}每年{bold}輪替{end}一次。" in result.stdout.splitlines()


def test_a_terminal_is_found_by_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert output.screen().is_terminal


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--language", "zh"], {"zh/金鑰.md", "zh/备份.md"}),
        (["--suffix", "txt"], {"notes.txt"}),
        (["--suffix", ".txt"], {"notes.txt"}),
        (["--path", "zh/**"], {"zh/金鑰.md", "zh/备份.md"}),
        (["--filter", "-path:zh/**", "--filter", "suffix:.md"], {"keys.md", "backups.md"}),
        (["--filter", "title:backups"], {"backups.md"}),
    ],
)
def test_filters(options: list[str], expected: set[str], run: Run) -> None:
    assert set(paths(run("search", "key", *options, "--json"))) == expected


def test_a_filter_that_matches_nothing_says_so(run: Run) -> None:
    result = run("search", "key", "--path", "nowhere/**")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "note: the filter matches no passage\n"


def test_a_filter_that_makes_no_sense_is_wrong_usage(run: Run) -> None:
    result = run("search", "key", "--filter", "colour:red")
    assert result.exit_code == 2
    assert "colour" in result.stderr


@pytest.mark.parametrize("query", ["", "  ", "x" * 100_001])
def test_queries_that_cannot_be_searched(query: str, run: Run) -> None:
    result = run("search", query)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "expected a query" in result.stderr


def test_a_bad_query_is_reported_before_a_missing_index(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("search", "").exit_code == 2
    missing = run("search", "key")
    assert missing.exit_code == 1
    assert "no index" in missing.stderr and "try: likewise index" in missing.stderr


@pytest.mark.parametrize(
    "query", ["C++", '"', "col:x", "NEAR(", "*", "🔑", "مفتاح", "?!", "a AND b", "x" * 50_000, "--", "𝕜𝕖𝕪"]
)
def test_no_character_of_a_query_is_an_operator(query: str, run: Run) -> None:
    result = run("search", "--json", "--", query)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["version"] == 1


def test_a_query_of_punctuation_says_that_there_is_nothing_to_look_for(run: Run) -> None:
    result = run("search", "?!")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "only punctuation" in result.stderr


@pytest.mark.parametrize("k", ["0", "-1", "many"])
def test_k_must_be_positive(k: str, run: Run) -> None:
    assert run("search", "key", "-k", k).exit_code == 2


def test_json_and_jsonl_exclude_each_other(run: Run) -> None:
    assert run("search", "key", "--json", "--jsonl").exit_code == 2


def test_json_lines_are_the_hits(run: Run) -> None:
    lines = run("search", "key", "-k", "3", "--jsonl").stdout.splitlines()
    assert [json.loads(line)["rank"] for line in lines] == [1, 2, 3]


def test_the_index_is_found_upward_and_by_option_and_environment(
    run: Run, indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(indexed / "zh")
    assert run("search", "key", "-k", "1").exit_code == 0
    monkeypatch.chdir(tmp_path)
    for value in (indexed, indexed / ".likewise"):
        assert run("search", "key", "-k", "1", "--index", str(value)).exit_code == 0
        assert run("search", "key", "-k", "1", env={"LIKEWISE_INDEX": str(value)}).exit_code == 0


@pytest.mark.parametrize("full", [False, True])
def test_control_characters_of_a_document_are_written_out(
    full: bool, make_hit: MakeHit, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = make_hit(text="rotate \x1b]0;owned\x07 \u202eyek", path="evil\n\x1b[2J.md", heading="\x1b[31m")
    hits.print_result(SearchResult((hit,), "key", "hybrid"), output.Format.TEXT, full=full, explain=False)
    shown = capsys.readouterr().out
    assert not any(character in shown for character in "\x1b\x07\u202e")
    assert "rotate \\x1b]0;owned\\x07 \\u202eyek" in shown
    assert "evil\\n\\x1b[2J.md:1" in shown


def test_location_names_the_page(make_hit: MakeHit) -> None:
    assert hits.location(make_hit(path="a.pdf", lines=(3, 3))) == "a.pdf:3"
    assert hits.location(make_hit(path="a.pdf", lines=(3, 9), page=2)) == "a.pdf:3-9 (page 2)"


@pytest.fixture
def make_hit() -> MakeHit:
    def make(
        *,
        path: str = "a.md",
        text: str = "text",
        heading: str = "",
        lines: tuple[int, int] = (1, 1),
        page: int | None = None,
    ) -> Hit:
        headings = (heading,) if heading else ()
        passage = Passage(0, text, Span(0, len(text)), lines, page, headings)
        return Hit(1, 0.5, HitScores(), StoredPassage(1, path, "", "", "", passage))

    return make


def test_similar_leaves_out_the_document_itself(run: Run) -> None:
    found = paths(run("similar", "keys.md", "-k", "9", "--json"))
    assert "keys.md" not in found and len(found) == 4


def test_similar_to_what_is_not_indexed(run: Run) -> None:
    result = run("similar", "nowhere.md")
    assert result.exit_code == 2
    assert "nowhere.md is not in the index" in result.stderr
    assert "try: likewise status --documents, to see" in result.stderr
    for command in ("similar", "get"):
        folder = run(command, "zh")
        assert folder.exit_code == 2
        assert "expected a file or a passage id, found the folder zh" in folder.stderr


def test_similar_to_a_file_that_is_there_but_not_indexed(
    run: Run, handbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    (handbook / "draft-1.md").write_text("New.", encoding="utf-8")
    (tmp_path / "elsewhere.md").write_text("New.", encoding="utf-8")
    assert "try: likewise index, to bring the index up to date" in run("similar", "draft-1.md").stderr
    assert "try: likewise index ../elsewhere.md" in run("similar", "../elsewhere.md").stderr


def test_context_keeps_to_its_budget(run: Run) -> None:
    value = json.loads(run("context", "rotate the signing key", "--budget", "250", "--json").stdout)
    assert 0 < value["tokens"] <= 250
    assert value["sources"][0]["path"] == "keys.md"
    assert run("context", "rotate the signing key", "--budget", "3").exit_code == 2
    assert run("context", "rotate the signing key", "--budget", "0").exit_code == 2


def test_context_says_what_it_left_out(run: Run) -> None:
    result = run("context", "rotate the signing key", "--budget", "250")
    assert re.fullmatch(
        r"note: \d+ of 250 tokens; left out \d passages? that did not fit\n", result.stderr
    ), result.stderr


def test_context_as_markdown_quotes_the_sources(run: Run) -> None:
    result = run("context", "輪替簽署金鑰", "-k", "1")
    assert result.exit_code == 0
    assert "[1] zh/金鑰.md" in result.stdout
    assert "簽署金鑰每年輪替一次。" in result.stdout


def test_context_as_messages(run: Run) -> None:
    value = json.loads(run("context", "rotate", "--format", "messages").stdout)
    assert [message["role"] for message in value["messages"]] == ["system", "user"]
    assert value["messages"][1]["content"].endswith("rotate")


def test_context_without_hits_is_empty(run: Run) -> None:
    result = run("context", "rotate", "--path", "nowhere/**")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "the filter matches no passage" in result.stderr


def test_an_unknown_tokenizer_is_wrong_usage(run: Run) -> None:
    assert run("context", "rotate", "--tokenizer", "no/such/tokenizer.json").exit_code == 2


def test_min_relevance_leaves_out_hits_and_says_so(run: Run) -> None:
    hits = json.loads(run("search", "rotate the signing key", "--json").stdout)["hits"]
    values = [hit["relevance"] for hit in hits]
    least = sorted(values)[len(values) // 2]
    kept = json.loads(run("search", "rotate the signing key", "--min-relevance", str(least), "--json").stdout)
    assert [hit["relevance"] for hit in kept["hits"]] == [value for value in values if value >= least]
    nothing = run("search", "rotate the signing key", "--min-relevance", "1")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no passage reaches the relevance of 1; the best that was found has" in nothing.stderr
    assert run("search", "keys", "--min-relevance", "1.1").exit_code == 2
    context = json.loads(run("context", "rotate the signing key", "--min-relevance", "1", "--json").stdout)
    assert context["sources"] == []
