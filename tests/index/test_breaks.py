from __future__ import annotations

import pytest

from likewise.index.breaks import Outline, break_within, count_newlines, find_breaks
from likewise.index.packing import Strength
from likewise.index.records import Extraction, Heading, Span


def document(text: str, *titles: tuple[str, int], **structure: object) -> Extraction:
    headings = tuple(
        Heading(Span(text.index(line), text.index(line) + len(line)), level, line.strip("# "))
        for line, level in titles
    )
    return Extraction(text, reader="t/1", headings=headings, **structure)  # type: ignore[arg-type]


def breaks(extraction: Extraction) -> list[tuple[str, Strength]]:
    """The word behind each break, with the strength of the break."""
    text = extraction.text
    offsets, strengths = find_breaks(extraction, Outline(extraction), 0, len(text.rstrip()))
    return [(text[at:].split()[0], strength) for at, strength in zip(offsets, strengths, strict=True)]


def test_strengths() -> None:
    text = "Intro one. Two\nthree\n- item\n\nPara.\r\n\r\nLast"
    assert breaks(document(text)) == [
        ("Two", Strength.SENTENCE),
        ("three", Strength.LINE),
        ("-", Strength.ITEM),
        ("Para.", Strength.PARAGRAPH),
        ("Last", Strength.PARAGRAPH),
    ]


def test_no_break_between_headings_and_their_text() -> None:
    text = "Before.\n\n# A\n\n## B\n\nBody one. Body two.\n"
    assert breaks(document(text, ("# A", 1), ("## B", 2))) == [
        ("#", Strength.HEADING),
        ("Body", Strength.SENTENCE),
    ]


def test_no_sentences_in_code() -> None:
    text = "Run it. Like:\n\nx = 'a. B'\ny = 1\n"
    start = text.index("x =")
    found = breaks(document(text, verbatim=(Span(start, len(text)),)))
    assert found == [("Like:", Strength.SENTENCE), ("x", Strength.PARAGRAPH), ("y", Strength.LINE)]


def test_breaks_of_the_reader() -> None:
    assert breaks(document("one two three", breaks=(4, 8))) == [
        ("two", Strength.SECTION),
        ("three", Strength.SECTION),
    ]


def test_paths() -> None:
    text = "pre\n# A\na\n## B\nb\n## C\nc\n# D\n### E\ne\n"
    outline = Outline(document(text, ("# A", 1), ("## B", 2), ("## C", 2), ("# D", 1), ("### E", 3)))
    assert outline.path_at(0) == ()
    assert outline.path_at(text.index("a\n")) == ("A",)
    assert outline.path_at(text.index("b\n")) == ("A", "B")
    assert outline.path_at(text.index("## C")) == ("A", "C")
    assert outline.path_at(text.index("# D")) == ("D", "E"), "a chain of headings stands above the same text"
    assert outline.body_after(text.index("# D")) == text.rindex("e\n")


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("one two three", 6, (4, Strength.WORD)),
        ("金鑰，輪換了", 5, (3, Strength.WORD)),
        ("abcdefgh", 5, (5, Strength.ANYWHERE)),
        ("abe\u0301fg", 3, (4, Strength.ANYWHERE)),
        ("ab👩‍👩‍👧cd", 3, (7, Strength.ANYWHERE)),
        ("ab\r\ncd", 3, (3, Strength.ANYWHERE)),
    ],
)
def test_break_within(text: str, wanted: int, expected: tuple[int, Strength]) -> None:
    offset, strength = break_within(text, wanted, 1, len(text))
    if text == "ab\r\ncd":
        assert offset != 3, "CR LF is one line end"
    else:
        assert (offset, strength) == expected


def test_newlines() -> None:
    assert count_newlines("a\r\nb\rc\nd", 0, 8) == 3
    assert count_newlines("a\u2028b\x0cc", 0, 5) == 0
