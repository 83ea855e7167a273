"""Citations in answers: which are seen, to which sentence they belong, and where they lead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.index.records import Span, StoredPassage
from likewise.retrieval.citations import check_citations, citation_numbers
from likewise.retrieval.context import Source
from likewise.retrieval.stretches import stretches

MakePassage = Callable[..., StoredPassage]

KEYS = "# Keys\n\nSigning keys rotate every year. A leaked key is revoked at once.\n\nAsk the security team."
CHINESE = "簽署金鑰每年輪替一次。外洩的金鑰必須立即撤銷。\n請先詢問資安團隊。"


@pytest.fixture
def sources(make_passage: MakePassage) -> list[Source]:
    english = make_passage(5, KEYS, key="keys.md", line=11, start=100)
    chinese = make_passage(6, CHINESE, key="金鑰.md", line=1, start=0)
    return [
        Source(number, stretches([passage])[0], 0.5, number)
        for number, passage in ((1, english), (2, chinese))
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Keys rotate [1].", [1]),
        ("Keys rotate [1][2].", [1, 2]),
        ("Keys rotate [1, 2].", [1, 2]),
        ("Keys rotate [1,2; 3].", [1, 2, 3]),
        ("Keys rotate [1-3] and [5–6].", [1, 2, 3, 5, 6]),
        ("Keys rotate [1 and 2].", [1, 2]),
        ("Keys rotate [^1].", [1]),
        ("Keys rotate [Source 2] and [source: 3].", [2, 3]),
        ("金鑰輪替【1】。", [1]),
        ("金鑰輪替［1］［２］。", [1, 2]),
        ("金鑰輪替[1、2]，[3，4]，[5至7]。", [1, 2, 3, 4, 5, 6, 7]),
        ("金鑰輪替【1†source】【來源 2】【资料3】。", [1, 2, 3]),
        ("Keys[1] rotate.", [1]),
        ("See [1](https://example.org) and [text].", []),
        ("Use `list[0]` or\n```python\nx[3] = y[4]\n```\nbut see [2].", [2]),
        ("~~~\n[7]\n", []),
        ("In [2024-01-05] or [1.5] or [a1] nothing is cited.", []),
        ("[12345] is too long a number", []),
        ("[9-1000]", [9, 1000]),
        ("", []),
    ],
)
def test_forms(text: str, numbers: list[int]) -> None:
    assert citation_numbers(text) == numbers


def test_unknown_unused_and_uncited(sources: list[Source]) -> None:
    report = check_citations("Keys rotate every year [1]. They are blue [7]. Nobody knows why.", sources)
    assert (report.cited, report.unknown, report.unused, report.uncited) == ((1,), (7,), (2,), 1)
    assert [sentence.numbers for sentence in report.sentences] == [(1,), (7,), ()]
    assert report.sentences[1].traces == ()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Keys rotate. [1] Ask first. [2]", [("Keys rotate. [1]", (1,)), ("Ask first. [2]", (2,))]),
        ("Keys rotate.[1] Ask first.[2]", [("Keys rotate.[1]", (1,)), ("Ask first.[2]", (2,))]),
        ("Keys rotate [1]. Ask first [2].", [("Keys rotate [1].", (1,)), ("Ask first [2].", (2,))]),
        ("金鑰輪替。[1]請先詢問。【2】", [("金鑰輪替。[1]", (1,)), ("請先詢問。【2】", (2,))]),
        ("金鑰輪替[1]。請先詢問【2】。", [("金鑰輪替[1]。", (1,)), ("請先詢問【2】。", (2,))]),
        ("密钥轮换。[1][2] 请先询问！", [("密钥轮换。[1][2]", (1, 2)), ("请先询问！", ())]),
        ("- Rotate it [1]\n- Ask [2]", [("Rotate it [1]", (1,)), ("Ask [2]", (2,))]),
        ("1. Rotate it [1]\n2. Ask", [("Rotate it [1]", (1,)), ("Ask", ())]),
        ("## Keys\n\nSteps:\n\nRotate it [1].", [("Rotate it [1].", (1,))]),
        ("步驟如下：\n輪替金鑰[1]。", [("輪替金鑰[1]。", (1,))]),
        ("```\nrotate(key)\n```\nRun it [1].", [("Run it [1].", (1,))]),
        ("[1]\n\n---\n\n***", []),
        ("According to [1], e.g. the guide, keys rotate.", [
            ("According to [1], e.g. the guide, keys rotate.", (1,))]),
    ],
)  # fmt: skip
def test_sentences_and_their_citations(
    sources: list[Source], answer: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    report = check_citations(answer, sources)
    assert [(sentence.text, sentence.numbers) for sentence in report.sentences] == expected
    assert all(sentence.span.of(answer) == sentence.text for sentence in report.sentences)
    assert report.uncited == sum(not numbers for _, numbers in expected)


def test_trace_leads_to_the_best_sentence(sources: list[Source]) -> None:
    report = check_citations("Leaked keys are revoked immediately [1].", sources)
    (trace,) = report.sentences[0].traces
    assert trace.text == "A leaked key is revoked at once."
    assert (trace.passage_id, trace.path, trace.lines) == (5, "keys.md", (13, 13))
    start = KEYS.index(trace.text)
    assert trace.span == Span(100 + start, 100 + start + len(trace.text))
    # Terms of the statement: leak, key, revok, immedi; three of them stand in the sentence.
    assert trace.support == 3 / 4


def test_trace_in_chinese(sources: list[Source]) -> None:
    report = check_citations("如果金鑰外洩，必須立即撤銷【2】。每年輪替一次[2]。", sources)
    first, second = (sentence.traces[0] for sentence in report.sentences)
    assert (first.text, first.lines, first.path) == ("外洩的金鑰必須立即撤銷。", (1, 1), "金鑰.md")
    assert first.span.of(CHINESE) == first.text
    assert second.text == "簽署金鑰每年輪替一次。" and second.support == 1.0
    assert first.support > 0.6


def test_trace_finds_the_line_in_a_merged_source(make_passage: MakePassage) -> None:
    first = make_passage(1, "Alpha begins.\nBeta follows.", line=3)
    second = make_passage(2, "Gamma ends.\nDelta is last.", ordinal=1, start=29, line=6)
    source = Source(1, stretches([first, second])[0], 1.0, 1)
    (sentence,) = check_citations("Delta is last [1].", [source]).sentences
    (trace,) = sentence.traces
    assert (trace.passage_id, trace.lines, trace.text) == (2, (7, 7), "Delta is last.")
    assert trace.span == Span(41, 55)


def test_two_citations_are_traced_each(sources: list[Source]) -> None:
    report = check_citations("Ask the security team 請先詢問資安團隊 [1][2].", sources)
    assert [(trace.number, trace.text) for trace in report.sentences[0].traces] == [
        (1, "Ask the security team."),
        (2, "請先詢問資安團隊。"),
    ]


def test_another_language_has_no_support_but_is_no_error(sources: list[Source]) -> None:
    (sentence,) = check_citations("Holidays are thirty days [2].", sources).sentences
    assert sentence.traces[0].support == 0.0


def test_source_without_words(make_passage: MakePassage) -> None:
    source = Source(1, stretches([make_passage(1, "|---|---|")])[0], 1.0, 1)
    (sentence,) = check_citations("Keys rotate [1].", [source]).sentences
    assert sentence.traces[0].support == 0.0 and sentence.traces[0].text == "|---|---|"


def test_empty_answer_and_no_sources(sources: list[Source]) -> None:
    assert check_citations("", sources).to_json() == {
        "cited": [], "unknown": [], "unused": [1, 2], "uncited_sentences": 0, "sentences": [],
    }  # fmt: skip
    assert check_citations("Keys [1].", []).unknown == (1,)


def test_json_shape(sources: list[Source]) -> None:
    (sentence,) = check_citations("Keys rotate every year [1].", sources).to_json()["sentences"]  # type: ignore[misc]
    assert sentence == {
        "text": "Keys rotate every year [1].",
        "span": [0, 27],
        "citations": [1],
        "traces": [
            {
                "number": 1, "passage_id": 5, "path": "keys.md", "lines": [13, 13], "span": [108, 139],
                "text": "Signing keys rotate every year.", "support": 1.0,
            }
        ],
    }  # fmt: skip


PARTS = st.sampled_from(
    [
        "[1]",
        "【2】",
        "[9]",
        "[1",
        "]",
        "(",
        "。",
        ". ",
        "!\n",
        "\n\n",
        "```\n",
        "`",
        "# ",
        "- ",
        "金鑰輪替",
        "keys",
        " ",
        ":",
    ]
)


@settings(deadline=None, max_examples=200)
@given(parts=st.lists(PARTS | st.text(max_size=5), max_size=30))
def test_any_answer_is_taken_apart_without_loss(parts: list[str]) -> None:
    """Sentences are ascending, disjoint parts of the answer, and no citation outside code is lost."""
    answer = "".join(parts)
    report = check_citations(answer, [])
    end = 0
    for sentence in report.sentences:
        assert sentence.span.start >= end and sentence.span.of(answer) == sentence.text
        assert sentence.text == sentence.text.strip() != ""
        assert set(sentence.numbers) <= set(report.unknown)
        end = sentence.span.end
    assert set(report.unknown) == set(citation_numbers(answer))


@pytest.mark.parametrize("unit", ["[1] ", " ", "[", "`", "[1", "a. [1]", "\n", "> ", "【1】。", "[1]   "])
def test_long_answers_take_linear_time(unit: str) -> None:
    check_citations(unit * (30_000 // len(unit)), [])
