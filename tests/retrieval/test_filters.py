"""Filter expressions: what each means, and what is refused."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import FilterError
from likewise.index.records import DocumentState, Filter
from likewise.retrieval.filters import parse_filter


@pytest.fixture
def taipei(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local time zone is UTC+8."""
    if not hasattr(time, "tzset"):
        pytest.skip("this platform cannot change the time zone of a process")
    monkeypatch.setenv("TZ", "Asia/Taipei")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


def test_no_expressions_allow_everything() -> None:
    assert parse_filter([]) == Filter() and not parse_filter([])


def test_every_field() -> None:
    assert parse_filter(
        [
            "path:docs/**", "path:guide", "-path:old/**", "suffix:.MD", "suffix:txt", "lang:ZH", "lang:en",
            "state:ok", "state:Needs-OCR", "title: Signing Keys ",
            "meta.author=Ann: the editor", "meta.a.b:金鑰",
        ]
    ) == Filter(
        paths=("docs/**", "guide"),
        exclude_paths=("old/**",),
        suffixes=(".md", ".txt"),
        languages=("zh", "en"),
        states=(DocumentState.OK, DocumentState.NEEDS_OCR),
        title="Signing Keys",
        metadata=(("author", "Ann: the editor"), ("a.b", "金鑰")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        (r"path:docs\guide\*.md", "docs/guide/*.md"),
        ("path:./docs/keys.md", "docs/keys.md"),
        ("path:.", "**"),
        ("path:/home/ann/notes/a b.md", "a b.md"),
        ("path:/home/ann/notes/", "**"),
        ("path:/home/ann/notes2/x.md", "/home/ann/notes2/x.md"),
        ("path:文件/**/*.md", "文件/**/*.md"),
        ("PATH=a.md", "a.md"),
    ],
)
def test_paths(expression: str, path: str) -> None:
    assert parse_filter([expression], base=Path("/home/ann/notes")).paths == (path,)


@pytest.mark.usefixtures("taipei")
@pytest.mark.parametrize(
    ("expressions", "start", "end"),
    [
        (["date>=2025-01-01"], at(2024, 12, 31, 16), None),
        (["date>2025-01-01"], at(2025, 1, 1, 16), None),
        (["date<2026-01-01"], None, at(2025, 12, 31, 16)),
        (["date<=2025-12-31"], None, at(2025, 12, 31, 16)),
        (["date<=2025"], None, at(2025, 12, 31, 16)),
        (["date:2025-02"], at(2025, 1, 31, 16), at(2025, 2, 28, 16)),
        (["date=2024-02"], at(2024, 1, 31, 16), at(2024, 2, 29, 16)),
        (["date=2024-12"], at(2024, 11, 30, 16), at(2024, 12, 31, 16)),
        (["date=2024"], at(2023, 12, 31, 16), at(2024, 12, 31, 16)),
        (["date=2025-3-1"], at(2025, 2, 28, 16), at(2025, 3, 1, 16)),
        (["date>=2025-03-01T14:30"], at(2025, 3, 1, 6, 30), None),
        (["date<=2025-03-01T14:30"], None, at(2025, 3, 1, 6, 31)),
        (["date>2025-03-01 14:30:15"], at(2025, 3, 1, 6, 30, 16), None),
        (["date>=2025-03-01T14:30:00Z"], at(2025, 3, 1, 14, 30), None),
        (["date>=2025-03-01T14:30:00+02:00"], at(2025, 3, 1, 12, 30), None),
        (["date>=2025", "date<2025-03", "date>=2024"], at(2024, 12, 31, 16), at(2025, 2, 28, 16)),
    ],
)
def test_dates_are_local_unless_they_name_an_offset(
    expressions: list[str], start: float | None, end: float | None
) -> None:
    found = parse_filter(expressions)
    assert (found.modified_from, found.modified_before) == (start, end)


@pytest.mark.parametrize(
    ("expressions", "message", "remedy"),
    [
        (
            ["lnag:zh"],
            "filter on path, suffix, lang, state, title, date or meta.KEY, found 'lnag:zh'",
            "lang:zh",
        ),
        (["author=Ann"], "found 'author=Ann'", "meta.author=Ann"),
        (["docs"], "expected FIELD:VALUE, found 'docs'", "path:docs"),
        ([""], "expected FIELD:VALUE, found ''", "path:"),
        (["path:"], "expected a value behind path:, found nothing", "path:"),
        (["-lang:zh"], "- in front of path only", "lang:zh"),
        (["lang:zh-TW"], "ISO 639-1 code", "lang:zh"),
        (["lang:chinese"], "ISO 639-1 code", "lang:zh"),
        (["state:oky"], "out of ok, empty, needs-ocr", "state:ok"),
        (["suffix:docs/*.md"], "the end of a file name", "suffix:.md"),
        (["title:a", "title:b"], "one title filter", None),
        (["title>=a"], ">= compares dates only", "title:a"),
        (["date:yesterday"], "expected a date like 2025", "date>="),
        (["date>=2025-13-01"], "expected a date like 2025", "date>="),
        (["date>=2025-02-30"], "expected a date like 2025", "date>="),
        (["date>=0000"], "expected a date like 2025", "date>="),
        (["date>=2025", "date<2025"], "exclude each other", None),
        (["meta.=x"], "found 'meta.=x'", None),
        (["date>=soon"], "2025-03-01T14:30, found 'soon'", "date>=2025-03-01"),
        (["date=2025-02-30"], "found '2025-02-30', which the calendar does not have", "date>=2025-03-01"),
    ],
)
def test_refused(expressions: list[str], message: str, remedy: str | None) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(expressions)
    assert message in caught.value.message
    if remedy:
        assert remedy in str(caught.value.remedy)


def test_one_string_is_not_a_list() -> None:
    with pytest.raises(FilterError, match="found one string"):
        parse_filter("path:docs")


@given(
    st.lists(
        st.text(max_size=20) | st.from_regex(r"-?(path|date|lang|meta\.\w+)(:|>=|<)[\w:./ -]{0,12}"),
        max_size=3,
    )
)
def test_anything_is_a_filter_or_a_filter_error(expressions: list[str]) -> None:
    with contextlib.suppress(FilterError):
        assert isinstance(parse_filter(expressions), Filter)
