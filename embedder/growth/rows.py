"""A token table of which a few rows are trained and all others stay exactly as they are.

AdamW changes every row of a table that has one gradient anywhere, by weight decay and by its moments, so a
mask on the gradient does not keep the rest equal to the last bit. Here the fixed rows are not trained at all.
Several tokens may share one trained row, as the Traditional and the Simplified form of a character do.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.errors import UsageError


class PartlyTrained(nn.Module):
    """Takes the place of an `nn.Embedding`.

    Args:
        table: The token table; its weight is frozen.
        groups: Ids of tokens, those that share a row together, no id twice. A row starts as the mean of the
            rows of its group.

    Raises:
        UsageError: No group, an empty one, or an id that is repeated or not in the table.

    Example:
        >>> table = nn.Embedding.from_pretrained(torch.tensor([[1.0], [2.0], [4.0]]))
        >>> partly = PartlyTrained(table, [[1, 2]])
        >>> partly(torch.tensor([0, 1, 2])).tolist()
        [[1.0], [3.0], [3.0]]
    """

    place: Tensor

    def __init__(self, table: nn.Embedding, groups: Sequence[Sequence[int]]) -> None:
        super().__init__()
        ids = [token for group in groups for token in group]
        if not groups or not all(groups):
            raise UsageError("expected at least one row to train, and at least one token for each")
        if len(set(ids)) < len(ids) or min(ids) < 0 or max(ids) >= table.num_embeddings:
            raise UsageError(f"expected different token ids below {table.num_embeddings}")
        self.weight = nn.Parameter(table.weight.detach().clone(), requires_grad=False)
        self.rows = nn.Parameter(torch.stack([self.weight[list(group)].mean(dim=0) for group in groups]))
        place = torch.full((table.num_embeddings,), -1)
        for row, group in enumerate(groups):
            place[list(group)] = row
        self.register_buffer("place", place)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Ids of any shape to vectors of that shape and the width of the table."""
        places = self.place[input_ids]
        fixed = F.embedding(input_ids, self.weight)
        trained = F.embedding(places.clamp(min=0), self.rows)
        return torch.where((places >= 0).unsqueeze(-1), trained, fixed)

    def merged(self) -> nn.Embedding:
        """An ordinary table with the rows as they are now."""
        with torch.no_grad():
            weight = self.weight.detach().clone()
            chosen = self.place >= 0
            weight[chosen] = self.rows.detach()[self.place[chosen]]
        table = nn.Embedding(*weight.shape)
        table.weight = nn.Parameter(weight)
        return table
