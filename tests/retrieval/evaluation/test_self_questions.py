"""Questions from documents, and the copy that must not hold them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import DataError
from likewise.index.analyzer import analyze_query
from likewise.index.index import Index
from likewise.index.records import passage_context
from likewise.index.settings import ChunkSettings
from likewise.retrieval.evaluation.evaluate import evaluate
from likewise.retrieval.evaluation.masking import self_test
from likewise.retrieval.evaluation.self_questions import (
    Kind,
    SelfQuestion,
    bare,
    make_questions,
    sentences_of,
    to_judgements,
    without,
    without_line,
)
from likewise.retrieval.search import Retriever


def questions(index: Index, *kinds: Kind, count: int = 100, seed: int = 0) -> list[SelfQuestion]:
    with index.view() as view:
        return make_questions(view, count=count, seed=seed, kinds=kinds or ("title", "heading", "sentence"))


def test_titles_that_several_documents_share_are_left_out(guide_index: Index) -> None:
    assert {question.text: question.answers for question in questions(guide_index, "title")} == {
        "Rotating signing keys": ("keys.md",),
        "Asking for a holiday": ("holidays.md",),
        "簽署金鑰的輪替": ("zh/金鑰.md",),
    }


def test_headings_ask_for_their_sections(guide_index: Index) -> None:
    found = {question.text: question for question in questions(guide_index, "heading")}
    assert set(found) == {
        "Who may revoke them",
        "Storing the backups offline",
        "When illness strikes",
        "誰可以撤銷憑證",
    }
    with guide_index.view() as view:
        for question in found.values():
            for stored in view.passages(question.passages).values():
                assert question.text in stored.passage.headings
                lines = range(stored.passage.lines[0], stored.passage.lines[1] + 1)
                assert any(f"{question.key}#line={line}" in question.answers for line in lines)


def test_sentences_are_whole_and_stand_in_one_passage(guide_index: Index) -> None:
    found = questions(guide_index, "sentence")
    assert {"zh/金鑰.md", "keys.md", "holidays.md"} <= {question.key for question in found}
    with guide_index.view() as view:
        texts = [p.passage.text for row in view.documents() for p in view.document_passages(row.key)]
    for question in found:
        assert question.text[-1] in ".。"
        assert sum(question.original in text for text in texts) == 1


def test_equal_seeds_choose_equal_questions(guide_index: Index) -> None:
    one = questions(guide_index, count=5, seed=1)
    assert one == questions(guide_index, count=5, seed=1)
    assert any(one != questions(guide_index, count=5, seed=seed) for seed in range(2, 6))


def test_no_passage_is_asked_about_twice(guide_index: Index) -> None:
    for seed in range(5):
        asked = [id_ for question in questions(guide_index, seed=seed) for id_ in question.passages]
        assert len(asked) == len(set(asked))


def test_questions_are_spread_over_documents(guide_index: Index) -> None:
    for seed in range(5):
        found = questions(guide_index, "sentence", count=3, seed=seed)
        assert len({question.key for question in found}) == 3


@pytest.mark.parametrize("seed", range(4))
def test_the_copy_does_not_hold_the_questions(guide: Path, guide_index: Index, seed: int) -> None:
    encoder = HashEncoder()
    before = {p.name: hashlib.sha256(p.read_bytes()).digest() for p in (guide / ".likewise").iterdir()}
    with self_test(guide_index, count=6, seed=seed) as test, test.index.view() as view:
        assert test.rewritten >= len(test.questions)
        for question in test.questions:
            for stored in view.document_passages(question.key):
                if question.kind == "title":
                    assert stored.title == ""
                if question.kind != "sentence":
                    named = (question.text in h for h in stored.passage.headings)
                    assert not any(named) or question.kind == "heading"
                assert bare(question.text) not in bare(" ".join(stored.passage.text.split()))
        # Vectors are those of the texts as they now stand, those of untouched passages included.
        for row in view.documents():
            for stored in view.document_passages(row.key):
                line = passage_context(stored.title, stored.passage.headings)
                text = f"{line}\n{stored.passage.text}" if line else stored.passage.text
                expected = encoder.encode_passages([text])[0]
                assert np.allclose(view.vectors([stored.id])[0], expected, atol=1e-6)
    after = {p.name: hashlib.sha256(p.read_bytes()).digest() for p in (guide / ".likewise").iterdir()}
    assert after == before


def test_the_words_of_a_title_are_gone_from_the_lexical_side(guide_index: Index) -> None:
    terms = analyze_query("Rotating signing keys")
    with guide_index.view() as view:
        assert len(view.lexical(terms, 10).ids) >= 1
    with (
        self_test(guide_index, kinds=["title"]) as test,
        test.index.view() as view,
    ):
        assert view.passages_with(analyze_query("rotating")) == {}


def test_a_self_test_can_be_evaluated(guide_index: Index) -> None:
    with self_test(guide_index, count=12) as test:
        judgements = to_judgements(test.questions)
        retriever = Retriever(test.index)
        result = evaluate(
            {"lexical": lambda query, k: retriever.search(query, k=k, mode="lexical")},
            judgements,
            metrics=["recall@100"],
        )
    assert len(result.runs[0].values["recall@100"]) == len(test.questions)
    assert not test.index.folder.exists()


def test_an_index_without_questions(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
        with pytest.raises(DataError, match="no question can be made from the 1 documents"):
            questions(index)


def test_ids_tell_the_kind() -> None:
    made = [
        SelfQuestion("title", "One", "a", (1,), ("a",), "One"),
        SelfQuestion("sentence", "Two.", "a", (2,), ("a#line=1",), "Two."),
        SelfQuestion("sentence", "Three.", "b", (3,), ("b#line=1", "b#line=4"), "Three."),
    ]
    judgements = to_judgements(made)
    assert judgements.queries == {"title-1": "One", "sentence-1": "Two.", "sentence-2": "Three."}
    assert judgements.qrels["sentence-2"] == {"b#line=1": 1, "b#line=4": 1}


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("## 2. Keys ##\nRotate.", "2. Keys", "Rotate."),
        ("Keys\n----\nRotate.", "keys", "Rotate."),
        ("def rotate_keys():\n    pass", "rotate_keys", "pass"),
        ("Rotate the keys once every year.", "keys", "Rotate the keys once every year."),
        ("一、金鑰\n每年輪替。", "一、金鑰", "每年輪替。"),
        ("# Keys { #keys }\n\nKeys rotate.", "Keys", "Keys rotate."),
        ("## 聲明 `Cookie` 參數 { #declare }\n與其他參數相同。", "聲明 Cookie 參數", "與其他參數相同。"),
        ("## Use [**OAuth2**](oauth2.md) now\nIt is safe.", "Use OAuth2 now", "It is safe."),
    ],
)
def test_lines_that_say_a_title(text: str, title: str, rest: str) -> None:
    assert without_line(text, title) == rest


def test_a_sentence_is_removed_wherever_it_stands() -> None:
    assert without("A b. C d. E f.", "C d.") == "A b. E f."
    assert without("A b.\n  C d.\nE f.", "C d.") == "A b.\n\nE f."
    assert without("每年輪替。先詢問。", "每年輪替。") == "先詢問。"
    assert without("nothing", "else") == "nothing"


def test_items_and_headings_end_sentences() -> None:
    assert list(sentences_of("## Head\ntext goes. On!\n- one\n- two\n\nlast")) == [
        "## Head\ntext goes.",
        "On!",
        "- one",
        "- two",
        "last",
    ]


def test_a_version_number_is_no_question(tmp_path: Path) -> None:
    one = "Every release is signed by the build machine before it leaves the company network."
    two = "The vault hands out fresh signature requests to each worker on a regular schedule."
    text = f"# Changes\n\n## 3.0 (2020-11-08)\n\n{one}\n\n## Older signing machines\n\n{two}\n"
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path], chunking=ChunkSettings(target_tokens=20))
        assert [question.text for question in questions(index, "heading")] == ["Older signing machines"]


def test_a_sentence_with_its_heading_in_it_is_no_question(tmp_path: Path) -> None:
    body = "Every release is signed by the build machine before it leaves the company network."
    rest = "The vault hands out fresh signature requests to each worker on a regular schedule."
    (tmp_path / "a.md").write_text(f"# Keys\nRotation\n========\n{body}\n{rest}\n", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
        assert {question.text for question in questions(index, "sentence")} <= {body, rest}
