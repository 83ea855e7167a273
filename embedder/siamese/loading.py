"""From the name of a model to a `SentenceModel` that can be trained, with the tokenizer that belongs to it.

Takes what `Encoder.load` takes: Sentence Transformers directories, plain checkpoints, hub ids, the default
encoder. Saving is the matter of `saving.py`.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from likewise.embedder.bert import SelfAttention
from likewise.embedder.hf_export import from_hugging_face
from likewise.embedder.hf_families import FAMILIES
from likewise.embedder.prompts import Prompts
from likewise.embedder.resolve import resolve
from likewise.embedder.runtimes.torch import Dense, Normalize, load_model
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.spec import ModelSpec, read_spec
from likewise.embedder.tokenizer import TextTokenizer, prepare_tokenizer
from likewise.errors import EncoderError


@dataclass(frozen=True)
class Loaded:
    """A model to train.

    Attributes:
        model: In evaluation mode, float32, on the CPU.
        tokenizer: Its tokenizer.
        spec: What its files say, with the overrides applied.
    """

    model: SentenceModel
    tokenizer: TextTokenizer
    spec: ModelSpec


def load_sentence_model(
    name_or_path: str | os.PathLike[str] | None = None,
    *,
    pooling: str | None = None,
    dense: int | None = None,
    max_tokens: int | None = None,
    prompts: Prompts | None = None,
    dropout: float | None = None,
    offline: bool | None = None,
    seed: int = 0,
) -> Loaded:
    """Load an encoder for training.

    Attention weights are not dropped in training where the model runs packed: that would rule out the fused
    attention of CPUs. All other dropout is as the checkpoint says, unless told otherwise.

    Args:
        name_or_path: As for `Encoder.load`; None for the default encoder.
        pooling: Instead of what the model says; see `Encoder.load`.
        dense: Width of a new Dense module behind the pooling, without an activation.
        max_tokens: A lower limit than the model's own, special tokens included.
        prompts: Instead of what the model says.
        dropout: Probability in training, instead of what the model says; what is saved does not change.
        offline: Never ask the hub.
        seed: Of the weights of a new Dense module.

    Raises:
        EncoderNotFound: There is no such model.
        EncoderError: It is incomplete, or has parts that cannot be trained here.
        UsageError: The arguments make no sense.

    Example:
        >>> load_sentence_model().model.dimension
        384
    """
    if str(name_or_path).partition(":")[0] == "hash":
        raise EncoderError(
            "the hash encoder has no weights to train",
            remedy="choose another: all-MiniLM-L6-v2-zh, a hub id, or the path of a model folder",
        )
    location = resolve(name_or_path, offline=offline)
    spec = read_spec(
        location.directory, location.name, pooling=pooling, max_tokens=max_tokens, prompts=prompts
    )
    if spec.foreign:
        raise EncoderError(
            f"likewise cannot train parts of {spec.name}: {', '.join(spec.foreign)}",
            remedy="choose a model of a Transformer, pooling, Dense and Normalize modules",
        )
    if spec.static:
        raise EncoderError(
            f"{spec.name} is a table of token vectors without layers, which is not trained on pairs",
            remedy="train its teacher, then distil that: likewise distill TEACHER CORPUS --static",
        )
    text_model = load_model(spec)
    heads = list(text_model.heads)
    while heads and isinstance(heads[-1], Normalize):
        heads.pop()  # vectors are always normalised at the end
    config: Any = text_model.transformer.config
    width = int(config.hidden_size) * len(spec.pooling)
    dimension = next((head.linear.out_features for head in reversed(heads) if isinstance(head, Dense)), width)
    if dense is not None:
        heads.append(_new_dense(dimension, dense, seed))
        dimension = dense
    # Matryoshka models are trained at their full length; where they are cut is for their users to say.
    spec = replace(spec, dimension=dimension, truncate_dimension=None)
    body = _body(text_model.transformer, spec)
    model = SentenceModel(body, spec.pooling, heads, dimension=dimension).eval()
    if dropout is not None:
        model.set_dropout(dropout)
    return Loaded(model, _tokenizer(spec), spec)


def _new_dense(inputs: int, outputs: int, seed: int) -> Dense:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Dense(nn.Linear(inputs, outputs), nn.Identity(), None)


def _body(transformer: nn.Module, spec: ModelSpec) -> nn.Module:
    if spec.model_type not in FAMILIES:
        return transformer
    try:
        body = from_hugging_face(transformer).encoder
    except EncoderError:  # a member of the family with a setting that `bert.py` does not have
        return transformer
    for module in body.modules():
        if isinstance(module, SelfAttention):
            module.dropout = 0.0  # the saved configuration keeps its value
    if body.pooler is not None:
        body.pooler.requires_grad_(False)  # part of the checkpoint, but not of the vectors
    return body


def _tokenizer(spec: ModelSpec) -> TextTokenizer:
    with tempfile.TemporaryDirectory(prefix="likewise-") as folder:
        prepare_tokenizer(spec, Path(folder))
        return TextTokenizer.load(Path(folder), max_tokens=spec.max_tokens)
