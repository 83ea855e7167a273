"""Who looks at whom: the attention matrices of a text, as arrays and as a picture.

A bidirectional model fills the whole square, a causal one the lower triangle: that is the whole difference
between BERT's mask and GPT's. Works on models of this project; `hf_export.py` brings others in.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.embedder.bert import Bert
from likewise.errors import UsageError
from likewise.extras import require

#: Labels beyond this many tokens would be unreadable and are left out.
_LABELLED = 48
#: Heads in a picture of several layers beyond which labels would make it too large.
_PANELS = 16


class AttentionMatrices(NamedTuple):
    """Attention of one text.

    Attributes:
        tokens: The tokens, special ones included.
        weights: float32 of shape (layers, heads, tokens, tokens): how much the token of the row takes from
            the token of the column; each row sums to 1.
    """

    tokens: tuple[str, ...]
    weights: NDArray[np.float32]

    def mean(self, layer: int | None = None, head: int | None = None) -> NDArray[np.float32]:
        """One matrix (tokens, tokens): that of a layer and a head, or the mean over those not named.

        Args:
            layer: From 0, or negative from the end; None for the mean of all.
            head: The same for heads.

        Raises:
            UsageError: There is no such layer or head.

        Example:
            >>> matrices = AttentionMatrices(("a",), np.ones((2, 4, 1, 1), dtype=np.float32))
            >>> matrices.mean(layer=1)
            array([[1.]], dtype=float32)
        """
        chosen = self.weights
        for axis, (name, at) in enumerate((("layer", layer), ("head", head))):
            have = self.weights.shape[axis]
            if at is None:
                chosen = chosen.mean(axis=axis, keepdims=True)
            elif -have <= at < have:
                chosen = np.take(chosen, [at], axis=axis)
            else:
                raise UsageError(f"expected a {name} from 0 to {have - 1}, found {at}")
        matrix: NDArray[np.float32] = chosen[0, 0]
        return matrix


def attention_of(model: Bert, tokens: Sequence[str], ids: Sequence[int]) -> AttentionMatrices:
    """Attention matrices of one tokenised text, without dropout.

    Args:
        model: A bidirectional or causal model.
        tokens: The tokens as text.
        ids: Their ids, just as many; at least one.

    Raises:
        UsageError: There is no token, or more than the model has positions.
    """
    if not ids or len(tokens) != len(ids):
        raise UsageError(f"expected as many tokens as ids, at least one; found {len(tokens)} and {len(ids)}")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            weights = model.attention_matrices(torch.tensor([list(ids)], device=device))
    finally:
        model.train(was_training)
    return AttentionMatrices(tuple(tokens), weights[:, 0].float().cpu().numpy())


def attention_of_text(model: Bert, tokenizer: Any, text: str) -> AttentionMatrices:
    """Attention matrices of a text.

    Args:
        model: A bidirectional or causal model.
        tokenizer: A Hugging Face tokenizer; it adds its special tokens.
        text: Any text; it may be empty if the tokenizer adds special tokens.
    """
    ids = tokenizer(text)["input_ids"]
    return attention_of(model, tokenizer.convert_ids_to_tokens(ids), ids)


def render_text(matrix: NDArray[np.float32], tokens: Sequence[str]) -> str:
    """A matrix as a table of percentages, for a terminal.

    Example:
        >>> print(render_text(np.array([[1.0, 0.0], [0.5, 0.5]], dtype=np.float32), ["a", "b"]))
              a   b
          a 100   0
          b  50  50
    """
    width = max(3, *(len(token) for token in tokens))
    lines = [" ".join([" " * width, *(f"{token:>{width}}" for token in tokens)])]
    for token, row in zip(tokens, matrix, strict=True):
        lines.append(" ".join([f"{token:>{width}}", *(f"{100 * value:>{width}.0f}" for value in row)]))
    return "\n".join(lines)


def draw_heat_map(
    matrices: AttentionMatrices, path: str | PathLike[str], *, layer: int | None = None
) -> None:
    """Write a PNG with one small heat map per layer (row) and head (column), all on one scale.

    Few of them carry the tokens as labels; many, or those of a long text, are small pictures without.

    Args:
        matrices: What to draw.
        path: The file to write.
        layer: Draw the heads of this layer only.

    Raises:
        MissingExtra: matplotlib is not installed.
        UsageError: There is no such layer.
    """
    figures = require("matplotlib.figure", extra="train", purpose="drawing attention")
    weights = matrices.weights
    if layer is not None:
        matrices.mean(layer)  # raises if there is none
        weights = weights[[layer]]
    rows, columns, size, _ = weights.shape
    labelled = rows * columns == 1 or (size <= _LABELLED and (rows == 1 or rows * columns <= _PANELS))
    side = max(1.6, 0.16 * size) if labelled else 1.6
    # A figure of its own, not pyplot's: nothing global, no window, no display needed.
    figure = figures.Figure(figsize=(side * columns + 0.6, side * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    first = 0 if layer is None else layer % len(matrices.weights)
    darkest = float(weights.max())  # one scale for all, so that heads compare
    labels = _labels(matrices.tokens) if labelled else []
    for at in range(rows):
        for head in range(columns):
            plot = axes[at, head]
            image = plot.imshow(
                weights[at, head], vmin=0.0, vmax=darkest, cmap="Blues", interpolation="nearest"
            )
            plot.set_title(f"layer {first + at} head {head}", fontsize=6)
            plot.set_xticks(range(len(labels)), labels=labels, rotation=90, fontsize=5)
            plot.set_yticks(range(len(labels)), labels=labels, fontsize=5)
    figure.colorbar(image, ax=axes, fraction=0.02).ax.tick_params(labelsize=5)
    figure.savefig(path, format="png", dpi=150)


def _labels(tokens: Sequence[str]) -> list[str]:
    """Tokens as labels of a plot; one that the plot's font cannot show, such as Chinese, by its position."""
    fonts = require("matplotlib.font_manager", extra="train", purpose="drawing attention")
    glyphs = fonts.get_font(fonts.findfont("DejaVu Sans")).get_charmap()
    return [
        # A pair of dollar signs would be read as a formula.
        token.replace("$", r"\$") if all(ord(character) in glyphs for character in token) else f"({at})"
        for at, token in enumerate(tokens)
    ]
