"""An encoder together with the heads that pretraining needs and that are dropped afterwards.

Heads are small. The vocabulary projection has no weights of its own: it reuses the token embedding table
(tied embeddings, Press & Wolf 2016, 1608.05859). Losses are in `objectives/`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.bert import Bert, BertConfig, Embeddings, gelu, initialize
from likewise.embedder.examples import Batch
from likewise.errors import UsageError

TokenHeadKind = Literal["transform", "direct"]


class TokenHead(nn.Module):
    """Hidden states to scores over the vocabulary.

    Args:
        config: Shape of the encoder.
        kind: "transform" is BERT's (dense, GELU, LayerNorm, then the tied table and a bias), "direct" is
            GPT-2's (the tied table alone).
    """

    def __init__(self, config: BertConfig, kind: TokenHeadKind = "transform") -> None:
        super().__init__()
        self.kind = kind
        if kind == "direct":
            if config.table_size != config.hidden_size:
                raise UsageError("a direct token head needs an embedding table as wide as the hidden states")
            return
        self.dense = nn.Linear(config.hidden_size, config.table_size)
        self.activation = gelu(config)
        self.norm = nn.LayerNorm(config.table_size, config.norm_epsilon)
        self.bias = nn.Parameter(self.dense.weight.new_zeros(config.vocab_size))
        initialize(self, config)

    def transform(self, hidden: Tensor) -> Tensor:
        """(M, H) -> (M, E), what is compared with the table."""
        return hidden if self.kind == "direct" else self.norm(self.activation(self.dense(hidden)))

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Scores (M, V) of hidden states (M, H) with the token embedding table (V, E)."""
        return F.linear(self.transform(hidden), table, None if self.kind == "direct" else self.bias)


class ReplacedTokenHead(nn.Module):
    """ELECTRA's discriminator head: one score per token, positive for "was replaced"."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = gelu(config)
        self.score = nn.Linear(config.hidden_size, 1)
        initialize(self, config)

    def forward(self, hidden: Tensor) -> Tensor:
        """(M, H) -> (M,)."""
        scores: Tensor = self.score(self.activation(self.dense(hidden)))  # (M, 1)
        return scores.squeeze(-1)


class PretrainingModel(nn.Module):
    """An encoder with a head over tokens and, if asked for, one over sentence pairs.

    Args:
        config: Shape of the encoder.
        token_head: Kind of the head over tokens, see `TokenHead`.
        pair_head: "pair" for a two-class head over the pooled [CLS] (NSP, SOP), "none" for none.
        embeddings: An embedding table to share, see `Bert`.

    Example:
        >>> config = BertConfig(vocab_size=100, hidden_size=32, layers=1, heads=2, ffn_size=64)
        >>> sum(parameter.numel() for parameter in PretrainingModel(config).token_head.parameters())
        1220
    """

    def __init__(
        self,
        config: BertConfig,
        *,
        token_head: TokenHeadKind = "transform",
        pair_head: Literal["pair", "none"] = "none",
        embeddings: Embeddings | None = None,
    ) -> None:
        super().__init__()
        self.encoder = Bert(config, embeddings)
        self.token_head = TokenHead(config, token_head)
        self.pair_head: nn.Linear | None = None
        if pair_head == "pair":
            if not config.pooler:
                raise UsageError("sentence-pair objectives need a model with a pooler")
            self.pair_head = nn.Linear(config.hidden_size, 2)
            initialize(self.pair_head, config)

    @property
    def config(self) -> BertConfig:
        """Shape of the encoder."""
        return self.encoder.config

    def hidden(self, batch: Batch, keep: Tensor | None = None) -> Tensor:
        """Hidden states of all tokens of a batch, (B * L, H), or of those to keep, (M, H)."""
        return encode(self.encoder, batch, keep)

    def token_logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary: (M, H) -> (M, V)."""
        scores: Tensor = self.token_head(hidden, self.encoder.embeddings.token.weight)
        return scores

    def pair_logits(self, first: Tensor) -> Tensor:
        """Scores of the two pair classes, from the hidden states of the [CLS] tokens: (n, H) -> (n, 2)."""
        if self.pair_head is None:
            raise UsageError("this model has no head for sentence pairs")
        scores: Tensor = self.pair_head(self.encoder.pool(first))
        return scores


class ReplacedTokenModel(nn.Module):
    """ELECTRA: a small generator fills masks, and the encoder proper finds what it filled wrongly.

    Both share the embeddings, so the generator's are as wide as the discriminator's.

    Args:
        config: Shape of the discriminator, which is what is kept.
        generator_share: Width of the generator relative to the discriminator; the paper found 1/4 to 1/2
        best.
    """

    def __init__(self, config: BertConfig, generator_share: float = 0.25) -> None:
        super().__init__()
        config = replace(config, pooler=False)  # nothing would train it
        self.encoder = Bert(config)
        self.replaced_head = ReplacedTokenHead(config)
        self.generator = PretrainingModel(
            generator_config(config, generator_share), embeddings=self.encoder.embeddings
        )

    @property
    def config(self) -> BertConfig:
        """Shape of the discriminator."""
        return self.encoder.config


def generator_config(config: BertConfig, share: float) -> BertConfig:
    """Shape of ELECTRA's generator: hidden size, feed-forward size and heads times `share`.

    Raises:
        UsageError: The share is not in (0, 1].

    Example:
        >>> small = generator_config(BertConfig(hidden_size=256, heads=4, ffn_size=1024), 0.25)
        >>> small.hidden_size, small.heads, small.ffn_size, small.table_size
        (64, 1, 256, 256)
    """
    if not 0 < share <= 1:
        raise UsageError(f"expected a generator share in (0, 1], found {share}")
    heads = max(1, round(config.heads * share))
    hidden = heads * config.head_size
    return replace(
        config,
        hidden_size=hidden,
        heads=heads,
        ffn_size=max(1, round(config.ffn_size * hidden / config.hidden_size)),
        # No projection from the shared table where none is needed: a generator as wide as the table.
        embedding_size=None if hidden == config.table_size else config.table_size,
        pooler=False,
    )


def encode(encoder: Bert, batch: Batch, keep: Tensor | None = None) -> Tensor:
    """Run an encoder on a batch.

    Args:
        encoder: The encoder.
        batch: Packed or padded.
        keep: int64 of shape (M,), positions in the flattened (B * L) ids whose result is wanted; None for
            all.

    Returns:
        Hidden states, (B * L, H) or (M, H).
    """
    hidden: Tensor = encoder(batch.input_ids, batch.segment_ids, batch.mask, lengths=batch.lengths, keep=keep)
    return hidden.flatten(0, 1) if keep is None else hidden
