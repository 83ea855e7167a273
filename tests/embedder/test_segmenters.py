from __future__ import annotations

import numpy as np
import pytest
import rjieba

from likewise.embedder import segmenters
from likewise.embedder.examples import Example
from likewise.embedder.masking import Masking, mask_example
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.segmenters import segmenter
from likewise.errors import MissingExtra

TEXT = "我们重视签署密钥的轮替，檢索資料"
TOKENS = ["[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(TEXT)]


@pytest.mark.parametrize("text", ["", "a b", TEXT, "南京市长江大桥", "🗝 密钥"])
def test_words_together_are_the_text(text):
    assert "".join(segmenter("jieba")(text)) == text
    assert list(segmenter("jieba")(text)) == rjieba.cut(text)


def test_whole_word_masking_hides_chinese_words():
    words = ["我们", "重视", "签署", "密钥"]
    assert segmenter("jieba")("".join(words)) == words
    ids = np.array([0, *(TOKENS.index(character) for character in "".join(words)), 1])
    example = Example(ids, np.isin(ids, [0, 1]))
    hidden = {True: set(), False: set()}
    for segmented in hidden:
        vocabulary = MaskingVocabulary.from_tokens(
            TOKENS,
            mask_token="[MASK]",
            special_tokens=TOKENS[:3],
            segment=segmenter("jieba") if segmented else None,
        )
        for draw in range(40):
            masked = mask_example(example, Masking(unit="word", rate=0.25), vocabulary, draw=draw)
            hidden[segmented].add(tuple(np.flatnonzero(masked.labels >= 0)))
    # A quarter of eight characters: one word of two, or any two characters.
    assert hidden[True] == {(1, 2), (3, 4), (5, 6), (7, 8)}
    assert len(hidden[False]) > 10


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("likewise.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="cutting Chinese into words needs rjieba") as caught:
        segmenters.segmenter("jieba")
    assert caught.value.remedy == "pip install 'likewise[chinese]'"
