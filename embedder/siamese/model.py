"""The encoder that is trained: a Transformer body, pooling, and what stands behind it, as a torch module.

It computes what `Encoder` and sentence-transformers compute from the saved directory. Models of the BERT
family run packed, without any padding, through `bert.py`; all others run as transformers has them, padded in
groups of similar length. Nothing here reads or writes files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.bert import Bert
from likewise.embedder.growth.rows import PartlyTrained
from likewise.embedder.pooling import pool
from likewise.embedder.siamese.losses.cached import encode_in_parts
from likewise.embedder.siamese.text_batch import TextGroup, group_texts
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import UsageError

# Tokens of a group when texts are only encoded.
_ENCODE_TOKENS = 8192

# What the modules of transformers call a probability of dropping that stands in no `nn.Dropout`.
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout", "dropout_prob")


class SentenceModel(nn.Module):
    """Texts to vectors.

    Args:
        body: A `Bert`, or a Transformer of transformers.
        pooling: Modes whose results are concatenated.
        heads: Modules after the pooling, in order, without a normalisation at the end, which is always done.
        dimension: Length of a vector.
    """

    def __init__(
        self, body: nn.Module, pooling: Sequence[str], heads: Sequence[nn.Module], *, dimension: int
    ) -> None:
        super().__init__()
        self.body = body
        self.heads = nn.ModuleList(heads)
        self.pooling = tuple(pooling)
        self.dimension = dimension
        self.frozen_layers = 0
        self._frozen: tuple[nn.Module, ...] = ()

    @property
    def packed(self) -> bool:
        """Whether the body skips padding."""
        return isinstance(self.body, Bert)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def train(self, mode: bool = True) -> Self:
        """As for any module, but that frozen layers stay in evaluation mode: they drop nothing."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self

    def forward(self, group: TextGroup) -> Tensor:
        """Vectors of the texts of a group, float32 of shape (texts, dimension), not normalised."""
        vectors = pool(self.tokens(group), group.pooled.to(torch.int64), self.pooling)
        for head in self.heads:
            vectors = head(vectors)
        return vectors.float()

    def tokens(self, group: TextGroup) -> Tensor:
        """Vectors of the tokens, float32 of shape (texts, tokens, width), those of padding undefined."""
        if not isinstance(self.body, Bert):
            hidden = self.body(
                input_ids=group.input_ids, attention_mask=group.mask.to(torch.int64), return_dict=False
            )[0]
            return cast(Tensor, hidden).float()
        rows, width = group.input_ids.shape
        places = group.mask.flatten().nonzero().squeeze(1)  # (real tokens,)
        if group.hidden is None:
            packed: Tensor = self.body(group.input_ids.flatten()[places][None], lengths=group.lengths)
        else:
            packed = self.body.upper(group.hidden, self.frozen_layers, lengths=group.lengths)
        packed = packed[0].float()
        spread = packed.new_zeros(rows * width, packed.shape[-1]).index_copy(0, places, packed)
        return spread.view(rows, width, -1)

    def vectors(self, groups: Sequence[TextGroup], *, cached: bool = False) -> Tensor:
        """Vectors of several groups one after another, not normalised.

        Args:
            groups: At least one.
            cached: Keep the activations of one group at a time, see `losses/cached.py`.
        """
        if cached and torch.is_grad_enabled():
            return encode_in_parts(self.__call__, groups)
        return torch.cat([self(group) for group in groups])

    def encode(self, table: TokenTable, numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Unit vectors of texts of a table, in evaluation mode and without gradients.

        Args:
            table: Of this model's tokenizer.
            numbers: Of the texts.

        Returns:
            float32 of shape (texts, dimension).
        """
        distinct, back = np.unique(np.asarray(numbers, dtype=np.int64), return_inverse=True)
        if not len(distinct):
            return np.empty((0, self.dimension), dtype=np.float32)
        groups, places = group_texts(
            [table.ids(int(number)) for number in distinct],
            pad_id=table.pad_id,
            packed=self.packed,
            unpooled=[table.unpooled[int(number)] for number in distinct],
            limit=_ENCODE_TOKENS,
        )
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                parts = [F.normalize(self(group.to(self.device)), dim=-1).cpu() for group in groups]
        finally:
            self.train(was_training)
        vectors: NDArray[np.float32] = torch.cat(parts).numpy()[places]
        return vectors[back]

    def layers(self) -> nn.ModuleList:
        """The layers of the body, lowest first.

        Raises:
            UsageError: They cannot be told apart.
        """
        if isinstance(self.body, Bert):
            return self.body.layers
        body: Any = self.body
        for path in ("encoder.layer", "encoder.layers", "transformer.layer", "layers", "h"):
            found = _attribute(body, path)
            if isinstance(found, nn.ModuleList):
                return found
        raise UsageError(f"the layers of a {type(body).__name__} cannot be frozen one by one")

    def train_rows(self, groups: Sequence[Sequence[int]]) -> None:
        """Keep everything as it is but some rows of the token table; see `growth/rows.py`.

        Args:
            groups: Ids of tokens, those that share a row together.

        Raises:
            UsageError: The body is none of the BERT family, or the ids make no sense.
        """
        if not isinstance(self.body, Bert):
            raise UsageError("single rows of the token table can be trained in the BERT family only")
        self.requires_grad_(False)
        embeddings: Any = self.body.embeddings
        embeddings.token = PartlyTrained(embeddings.token, groups)

    def merge_rows(self) -> None:
        """Put the rows that `train_rows` set apart back into the token table."""
        embeddings: Any = self.body.embeddings if isinstance(self.body, Bert) else None
        if embeddings is not None and isinstance(embeddings.token, PartlyTrained):
            embeddings.token = embeddings.token.merged()

    def set_dropout(self, probability: float) -> None:
        """Drop values in training with this probability; attention weights only where some are dropped now.

        Args:
            probability: In [0, 1).
        """
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = probability
            for name in _DROPOUTS:
                if isinstance(value := getattr(module, name, None), float) and value > 0:
                    setattr(module, name, probability)

    def freeze(self, layers: int) -> None:
        """Keep the embeddings and the lowest layers as they are, without dropout.

        Args:
            layers: How many layers, at least 0; the embeddings alone for 0.

        Raises:
            UsageError: The model has no so many layers, or shares them.
        """
        stack = self.layers()
        if not 0 <= layers < len(stack):
            raise UsageError(f"expected 0 to {len(stack) - 1} layers to freeze, found {layers}")
        frozen: list[nn.Module] = list(stack[:layers])
        if isinstance(self.body, Bert):
            frozen += [self.body.embeddings, self.body.expand]
        else:
            frozen += [
                m for name, m in self.body.named_children() if "embed" in name or name in ("wte", "wpe")
            ]
        for module in frozen:
            module.requires_grad_(False).eval()
        self._frozen, self.frozen_layers = tuple(frozen), layers


def _attribute(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value
