"""The decoder of TSDAE: it writes a text from one vector, with the weights of the encoder.

Each layer is the encoder's own, made causal, with a cross-attention to the sentence vector in the middle.
Attention over a single vector has nothing to choose: its weights are all 1, so what remains of it is a
linear map of that vector, whatever the query. That is what is computed here; it equals the cross-attention
of a transformer decoder, whose query and key projections would never get a gradient.

Source: Wang, Reimers and Gurevych 2021, "TSDAE" (2104.06979).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.bert import Bert, BertConfig, Layer, initialize
from likewise.embedder.pretraining import TokenHead
from likewise.embedder.randomness import seed_for
from likewise.errors import UsageError


class Glance(nn.Module):
    """Cross-attention to one vector, with its residual connection and LayerNorm."""

    def __init__(self, config: BertConfig, dimension: int) -> None:
        super().__init__()
        self.value = nn.Linear(dimension, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)
        initialize(self, config)

    def forward(self, x: Tensor, vectors: Tensor) -> Tensor:
        """(n, L, H) and (n, d) to (n, L, H)."""
        seen: Tensor = self.dropout(self.output(self.value(vectors)))[:, None]  # (n, 1, H)
        return cast(Tensor, self.norm(x + seen))


class DenoisingDecoder(nn.Module):
    """What the decoder has beside the encoder's weights: cross-attentions, and the head over the vocabulary.

    Args:
        config: Shape of the encoder.
        dimension: Length of a sentence vector.

    Raises:
        UsageError: The encoder has its LayerNorms in front, or is causal itself.

    Example:
        >>> body = Bert(BertConfig(vocab_size=50, hidden_size=16, layers=2, heads=2, ffn_size=16))
        >>> decoder = DenoisingDecoder(body.config, dimension=16)
        >>> decoder(body, torch.ones(3, 16), torch.ones(3, 7, dtype=torch.long)).shape
        torch.Size([3, 7, 50])
    """

    def __init__(self, config: BertConfig, dimension: int) -> None:
        super().__init__()
        if config.norm != "post" or config.causal:
            raise UsageError("TSDAE needs an encoder like BERT: bidirectional, its LayerNorms behind")
        self.glances = nn.ModuleList(Glance(config, dimension) for _ in range(config.layers))
        self.head = TokenHead(config)

    def forward(self, body: Bert, vectors: Tensor, ids: Tensor) -> Tensor:
        """Scores over the vocabulary at every place.

        Args:
            body: The encoder, whose layers and embeddings are used.
            vectors: Of the texts, (n, d).
            ids: int64 of shape (n, L), the tokens written so far; padding on the right is seen by nobody.

        Returns:
            Shape (n, L, V): place t scores token t + 1.
        """
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = body.expand(body.embeddings(ids, positions, None))  # (n, L, H)
        layers: list[Any] = list(body.layers)
        repeats = len(self.glances) // len(layers)
        for layer, glance in zip(layers * repeats, self.glances, strict=True):
            assert isinstance(layer, Layer)
            attention = layer.attention
            q, k, v = attention.qkv(x).unflatten(-1, (3, attention.heads, -1)).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (n, heads, L, head_size)
            mixed = attention.output(mixed.transpose(1, 2).flatten(2))
            x = layer.attention_norm(x + layer.dropout(mixed))
            x = glance(x, vectors)
            x = layer.ffn_norm(x + layer.dropout(layer.ffn(x)))
        return cast(Tensor, self.head(x, body.embeddings.token.weight))


def damage(
    ids: NDArray[np.int32], *, frame: tuple[int, int], share: float, seed: tuple[int, ...]
) -> NDArray[np.int32]:
    """Delete tokens of a text at random; special tokens and at least one other stay.

    Args:
        ids: Of a text.
        frame: Special tokens before and after it.
        share: Probability that a token is deleted.
        seed: Equal seeds delete the same tokens.

    Example:
        >>> damage(np.arange(9, dtype=np.int32), frame=(1, 1), share=0.6, seed=(0, 3)).tolist()
        [0, 2, 3, 4, 5, 7, 8]
    """
    before, after = frame
    inner = ids[before : len(ids) - after]
    if len(inner) < 2:
        return ids
    generator = np.random.default_rng(seed_for(*seed))
    keep = generator.random(len(inner)) >= share
    if not keep.any():
        keep[generator.integers(len(inner))] = True
    return np.concatenate([ids[:before], inner[keep], ids[len(ids) - after :]])
