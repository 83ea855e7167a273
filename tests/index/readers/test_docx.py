from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from likewise.index.readers.word_parts import format_number
from likewise.index.records import DocumentState, Extraction, Skip

Extract = Callable[..., Extraction]
Make = Callable[..., bytes]

STYLES = (
    '<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="Sub"><w:name w:val="Part"/><w:basedOn w:val="H1"/>'
    '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
    '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="x"/><w:basedOn w:val="Loop"/></w:style>'
)


def p(text: str, style: str = "", extra: str = "") -> str:
    properties = (f'<w:pStyle w:val="{style}"/>' if style else "") + extra
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def item(text: str, list_id: int, level: int = 0) -> str:
    return p(text, extra=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')


def test_paragraphs_headings_and_title(extract: Extract, make_docx: Make) -> None:
    body = (
        p("金鑰手冊", "T")
        + p("Signing keys", "H1")
        + p("Keys are rotated.")
        + p("Rotation", "Sub")
        + p("x", "Loop")
    )
    found = extract(make_docx(body, styles=STYLES), "a.docx")
    assert found.text == "金鑰手冊\n\nSigning keys\n\nKeys are rotated.\n\nRotation\n\nx\n"
    assert [(h.level, h.title, h.span.of(found.text)) for h in found.headings] == [
        (1, "金鑰手冊", "金鑰手冊"),
        (1, "Signing keys", "Signing keys"),
        (2, "Rotation", "Rotation"),
    ]
    assert found.title == "金鑰手冊"


def test_properties(extract: Extract, make_docx: Make) -> None:
    found = extract(make_docx(p("x"), core="<title>Keys</title><creator>Ann</creator>"), "a.docx")
    assert (found.title, found.metadata) == ("Keys", {"author": "Ann"})


def test_runs_tabs_breaks_and_what_is_left_out(extract: Extract, make_docx: Make) -> None:
    body = (
        "<w:p><w:pPr><w:tabs><w:tab w:val='left' w:pos='720'/></w:tabs></w:pPr>"
        "<w:r><w:t>ro</w:t></w:r><w:r><w:t>tate</w:t><w:tab/><w:t>now</w:t><w:br/><w:t>or</w:t></w:r>"
        "<w:del><w:r><w:delText>never</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t> later</w:t></w:r></w:ins>"
        "<w:r><w:instrText>PAGEREF x</w:instrText><w:noBreakHyphen/></w:r>"
        "<w:hyperlink><w:r><w:t>here</w:t></w:r></w:hyperlink></w:p>"
    )
    assert extract(make_docx(body), "a.docx").text == "rotate\tnow\nor later-here\n"


def test_tables_are_verbatim_lines(extract: Extract, make_docx: Make) -> None:
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"

    inner = "<w:tbl>" + row(p("x"), p("y")) + "</w:tbl>" + p("")
    body = (
        p("before")
        + "<w:tbl>"
        + row(p("key"), p("age"))
        + row(p("a") + p("b"), inner)
        + "</w:tbl>"
        + p("after")
    )
    found = extract(make_docx(body), "a.docx")
    assert found.text == "before\n\nkey | age\na b | x | y\n\nafter\n"
    assert [span.of(found.text) for span in found.verbatim] == ["key | age\na b | x | y"]


def test_text_boxes_are_read_once(extract: Extract, make_docx: Make) -> None:
    box = f"<w:txbxContent>{p('in the box')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>host</w:t></w:r><mc:AlternateContent><mc:Choice>" + box + "</mc:Choice>"
        "<mc:Fallback>" + box + "</mc:Fallback></mc:AlternateContent></w:p>" + p("next")
    )
    namespaces = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    found = extract(make_docx(body, namespaces=namespaces), "a.docx")
    assert found.text == "host\n\nin the box\n\nnext\n"


def test_lists_are_numbered_as_word_shows_them(extract: Extract, make_docx: Make) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="7">'
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1%2)"/></w:lvl>'
        "</w:abstractNum>"
        '<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>'
        "</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="7"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    )
    body = "".join(
        (item("a", 1), item("b", 1), item("c", 1, 1), item("d", 1, 1), item("e", 1), item("f", 1, 1),
         p("stop"),          item("g", 2), item("h", 3), item("i", 0))
    )  # fmt: skip
    assert extract(make_docx(body, numbering=numbering), "a.docx").text == (
        "1. a\n2. b\n  2a) c\n  2b) d\n3. e\n  3a) f\n\nstop\n\n- g\n5. h\n\ni\n"
    )


