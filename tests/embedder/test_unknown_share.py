"""The share of unknown tokens, with tokenizers of every kind made in memory."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from likewise.embedder import tokenizer as module
from likewise.embedder.tokenizer import TextTokenizer


def wrapped(model: models.Model, split: pre_tokenizers.PreTokenizer) -> TextTokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = split
    return TextTokenizer(tokenizer, max_tokens=16, pad_id=0, empty_id=0)


WORDS = {"[UNK]": 0, "key": 1, "##s": 2, "a": 3}
UNIGRAM = [("<unk>", 0.0), ("key", -1.0), ("a", -1.0)]


@pytest.mark.parametrize(
    "model",
    [
        models.WordPiece(WORDS, unk_token="[UNK]"),
        models.WordLevel({**WORDS, "keys": 4}, unk_token="[UNK]"),
        models.Unigram([*UNIGRAM, ("keys", -1.0)], unk_id=0),
    ],
    ids=["WordPiece", "WordLevel", "Unigram"],
)
def test_unknown_tokens_are_counted(model: models.Model) -> None:
    tokenizer = wrapped(model, pre_tokenizers.WhitespaceSplit())
    assert tokenizer.unknown_share(["a key", "a 鍵", "鍵", "", "a a a 鍵"]).tolist() == [0, 0.5, 1, 0, 0.25]


def test_bytes_spell_everything() -> None:
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = wrapped(models.BPE(letters, []), pre_tokenizers.ByteLevel(add_prefix_space=False))
    assert tokenizer.unknown_share(["a 鍵", ""]).tolist() == [0, 0]


def test_long_texts_are_counted_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 8)
    tokenizer = wrapped(models.WordPiece(WORDS, unk_token="[UNK]"), pre_tokenizers.WhitespaceSplit())
    assert tokenizer.unknown_share(["a 鍵 a key " * 10]).tolist() == [0.25]
