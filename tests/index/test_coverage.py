"""Coverage against counted tokens, with a tokenizer that is written out here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.embedder.encoder import Encoder
from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.added import TextDocument
from likewise.index.coverage import (
    COVERAGE,
    SUITABLE,
    Coverage,
    coverage_notice,
    measure_coverage,
    stored_coverage,
)
from likewise.index.index import Index


class SpelledEncoder(HashEncoder):
    """Tokens of `size` characters each; the characters in `unknown` stand for tokens it does not know."""

    def __init__(self, size: int, unknown: str = "") -> None:
        super().__init__()
        self._size = size
        self._unknown = unknown

    def token_spans(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [
            np.array(
                [(at, min(at + self._size, len(text))) for at in range(0, len(text), self._size)], np.int32
            )
            for text in texts
        ]

    def unknown_share(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([sum(c in self._unknown for c in text) / max(1, len(text)) for text in texts])


@pytest.mark.parametrize(
    ("size", "unknown", "text", "expected"),
    [
        (4, "", "абвгдежз", Coverage(0.0, 4.0, 1.0)),
        (1, "", "абвгдежз", Coverage(0.0, 1.0, 0.5)),  # 8 letters would normally be 4 tokens, found 8
        (1, "", "簽署金鑰輪替", Coverage(0.0, 1.0, 1.0)),  # one token for each character is normal
        (1, "簽署金", "簽署金鑰輪替", Coverage(0.5, 1.0, 0.5)),
        (1, "", "E1042 XKCD qwxz", Coverage(0.0, 0.0, 1.0)),  # spelt out in any vocabulary
        (1, "", "абв", Coverage(0.0, 1.0, 1.0)),  # too little to say
        (1, "", "", Coverage(0.0, 0.0, 1.0)),
    ],
)
def test_counted_tokens(size: int, unknown: str, text: str, expected: Coverage) -> None:
    assert measure_coverage(SpelledEncoder(size, unknown), [text]) == expected


def test_long_texts_count_more() -> None:
    found = measure_coverage(SpelledEncoder(1, "密"), ["密", "鍵" * 9])
    assert found == Coverage(0.1, 1.0, 0.9)
    assert not found.poor and Coverage(0.3, 1.0, 0.7).poor


def test_parts_of_one_letter_are_one_letter() -> None:
    class Apart(HashEncoder):
        def token_spans(self, texts: Sequence[str]) -> list[np.ndarray]:
            return [
                np.repeat(np.array([(at, at + 1) for at in range(len(t))], np.int32), 3, 0) for t in texts
            ]

    found = measure_coverage(
        Apart(), ["서명키는얼마나"[:6]]
    )  # 6 letters in 18 tokens; 6 / .8 = 7.5 would be normal
    assert found == Coverage(0.0, pytest.approx(1 / 3), pytest.approx(7.5 / 18))


def test_an_index_remembers_its_coverage(tmp_path: Path) -> None:
    encoder = SpelledEncoder(1, "簽署")
    with Index.open(tmp_path / ".likewise", encoder=encoder) as index:
        index.add([TextDocument("empty", "")])
        assert index.status().coverage is None
        index.add([TextDocument("a", "簽署金鑰"), TextDocument("b", "輪替輪替")])
        assert index.status().coverage == Coverage(0.25, 1.0, 0.75)
        with index.view() as view:
            assert view.coverage() == Coverage(0.25, 1.0, 0.75)
            stored = view.meta()[COVERAGE]
    assert stored_coverage(stored, encoder.fingerprint) == Coverage(0.25, 1.0, 0.75)
    assert stored_coverage(stored, "another") is None
    for nonsense in (None, 3, {"fingerprint": encoder.fingerprint, "unknown": "much"}):
        assert stored_coverage(nonsense, encoder.fingerprint) is None  # type: ignore[arg-type]


def test_syncs_measure_it_and_another_encoder_measures_it_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("簽署金鑰", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder=SpelledEncoder(1, "簽署金鑰")) as index:
        index.sync([tmp_path])
        found = index.status().coverage
        assert found is not None and found.poor
    with Index.open(tmp_path / ".likewise", encoder="hash:32") as index:
        index.sync(reembed=True)
        assert index.status().coverage == Coverage(0.0, 1.0, 1.0)


def test_the_notice_names_the_reason_the_encoders_and_the_command() -> None:
    unknown = coverage_notice("MiniLM", Coverage(0.57, 1.0, 0.43), "this query")
    assert "MiniLM does not know 57% of the tokens of this query" in unknown
    spelled = coverage_notice("MiniLM", Coverage(0.0, 1.0, 0.5), "this index")
    assert "spells the words of this index almost letter by letter" in spelled
    for text in (unknown, spelled):
        assert "likewise index --encoder NAME --reembed" in text
        assert all(name in text for name in SUITABLE)
    own = coverage_notice("all-MiniLM-L6-v2-zh", Coverage(0.0, 1.0, 0.5), "this index")
    assert own.count("all-MiniLM-L6-v2-zh") == 1, "an encoder that does not do is not advised"
    before = coverage_notice("all-MiniLM-L6-v2", Coverage(0.57, 1.0, 0.43), "this index")
    assert "would do: all-MiniLM-L6-v2-zh (English and Chinese)" in before


def test_a_few_greek_letters_do_not_make_an_article_greek() -> None:
    encoder = Encoder.load()
    article = "The receptor binds the ligand with high affinity and signals through the membrane. " * 8
    found = measure_coverage(encoder, [article + "α β γ δ ε ζ"])
    assert found.letters_per_token == 1.0
    assert found.value > 0.9
    assert not found.poor


def test_the_characters_of_chinese_are_not_japanese() -> None:
    """The default encoder knows them, but spells the kana between them."""
    encoder = Encoder.load()
    for chinese in ("如何輪換簽署金鑰？", "怎么更换签名密钥，以及多久更换一次？"):
        assert measure_coverage(encoder, [chinese]).value == 1.0
    for japanese in (
        "署名鍵をローテーションする方法は何ですか？",
        "パスワードを変更するにはどうすればいいですか",
    ):
        assert measure_coverage(encoder, [japanese]).poor
    # A vocabulary with whole words of kana: パス/ワード/を/変更/する.
    spans = np.array([[0, 2], [2, 5], [5, 6], [6, 8], [8, 10]], np.int32)

    class Words(HashEncoder):
        def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
            return [spans for _ in texts]

    # 7 syllables (the long mark is none) in 4 of 5 tokens, where 1.8 are normal; 変更 is above its normal.
    expected = 1 - (1 - 7 / (1.8 * 4)) * 4 / 5
    assert measure_coverage(Words(), ["パスワードを変更する"]).value == pytest.approx(expected)
