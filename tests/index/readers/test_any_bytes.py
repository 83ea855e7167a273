"""Whatever the bytes: a state, places in range and in order, and a message that survives the pipe."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likewise.index.readers.base import Source
from likewise.index.readers.protocol import (
    ProtocolError,
    misplaced,
    outcome_frame,
    outcome_from,
    read_frame,
    write_frame,
)
from likewise.index.readers.registry import read, readers
from likewise.index.records import DocumentState, Extraction, Skip

SUFFIXES = sorted({min(reader.suffixes) for reader in readers()} | {"", ".md", ".ipynb", ".jsonl", ".eml"})
PIECES = (
    "# = - ` ~ * _ > < | : [ ] { } ( ) \\ / \" ' , ! & ; + .. :: <!-- --> <pre> </pre> <h1> <table> <li> 1. 0"
)
MARKUP = st.lists(
    st.sampled_from(
        [
            *PIECES.split(),
            ".. ",
            "---\n",
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            "\t",
            " ",
            "    ",
            "\f",
            "\u2028",
            "\x85",
            "金鑰",
        ]
    ),
    max_size=60,
).map("".join)


def check(data: bytes, suffix: str) -> None:
    outcome = read(Source(data, suffix=suffix, name="x" + suffix))
    stream = io.BytesIO()
    write_frame(stream, *outcome_frame(outcome))
    stream.seek(0)
    frame = read_frame(stream)
    assert frame is not None
    assert outcome_from(*frame) == outcome
    if isinstance(outcome, Skip):
        assert outcome.state is not DocumentState.OK
        assert outcome.reason
        return
    assert misplaced(outcome) == ""
    assert outcome.text.strip()
    assert all(heading.title and heading.level >= 1 for heading in outcome.headings)
    assert all(heading.span.of(outcome.text).strip() for heading in outcome.headings)
    assert outcome.reader in {reader.id for reader in readers()}


@settings(max_examples=400, deadline=None)
@given(MARKUP, st.sampled_from(SUFFIXES))
@example("# 0\n#\r# 1\x0b", ".md")
def test_markup_in_every_text_format(text: str, suffix: str) -> None:
    check(text.encode(), suffix)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(SUFFIXES))
def test_bytes_in_every_format(data: bytes, suffix: str) -> None:
    check(data, suffix)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(SUFFIXES), st.sampled_from(["utf-8", "utf-16", "gb18030"]))
def test_text_in_every_encoding(text: str, suffix: str, encoding: str) -> None:
    check(text.encode(encoding, "replace"), suffix)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_binary_documents(data: st.DataObject) -> None:
    """Bytes of real containers flipped and cut. PDF is left to the isolated tests: its library may crash."""
    original = _DOCX
    cut = data.draw(st.integers(1, len(original)))
    damaged = bytearray(original[:cut])
    for _ in range(data.draw(st.integers(0, 8))):
        damaged[data.draw(st.integers(0, cut - 1))] = data.draw(st.integers(0, 255))
    check(bytes(damaged), ".docx")


def _docx() -> bytes:
    import zipfile

    w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    run = "<w:r><w:t>Keys</w:t><w:lastRenderedPageBreak/></w:r>"
    paragraph = f"<w:p><w:pPr><w:outlineLvl w:val='0'/></w:pPr>{run}</w:p>"
    body = paragraph + f"<w:tbl><w:tr><w:tc>{paragraph}</w:tc></w:tr></w:tbl>" + paragraph
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{w}"><w:body>{body}</w:body></w:document>'
        )
    return buffer.getvalue()


_DOCX = _docx()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_a_stream_of_nonsense_is_a_protocol_error(data: bytes) -> None:
    try:
        frame = read_frame(io.BytesIO(data))
    except ProtocolError:
        return
    assert frame is None or isinstance(frame[0], dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(outcome_frame(Extraction("Keys", "plain/1"))[0])), JSON, st.binary(max_size=8))
def test_a_worker_that_answers_nonsense_is_found_out(field: str, value: object, body: bytes) -> None:
    header, _ = outcome_frame(Extraction("Keys", "plain/1"))
    header[field] = value  # type: ignore[assignment]
    try:
        outcome = outcome_from(header, body)
    except ProtocolError:
        return
    assert isinstance(outcome, Skip) or misplaced(outcome) == ""


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("headings", [[0, 9, 1, "x"]], "a heading span is outside of the text"),
        ("headings", [[2, 3, 1, "x"], [0, 1, 1, "y"]], "heading spans are out of order"),
        ("verbatim", [[1, 1]], "a verbatim span is outside of the text"),
        ("links", [[2, 9, "a.html"]], "a link span is outside of the text"),
        ("links", [[2, 4, "a.html"], [1, 2, "b.html"]], "link spans are out of order"),
        ("page_starts", [1], "the first page does not start at 0"),
        ("page_starts", [0, 3, 2], "page offsets are out of order"),
        ("breaks", [-1], "a break offset is outside of the text"),
        ("state", "fine", "not an outcome"),
    ],
)
def test_misplaced_structure_is_refused(field: str, value: object, message: str) -> None:
    header, body = outcome_frame(Extraction("Keys", "plain/1"))
    header[field] = value  # type: ignore[assignment]
    with pytest.raises(ProtocolError, match=message):
        outcome_from(header, body)
