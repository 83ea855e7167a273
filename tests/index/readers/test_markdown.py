from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from likewise.index.readers.formats.markdown import plain_title, structure
from likewise.index.readers.frontmatter import split
from likewise.index.readers.lines import split_lines
from likewise.index.records import Extraction, Span

Extract = Callable[..., Extraction]

GUIDE = """\
# Signing keys { #signing-keys }

Keys are *rotated*.

```python
# not a heading
```

Rotation
--------

## 輪替金鑰 {#rotate .wide}

| key | age |
|-----|-----|
| a   | 9   |
"""


def test_text_is_the_file_and_spans_are_places_in_it(extract: Extract) -> None:
    found = extract(GUIDE, "guide.md")
    assert found.text == GUIDE
    assert [(h.level, h.title) for h in found.headings] == [
        (1, "Signing keys"),
        (2, "Rotation"),
        (2, "輪替金鑰"),
    ]
    assert found.headings[0].span.of(GUIDE) == "# Signing keys { #signing-keys }"
    assert found.headings[1].span.of(GUIDE) == "Rotation\n--------"
    assert found.title == "Signing keys"
    assert [span.of(GUIDE) for span in found.verbatim] == [
        "```python\n# not a heading\n```",
        "| key | age |\n|-----|-----|\n| a   | 9   |",
    ]


def test_windows_line_ends_keep_offsets_right(extract: Extract) -> None:
    text = GUIDE.replace("\n", "\r\n")
    found = extract(text, "guide.md")
    assert found.text == text
    assert [h.title for h in found.headings] == ["Signing keys", "Rotation", "輪替金鑰"]
    assert found.headings[2].span.of(text) == "## 輪替金鑰 {#rotate .wide}"


def test_front_matter_becomes_metadata(extract: Extract) -> None:
    text = "---\ntitle: 金鑰手冊\ndate: 2025-01-31\ntags: [keys, ops]\nlang: zh-Hant\n---\n# Other\n\nText."
    found = extract(text, "a.md")
    assert found.title == "金鑰手冊"
    assert found.language == "zh"
    assert found.metadata == {
        "title": "金鑰手冊",
        "date": "2025-01-31",
        "tags": ["keys", "ops"],
        "lang": "zh-Hant",
    }
    assert found.text == text
    assert found.body == "# Other\n\nText."


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_front_matter_without_a_text_stays_the_text(extract: Extract, end: str) -> None:
    text = f"---\ntitle: Keys\ndescription: How keys are rotated.\n---{end}"
    found = extract(text, "_index.md")
    assert found.body == text
    assert found.metadata == {"title": "Keys", "description": "How keys are rotated."}


def test_front_matter_in_toml(extract: Extract) -> None:
    found = extract("+++\ntitle = 'Keys'\ndraft = false\n+++\nText.", "a.md")
    assert found.metadata == {"title": "Keys", "draft": False}


BILLION_LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    "yaml",
    [
        "a: [1, 2",
        "a: !!python/object/apply:os.system ['true']",
        "a: 2025-99-99",
        "a: &a [*a]",
        BILLION_LAUGHS,
    ],
    ids=["unclosed", "object", "impossible date", "cycle", "billion laughs"],
)  # fmt: skip
def test_front_matter_that_cannot_be_understood_is_noted(extract: Extract, yaml: str) -> None:
    found = extract(f"---\n{yaml}\n---\n# Keys\n", "a.md")
    assert found.metadata == {}
    assert found.title == "Keys"
    assert found.body == found.text
    assert found.verbatim == (Span(0, found.text.index("# Keys")),)
    assert len(found.notes) == 1
    assert found.notes[0].startswith("the front matter cannot be understood: ")


def test_a_rule_at_the_top_is_no_front_matter(extract: Extract) -> None:
    found = extract("---\nJust a sentence.\n---\n", "a.md")
    assert (found.metadata, found.notes, found.breaks) == ({}, (), ())


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("Use `keys` with [**OAuth2**](oauth2.md) { #use-keys }", "Use keys with OAuth2"),
        ("宣告*路徑操作*的 scopes", "宣告路徑操作的 scopes"),
        ("snake_case_name and `**kwargs`", "snake_case_name and **kwargs"),
        ("![logo](logo.svg) [Home][home]", "logo Home"),
        (r"1\. Not a list &amp; \*not\* bold", "1. Not a list & *not* bold"),
        ('<abbr title="x">ABC</abbr> ~~old~~', "ABC old"),
        ("Keys {.wide data-x=1}", "Keys"),
        ("Sets {a, b}", "Sets {a, b}"),
    ],
)
def test_titles_are_what_a_person_reads(markup: str, title: str) -> None:
    assert plain_title(markup) == title


TRICKY = [
    "# A #\n## B ##  \n####### no\n#no\n#\n# #\n",
    "para\n# heading ends it\nmore\n===\n",
    "two\nlines\n---\n\n---\nrule above\n",
    "> # quoted\n\n- # in an item\n\n    # code\n\n# real\n",
    "~~~\n# code\n```\n# still\n~~~\n# out\n",
    "```\nnever closed\n# code\n",
    "<!--\n# comment\n-->\n# out\n\n<pre>\n# pre\n\n# pre\n</pre>\n# out\n",
    "- item\n\n  para\n  ---\n\n  ```\n  # code\n  ```\n\n# out\n",
    "1. item\nlazy\n===\n\n# out\n",
    "> quote\nlazy\n---\n# out\n",
    "a | b\n--- | ---\n1 | 2\n\n# out\n",
    "   # three spaces\n\n\t# tab\n",
    "text\n    # continues the paragraph\n===\n",
    "***\n# out\n* * *\ntext\n- - -\n",
    "# 標題 `code`\n\n副標題\n======\n",
]


@pytest.mark.parametrize("text", TRICKY)
def test_headings_are_those_of_commonmark(text: str) -> None:
    assert _found(text) == _expected(text)


@pytest.mark.data
def test_headings_of_real_documents_are_those_of_commonmark(data_dir: Path) -> None:
    headings = 0
    for folder in ("docs-fastapi", "odd-docs"):
        for file in sorted((data_dir / folder).rglob("*.md")):
            text = file.read_bytes().decode("utf-8-sig", "replace")
            body = text[split(text).end :]
            expected = _expected(body)
            assert _found(body) == expected, file
            headings += len(expected)
    assert headings > 5000


@pytest.mark.parametrize(
    "text",
    [
        "#" + " " * 200_000 + "x",
        " " * 200_000 + "- x",
        "# " + "*" * 200_000,
        "# " + "[" * 200_000,
        "|" + " " * 200_000 + "|x\n|" + "-" * 200_000 + "x",
        "<!-- " * 50_000,
        "```\n~~~\n" * 20_000,
        "a\n" * 200_000,
    ],
    ids=["spaces", "indent", "stars", "brackets", "table", "comments", "fences", "paragraph"],
)
def test_time_grows_with_the_length_and_no_more(text: str) -> None:
    """None of these would end within the suite's time limit with a pattern that backtracks."""
    structure(text)


def _found(text: str) -> list[tuple[int, int]]:
    starts = {line.start: number for number, line in enumerate(split_lines(text))}
    return [(starts[heading.span.start], heading.level) for heading in structure(text).headings]


def _expected(text: str) -> list[tuple[int, int]]:
    """Line and level of the headings outside of quotes and lists, by an independent implementation."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [
        (token.map[0], int(token.tag[1]))
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
        and token.level == 0
        and token.map
        and tokens[number + 1].content.strip()
    ]
