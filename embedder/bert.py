"""BERT, the Transformer encoder, written out.

What goes in is rows of token ids, here a pair of texts in a row that is one token shorter than the longest:

    token      [CLS]  keys  rot  ##ate  [SEP]  once  a  year  [SEP]  [PAD]
    segment      0     0     0     0      0     1    1    1     1      0
    position     0     1     2     3      4     5    6    7     8      9
    mask         1     1     1     1      1     1    1    1     1      0

[CLS] stands for no word: its vector is free to sum up the row, and objectives about whole texts read it.
[SEP] ends each text, the segment tells the two apart, and padding is what the mask keeps all others from
looking at. Each of the first three lines is looked up in a table of its own; their sum is the input.

Read it from the bottom up: `Bert` adds the three embeddings and runs the layers; a `Layer` is attention and a
feed-forward net, each with a residual connection and a LayerNorm; in `SelfAttention` every token looks at
every other one, left and right. That is the B of BERT. GPT differs in two things only. Its attention has a
causal mask (`causal=True` here), so that a token, a row below, sees no token after it:

    BERT   keys rot ##ate      GPT    keys rot ##ate
    keys     1    1    1       keys     1    0    0
    rot      1    1    1       rot      1    1    0
    ##ate    1    1    1       ##ate    1    1    1

And it is trained to predict the next token, at every position, while BERT predicts tokens that were hidden
from it: with the whole square in sight, the next token would be no riddle (see `masking.py`, `objectives/`).

Letters in the shape comments: B rows, L tokens in a row, H hidden size, E embedding size, V vocabulary.

The options in `bert_config.py` turn the model into its relatives: `embedding_size` and `shared_layers` give
ALBERT, `embedding_size` alone ELECTRA, `segments=0` DistilBERT, `norm="pre"` Megatron-BERT, `norm="pre"` with
`causal=True` GPT-2. `hf_export.py` translates each of them to and from the Hugging Face classes.

This module holds no training objective, no tokenizer and no file format.

Sources: Vaswani et al. 2017 (1706.03762), Devlin et al. 2018 (1810.04805), Hendrycks & Gimpel 2016 for GELU
(1606.08415), Xiong et al. 2020 on where the LayerNorm stands (2002.04745), Lan et al. 2019 for ALBERT
(1909.11942).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.bert_config import BertConfig
from likewise.embedder.packed_attention import Packing, attend_packed
from likewise.errors import UsageError

__all__ = [
    "Bert",
    "BertConfig",
    "Embeddings",
    "FeedForward",
    "Layer",
    "SelfAttention",
    "gelu",
    "initialize",
    "select",
]


class Embeddings(nn.Module):
    """What a token is (token), which text of the pair it belongs to (segment), where it stands (position)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.table_size
        self.token = nn.Embedding(config.vocab_size, size)
        self.position = nn.Embedding(config.max_positions, size)
        self.segment = nn.Embedding(config.segments, size) if config.segments else None
        self.norm = nn.LayerNorm(size, config.norm_epsilon) if config.norm == "post" else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, input_ids: Tensor, positions: Tensor, segment_ids: Tensor | None) -> Tensor:
        """Ids (B, L), positions (L,) and segments (B, L) or None to vectors (B, L, E)."""
        # Attention itself does not know order: without the position embeddings a text is a bag of tokens.
        x = self.token(input_ids) + self.position(positions)  # (B, L, E)
        if self.segment is not None:
            # A single text is all segment 0; one row broadcasts, which spares a gather over all tokens.
            x = x + (self.segment.weight[0] if segment_ids is None else self.segment(segment_ids))
        embedded: Tensor = self.dropout(self.norm(x))  # (B, L, E)
        return embedded


