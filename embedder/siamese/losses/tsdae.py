"""TSDAE: from the vector of a damaged text alone, a decoder must write the text.

    loss = - sum over t of log p(x_t | x_1 .. x_(t-1), e(damaged x))

| input   | meaning                                                           |
|---------|-------------------------------------------------------------------|
| logits  | of a decoder that sees earlier tokens and the one vector            |
| targets | tokens of the undamaged text, each one place further than its logits |

Source: Wang, Reimers and Gurevych 2021, "TSDAE" (2104.06979): 60% of the words deleted, decoder and encoder
share their weights. `decoder.py` has the decoder. Limits: needs a decoder of the encoder's kind, which exists
for the BERT family; CLS pooling did best in the paper.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def reconstruction(logits: Tensor, targets: Tensor, *, pad_id: int) -> Tensor:
    """Cross-entropy of each token of the texts.

    Args:
        logits: Shape (n, tokens, vocabulary).
        targets: int64 of shape (n, tokens), `pad_id` where nothing is predicted.
        pad_id: Id of the padding token.

    Returns:
        Shape (predicted tokens,), at least 0.

    Example:
        >>> import torch
        >>> reconstruction(torch.zeros(1, 3, 4), torch.tensor([[2, 3, 0]]), pad_id=0)  # log 4, twice
        tensor([1.3863, 1.3863])
    """
    wanted = targets != pad_id
    return F.cross_entropy(logits[wanted].float(), targets[wanted], reduction="none")
