"""A tiny English encoder with a WordPiece vocabulary that knows one Chinese character."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

ENGLISH = (
    *("key", "lock", "door", "vault", "chain", "bolt", "gate"),
    *("old", "new", "red", "turn", "the", "a", "##s"),
)
CHINESE = "钥锁门库链栓闸旧新红转"


@pytest.fixture(scope="session")
def english_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Sentence Transformers directory: BERT with 2 layers of width 32, mean pooling, normalisation."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("english")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ENGLISH, "门", ",", "."]
    (folder / "plain").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(vocabulary)}, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        (folder / "plain" / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
        tokenizer.save(str(folder / "plain" / "tokenizer.json"))
        BertTokenizer(vocab={t: i for i, t in enumerate(vocabulary)}, model_max_length=48).save_pretrained(
            folder / "plain"
        )
        torch.manual_seed(3)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        model = BertModel(config).eval()
        with torch.no_grad():
            # As initialised, all vectors would be nearly alike.
            model.embeddings.word_embeddings.weight.normal_(0, 0.4)
            for layer in model.encoder.layer:
                for parameter in layer.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.05)
        model.save_pretrained(folder / "plain")
        transformer = Transformer(str(folder / "plain"), max_seq_length=48)
        SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()], device="cpu").save(
            str(folder / "model"), create_model_card=False
        )
    return folder / "model"
