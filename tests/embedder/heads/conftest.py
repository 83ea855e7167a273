"""A tiny seeded BERT whose vocabulary knows the words and characters of these tests."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

WORDS = """
good great fine joy bad dull awful boring film plot it was is a the not and of in he she who what where
key keys signing rotate rotates ann bob london paris lives works at year every office red fox ##s ##ing ,
. ? ' s
金 鑰 每 年 輪 替 一 次 簽 署 誰 北 京 台 倫 敦 在 住 安 。 ， 好 壞 片
"""
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of width 32, 64 positions, segment ids, random weights."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *dict.fromkeys(WORDS.split())])}
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
        vocabulary.setdefault(letter, len(vocabulary))
        vocabulary.setdefault(f"##{letter}", len(vocabulary))
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            model_max_length=64,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            **names,
        ).save_pretrained(folder)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            max_position_embeddings=64,
            initializer_range=0.2,
            hidden_dropout_prob=0.0,
        )
        BertModel(config).eval().save_pretrained(folder)
    return folder
