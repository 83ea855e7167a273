"""What the files of a model say about it, read without loading it.

Understands Sentence Transformers directories (modules.json) and plain Hugging Face checkpoints. Must not
import torch or transformers, and must not read weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from likewise.embedder.prompts import Prompts, find_prompts
from likewise.embedder.static.files import table_width, token_limit
from likewise.errors import EncoderError, UsageError

JsonObject: TypeAlias = dict[str, Any]

POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")

# Directories saved before `pooling_mode` existed have one flag per mode; the order is that of concatenation.
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
# Their positions are counted from `pad_token_id + 1`, so that fewer tokens fit than there are positions.
_OFFSET_POSITIONS = {
    "camembert",
    "data2vec-text",
    "longformer",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
# Models whose single texts have token types other than 0, which `Batch` does not carry.
_TOKEN_TYPES = {"xlnet", "funnel"}
# For a model without any limit: attention over a book would need all memory there is.
_UNLIMITED_TOKENS = 512
# A mean over tokens has no such limit.
_ANY_LENGTH = 1 << 20


@dataclass(frozen=True, slots=True)
class Head:
    """A module after the pooling.

    Attributes:
        kind: What it does.
        directory: Where its weights are.
    """

    kind: Literal["dense", "normalize"]
    directory: Path


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as its files describe it.

    Attributes:
        name: Hub id or path, for people and for the table of prompts.
        directory: Where `modules.json` stands, or the checkpoint itself.
        transformer: Directory of the checkpoint.
        model_type: As in its config.json ("bert").
        pooling: Modes whose results are concatenated.
        include_prompt: Whether the prompt's tokens count in the pooling.
        heads: Modules after the pooling, in order.
        max_tokens: Tokens of an input, special tokens included.
        lower_case: Whether texts are lower-cased before the tokenizer sees them.
        prompts: Text in front of queries and passages.
        dimension: Length of a vector, or 0 where only running the model tells.
        truncate_dimension: Vectors are cut to this length (Matryoshka models), or None.
        foreign: Parts that only sentence-transformers itself can run.
        static: Whether it has a vector for each token and nothing else; see `runtimes/static.py`.
        notices: What a person should know about how the files were understood.
    """

    name: str
    directory: Path
    transformer: Path
    model_type: str
    pooling: tuple[str, ...]
    include_prompt: bool
    heads: tuple[Head, ...]
    max_tokens: int
    lower_case: bool
    prompts: Prompts
    dimension: int
    truncate_dimension: int | None = None
    foreign: tuple[str, ...] = ()
    static: bool = False
    notices: tuple[str, ...] = ()


def read_spec(
    directory: Path,
    name: str,
    *,
    pooling: str | None = None,
    max_tokens: int | None = None,
    prompts: Prompts | None = None,
) -> ModelSpec:
    """Read what the files in `directory` say about the model, and apply what the caller wants otherwise.

    Args:
        directory: A Sentence Transformers directory or a plain checkpoint.
        name: Hub id or path of the model.
        pooling: One of `POOLING_MODES` or several joined by `+`, instead of the model's own.
        max_tokens: A lower limit than the model's own, special tokens included.
        prompts: Instead of the model's own.

    Raises:
        UsageError: An override makes no sense.
        EncoderError: A file is missing or malformed.
    """
    spec = (
        _read_modules(directory, name)
        if (directory / "modules.json").is_file()
        else _read_plain(directory, name)
    )
    if pooling is not None:
        if spec.static:
            raise UsageError(f"{name} is a table of token vectors, which are always averaged: no pooling")
        modes = tuple(pooling.split("+"))
        if unknown := [mode for mode in modes if mode not in POOLING_MODES]:
            raise UsageError(
                f"unknown pooling {unknown[0]!r}",
                remedy=f"use one of {', '.join(POOLING_MODES)}, or several as a+b",
            )
        if spec.heads and spec.heads[0].kind == "dense" and len(modes) != len(spec.pooling):
            raise UsageError(
                f"the Dense module of {name} takes {len(spec.pooling)} pooled vectors, not {len(modes)}"
            )
        width = spec.dimension // max(1, len(spec.pooling))
        keeps = any(head.kind == "dense" for head in spec.heads)
        spec = replace(
            spec, pooling=modes, dimension=spec.dimension if keeps else width * len(modes), notices=()
        )
    if max_tokens is not None:
        if not 8 <= max_tokens <= spec.max_tokens:
            raise UsageError(f"expected 8 to {spec.max_tokens} tokens for {name}, found {max_tokens}")
        spec = replace(spec, max_tokens=max_tokens)
    if prompts is not None:
        spec = replace(spec, prompts=prompts)
    if spec.truncate_dimension is not None and spec.dimension:
        spec = replace(spec, dimension=min(spec.dimension, spec.truncate_dimension))
    return spec