class SelfAttention(nn.Module):
    """Every token asks (query) all tokens (key) and mixes what they say (value), in several heads at once."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.causal = config.causal
        self.dropout = config.attention_dropout
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)  # three projections in one product
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(
        self, x: Tensor, visible: Tensor | None, packing: Packing | None, keep: Tensor | None = None
    ) -> Tensor:
        """(B, L, H) to (B, L, H), or (M, H) for the tokens to keep; see `Bert.forward`."""
        dropout = self.dropout if self.training else 0.0
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))  # (B, L, 3, heads, head_size)
        if packing is not None:
            mixed = attend_packed(qkv[0], packing, causal=self.causal, dropout=dropout)[None]  # (1, L, H)
        else:
            q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, L, head_size)
            causal = self.causal and visible is None  # else `visible` contains the causal mask
            mixed = F.scaled_dot_product_attention(q, k, v, visible, dropout_p=dropout, is_causal=causal)
            mixed = mixed.transpose(1, 2).flatten(2)  # (B, L, H)
        out: Tensor = self.output(select(mixed, keep))  # (B, L, H) or (M, H)
        return out

    def matrix(self, x: Tensor, visible: Tensor | None) -> Tensor:
        """The attention weights themselves, which the fused kernel of `forward` never writes down.

        Returns:
            (B, heads, L, L): entry [b, h, i, j] says how much token i takes from token j; rows sum to 1.
        """
        q, k, _ = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, heads, L, L)
        if self.causal:
            scores = scores.masked_fill(~_lower_triangle(x), float("-inf"))
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        weights: Tensor = scores.softmax(dim=-1)
        return weights


class FeedForward(nn.Module):
    """What a token makes of the mixture, by itself: widen, bend, narrow."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.widen = nn.Linear(config.hidden_size, config.ffn_size)
        self.activation = gelu(config)
        self.narrow = nn.Linear(config.ffn_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, H) to (B, L, H), each token alone."""
        x = self.activation(self.widen(x))  # (B, L, ffn_size)
        x = self.narrow(x)  # (B, L, H)
        return x


class Layer(nn.Module):
    """Attention, then feed-forward; each adds to the residual stream instead of replacing it."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.norm_epsilon)
        self.ffn = FeedForward(config)
        self.ffn_norm = nn.LayerNorm(config.hidden_size, config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, visible: Tensor | None, packing: Packing | None, keep: Tensor | None = None
    ) -> Tensor:
        """(B, L, H) to (B, L, H), or (M, H) for the tokens to keep; see `Bert.forward`."""
        if self.pre:
            mixed = self.attention(self.attention_norm(x), visible, packing, keep)
            x = select(x, keep) + self.dropout(mixed)
            x = x + self.dropout(self.ffn(self.ffn_norm(x)))
        else:
            mixed = self.attention(x, visible, packing, keep)
            x = self.attention_norm(select(x, keep) + self.dropout(mixed))
            x = self.ffn_norm(x + self.dropout(self.ffn(x)))
        return x  # (B, L, H) or (M, H)

    def matrix(self, x: Tensor, visible: Tensor | None) -> Tensor:
        """Attention weights that this layer computes from its input; see `SelfAttention.matrix`."""
        return self.attention.matrix(self.attention_norm(x) if self.pre else x, visible)


