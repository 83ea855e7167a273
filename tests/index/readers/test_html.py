from __future__ import annotations

from collections.abc import Callable

import pytest

from likewise.index.readers.base import Source
from likewise.index.readers.protocol import misplaced
from likewise.index.readers.registry import read
from likewise.index.records import DocumentState, Extraction, Skip

Extract = Callable[..., Extraction]

PAGE = """<!DOCTYPE html>
<html lang="zh-Hant"><head><title> Key
 handbook </title><meta name="author" content="Ann"><style>p {}</style></head>
<body><nav><a href="/">Home</a></nav>
<h1>Signing <em>keys</em></h1>
<p>Keys are
 <b>ro</b>tated.<br>Always.</p><script>alert(1)</script>
<p hidden>secret</p><p style="display: none">secret</p>
<ul><li>one<ol start="3"><li>three</li><li>four</li></ol></li><li>two</li></ul>
<pre>
a
  b
</pre>
<table><caption>Ages</caption><tr><th>key<th>age</tr><tr><td>a<br>b<td><p>9</p></tr></table>
<h2>輪替</h2><p>每九十天&nbsp;一次</p>
</body></html>"""


def test_a_page_as_a_browser_shows_it(extract: Extract) -> None:
    found = extract(PAGE, "a.html")
    assert found.text == (
        "Home\n\nSigning keys\n\nKeys are rotated.\nAlways.\n\n"
        "- one\n  3. three\n  4. four\n- two\n\n"
        "a\n  b\n\nAges\n\nkey | age\na b | 9\n\n輪替\n\n每九十天 一次\n"
    )
    assert found.title == "Key handbook"
    assert found.language == "zh"
    assert found.metadata == {"author": "Ann"}
    assert [(h.level, h.title, h.span.of(found.text)) for h in found.headings] == [
        (1, "Signing keys", "Signing keys"),
        (2, "輪替", "輪替"),
    ]
    assert [span.of(found.text) for span in found.verbatim] == ["a\n  b", "key | age\na b | 9"]


def test_a_layout_table_keeps_its_headings(extract: Extract) -> None:
    found = extract("<table><tr><td><h1>Keys</h1><p>Rotate.</p></td></tr></table>", "a.htm")
    assert found.text == "Keys\n\nRotate.\n"
    assert [h.title for h in found.headings] == ["Keys"]
    assert found.verbatim == ()


def links(found: Extraction) -> list[tuple[str, str]]:
    return [(link.span.of(found.text), link.target) for link in found.links]


def test_links_are_known_where_the_text_does_not_show_them(extract: Extract) -> None:
    found = extract(
        """<nav><a href="/">Home</a><div><a href="x.html">Deep in it</a></div></nav>
        <div role="navigation"><a href="next.html">Next</a></div>
        <h1>See <a href="keys.html">the <b>signing</b>
         keys</a><a href="#see"></a></h1>
        <p>Keys: <a href=" 金鑰.html#輪替 ">輪替<br>簽署金鑰</a>, <a href="b.html">keys</a>, no.
        <a name="x">No</a>, <a href="i.html"><img src="i.png"></a></p>
        <ol><li><a href="one.html">one</a><li>and <a href="two.html">two</a></ol>
        <table><tr><td><a href="c1.html">cell</a><td>z<tr><td>y<td><a href="c2.html">cell</a> more</table>
        <pre>x <a href="p.html">a
  b</a></pre>""",
        "a.html",
    )
    assert links(found) == [
        ("the signing keys", "keys.html"),
        ("輪替\n簽署金鑰", "金鑰.html#輪替"),
        ("keys", "b.html"),
        ("one", "one.html"),
        ("two", "two.html"),
        ("cell", "c1.html"),
        ("cell", "c2.html"),
        ("a\n  b", "p.html"),
    ]
    assert [found.text[: link.span.start].count("\n") for link in found.links][-3:] == [14, 15, 17]


def test_a_link_around_blocks_is_named_by_the_first(extract: Extract) -> None:
    card = '<a href="card.html"><div> <h2>Key vault</h2><p>Where keys are.</p></div></a><p>More.</p>'
    assert links(extract(card, "a.html")) == [("Key vault", "card.html")]


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="big5">',
        "<meta charset=big5>",
        '<meta http-equiv="Content-Type" content="text/html; charset=BIG5">',
        "",
    ],
)
def test_charset(extract: Extract, head: str) -> None:
    text = "簽署金鑰應每九十天輪替一次，若有外洩之虞則應立即更換。"
    found = extract(f"<html><head>{head}</head><body><p>{text}</p></body></html>".encode("big5"), "a.html")
    assert found.text == text + "\n"
    assert found.lossy == 0


def test_a_title_is_taken_from_the_first_heading_where_there_is_none(extract: Extract) -> None:
    assert extract("<p>x</p><h2>Keys</h2>", "a.html").title == "Keys"


def test_a_page_without_text_is_empty(skip: Callable[..., Skip]) -> None:
    assert (
        skip("<html><body><script>x()</script><img src=a.png></body></html>", "a.html").state
        is DocumentState.EMPTY
    )


def test_a_page_under_another_name_is_read_as_a_page(extract: Extract) -> None:
    assert extract("<!-- saved -->\n<HTML><p>Keys", "report.doc").text == "Keys\n"


def test_a_prefix_of_comments_does_not_take_for_ever(extract: Extract) -> None:
    """A pattern that may pair comment marks in many ways needs exponential time here."""
    assert extract("<!---->" * 500 + "x", "a.unknown").reader.startswith("plain/")


@pytest.mark.parametrize(
    "html",
    [
        "<table><td>a<table><td>b</table>c<tr><tr></table>",
        "<li>a</ul></ol><li>b",
        "</p></body></html><p>after",
        "<pre><pre>a</pre>\n\n b</pre></pre>c",
        "<h1>a<h2>b<p>c",
        "<svg><title>no</title><p>yes</svg>",
        "<frameset><frame src=a></frameset><noframes>x</noframes>",
        "<p>\x0b &#0; &#xd800; &#x110000; \ufffd",
        "<a href=x>a<a href=y>b<p>c</a><table><td><a href=z>d</table><td>e</a></a>",
        "<a href='&#xd800;'>\x0b</a><a href=x>\xa0</a><nav><a href=y>n</nav>z</a>",
    ],
)
def test_broken_pages_are_read(html: str) -> None:
    outcome = read(Source(html.encode(), suffix=".html"))
    assert isinstance(outcome, Extraction) or outcome.state is DocumentState.EMPTY
    assert not isinstance(outcome, Extraction) or misplaced(outcome) == ""
