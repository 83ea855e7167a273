"""Packing: the budget, merging, duplicates and cutting."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import UsageError
from likewise.retrieval.context import pack_context
from likewise.retrieval.hits import SearchResult
from likewise.retrieval.packing import _ends
from likewise.retrieval.prompting import PROMPTS
from likewise.retrieval.search import Retriever
from likewise.retrieval.tokens import TokenCounter, TokenizerCounter

from .context_cases import (
    FAQ,
    GUIDE,
    LIBRARY,
    WORDS,
    MakePassage,
    check_source,
    hits_of,
    result_of,
)


def bpe() -> TokenizerCounter:
    """Byte-pair encoding across word borders: counts of parts do not add up to the count of the whole."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([GUIDE, FAQ, PROMPTS["en"].instructions], trainer)
    return TokenizerCounter("bpe", lambda text: len(tokenizer.encode(text).ids))


class Superadditive:
    """A counter for which the whole costs far more than its parts: every estimate is too low."""

    name = "superadditive"

    def count(self, text: str) -> int:
        return len(text) // 4 + len(text) ** 2 // 20_000


COUNTERS: dict[str, TokenCounter] = {
    "words": WORDS,
    "bpe": bpe(),
    "characters": TokenizerCounter("characters", len),
    "superadditive": Superadditive(),
}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_budget_holds_for_any_hits_and_tokenizer(counter: TokenCounter, data: st.DataObject) -> None:
    library = LIBRARY[data.draw(st.sampled_from(sorted(LIBRARY)))]
    passages = data.draw(st.lists(st.sampled_from(library), min_size=1, max_size=12, unique_by=id))
    budget = data.draw(st.integers(1, 3000))
    query = data.draw(st.sampled_from(["How often?", "多久輪替一次？", "多久轮换一次？"]))
    try:
        context = pack_context(result_of(passages, query), budget=budget, tokenizer=counter)
    except UsageError as error:
        found = re.search(r"at least (\d+) tokens", error.message)
        assert found and int(found[1]) > budget
        # The budget that the message names is enough.
        budget = int(found[1])
        context = pack_context(result_of(passages, query), budget=budget, tokenizer=counter)
    assert counter.count(context.text) == context.tokens <= budget
    assert context.text == f"{context.instructions}\n\n{context.body}"
    assert [source.number for source in context.sources] == list(range(1, len(context.sources) + 1))
    packed = [id_ for source in context.sources for id_ in source.passage_ids]
    dropped = [dropped.hit.passage_id for dropped in context.dropped]
    assert sorted(packed + dropped) == sorted(passage.id for passage in passages)
    assert context.sources and packed
    for source in context.sources:
        check_source(source)


def test_neighbours_become_one_source_with_their_white_space() -> None:
    guide = [passage for passage in LIBRARY[0] if passage.key == "guide.md"]
    assert len(guide) > 3
    (source,) = pack_context(result_of(guide[::-1])).sources
    assert source.text == GUIDE.strip()
    assert source.passage_ids == tuple(passage.id for passage in guide)
    assert (source.span.start, source.span.end, source.lines) == (0, len(GUIDE) - 1, (1, 17))
    assert source.rank == 1 and source.score == 1.0


def test_overlapping_passages_repeat_nothing() -> None:
    faq = [passage for passage in LIBRARY[10] if passage.key != "guide.md"]
    assert any(a.passage.span.end > b.passage.span.start for a, b in pairwise(faq))
    (source,) = pack_context(result_of(faq), budget=3000).sources
    assert source.text == FAQ.strip()


def test_documents_by_best_hit_and_sources_by_place() -> None:
    guide = [passage for passage in LIBRARY[0] if passage.key == "guide.md"]
    faq = [passage for passage in LIBRARY[0] if passage.key != "guide.md"]
    context = pack_context(result_of([guide[3], faq[4], guide[0], faq[0]]))
    assert [source.passage_ids for source in context.sources] == [
        (guide[0].id,), (guide[3].id,), (faq[0].id,), (faq[4].id,),
    ]  # fmt: skip
    assert [source.rank for source in context.sources] == [3, 1, 4, 2]
    assert [source.number for source in context.sources] == [1, 2, 3, 4]


def test_passage_inside_another_is_merged(make_passage: MakePassage) -> None:
    outer = make_passage(1, "One. Two. Three.", start=10)
    inner = make_passage(2, "Two.", start=15, ordinal=1)
    (source,) = pack_context(result_of([inner, outer])).sources
    assert source.text == "One. Two. Three." and source.passage_ids == (1, 2)


def test_near_duplicates_are_dropped_and_named(make_passage: MakePassage) -> None:
    text = "Signing keys rotate every year and the security team announces the day in the newsletter."
    passages = [
        make_passage(1, text, key="a.md"),
        make_passage(2, text.upper().replace(".", "!"), key="copy of a.md"),
        make_passage(3, "Something else entirely, about holidays and how they are counted.", key="b.md"),
        make_passage(4, "keys rotate every year and the security team announces", key="excerpt.md"),
        make_passage(
            5, text + " In addition to that, the team writes a letter to every customer.", key="c.md"
        ),
    ]
    context = pack_context(result_of(passages))
    assert [source.passage_ids for source in context.sources] == [(1,), (3,), (5,)]
    assert [(d.hit.passage_id, d.reason, d.passage_id, d.source) for d in context.dropped] == [
        (2, "duplicate", 1, 1),
        (4, "duplicate", 1, 1),
    ]
    assert context.dropped[0].similarity == 1.0
    assert context.dropped[0].to_json() == {
        "passage_id": 2, "path": "copy of a.md", "lines": [1, 1], "reason": "duplicate",
        "duplicate_of": 1, "similarity": 1.0, "source": 1,
    }  # fmt: skip


