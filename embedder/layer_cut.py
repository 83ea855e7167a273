"""A shallower copy of a model: keep some of its layers, the first step of a distillation.

A student that starts from every other layer of its teacher is far ahead of one that starts from scratch
(Sanh et al. 2019, DistilBERT, 1910.01108). Training it further is the matter of
`objectives/distillation.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

from torch import nn

from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError


def spread_layers(layers: int, keep: int) -> tuple[int, ...]:
    """Which layers to keep: evenly spread, first and last included.

    Args:
        layers: Layers of the teacher.
        keep: Layers of the student, in [1, layers].

    Raises:
        UsageError: `keep` is out of range.

    Example:
        DistilBERT's choice:

        >>> spread_layers(12, 6)
        (0, 2, 4, 7, 9, 11)
    """
    if not 1 <= keep <= layers:
        raise UsageError(f"expected to keep 1 to {layers} layers, found {keep}")
    if keep == 1:
        return (0,)
    return tuple(round(at * (layers - 1) / (keep - 1)) for at in range(keep))


def cut_layers(teacher: PretrainingModel, layers: Sequence[int]) -> PretrainingModel:
    """Copy a model with some of its layers only; heads and embeddings are copied whole.

    Args:
        teacher: Is left as it is.
        layers: Positions of the layers to keep, ascending.

    Raises:
        UsageError: A position is out of range, repeated or not ascending, or all layers share their weights.

    Example:
        >>> from likewise.embedder.bert import BertConfig
        >>> config = BertConfig(vocab_size=50, hidden_size=16, layers=4, heads=2, ffn_size=32)
        >>> cut_layers(PretrainingModel(config), [0, 2]).config.layers
        2
    """
    config = teacher.config
    if config.shared_layers:
        raise UsageError("layers cannot be cut from a model whose layers share their weights")
    ascending = all(low < high for low, high in pairwise(layers))
    if not layers or not ascending or layers[0] < 0 or layers[-1] >= config.layers:
        raise UsageError(f"expected ascending layers from 0 to {config.layers - 1}, found {list(layers)}")
    student = deepcopy(teacher)
    student.encoder.layers = nn.ModuleList(student.encoder.layers[at] for at in layers)
    student.encoder.config = replace(config, layers=len(layers))
    return student