def read_config(path: Path, *, required: bool = False) -> JsonObject:
    """A JSON object from a file of a model; a file that is missing and not required is an empty one.

    Raises:
        EncoderError: The file is missing though required, or is no JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        if required:
            raise EncoderError(
                f"expected {path.name} in {path.parent}, found no such file",
                remedy="save or download the model again: it is not complete",
            ) from None
        return {}
    except (OSError, ValueError) as error:
        raise EncoderError(
            f"cannot read {path}: {error}", remedy="save or download the model again"
        ) from error
    if not isinstance(content, dict):
        raise EncoderError(f"expected a JSON object in {path}, found {type(content).__name__}")
    return content


def _read_plain(directory: Path, name: str) -> ModelSpec:
    config = read_config(directory / "config.json", required=True)
    causal = str((config.get("architectures") or [""])[0]).endswith("ForCausalLM")
    mode = "lasttoken" if causal and config.get("is_causal", True) else "mean"
    words = {"mean": "the mean of all tokens", "lasttoken": "the last token, as usual for a decoder"}[mode]
    return ModelSpec(
        name=name,
        directory=directory,
        transformer=directory,
        model_type=str(config.get("model_type", "")),
        pooling=(mode,),
        include_prompt=True,
        heads=(),
        max_tokens=_token_limit(directory, config, {}),
        lower_case=False,
        prompts=find_prompts({}, name),
        dimension=_hidden_size(config),
        foreign=_foreign_checkpoint(config),
        notices=(
            f"{name} does not say how to pool its tokens: using {words}; pass pooling= to choose another",
        ),
    )


def _read_modules(directory: Path, name: str) -> ModelSpec:
    try:
        modules = json.loads((directory / "modules.json").read_bytes())
        if not isinstance(modules, list):
            raise TypeError(f"found {type(modules).__name__}")
        types = [str(module["type"]) for module in modules]
        paths = [directory / str(module.get("path", "")) for module in modules]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoderError(
            f"expected a list of modules in {directory / 'modules.json'}: {error}",
            remedy="save or download the model again",
        ) from error
    general = read_config(directory / "config_sentence_transformers.json")
    # Only the modules of sentence-transformers itself: another package may have other ideas of "Pooling".
    known = [kind.rsplit(".", 1)[-1] if kind.startswith("sentence_transformers.") else kind for kind in types]
    if known[:1] == ["StaticEmbedding"] and set(known[1:]) <= {"Normalize", "Dropout"}:
        return _static(directory, name, paths[0], general)
    if known[:2] != ["Transformer", "Pooling"]:
        transformer = paths[0] if known[:1] == ["Transformer"] else directory
        return ModelSpec(
            name=name,
            directory=directory,
            transformer=transformer,
            model_type="",
            pooling=(),
            include_prompt=True,
            heads=(),
            max_tokens=_token_limit(
                transformer, read_config(transformer / "config.json"), _transformer_config(transformer)
            ),
            lower_case=False,
            prompts=find_prompts(general, name),
            dimension=0,
            truncate_dimension=general.get("truncate_dim"),
            foreign=tuple(types),
        )
    transformer = paths[0]
    config = read_config(transformer / "config.json", required=True)
    settings = _transformer_config(transformer)
    pooling = read_config(paths[1] / "config.json", required=True)
    modes = _pooling_modes(pooling)
    width = int(
        pooling.get("embedding_dimension") or pooling.get("word_embedding_dimension") or _hidden_size(config)
    )
    dimension = width * len(modes)
    heads: list[Head] = []
    foreign = [*_foreign_checkpoint(config), *_foreign_settings(settings)]
    foreign += [f"pooling {mode}" for mode in modes if mode not in POOLING_MODES]
    for kind, path in zip(known[2:], paths[2:], strict=True):
        if kind == "Dense":
            dense = read_config(path / "config.json", required=True)
            if dense.get("module_input_name", "sentence_embedding") != "sentence_embedding":
                foreign.append("Dense on tokens")
            dimension = int(dense["out_features"])
            heads.append(Head("dense", path))
        elif kind == "Normalize":
            heads.append(Head("normalize", path))
        elif kind != "Dropout":  # which does nothing outside training
            foreign.append(kind)
    return ModelSpec(
        name=name,
        directory=directory,
        transformer=transformer,
        model_type=str(config.get("model_type", "")),
        pooling=modes,
        include_prompt=bool(pooling.get("include_prompt", True)),
        heads=tuple(heads),
        max_tokens=_token_limit(transformer, config, settings),
        lower_case=bool(settings.get("do_lower_case", False)),
        prompts=find_prompts(general, name),
        dimension=dimension,
        truncate_dimension=general.get("truncate_dim"),
        foreign=tuple(foreign),
    )


def _static(directory: Path, name: str, table: Path, general: JsonObject) -> ModelSpec:
    """A model of token vectors alone: StaticEmbedding, with or without a normalisation behind it."""
    return ModelSpec(
        name=name,
        directory=directory,
        transformer=table,
        model_type="static",
        pooling=("mean",),
        include_prompt=True,
        heads=(),
        max_tokens=token_limit(table) or _ANY_LENGTH,
        lower_case=False,
        prompts=find_prompts(general, name),
        dimension=table_width(table),
        truncate_dimension=general.get("truncate_dim"),
        static=True,
    )


def _transformer_config(directory: Path) -> JsonObject:
    return next((found for file in _TRANSFORMER_CONFIGS if (found := read_config(directory / file))), {})


def _pooling_modes(config: JsonObject) -> tuple[str, ...]:
    mode = config.get("pooling_mode")
    if mode is not None:
        return (mode,) if isinstance(mode, str) else tuple(mode)
    return tuple(name for flag, name in _POOLING_FLAGS.items() if config.get(flag)) or ("mean",)


def _foreign_checkpoint(config: JsonObject) -> tuple[str, ...]:
    """Parts of a checkpoint that are left to sentence-transformers."""
    model_type = str(config.get("model_type", ""))
    if model_type in _TOKEN_TYPES or config.get("is_encoder_decoder"):
        return (model_type,)
    return ()


def _foreign_settings(settings: JsonObject) -> list[str]:
    """Settings of a Transformer module that go beyond text in, last hidden state out."""
    found = []
    if settings.get("transformer_task", "feature-extraction") != "feature-extraction":
        found.append(f"task {settings['transformer_task']}")
    modalities = settings.get("modality_config")
    if modalities is not None:
        text = modalities.get("text")
        if "message" in modalities or text != {
            "method": "forward",
            "method_output_name": "last_hidden_state",
        }:
            found.append("modalities")
    found += [key for key in ("query_expansion", "query_length", "document_length") if settings.get(key)]
    return found


def _token_limit(directory: Path, config: JsonObject, settings: JsonObject) -> int:
    """Tokens of an input, special tokens included: the smallest of what the files allow."""
    limits = []
    stated = settings.get("max_seq_length") or (
        settings.get("processor_kwargs") or settings.get("tokenizer_args") or {}
    ).get("model_max_length")
    stated = stated or read_config(directory / "tokenizer_config.json").get("model_max_length")
    if isinstance(stated, int | float) and stated < 1e9:  # transformers writes 1e30 for "no limit"
        limits.append(int(stated))
    positions = usable_positions(config)
    if positions is not None:
        limits.append(positions)
    return min(limits, default=_UNLIMITED_TOKENS)


def usable_positions(config: Mapping[str, Any]) -> int | None:
    """Longest input that a checkpoint has positions for, special tokens included; None if it does not say.

    Args:
        config: Of the checkpoint, as in its `config.json`.

    Example:
        >>> usable_positions({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1})
        512
    """
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions <= 0:
        return None
    model_type = config.get("model_type")
    if model_type not in _OFFSET_POSITIONS:
        return positions
    padding = 1 if model_type == "mpnet" else int(config.get("pad_token_id") or 0)  # MPNet's is in its code
    return positions - padding - 1


def _hidden_size(config: JsonObject) -> int:
    return int(
        next((config[key] for key in ("hidden_size", "dim", "d_model", "n_embd") if config.get(key)), 0)
    )
