"""Fill the masks of a text: the tokens that a model thinks likeliest, with probabilities.

Works with any `AutoModelForMaskedLM` directory. Nothing here trains.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from likewise.embedder.hf_export import GENERATOR_FOLDER
from likewise.embedder.resolve import resolve
from likewise.embedder.spec import usable_positions
from likewise.embedder.starting_point import load_tokenizer
from likewise.errors import DataError, EncoderError, UsageError

# Understood in any text, whatever the model's own mask token is called.
MASK = "[MASK]"


@dataclass(frozen=True)
class Fill:
    """A token for a mask.

    Attributes:
        token: As text, without marks of continuation.
        token_id: Its id.
        probability: In [0, 1].
        text: The whole text with this token in place; other masks stay.
    """

    token: str
    token_id: int
    probability: float
    text: str


class MaskFiller:
    """A model that fills masks.

    Args:
        name_or_path: A directory or a hub id.
        offline: Never ask the network.

    Raises:
        EncoderNotFound: There is no such model.
        EncoderError: It has no trained head for masked tokens.
        DataError: Its tokenizer has no mask token.
    """

    def __init__(self, name_or_path: str | Path, *, offline: bool | None = None) -> None:
        folder = resolve(name_or_path, offline=offline).directory
        if (folder / GENERATOR_FOLDER / "config.json").is_file():
            folder = folder / GENERATOR_FOLDER  # ELECTRA's discriminator fills nothing; its generator does
        self.tokenizer = load_tokenizer(folder, offline=True)
        if self.tokenizer.mask_token_id is None:
            raise DataError(
                f"expected a tokenizer with a mask token, found none in {folder}",
                remedy="use a model that was trained with masked language modelling",
            )
        self.model = _load(folder, str(name_or_path))

    def fill(self, text: str, *, k: int = 5) -> list[list[Fill]]:
        """The likeliest tokens for each mask, each mask by itself.

        Args:
            text: With at least one `[MASK]`, or the model's own mask token.
            k: Tokens per mask, from 1 to the size of the vocabulary.

        Returns:
            For each mask in order its tokens, likeliest first.

        Raises:
            UsageError: No mask, or too long a text.
        """
        own = str(self.tokenizer.mask_token)
        text = text.replace(MASK, own)
        inputs = self.tokenizer(text, return_tensors="pt")
        ids = inputs["input_ids"][0]
        places = (ids == self.tokenizer.mask_token_id).nonzero().squeeze(1).tolist()
        if not places:
            raise UsageError(f"expected a text with {MASK}, found none in {text!r}")
        positions = usable_positions(self.model.config.to_dict())
        if positions is not None and len(ids) > positions:
            raise UsageError(f"expected a text of at most {positions} tokens, found {len(ids)}")
        with torch.no_grad():
            probabilities = self.model(**inputs).logits[0].softmax(dim=-1)
        k = max(1, min(k, probabilities.shape[-1]))
        return [
            [
                self._fill(text, own, number, int(token), float(probability))
                for probability, token in zip(
                    *(part.tolist() for part in probabilities[place].topk(k)), strict=True
                )
            ]
            for number, place in enumerate(places)
        ]

    def _fill(self, text: str, own: str, number: int, token: int, probability: float) -> Fill:
        word = self.tokenizer.decode([token]).strip()
        continues = word.startswith("##")
        word = word.removeprefix("##")
        parts = text.split(own)
        before, after = own.join(parts[: number + 1]), own.join(parts[number + 1 :])
        return Fill(word, token, probability, (before.rstrip() if continues else before) + word + after)


def _load(folder: Path, name: str) -> Any:
    from transformers import AutoModelForMaskedLM

    try:
        model, report = AutoModelForMaskedLM.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise EncoderError(f"{folder} holds no model that fills masks: {error}") from error
    assert isinstance(model, nn.Module)
    if report["missing_keys"]:
        raise EncoderError(
            f"expected a model with a trained head for masked tokens, found none in {name}",
            remedy=f"likewise pretrain CORPUS --init {name} gives it one",
        )
    return model.eval()