class Bert(nn.Module):
    """Token ids in, one vector per token out; each vector knows the whole sequence.

    Args:
        config: Shape of the model.
        embeddings: Use this embedding table instead of an own one (ELECTRA's generator and discriminator
            share theirs).

    Example:
        >>> model = Bert(BertConfig(vocab_size=100, hidden_size=32, layers=2, heads=2, ffn_size=64)).eval()
        >>> model(torch.tensor([[2, 17, 35, 3]])).shape
        torch.Size([1, 4, 32])
    """

    def __init__(self, config: BertConfig, embeddings: Embeddings | None = None) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config) if embeddings is None else embeddings
        # A factorised table learns V * E + E * H numbers instead of V * H.
        factorised = config.embedding_size is not None
        self.expand = nn.Linear(config.table_size, config.hidden_size) if factorised else nn.Identity()
        # Shared layers are one set of weights that the tokens pass through several times.
        self.layers = nn.ModuleList(
            Layer(config) for _ in range(1 if config.shared_layers else config.layers)
        )
        self.final_norm = (
            nn.LayerNorm(config.hidden_size, config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        )
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if config.pooler else None
        initialize(self, config, keep=embeddings)

    def forward(
        self,
        input_ids: Tensor,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        """Encode rows of tokens, or one row of packed sequences.

        Args:
            input_ids: int64 of shape (B, L), L at most `max_positions` unless packed.
            segment_ids: int64 of shape (B, L) in [0, segments); None for 0 everywhere.
            mask: Bool of shape (B, L), True for real tokens, False for padding; None if nothing is padded.
                This is the only mask of a bidirectional model.
            lengths: Lengths of the sequences packed end to end into the one row (B = 1). Tokens see their own
                sequence only and positions start anew in each, so the result is that of separate rows.
            keep: int64 of shape (M,): the tokens whose result is wanted, as positions in the flattened
                (B * L) ids; None for all. The last layer does for these alone what it does token by token,
                which in masked language modelling saves two thirds of it.

        Returns:
            Hidden states of the last layer, (B, L, H), or (M, H). Those of padding mean nothing.

        Raises:
            UsageError: A sequence is longer than the model has positions, or the lengths do not fit the row.
        """
        x, visible, packing = self._embed(input_ids, segment_ids, mask, lengths)
        *layers, last = self._layer_sequence()
        for layer in layers:
            x = layer(x, visible, packing)  # (B, L, H)
        hidden: Tensor = self.final_norm(last(x, visible, packing, keep))  # (B, L, H) or (M, H)
        return hidden

    def lower(self, input_ids: Tensor, layers: int, *, lengths: Sequence[int]) -> Tensor:
        """What the lowest layers make of packed sequences: the input of those above.

        Args:
            input_ids: int64 of shape (1, L).
            layers: How many layers; 0 gives the embeddings.
            lengths: As for `forward`.

        Returns:
            Shape (1, L, H).
        """
        x, visible, packing = self._embed(input_ids, None, None, lengths)
        for layer in self._layer_sequence()[:layers]:
            x = layer(x, visible, packing)
        return x

    def upper(self, x: Tensor, layers: int, *, lengths: Sequence[int]) -> Tensor:
        """What the layers above make of it: `upper(lower(ids, n), n)` is `forward(ids)`.

        Args:
            x: Shape (1, L, H), from `lower`.
            layers: How many layers it went through already.
            lengths: As given to `lower`.

        Returns:
            Hidden states of the last layer, (1, L, H).
        """
        packing = Packing.of(lengths, x.device)
        for layer in self._layer_sequence()[layers:]:
            x = layer(x, None, packing)
        hidden: Tensor = self.final_norm(x)
        return hidden

    def attention_matrices(
        self, input_ids: Tensor, segment_ids: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Attention weights of every layer and head: (layers, B, heads, L, L), rows sum to 1."""
        x, visible, _ = self._embed(input_ids, segment_ids, mask, None)
        matrices = []
        for layer in self._layer_sequence():
            matrices.append(layer.matrix(x, visible))
            x = layer(x, visible, None)
        return torch.stack(matrices)

    def pool(self, first: Tensor) -> Tensor:
        """Sentence vectors from the hidden states of the [CLS] tokens: (n, H) -> (n, H)."""
        if self.pooler is None:
            raise UsageError("this model has no pooler: it was made without a sentence-level objective")
        return torch.tanh(self.pooler(first))

    def _layer_sequence(self) -> list[Layer]:
        repeats = self.config.layers if self.config.shared_layers else 1
        return [cast(Layer, layer) for layer in self.layers] * repeats

    def _embed(
        self,
        input_ids: Tensor,
        segment_ids: Tensor | None,
        mask: Tensor | None,
        lengths: Sequence[int] | None,
    ) -> tuple[Tensor, Tensor | None, Packing | None]:
        """Input of the first layer, (B, L, H), and who sees whom.

        That is said by a mask that broadcasts to (B, heads, L, L), or by the packing of the row.
        """
        rows, width = input_ids.shape
        longest = width if lengths is None else max(lengths)
        if longest > self.config.max_positions:
            raise UsageError(
                f"expected sequences of at most {self.config.max_positions} tokens, found one of {longest}"
            )
        packing = None
        if lengths is None:
            positions = torch.arange(width, device=input_ids.device)  # (L,)
        else:
            if rows != 1 or sum(lengths) != width or mask is not None:
                raise UsageError(
                    f"expected one row of {sum(lengths)} packed tokens without a mask, "
                    f"found {rows} of {width}{'' if mask is None else ' with a mask'}"
                )
            packing = Packing.of(lengths, input_ids.device)
            positions = packing.positions().to(input_ids.device, non_blocking=True)  # (L,)
        visible = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L): nobody sees padding
        if visible is not None and self.config.causal:
            visible = visible & _lower_triangle(input_ids)  # (B, 1, L, L)
        return self.expand(self.embeddings(input_ids, positions, segment_ids)), visible, packing


def select(x: Tensor, keep: Tensor | None) -> Tensor:
    """Some tokens of x: (B, L, H) to (M, H); all of x, as it is, for None."""
    return x if keep is None else x.flatten(0, 1).index_select(0, keep)


def gelu(config: BertConfig) -> nn.GELU:
    """The activation of a model: x * P(a standard normal value is below x), or its tanh approximation."""
    return nn.GELU(approximate="tanh" if config.activation == "gelu_tanh" else "none")


def initialize(module: nn.Module, config: BertConfig, keep: nn.Module | None = None) -> None:
    """Draw initial weights in place: normal with `initializer_range`, biases 0, LayerNorm 1 and 0.

    Args:
        module: What to initialise.
        config: Gives the standard deviation.
        keep: A submodule that is left alone.
    """
    kept = set() if keep is None else set(keep.modules())
    for part in module.modules():
        if part in kept:
            continue
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=config.initializer_range)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    if config.norm == "pre":
        # Nothing normalises the stream until the end, and each layer adds to it twice: smaller first steps
        # keep its variance (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
        for part in module.modules():
            if isinstance(part, Layer):
                for last in (part.attention.output, part.ffn.narrow):
                    nn.init.normal_(last.weight, std=config.initializer_range / (2 * config.layers) ** 0.5)


def _lower_triangle(x: Tensor) -> Tensor:
    """Bool (L, L) for x of shape (B, L, ...): row i is True up to column i."""
    length = x.shape[1]
    return torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
