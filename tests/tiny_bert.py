"""A BERT small enough to train in a test, with random weights and the vocabulary that the test gives it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer


def save_tiny_bert(
    folder: Path,
    words: BertWordPieceTokenizer,
    *,
    width: int = 16,
    layers: int = 1,
    max_tokens: int = 64,
    noise: float = 0.0,
) -> Path:
    """Save it as a plain checkpoint; the same arguments give the same weights.

    Args:
        folder: Where it goes.
        words: Its tokenizer, trained or with a vocabulary.
        width: Of the hidden states, eight for each head.
        layers: How many.
        max_tokens: What the tokenizer cuts texts to, and how many positions there are.
        noise: Standard deviation of what is added to all weights; as initialised, texts are nearly alike.
    """
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words._tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_max_length=max_tokens,
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 8,
        intermediate_size=width,
        max_position_embeddings=max_tokens,
    )
    model = BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
