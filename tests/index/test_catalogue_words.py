"""The lexical side: what is found by words, how it is ranked, and what no query can break."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.index.analyzer import analyze, analyze_query
from likewise.index.catalogue import Analysis, Catalogue
from likewise.index.catalogue_read import BODY_WEIGHT, HEADING_WEIGHT, TITLE_WEIGHT
from likewise.index.records import Filter
from likewise.index.view import open_view

from .cataloguing import apply, found


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "-x",
        "col:x",
        "NEAR(",
        "NEAR(a b)",
        "a AND",
        "OR",
        "NOT",
        "^a",
        "a*",
        "(",
        "{",
        "\x00",
        "'",
        "+ -",
    ],
)
def test_operators_are_only_text(empty_index, make_document, query):
    apply(empty_index, make_document("a", ["nothing of the kind"]))
    with open_view(empty_index) as view:
        # Raw, as if no analyser had looked at it, and as the analyser leaves it.
        assert view.lexical([query], 5).ids.tolist() == []
        assert view.lexical(analyze_query(query), 5).ids.tolist() == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("C++ is a language", "C++"),
        ("the option -x", "-x"),
        ("write col:x there", "col:x"),
        ("NEAR( is an operator", "NEAR("),
        ('he said "so"', '"so"'),
        ("a party 🎉 tonight", "🎉"),
        ("שלום עולם", "עולם"),
        ("مرحبا بالعالم", "مرحبا"),
        ("貓坐在墊子上", "貓"),
        ("貓坐在墊子上", "墊子"),
        ("猫坐在垫子上", "垫子"),
        ("日本語の文書", "文書"),
        ("한국어 문서", "문서"),
        ("OR AND NOT", "and"),
    ],
)
def test_words_of_all_kinds_are_found(empty_index, make_document, text, query):
    apply(empty_index, make_document("a", [text, "unrelated 無關 lines"]))
    assert found(empty_index, query) == [text]


def test_bm25_is_the_published_formula(empty_index, make_document):
    """With one column in use, FTS5's score is Okapi BM25 with k1 = 1.2 and b = 0.75."""
    texts = ["key", "key key lock", "lock door wall roof", "wall"]
    apply(empty_index, make_document("a", texts))
    with open_view(empty_index) as view:
        ranking = view.lexical(["key"], 10)
    lengths = [len(text.split()) for text in texts]
    average = sum(lengths) / 4
    idf = math.log((4 - 2 + 0.5) / (2 + 0.5))
    idf = max(idf, 1e-6)  # FTS5 does not let a frequent term count against a passage
    expected = [
        idf * count * 2.2 / (count + 1.2 * (1 - 0.75 + 0.75 * length / average))
        for count, length in ((2, lengths[1]), (1, lengths[0]))
    ]
    scores = dict(zip(ranking.ids.tolist(), ranking.scores.tolist(), strict=True))
    assert scores == pytest.approx({2: expected[0], 1: expected[1]}, rel=1e-5)


def test_title_and_headings_count_with_their_weights(empty_index, make_document):
    filler = [make_document(f"f{number}", [f"filler{number} text"]) for number in range(8)]
    apply(
        empty_index,
        make_document("title", ["pad one"], title="lantern"),
        make_document("heading", ["pad two"], headings=("lantern",)),
        make_document("body", ["lantern two"]),
        *filler,
    )
    with open_view(empty_index) as view:
        ranking = view.lexical(["lantern"], 10)
        order = [view.passages([id_])[id_].key for id_ in ranking.ids.tolist()]
    assert set(order) == {"title", "heading", "body"}
    assert TITLE_WEIGHT == HEADING_WEIGHT > BODY_WEIGHT
    assert order[-1] == "body"


def test_equal_scores_come_in_order_of_id(empty_index, make_document):
    apply(empty_index, make_document("b", ["same words"] * 5), make_document("a", ["same words"] * 5))
    with open_view(empty_index) as view:
        assert view.lexical(["same"], 7).ids.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_filter_restricts_before_the_ranking_is_cut(empty_index, make_document):
    apply(
        empty_index,
        make_document("old/a.md", ["key " * 5] * 20),
        make_document("new/b.md", ["a key among many other words that make it rank last"]),
    )
    with open_view(empty_index) as view:
        allowed = view.select(Filter(paths=("new/**",)))
        assert view.lexical(["key"], 3, allowed).ids.tolist() == [21]
        assert view.lexical(["key"], 3, np.array([], np.int64)).ids.tolist() == []


def test_a_query_of_very_many_words_uses_the_rarest_that_occur(empty_index, make_document):
    common = [f"common{number}" for number in range(300)]
    apply(empty_index, make_document("a", [" ".join([*common, "needle"]), *[" ".join(common)] * 3]))
    with open_view(empty_index) as view:
        terms = analyze(" ".join([*common, *(f"absent{number}" for number in range(20_000)), "needle"]))
        ranking = view.lexical(terms, 2)
        assert ranking.ids[0] == 1
        assert ranking.scores[0] > ranking.scores[1]


def test_another_analyser_version_rebuilds_the_lexical_index_at_the_next_write(empty_index, make_document):
    apply(empty_index, make_document("a", ["Alpha Beta"], title="Guide"))
    shouting = Analysis("shouting", lambda text, language: [word.upper() for word in text.split()])
    with Catalogue.open(empty_index, mode="write", analysis=shouting) as catalogue:
        assert not catalogue.lexical_is_current()
        assert catalogue.refresh_lexical()
        assert catalogue.lexical_is_current()
        assert not catalogue.refresh_lexical()
    with open_view(empty_index) as view:
        assert "made by another version of the analyser" in view.notices[0]
        # The tokenizer of the table folds ASCII case, so only the analyser's stem tells the two apart.
        assert view.lexical(["BETA"], 5).ids.tolist() == [1]
        assert view.lexical(["GUIDE"], 5).ids.tolist() == [1]
    apply(empty_index)
    with open_view(empty_index) as view:
        assert not view.notices
    assert found(empty_index, "alpha") == ["Alpha Beta"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=20), max_size=8))
def test_whatever_is_asked_the_lexical_side_answers(library, terms):
    with open_view(library) as view:
        assert set(view.lexical(terms, 10).ids.tolist()) <= {1, 2, 3, 4}