def test_numbers_in_chinese_documents() -> None:
    assert [format_number(n, "taiwaneseCountingThousand") for n in (1, 10, 11, 20, 35)] == [
        "一", "十", "十一", "二十", "三十五",
    ]  # fmt: skip
    assert [format_number(n, "upperRoman") for n in (4, 9, 1994)] == ["IV", "IX", "MCMXCIV"]
    assert [format_number(n, "lowerLetter") for n in (1, 26, 27)] == ["a", "z", "aa"]


def test_notes_stand_at_the_end(extract: Extract, make_docx: Make) -> None:
    body = '<w:p><w:r><w:t>Rotate</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = f'<w:footnote w:type="separator" w:id="-1">{p("---")}</w:footnote>'
    notes += f'<w:footnote w:id="2">{p("Or not.")}</w:footnote>'
    assert extract(make_docx(body, footnotes=notes), "a.docx").text == "Rotate[^fn2]\n\n[^fn2]: Or not.\n"


PAGES = (
    p("one")
    + '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
    + "<w:p><w:r><w:lastRenderedPageBreak/><w:t>two </w:t></w:r>"
    + "<w:r><w:lastRenderedPageBreak/><w:t>three</w:t></w:r></w:p>"
)


def test_pages_are_those_of_the_last_layout(extract: Extract, make_docx: Make) -> None:
    found = extract(make_docx(PAGES, pages=3), "a.docx")
    assert found.text == "one\n\ntwo three\n"
    assert found.page_starts == (0, found.text.index("two"), found.text.index("three"))


def test_pages_that_do_not_agree_are_not_claimed(extract: Extract, make_docx: Make) -> None:
    assert extract(make_docx(PAGES, pages=7), "a.docx").page_starts == ()
    assert extract(make_docx(p("x")), "a.docx").page_starts == ()
    assert extract(make_docx(p("x"), pages=1), "a.docx").page_starts == (0,)


def test_strict_documents(extract: Extract, make_docx: Make, make_zip: Callable[..., bytes]) -> None:
    strict = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    data = make_zip(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<a:document xmlns:a="{strict}"><a:p><a:t>Keys</a:t></a:p></a:document>',
        }
    )
    assert extract(data, "a.docx").text == "Keys\n"


@pytest.mark.parametrize(
    ("members", "state", "reason"),
    [
        ({"word/document.xml": "<!DOCTYPE x []><x/>"}, DocumentState.FAILED, "holds a document type def"),
        ({"word/document.xml": "<x>"}, DocumentState.FAILED, "is damaged: part"),
        ({"word/other.xml": "<x/>"}, DocumentState.FAILED, "is damaged: it has no main document part"),
        ({"word/document.xml": " " * (65 << 20)}, DocumentState.TOO_LARGE, "unpacks to more than"),
        ({"word/document.xml": "<x/>"}, DocumentState.EMPTY, "holds no text"),
    ],
    ids=["dtd", "not well-formed", "no main part", "bomb", "empty"],
)  # fmt: skip
def test_documents_that_give_no_text(
    skip: Callable[..., Skip],
    make_zip: Callable[[Mapping[str, str]], bytes],
    members: dict[str, str],
    state: DocumentState,
    reason: str,
) -> None:
    found = skip(make_zip({"[Content_Types].xml": "<Types/>", **members}), "a.docx")
    assert found.state is state
    assert found.reason.startswith(reason)


def test_a_cut_archive_is_a_damaged_document(skip: Callable[..., Skip], make_docx: Make) -> None:
    found = skip(make_docx(p("x"))[:-40], "a.docx")
    assert (found.state, found.reason) == (DocumentState.FAILED, "is damaged: File is not a zip file")


def test_an_encrypted_document_is_recognised(skip: Callable[..., Skip]) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500 + "EncryptedPackage".encode("utf-16-le")
    assert skip(data, "a.docx").state is DocumentState.ENCRYPTED


def test_deep_nesting_is_no_recursion(extract: Extract, make_docx: Make) -> None:
    depth = 20_000
    body = "<w:sdt>" * depth + p("deep") + "</w:sdt>" * depth
    assert extract(make_docx(body), "a.docx").text == "deep\n"
