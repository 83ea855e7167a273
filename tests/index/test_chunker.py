from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import UsageError
from likewise.index.chunker import chunk, chunk_with_context
from likewise.index.records import Extraction, Heading, Passage, Span, passage_context
from likewise.index.settings import ChunkSettings

CORPUS = [
    "The keys are rotated every ninety days, and nobody writes them down anywhere else.",
    "An index is a directory; it holds passages, vectors and a log of operations. Really!",
    "金鑰每九十天輪換一次。沒有人會把它寫在別處！索引是一個目錄；裡面有段落。",
    "密钥每九十天轮换一次，没有人会把它写在别处。",
    "def rotate(key: str) -> None:\n    return store.write(key)\n",
]


class LibraryEncoder(HashEncoder):
    """Counts tokens as a real vocabulary does; vectors do not matter here."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        super().__init__(max_tokens=limit)
        self.tokenizer = tokenizer

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2) for encoding in encodings]


def word_piece() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False)
    )
    return tokenizer


def byte_pairs() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    return tokenizer


def unigram() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=200, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
        ),
    )
    return tokenizer


TOKENIZERS = {"WordPiece": word_piece(), "BPE": byte_pairs(), "Unigram": unigram()}
LIMIT = 64

# Ordinary words, every kind of line end and white space, both Chinese scripts, right-to-left text, emoji made
# of several code points, combining marks, and one character that NFKC turns into eighteen.
_FRAGMENTS = [
    *("word", "Sentence one. ", "Another? ", "e.g. ", "3.14", "x" * 300, "a b c ", "# Title\n", "- item\n"),
    *("\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\t", "\u3000", "\u2028", "\x0c", " " * 50, "|a|b|\n"),
    *(
        "金鑰輪換。",
        "密钥轮换；",
        "鍵を回す！",
        "「好。」",
        "שלום עולם. ",
        "مرحبا بالعالم؟ ",
        "👩‍👩‍👧‍👦",
        "🇹🇼🏽",
        "e\u0301\u0302",
    ),
    *("\ufdfa", "\u200b", "\ufeff", "\x00", "`code`", "    indented\n", "नमस्ते। "),
]
texts = st.lists(st.one_of(st.sampled_from(_FRAGMENTS), st.text(max_size=8)), max_size=60).map("".join)


@st.composite
def documents(draw: st.DrawFn) -> Extraction:
    """Any text, with any structure a reader might claim for it, sane or not."""
    text = draw(texts)
    offsets = st.integers(0, max(0, len(text)))
    spans = draw(st.lists(st.tuples(offsets, st.integers(1, 12)), max_size=5))
    headings = tuple(
        Heading(
            Span(a, min(len(text), a + n)),
            draw(st.integers(1, 3)),
            draw(st.sampled_from(["Keys", "金鑰", ""])),
        )
        for a, n in sorted(spans)
        if a < len(text)
    )
    pages = draw(st.lists(offsets, max_size=4))
    return Extraction(
        text,
        reader="test/1",
        title=draw(st.sampled_from(["", "Guide", "很長的標題" * 40])),
        headings=headings,
        page_starts=tuple(sorted({0, *pages})) if pages else (),
        breaks=tuple(sorted(draw(st.sets(offsets, max_size=4)))),
        verbatim=tuple(Span(a, min(len(text), a + n)) for a, n in sorted(spans)),
        body_start=draw(st.sampled_from([0, 0, draw(offsets)])),
    )


def check_guarantees(document: Extraction, passages: Sequence[Passage], *, overlap: bool) -> None:
    covered = set()
    for ordinal, passage in enumerate(passages):
        start, end = passage.span.start, passage.span.end
        assert passage.ordinal == ordinal
        assert document.text[start:end] == passage.text
        assert passage.text and passage.text == passage.text.strip()
        before = document.text[:start].replace("\r\n", "\n").replace("\r", "\n")
        inside = passage.text.replace("\r\n", "\n").replace("\r", "\n")
        first = before.count("\n") + 1
        assert passage.lines == (first, first + inside.count("\n"))
        if document.page_starts:
            assert passage.page == sum(
                at <= start for at in set(document.page_starts) if at < len(document.text)
            )
            assert not any(start < at < end for at in document.page_starts)
        else:
            assert passage.page is None
        covered.update(range(start, end))
    assert all(
        (i in covered) == (i >= document.body_start)
        for i, character in enumerate(document.text)
        if not character.isspace()
    )
    for left, right in pairwise(passages):
        assert left.span.start < right.span.start
        assert overlap or left.span.end <= right.span.start


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=120, deadline=None)
@given(document=documents(), overlap=st.sampled_from([0, 8, 20]), target=st.sampled_from([None, 16, 40, 64]))
def test_guarantees_hold_for_any_text_and_vocabulary(
    name: str, document: Extraction, overlap: int, target: int | None
) -> None:
    encoder = LibraryEncoder(TOKENIZERS[name], LIMIT)
    chosen = ChunkSettings(target_tokens=target, overlap_tokens=min(overlap, (target or 50) // 2))
    pieces = list(chunk_with_context(document, tokenizer=encoder, settings=chosen))
    check_guarantees(document, [piece.passage for piece in pieces], overlap=overlap > 0)
    for piece, spans in zip(pieces, encoder.token_spans([piece.embedded for piece in pieces]), strict=True):
        assert len(spans) <= LIMIT
        assert piece.embedded.endswith(piece.passage.text)


@settings(max_examples=60, deadline=None)
@given(document=documents())
def test_passages_cut_again_from_the_same_text_are_the_same(document: Extraction) -> None:
    assert chunk(document, tokenizer=HashEncoder()) == chunk(document, tokenizer=HashEncoder())


def markdown(text: str, *, title: str = "", **structure: Any) -> Extraction:
    """A document whose headings are the lines that begin with '#'."""
    headings, offset = [], 0
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            marks = len(line) - len(line.lstrip("#"))
            span = Span(offset, offset + len(line.rstrip()))
            headings.append(Heading(span, marks, line.strip("# \r\n")))
        offset += len(line)
    return Extraction(text, reader="test/1", title=title, headings=tuple(headings), **structure)


def words(count: int, stem: str = "word") -> str:
    return " ".join(f"{stem}{i}" for i in range(count))


def test_no_text_gives_no_passages() -> None:
    assert chunk(Extraction("", reader="t/1"), tokenizer=HashEncoder()) == []
    assert chunk(Extraction(" \n\t\r\n\u3000 ", reader="t/1"), tokenizer=HashEncoder()) == []


def test_a_short_document_is_one_passage() -> None:
    assert chunk(Extraction("  Hello there.\n", reader="t/1"), tokenizer=HashEncoder()) == [
        Passage(0, "Hello there.", Span(2, 14), (1, 1), None, ())
    ]


def test_sections_of_some_size_become_passages_with_their_heading_path() -> None:
    document = markdown(
        f"# Guide\n\n{words(60)}\n\n## Keys\n\n{words(70)}\n\n## 金鑰\n\n{words(80)}\n", title="Guide"
    )
    pieces = list(chunk_with_context(document, tokenizer=HashEncoder(max_tokens=128)))
    assert [piece.passage.headings for piece in pieces] == [("Guide",), ("Guide", "Keys"), ("Guide", "金鑰")]
    assert [piece.passage.text.splitlines()[0] for piece in pieces] == ["# Guide", "## Keys", "## 金鑰"]
    assert pieces[1].embedded == "Guide > Keys\n" + pieces[1].passage.text
    assert pieces[1].passage.lines == (5, 7)


def test_small_sections_are_merged_and_stand_under_the_first() -> None:
    document = markdown("# Guide\n\n" + "".join(f"## Part {i}\n\nTwo words.\n\n" for i in range(5)))
    [passage] = chunk(document, tokenizer=HashEncoder())
    assert passage.headings == ("Guide", "Part 0")


@pytest.mark.parametrize("size", [30, 60, 90, 120, 250])
def test_a_heading_is_never_left_alone_at_the_end(size: int) -> None:
    document = markdown(f"{words(size)}\n\n# Keys\n\n## Rotation\n\n{words(80)}. And more.\n")
    passages = chunk(document, tokenizer=HashEncoder(max_tokens=100))
    [holder] = [passage for passage in passages if "# Keys" in passage.text]
    assert "## Rotation\n\nword0 word1" in holder.text
    if holder.text.startswith("# Keys"):
        assert holder.headings == ("Keys", "Rotation")


def test_a_section_is_divided_evenly_and_at_sentences() -> None:
    sentence = "One two three four five six seven eight nine. "  # 10 tokens of the hash encoder
    document = Extraction(sentence * 24, reader="t/1")
    passages = chunk(document, tokenizer=HashEncoder(max_tokens=125))  # target 100, most 125
    sizes = [passage.text.count("nine.") for passage in passages]
    assert sizes == [12, 12]
    assert all(passage.text.endswith("nine.") for passage in passages)


def test_chinese_is_divided_at_its_own_sentence_marks() -> None:
    document = Extraction("金鑰每九十天要輪換一次。" * 30 + "他說：「好！」" * 20, reader="t/1")
    passages = chunk(document, tokenizer=HashEncoder(max_tokens=64))
    assert len(passages) > 5
    assert all(passage.text[-1] in "。」" for passage in passages)


def test_a_paragraph_end_beats_a_sentence_end() -> None:
    paragraph = " ".join(["Alpha beta gamma delta epsilon."] * 14)  # 84 tokens
    passages = chunk(
        Extraction(f"{paragraph}\n\n{paragraph}\n\n{paragraph}", reader="t/1"),
        tokenizer=HashEncoder(max_tokens=125),
    )
    assert [passage.text for passage in passages] == [paragraph] * 3


def test_breaks_of_the_reader_are_preferred() -> None:
    cells = [words(50, "a"), words(50, "b"), words(50, "c")]
    text = " ".join(cells)
    document = Extraction(text, reader="t/1", breaks=(len(cells[0]) + 1, len(cells[0]) + len(cells[1]) + 2))
    passages = chunk(document, tokenizer=HashEncoder(max_tokens=80))
    assert [passage.text for passage in passages] == cells


def test_code_is_divided_at_lines_not_at_full_stops() -> None:
    line = "    say('Hello. World! Bye.')  # a. B\n"
    text = line * 60
    passages = chunk(
        Extraction(text, reader="t/1", verbatim=(Span(0, len(text)),)), tokenizer=HashEncoder(max_tokens=100)
    )
    assert len(passages) > 5
    assert all(passage.text.endswith("# a. B") for passage in passages)
    assert all(passage.span.start % len(line) == 4 for passage in passages)


def test_pages_are_not_crossed() -> None:
    pages = ["First page. ", "Second page. ", "第三頁。"]
    text = "".join(pages)
    starts = (0, len(pages[0]), len(pages[0]) + len(pages[1]))
    passages = chunk(Extraction(text, reader="pdf/1", page_starts=starts), tokenizer=HashEncoder())
    assert [(passage.page, passage.text) for passage in passages] == [
        (1, "First page."),
        (2, "Second page."),
        (3, "第三頁。"),
    ]


def test_an_empty_page_still_counts() -> None:
    text = "First.\n\nThird."
    passages = chunk(Extraction(text, reader="pdf/1", page_starts=(0, 7, 8)), tokenizer=HashEncoder())
    assert [(passage.page, passage.text) for passage in passages] == [(1, "First."), (3, "Third.")]


def test_overlap_repeats_whole_sentences_within_the_limit() -> None:
    text = " ".join(f"Sentence number {i} is here." for i in range(60))  # 6 tokens each
    plain = chunk(Extraction(text, reader="t/1"), tokenizer=HashEncoder(max_tokens=80))
    passages = chunk(
        Extraction(text, reader="t/1"),
        tokenizer=HashEncoder(max_tokens=80),
        settings=ChunkSettings(overlap_tokens=14),
    )
    assert all(a.span.end <= b.span.start for a, b in pairwise(plain))
    for left, right in pairwise(passages):
        shared = text[right.span.start : left.span.end]
        assert shared.count("Sentence") == 2  # 12 tokens; a third would make 18
        assert shared.startswith("Sentence") and shared.endswith("here.")


def test_overlap_does_not_reach_into_another_section() -> None:
    document = markdown(f"# A\n\n{words(36)}. Three.\n\n# B\n\n{words(36)}.\n")
    passages = chunk(
        document, tokenizer=HashEncoder(max_tokens=80), settings=ChunkSettings(overlap_tokens=20)
    )
    assert passages[-1].text.startswith("# B")


def test_context_can_be_left_out() -> None:
    document = markdown("# Guide\n\nText.\n", title="Guide")
    [piece] = chunk_with_context(
        document, tokenizer=HashEncoder(), settings=ChunkSettings(heading_context=False)
    )
    assert piece.embedded == piece.passage.text == "# Guide\n\nText."
    assert piece.passage.headings == ("Guide",)


def test_of_a_long_context_the_outermost_parts_go_first() -> None:
    document = markdown(f"# {words(40)}\n\n## Keys\n\nText here.\n", title=words(90, "title"))
    pieces = list(chunk_with_context(document, tokenizer=HashEncoder(max_tokens=100)))
    assert pieces[-1].embedded.startswith("Keys\n")
    assert pieces[-1].passage.headings[-1] == "Keys"


def test_a_target_above_the_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="200 tokens do not fit an encoder that takes 128"):
        chunk(
            Extraction("x", reader="t/1"), tokenizer=HashEncoder(), settings=ChunkSettings(target_tokens=200)
        )


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000,
        "word " * 60_000,
        "金鑰" * 150_000,
        "a\n" * 150_000,
        "a\n\n" * 100_000,
        ". " * 150_000,
        " " * 300_000 + "x",
        "\u0301" * 300_000,
        "# a\n" * 3_000,
        "x\n" + (" " * 100_000 + "\n") * 3 + "y",
    ],
    ids=[
        "one-word",
        "one-line",
        "no-spaces",
        "short-lines",
        "short-paragraphs",
        "stops",
        "spaces",
        "marks",
        "headings",
        "blank-lines",
    ],
)
def test_hostile_shapes_stay_linear_and_whole(text: str) -> None:
    """Anything quadratic would run into the time limit of the suite."""
    encoder = LibraryEncoder(TOKENIZERS["WordPiece"], 254)
    document = markdown(text) if text.startswith("#") else Extraction(text, reader="t/1")
    passages = chunk(document, tokenizer=encoder)
    assert "".join("".join(p.text.split()) for p in passages) == "".join(text.split())
    # An unbroken run may be one unknown token: it must not become one endless passage.
    assert max(len(passage.text) for passage in passages) <= 254 * 32


def test_an_emoji_or_an_accented_letter_is_not_torn() -> None:
    family, accented = "👩‍👩‍👧‍👦", "e\u0301"
    text = (family + accented) * 400
    for name, tokenizer in TOKENIZERS.items():
        passages = chunk(Extraction(text, reader="t/1"), tokenizer=LibraryEncoder(tokenizer, LIMIT))
        if name != "BPE":  # there a family is 25 tokens and fits, but only just: halving may have to tear it
            assert all(p.text.startswith((family[0], "e")) for p in passages)
        assert "".join(p.text for p in passages) == text


def test_the_context_line_is_the_public_one() -> None:
    document = replace(markdown("# Keys\n\nText.\n"), title="Guide")
    [piece] = chunk_with_context(document, tokenizer=HashEncoder())
    assert piece.embedded == passage_context("Guide", ("Keys",)) + "\n# Keys\n\nText."
