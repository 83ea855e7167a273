"""Named model shapes: the published ones of the BERT family, and small ones for ordinary computers.

Shapes only. What a model is trained on is the matter of `recipes.py`. Pad ids and vocabulary sizes are
those of the published tokenizers and usually give way to those of the tokenizer in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from likewise.embedder.bert import BertConfig
from likewise.errors import UsageError

_BASE = BertConfig()

#: Shapes by name. Sources: BERT 1810.04805; RoBERTa 1907.11692; ALBERT 1909.11942; ELECTRA 2003.10555;
#: DistilBERT 1910.01108; tiny, mini and small from Turc et al. 2019 (1908.08962), "Well-Read Students Learn
#: Better".
PRESETS: Mapping[str, BertConfig] = MappingProxyType(
    {
        "tiny": replace(_BASE, hidden_size=128, layers=2, heads=2, ffn_size=512),
        "mini": replace(_BASE, hidden_size=256, layers=4, heads=4, ffn_size=1024),
        "small": replace(_BASE, hidden_size=512, layers=4, heads=8, ffn_size=2048),
        # The shape of the default encoder, whose vocabulary is its own.
        "minilm": replace(_BASE, hidden_size=384, layers=6, heads=12, ffn_size=1536),
        "bert-base": _BASE,
        "bert-large": replace(_BASE, hidden_size=1024, layers=24, heads=16, ffn_size=4096),
        "roberta-base": replace(_BASE, vocab_size=50265, segments=1, norm_epsilon=1e-5, pad_id=1),
        "albert-base": replace(
            _BASE,
            vocab_size=30000,
            embedding_size=128,
            shared_layers=True,
            activation="gelu_tanh",
            dropout=0.0,
            attention_dropout=0.0,
        ),
        "electra-small": replace(
            _BASE, hidden_size=256, heads=4, ffn_size=1024, embedding_size=128, pooler=False
        ),
        "distilbert": replace(_BASE, layers=6, segments=0, pooler=False),
    }
)


def preset(name: str) -> BertConfig:
    """The shape of this name.

    Raises:
        UsageError: No such preset; the message lists those there are.

    Example:
        >>> preset("mini").hidden_size
        256
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise UsageError(f"unknown model size {name!r}; expected one of {', '.join(PRESETS)}") from None
