"""To and from Hugging Face: the same weights under their names, the same logits.

A saved directory is an ordinary checkpoint: `AutoModel` and `AutoTokenizer` load it, and with them
everything that builds on transformers, the encoder of this project included. The way back takes any
checkpoint of the family for continued pretraining or as a teacher. `hf_families.py` has the names;
transformers is imported only when needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise.embedder.bert import Bert, BertConfig
from likewise.embedder.hf_families import (
    BERT,
    FAMILIES,
    GPT2,
    ROBERTA,
    Family,
    Weight,
    family_of,
    our_config,
    position_offset,
    their_settings,
)
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.errors import EncoderError, EncoderNotFound, UsageError

Exportable = Bert | PretrainingModel | ReplacedTokenModel

#: Where a directory with an ELECTRA discriminator keeps the generator.
GENERATOR_FOLDER = "generator"

_POSITIONS = "encoder.embeddings.position.weight"


def to_hugging_face(model: Exportable, *, model_type: str | None = None) -> Any:
    """Copy a model into the Hugging Face class that computes the same.

    Args:
        model: A `Bert` becomes a base model (`BertModel`), a `PretrainingModel` one with heads
            (`BertForMaskedLM`, or `BertForPreTraining` with a pair head), a `ReplacedTokenModel` its
            discriminator (`ElectraForPreTraining`).
        model_type: Choose the family instead of deriving it: "bert" for a model that could be RoBERTa or
            DistilBERT as well.

    Returns:
        A `transformers.PreTrainedModel` in evaluation mode, sharing no memory with `model`.

    Raises:
        UsageError: No class computes this model.
        EncoderError: The family asked for does not.

    Example:
        >>> config = BertConfig(vocab_size=30, hidden_size=8, layers=1, heads=2, ffn_size=16, pooler=False)
        >>> type(to_hugging_face(PretrainingModel(config))).__name__
        'BertForMaskedLM'
    """
    import transformers

    config = model.config
    direct = isinstance(model, PretrainingModel) and model.token_head.kind == "direct"
    if isinstance(model, Bert) and config.causal and config.norm == "pre" and not config.segments:
        direct = True  # without a head to tell them apart: GPT-2
    family = family_of(config, direct_head=direct)
    if (
        isinstance(model, PretrainingModel)
        and model.pair_head is not None
        and "pair_head" not in family.heads
    ):
        if family is not ROBERTA:
            raise UsageError(
                f"no Hugging Face class computes this model: {family.model_type} with a pair head"
            )
        family = BERT  # computes the same; RoBERTa has no class with a pair head
    if model_type is not None:
        family = _chosen(model_type, family)
    settings = their_settings(config, family)
    if config.causal:
        # The tokens that generation begins and ends with are the tokenizer's business.
        settings |= {"bos_token_id": None, "eos_token_id": None}
    their_config = transformers.CONFIG_MAPPING[family.model_type](**settings)
    theirs = getattr(transformers, _class_name(model, family))(their_config)
    ours = _state_of(model)
    state = theirs.state_dict()
    _fill(state, ours, config, family, base=isinstance(model, Bert))
    theirs.load_state_dict(state)
    theirs.tie_weights()
    return theirs.eval()


def from_hugging_face(theirs: Any, *, pair_head: bool | None = None) -> PretrainingModel:
    """Copy a Hugging Face model, with or without heads, into a `PretrainingModel`.

    Heads that the model does not have are new and untrained.

    Args:
        theirs: A `transformers.PreTrainedModel` of the BERT family.
        pair_head: Have a head over sentence pairs; None for one if theirs has.

    Raises:
        EncoderError: The model is not of the family, or does something that `bert.py` does not.
    """
    settings = theirs.config.to_dict()
    family = FAMILIES.get(settings["model_type"])
    if family is None:
        raise EncoderError(
            f"expected a model of the BERT family ({', '.join(FAMILIES)}), found {settings['model_type']!r}"
        )
    state = theirs.state_dict()
    state = _with_prefix(state, family)
    pooler = "pooler" in family.modules and f"{family.prefix}.{family.modules['pooler']}.weight" in state
    has_pair = "pair_head" in family.heads and f"{family.heads['pair_head'][0]}.weight" in state
    config = our_config(settings, family, pooler=pooler or bool(pair_head) or has_pair)
    model = PretrainingModel(
        config,
        token_head="direct" if family is GPT2 else "transform",
        pair_head="pair" if (has_pair if pair_head is None else pair_head) else "none",
    )
    _read_into(model, state, config, family)
    return model.eval()


def electra_from_hugging_face(discriminator: Any, generator: Any) -> ReplacedTokenModel:
    """Copy an `ElectraForPreTraining` and its `ElectraForMaskedLM`, to go on training both.

    Raises:
        EncoderError: They are not of the ELECTRA family, or do not share their embeddings.
    """
    ours = from_hugging_face(discriminator)
    small = from_hugging_face(generator)
    share = small.config.hidden_size / ours.config.hidden_size
    model = ReplacedTokenModel(ours.config, share)
    if model.generator.config != small.config:
        raise EncoderError(
            "expected a generator with the depth and the embeddings of its discriminator and a share of its "
            f"width, found {small.config} for {ours.config}"
        )
    if not torch.equal(ours.encoder.embeddings.token.weight, small.encoder.embeddings.token.weight):
        raise EncoderError("expected a generator and a discriminator that share their embeddings")
    model.generator.load_state_dict(small.state_dict())
    model.encoder.load_state_dict(ours.encoder.state_dict())
    _read_into(
        model, _with_prefix(discriminator.state_dict(), FAMILIES["electra"]), ours.config, FAMILIES["electra"]
    )
    return model.eval()


def save_hugging_face(
    model: Exportable,
    directory: str | PathLike[str],
    *,
    tokenizer: Any | None = None,
    model_type: str | None = None,
) -> None:
    """Write a directory that `AutoModel` and, with a tokenizer, `AutoTokenizer` load.

    The generator of a `ReplacedTokenModel` goes into a folder of its own below.

    Args:
        model: See `to_hugging_face`.
        directory: Made if it does not exist.
        tokenizer: A Hugging Face tokenizer.
        model_type: See `to_hugging_face`.
    """
    folder = Path(directory)
    to_hugging_face(model, model_type=model_type).save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    if isinstance(model, ReplacedTokenModel):
        save_hugging_face(model.generator, folder / GENERATOR_FOLDER, tokenizer=tokenizer)


def load_hugging_face(name_or_path: str | PathLike[str], *, offline: bool = False) -> PretrainingModel:
    """Read a checkpoint for continued pretraining or as a teacher.

    Args:
        name_or_path: A directory or a hub id.
        offline: Never ask the network.

    Raises:
        EncoderNotFound: There is no such checkpoint.
        EncoderError: It is none of the BERT family.
    """
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(name_or_path, local_files_only=offline)
    except (OSError, ValueError) as error:
        raise EncoderNotFound(f"no model at {name_or_path}: {error}") from error
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise EncoderError(
            f"{name_or_path}: expected a model of the BERT family ({', '.join(FAMILIES)}), "
            f"found {config.model_type!r}"
        )
    # The class it was saved with keeps all its heads; any other would be told by name that it lacks some.
    saved = next(iter(config.architectures or ()), None)
    known = getattr(transformers, saved, None) if saved else None
    loader = known if known is not None else transformers.AutoModel
    return from_hugging_face(loader.from_pretrained(name_or_path, config=config, local_files_only=offline))


def _chosen(model_type: str, derived: Family) -> Family:
    # BERT's class can stand in for those that only leave something out; RoBERTa's differs in names alone.
    alternatives = {"bert": {"bert", "roberta", "distilbert"}, "roberta": {"roberta", "bert"}}
    if derived.model_type in alternatives.get(model_type, {model_type}):
        return FAMILIES[model_type]
    raise EncoderError(f"this model is {derived.model_type!r} in Hugging Face's terms, not {model_type!r}")


def _class_name(model: Exportable, family: Family) -> str:
    names = {
        "bert": ("BertModel", "BertForMaskedLM", "BertForPreTraining", "BertLMHeadModel"),
        "megatron-bert": (
            "MegatronBertModel",
            "MegatronBertForMaskedLM",
            "MegatronBertForPreTraining",
            "MegatronBertForCausalLM",
        ),
        "roberta": ("RobertaModel", "RobertaForMaskedLM", "", "RobertaForCausalLM"),
        "electra": ("ElectraModel", "ElectraForMaskedLM", "ElectraForPreTraining", ""),
        "albert": ("AlbertModel", "AlbertForMaskedLM", "AlbertForPreTraining", ""),
        "distilbert": ("DistilBertModel", "DistilBertForMaskedLM", "", ""),
        "gpt2": ("GPT2Model", "GPT2LMHeadModel", "", "GPT2LMHeadModel"),
    }
    base, masked, pretraining, causal = names[family.model_type]
    if isinstance(model, Bert):
        return base
    if isinstance(model, ReplacedTokenModel) or model.pair_head is not None:
        return pretraining
    return causal if model.config.causal else masked


def _state_of(model: Exportable) -> dict[str, Tensor]:
    state = model.state_dict()
    return {f"encoder.{name}": value for name, value in state.items()} if isinstance(model, Bert) else state


def _with_prefix(state: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Their state dict with the names of a model with heads, whether it has heads or is a base model."""
    if any(name.startswith(f"{family.prefix}.") for name in state):
        return dict(state)
    return {f"{family.prefix}.{name}": value for name, value in state.items()}


