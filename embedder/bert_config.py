"""The shape of a model of `bert.py`, checked when it is made. Must not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from likewise.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """Shape of a model; the defaults are BERT base.

    Attributes:
        vocab_size: Number of token ids.
        hidden_size: Width H of the residual stream; a multiple of `heads`.
        layers: Number of layers.
        heads: Attention heads per layer.
        ffn_size: Inner width of the feed-forward net, usually 4 * hidden_size.
        max_positions: Longest sequence, special tokens included.
        segments: Number of segment embeddings (0 for none): BERT marks the two texts of a pair with 0 and 1.
        embedding_size: Width E of the embedding table; None for the hidden size, less for a factorised table.
        shared_layers: All layers are one and the same set of weights.
        norm: "post" is the original (LayerNorm after each residual addition), "pre" has it before each
            sublayer and once at the end, which trains stably without a warm-up.
        causal: A token sees only itself and earlier ones.
        pooler: Have the dense layer over [CLS] that sentence-level objectives use.
        activation: GELU, exact or with the tanh approximation of the first GPT and of ALBERT.
        norm_epsilon: Added to the variance in LayerNorm.
        dropout: Probability of dropping a value after each sublayer and after the embeddings, in [0, 1).
        attention_dropout: Probability of dropping an attention weight, in [0, 1). Above 0 it rules out the
            fused attention of CPUs in training.
        initializer_range: Standard deviation of the initial weights.
        pad_id: Token id of padding; recorded for export, the model itself goes by the mask.

    Raises:
        UsageError: A value is out of range.

    Example:
        >>> BertConfig(vocab_size=1000, hidden_size=64, layers=2, heads=4, ffn_size=256).head_size
        16
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    layers: int = 12
    heads: int = 12
    ffn_size: int = 3072
    max_positions: int = 512
    segments: int = 2
    embedding_size: int | None = None
    shared_layers: bool = False
    norm: Literal["post", "pre"] = "post"
    causal: bool = False
    pooler: bool = True
    activation: Literal["gelu", "gelu_tanh"] = "gelu"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    initializer_range: float = 0.02
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "layers", "heads", "ffn_size", "max_positions"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected at least 1, found {getattr(self, name)}")
        if self.hidden_size % self.heads:
            raise UsageError(
                f"expected a hidden size divisible by the {self.heads} heads, found {self.hidden_size}"
            )
        if self.segments < 0 or (self.embedding_size is not None and self.embedding_size < 1):
            raise UsageError(
                "expected segments >= 0 and an embedding size >= 1 or None, "
                f"found {self.segments} and {self.embedding_size}"
            )
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name}: expected a number in [0, 1), found {getattr(self, name)}")
        for name, known in (("norm", ("post", "pre")), ("activation", ("gelu", "gelu_tanh"))):
            if getattr(self, name) not in known:
                raise UsageError(f"{name}: expected one of {', '.join(known)}, found {getattr(self, name)!r}")

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.heads

    @property
    def table_size(self) -> int:
        """Width of the embedding table: `embedding_size`, or the hidden size where that is None."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BertConfig:
        """Read what `to_dict` wrote.

        Raises:
            UsageError: A key is unknown: a typing error, or a setting that this version would ignore.

        Example:
            >>> BertConfig.from_dict({"hidden_sise": 64})
            Traceback (most recent call last):
            ...
            likewise.errors.UsageError: unknown model setting: hidden_sise
        """
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise UsageError(f"unknown model setting: {', '.join(unknown)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain values, for JSON."""
        return asdict(self)
