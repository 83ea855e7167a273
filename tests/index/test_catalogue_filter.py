"""Filters: which passages may answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import (
    FilterError,
)
from likewise.index.catalogue import Catalogue
from likewise.index.catalogue_filter import glob_matches
from likewise.index.records import DocumentState, Filter
from likewise.index.view import open_view


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter(paths=("docs/**",)), [1, 2]),
        (Filter(paths=("docs/*.md",)), [1]),
        (Filter(paths=("docs/**/*.md",)), [1, 2]),
        (Filter(paths=("*.md", "notes")), [1, 2, 3]),
        (Filter(paths=("/abs/**",)), [4]),
        (Filter(exclude_paths=("docs/zh/**", "*.pdf")), [1, 3]),
        (Filter(suffixes=(".md", ".txt")), [1, 2, 3]),
        (Filter(languages=("zh",)), [2]),
        (Filter(states=(DocumentState.OK,)), [1, 2, 3, 4]),
        (Filter(states=(DocumentState.EMPTY,)), []),
        (Filter(title="keys"), [1]),
        (Filter(title="金鑰"), [2]),
        (Filter(title="straße"), [4]),
        (Filter(modified_from=1e9), [1]),
        (Filter(modified_before=1e9), [2, 3, 4]),
        (Filter(modified_from=float("inf")), []),
        (Filter(metadata=(("tags", "B"),)), [2]),
        (Filter(metadata=(("author.name", "Ann"),)), [3]),
        (Filter(metadata=(("draft", "true"), ("a.b", "3"))), [3]),
        (Filter(metadata=(("author.name.x", "Ann"),)), []),
        (Filter(metadata=(("missing", "null"),)), []),
        (Filter(paths=("docs/**",), languages=("en",)), [1]),
        (Filter(title="' OR 1=1 --"), []),
        (Filter(metadata=(("tags') OR 1=1 --", "b"),)), []),
    ],
)
def test_filters_select_passages(library, filter, expected):
    with open_view(library) as view:
        assert view.select(filter).tolist() == expected


def test_an_empty_filter_allows_all(library):
    with open_view(library) as view:
        assert view.select(Filter()) is None


def test_a_malformed_pattern_is_the_users_mistake(library):
    with open_view(library) as view, pytest.raises(FilterError, match="z-a"):
        view.select(Filter(paths=("[z-a]",)))


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "/x", False),
        ("[]]x", "]x", True),
        ("[", "[", True),
        ("a[b", "a[b", True),
        ("[^a]", "^", True),
        (r"a\b", r"a\b", True),
        ("**", "a/b", True),
        ("**/b", "b", True),
        ("**/b", "a/c/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False),
        ("a/", "a/b", True),
        ("/a", "/a/b", True),
        ("/a", "x/a", False),
        ("*", "line\nbreak", True),
        ("文?", "文件", True),
    ],
)
def test_globs(pattern, key, matches):
    assert glob_matches(pattern, key) is matches


@given(st.text(alphabet="ab*?[]!^-/\\.", max_size=8), st.text(alphabet="ab/.-", max_size=6))
def test_any_pattern_is_a_pattern_or_a_filter_error(pattern, key):
    try:
        glob_matches(pattern, key)
    except FilterError as error:
        assert "range" in (error.remedy or "")


def test_the_lexical_match_is_not_run_once_per_allowed_id(library):
    """The plan must go through the full-text index alone; the filter only looks at what it returns."""
    with Catalogue.open(library, mode="read") as catalogue:
        plan = catalogue.connection.execute(
            "EXPLAIN QUERY PLAN SELECT rowid FROM passage_terms WHERE passage_terms MATCH ?"
            " AND +rowid IN (SELECT value FROM json_each(?))",
            ('"a"', json.dumps([1, 2])),
        ).fetchall()
        scans = [row[3] for row in plan if "passage_terms" in row[3]]
    assert len(scans) == 1
    assert scans[0].endswith("INDEX 0:M3")  # M: match; an "=" would stand for a look-up by rowid