def _fill(
    state: dict[str, Tensor], ours: Mapping[str, Tensor], config: BertConfig, family: Family, *, base: bool
) -> None:
    """Overwrite their initial weights with ours, in a state dict of theirs."""
    strip = f"{family.prefix}."
    for weight in family.weights(config):
        names = [name.removeprefix(strip) if base else name for name in weight.theirs]
        names = [name for name in names if name in state]
        if not names:
            continue
        value = _our_value(weight, ours, config, state[names[0]])
        parts = value.chunk(3) if len(weight.theirs) == 3 else (value,) * len(names)
        for name, part in zip(names, parts, strict=True):
            part = part.T if weight.transposed else part
            if weight.ours == _POSITIONS:
                part = torch.cat(
                    [part.new_zeros(position_offset(config.pad_id, family), part.shape[1]), part]
                )
            state[name] = part.clone()
    for name in list(state):
        # Their tied output table is a name of its own in the state dict.
        if name.endswith(("decoder.weight", "lm_head.weight", "vocab_projector.weight")):
            state[name] = ours["encoder.embeddings.token.weight"].clone()


def _our_value(weight: Weight, ours: Mapping[str, Tensor], config: BertConfig, like: Tensor) -> Tensor:
    if weight.ours in ours:
        return ours[weight.ours]
    if weight.ours == "encoder.embeddings.segment.weight":
        return torch.zeros_like(like)  # a class that must have segments, a model that has none
    if weight.ours == "encoder.expand.weight":
        return torch.eye(config.hidden_size)  # ALBERT's class must have a projection
    if weight.ours == "encoder.expand.bias":
        return torch.zeros_like(like)
    return like  # a head or a pooler that our model lacks stays as their class made it


def _read_into(model: nn.Module, state: Mapping[str, Tensor], config: BertConfig, family: Family) -> None:
    """Overwrite our initial weights with theirs, as far as both have them."""
    ours = model.state_dict()
    for weight in family.weights(config):
        if weight.ours not in ours or weight.theirs[0] not in state:
            continue
        parts = [state[name] for name in weight.theirs if name in state]
        value = torch.cat(parts) if weight.ours.startswith("encoder.layers.") else parts[0]
        value = value.T if weight.transposed else value
        if weight.ours == _POSITIONS:
            value = value[position_offset(config.pad_id, family) :]
        ours[weight.ours] = value.clone()
    model.load_state_dict(ours)