def test_chinese_near_duplicates(make_passage: MakePassage) -> None:
    first = "簽署金鑰每年輪替一次，輪替之前請先詢問資安團隊，並在公告中寫明日期。"
    passages = [
        make_passage(1, first, key="甲.md"),
        make_passage(2, first.replace("，", " , ").replace("。", ""), key="乙.md"),
        make_passage(3, "每位員工每年有三十天假期，請提早告訴主管，以便安排代理人。", key="丙.md"),
    ]
    context = pack_context(result_of(passages, "金鑰多久輪替一次"))
    assert [source.path for source in context.sources] == ["甲.md", "丙.md"]
    assert context.dropped[0].hit.path == "乙.md"


def test_the_same_passage_twice_counts_once(make_passage: MakePassage) -> None:
    passage = make_passage(1, "Keys rotate.")
    context = pack_context(result_of([passage, passage]))
    assert context.sources[0].passage_ids == (1,) and len(context.dropped) == 1


def test_hit_that_does_not_fit_is_skipped_and_a_smaller_one_taken(make_passage: MakePassage) -> None:
    passages = [
        make_passage(1, "Short first text.", key="a.md"),
        make_passage(2, " ".join(f"word{n}" for n in range(2000)), key="b.md"),
        make_passage(3, "Short third text about something else.", key="c.md"),
    ]
    context = pack_context(result_of(passages), budget=400)
    assert [source.path for source in context.sources] == ["a.md", "c.md"]
    assert [(d.hit.path, d.reason) for d in context.dropped] == [("b.md", "budget")]


@pytest.mark.parametrize(
    ("query", "sentence", "end"),
    [
        ("How?", "This is sentence {n} of the long passage. ", "."),
        ("如何輪替？", "這是很長的段落中的第{n}句話。", "。"),
    ],
)
def test_first_hit_over_the_budget_is_cut_at_a_sentence_end(
    make_passage: MakePassage, query: str, sentence: str, end: str
) -> None:
    text = "".join(sentence.format(n=n) for n in range(300)).strip()
    passages = [make_passage(1, text, line=7), make_passage(2, "Other text.", key="b.md")]
    context = pack_context(result_of(passages, query), budget=500)
    (source,) = context.sources
    assert source.cut and text.startswith(source.text) and source.text.endswith(end)
    assert len(source.text) < len(text) and source.span.end == len(source.text)
    # No further sentence would have fitted.
    longer = text[: text.index(end, len(source.text)) + 1]
    assert context.tokens <= 500 < context.tokens + WORDS.count(longer) - WORDS.count(source.text)
    label = context.body.splitlines()[0]
    assert PROMPTS[context.language].cut in label
    assert context.notices == ("the best passage is cut to fit the budget of 500 tokens",)
    assert [d.reason for d in context.dropped] == ["budget"]
    assert source.to_json()["cut"] is True


def test_sentence_over_the_budget_is_cut_at_a_word(make_passage: MakePassage) -> None:
    text = " ".join(f"word{n}" for n in range(900))
    (source,) = pack_context(result_of([make_passage(1, text)]), budget=300).sources
    assert source.cut and text.startswith(source.text + " ")
    chinese = "金鑰輪替" * 400
    (source,) = pack_context(result_of([make_passage(1, chinese)], "金鑰"), budget=400).sources
    assert source.cut and 80 <= len(source.text) < len(chinese)


def test_places_to_cut() -> None:
    assert _ends("Short one. Then a longer second one. End.") == ([10, 36], [10])
    sentences, words = _ends("a" * 70 + " " + "b" * 20 + " " + "c" * 20 + ". Next.")
    assert sentences == [113] and words == [91]
    assert _ends("x" * 500) == ([], [500])


def test_budget_too_small_names_the_least_useful_one(make_passage: MakePassage) -> None:
    hits = result_of([make_passage(1, "One sentence. Another sentence of some length.")])
    with pytest.raises(UsageError, match=r"expected a budget of at least (\d+) tokens") as caught:
        pack_context(hits, budget=20)
    least = int(str(caught.value.remedy).split()[-1])
    assert pack_context(hits, budget=least).sources[0].text == "One sentence."
    with pytest.raises(UsageError, match=f"at least {least} tokens for this question, found {least - 1}"):
        pack_context(hits, budget=least - 1)


@pytest.mark.parametrize("budget", [0, -5, True, 1.5, "100"])
def test_budget_must_be_a_whole_number(budget: Any) -> None:
    with pytest.raises(UsageError, match="expected a budget of at least 1 token"):
        pack_context(result_of([]), budget=budget)


def test_no_hits_give_an_empty_context() -> None:
    context = pack_context(SearchResult((), "q", "hybrid", ("the filter matches no passage",)))
    assert (context.text, context.tokens, context.sources) == ("", 0, ())
    assert context.notices == ("the filter matches no passage",)


def test_plain_list_needs_a_tokenizer() -> None:
    hits = hits_of(LIBRARY[0][:2])
    with pytest.raises(UsageError, match="expected a tokenizer"):
        pack_context(hits)
    assert pack_context(hits, tokenizer=WORDS).sources


def test_counts_with_the_encoder_of_the_index_by_default(make_index: Callable[..., Any]) -> None:
    index = make_index()
    hits = Retriever(index).search("keys", mode="lexical")
    assert index.encoder_uses == 0
    context = pack_context(hits, budget=300)
    assert index.encoder_uses > 0 and context.tokenizer == "hash"
    assert context.tokens == len(HashEncoder().token_spans([context.text])[0])
