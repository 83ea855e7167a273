"""How the Hugging Face classes of the BERT family name the weights and settings of `bert.py`.

One `Family` for each: names of the weights, and the settings that say the same in other words. Tables only;
`hf_export.py` moves the weights. Nothing here imports transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from likewise.embedder.bert import BertConfig
from likewise.errors import EncoderError, UsageError

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_THEIR_ACTIVATION = {"gelu": "gelu", "gelu_tanh": "gelu_new"}


class Weight(NamedTuple):
    """One tensor under both names.

    Attributes:
        ours: Name in the state dict of `Bert`, `PretrainingModel` or `ReplacedTokenModel`.
        theirs: Names in theirs: one, or three for the fused projection of queries, keys and values.
        transposed: Theirs is (in, out), GPT-2's habit, instead of torch's (out, in).
    """

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """Names of one Hugging Face model type.

    Attributes:
        model_type: `config.model_type`.
        prefix: Name of the base model inside the models with heads.
        modules: Our module to theirs, below the base model.
        layer: Our module of a layer to theirs; "attention.qkv" has three names unless it is fused there too.
        layer_prefix: Where layer `{i}` stands.
        heads: Our module or parameter of a head to theirs; absent where there is no such head.
        settings: Our setting to theirs.
        fixed: Their settings that must have these values for the model to be ours.
        transposed: Linear layers are stored (in, out).
    """

    model_type: str
    prefix: str
    modules: Mapping[str, str]
    layer: Mapping[str, tuple[str, ...]]
    layer_prefix: str
    heads: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    transposed: bool = False

    def weights(self, config: BertConfig) -> Iterator[Weight]:
        """All tensors that a model of this shape may have; heads that a model lacks are simply not there."""
        for ours, theirs in self.modules.items():
            for kind in ("weight", "bias"):
                yield Weight(f"encoder.{ours}.{kind}", (f"{self.prefix}.{theirs}.{kind}",))
        for at in range(1 if config.shared_layers else config.layers):
            where = f"{self.prefix}.{self.layer_prefix.format(i=at)}"
            for ours, names in self.layer.items():
                for kind in ("weight", "bias"):
                    yield Weight(
                        f"encoder.layers.{at}.{ours}.{kind}",
                        tuple(f"{where}.{name}.{kind}" for name in names),
                        transposed=self.transposed and kind == "weight" and not ours.endswith("norm"),
                    )
        for ours, names in self.heads.items():
            if ours.endswith(".bias"):
                for name in names:
                    yield Weight(ours, (name,))
                continue
            for kind in ("weight", "bias"):
                yield Weight(f"{ours}.{kind}", tuple(f"{name}.{kind}" for name in names))


def _without(names: Mapping[str, Any], *gone: str) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name not in gone}


#: BERT's names, most of which the family took over.
BERT = Family(
    "bert",
    "bert",
    modules={
        "embeddings.token": "embeddings.word_embeddings",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.segment": "embeddings.token_type_embeddings",
        "embeddings.norm": "embeddings.LayerNorm",
        "pooler": "pooler.dense",
    },
    layer={
        "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": ("attention.output.dense",),
        "attention_norm": ("attention.output.LayerNorm",),
        "ffn.widen": ("intermediate.dense",),
        "ffn.narrow": ("output.dense",),
        "ffn_norm": ("output.LayerNorm",),
    },
    layer_prefix="encoder.layer.{i}",
    heads={
        "token_head.dense": ("cls.predictions.transform.dense",),
        "token_head.norm": ("cls.predictions.transform.LayerNorm",),
        "token_head.bias": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        "pair_head": ("cls.seq_relationship",),
    },
    settings={
        "vocab_size": "vocab_size",
        "hidden_size": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "ffn_size": "intermediate_size",
        "max_positions": "max_position_embeddings",
        "segments": "type_vocab_size",
        "activation": "hidden_act",
        "norm_epsilon": "layer_norm_eps",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "initializer_range": "initializer_range",
        "pad_id": "pad_token_id",
    },
    fixed={"add_cross_attention": False},
)

#: Pre-LN: the LayerNorms stand elsewhere, and none follows the embeddings.
MEGATRON_BERT = Family(
    "megatron-bert",
    "bert",
    modules={**_without(BERT.modules, "embeddings.norm"), "final_norm": "encoder.ln"},
    layer={**BERT.layer, "attention_norm": ("attention.ln",), "ffn_norm": ("ln",)},
    layer_prefix=BERT.layer_prefix,
    heads=BERT.heads,
    settings=BERT.settings,
    fixed=BERT.fixed,
)

ROBERTA = Family(
    "roberta",
    "roberta",
    modules=BERT.modules,
    layer=BERT.layer,
    layer_prefix=BERT.layer_prefix,
    heads={
        "token_head.dense": ("lm_head.dense",),
        "token_head.norm": ("lm_head.layer_norm",),
        "token_head.bias": ("lm_head.bias", "lm_head.decoder.bias"),
    },
    settings=BERT.settings,
    fixed=BERT.fixed,
)

ELECTRA = Family(
    "electra",
    "electra",
    modules={**_without(BERT.modules, "pooler"), "expand": "embeddings_project"},
    layer=BERT.layer,
    layer_prefix=BERT.layer_prefix,
    heads={
        "token_head.dense": ("generator_predictions.dense",),
        "token_head.norm": ("generator_predictions.LayerNorm",),
        "token_head.bias": ("generator_lm_head.bias",),
        "replaced_head.dense": ("discriminator_predictions.dense",),
        "replaced_head.score": ("discriminator_predictions.dense_prediction",),
    },
    settings={**BERT.settings, "embedding_size": "embedding_size"},
    fixed=BERT.fixed,
)

ALBERT = Family(
    "albert",
    "albert",
    modules={**BERT.modules, "expand": "encoder.embedding_hidden_mapping_in", "pooler": "pooler"},
    layer={
        "attention.qkv": ("attention.query", "attention.key", "attention.value"),
        "attention.output": ("attention.dense",),
        "attention_norm": ("attention.LayerNorm",),
        "ffn.widen": ("ffn",),
        "ffn.narrow": ("ffn_output",),
        "ffn_norm": ("full_layer_layer_norm",),
    },
    layer_prefix="encoder.albert_layer_groups.0.albert_layers.0",
    heads={
        "token_head.dense": ("predictions.dense",),
        "token_head.norm": ("predictions.LayerNorm",),
        "token_head.bias": ("predictions.bias", "predictions.decoder.bias"),
        "pair_head": ("sop_classifier.classifier",),
    },
    settings={**BERT.settings, "embedding_size": "embedding_size"},
    fixed={"num_hidden_groups": 1, "inner_group_num": 1},
)

DISTILBERT = Family(
    "distilbert",
    "distilbert",
    modules=_without(BERT.modules, "embeddings.segment", "pooler"),
    layer={
        "attention.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        "attention.output": ("attention.out_lin",),
        "attention_norm": ("sa_layer_norm",),
        "ffn.widen": ("ffn.lin1",),
        "ffn.narrow": ("ffn.lin2",),
        "ffn_norm": ("output_layer_norm",),
    },
    layer_prefix="transformer.layer.{i}",
    heads={
        "token_head.dense": ("vocab_transform",),
        "token_head.norm": ("vocab_layer_norm",),
        "token_head.bias": ("vocab_projector.bias",),
    },
    settings={
        **_without(BERT.settings, "segments", "norm_epsilon"),
        "hidden_size": "dim",
        "layers": "n_layers",
        "heads": "n_heads",
        "ffn_size": "hidden_dim",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    },
)

GPT2 = Family(
    "gpt2",
    "transformer",
    modules={"embeddings.token": "wte", "embeddings.position": "wpe", "final_norm": "ln_f"},
    layer={
        "attention.qkv": ("attn.c_attn",),
        "attention.output": ("attn.c_proj",),
        "attention_norm": ("ln_1",),
        "ffn.widen": ("mlp.c_fc",),
        "ffn.narrow": ("mlp.c_proj",),
        "ffn_norm": ("ln_2",),
    },
    layer_prefix="h.{i}",
    heads={},
    settings={
        **_without(BERT.settings, "segments"),
        "hidden_size": "n_embd",
        "layers": "n_layer",
        "heads": "n_head",
        "ffn_size": "n_inner",
        "max_positions": "n_positions",
        "activation": "activation_function",
        "norm_epsilon": "layer_norm_epsilon",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
    },
    fixed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
    },
    transposed=True,
)

FAMILIES: Mapping[str, Family] = {
    family.model_type: family for family in (BERT, MEGATRON_BERT, ROBERTA, ELECTRA, ALBERT, DISTILBERT, GPT2)
}


def family_of(config: BertConfig, *, direct_head: bool = False) -> Family:
    """The family whose Hugging Face class computes exactly what a model of this shape does.

    Args:
        config: Shape of the model.
        direct_head: The token head is GPT-2's, without a transform.

    Raises:
        UsageError: None does; the message names the setting in the way.

    Example:
        >>> family_of(BertConfig()).model_type, family_of(BertConfig(norm="pre")).model_type
        ('bert', 'megatron-bert')
    """
    factorised = config.embedding_size is not None
    if config.norm == "pre":
        if factorised or config.shared_layers:
            raise _no_family("norm='pre' together with factorised embeddings or shared layers")
        if config.causal and direct_head:
            if config.segments:
                raise _no_family("a GPT-2 with segment embeddings (set segments=0)")
            return GPT2
        if direct_head:
            raise _no_family("a direct token head on a bidirectional model")
        return MEGATRON_BERT
    if direct_head:
        raise _no_family("a direct token head with norm='post'")
    if config.causal and (factorised or config.shared_layers):
        raise _no_family("causal=True together with factorised embeddings or shared layers")
    if config.shared_layers:
        return ALBERT
    if factorised:
        if config.embedding_size == config.hidden_size:
            raise _no_family("an embedding size equal to the hidden size (set embedding_size=None)")
        if config.activation != "gelu":
            raise _no_family("factorised embeddings with the tanh GELU")
        return ELECTRA
    if config.segments == 0 and not config.pooler and not config.causal and config.norm_epsilon == 1e-12:
        return DISTILBERT
    return ROBERTA if config.segments == 1 and not config.causal else BERT


def their_settings(config: BertConfig, family: Family) -> dict[str, Any]:
    """Keyword arguments of the Hugging Face configuration class."""
    values = {theirs: getattr(config, ours) for ours, theirs in family.settings.items()}
    values[family.settings["activation"]] = _THEIR_ACTIVATION[config.activation]
    if "segments" in family.settings:
        values["type_vocab_size"] = max(1, config.segments)  # a row of zeros stands for none
    if "embedding_size" in family.settings:
        values["embedding_size"] = config.table_size
    if family is ROBERTA:
        values["max_position_embeddings"] += position_offset(config.pad_id, family)
    if family is GPT2:
        values["embd_pdrop"] = config.dropout
    if config.causal and family is not GPT2:
        values["is_decoder"] = True
    return values


def our_config(settings: Mapping[str, Any], family: Family, *, pooler: bool) -> BertConfig:
    """Shape of a model from its Hugging Face settings.

    Args:
        settings: All settings of the configuration, defaults included.
        family: Its family.
        pooler: Whether the model has the pooler.

    Raises:
        EncoderError: A setting asks for something that `bert.py` does not do.
    """
    for name, value in family.fixed.items():
        if settings.get(name, value) != value:
            raise EncoderError(f"{family.model_type}: expected {name}={value!r}, found {settings[name]!r}")
    values = {ours: settings[theirs] for ours, theirs in family.settings.items() if theirs in settings}
    activation = values["activation"]
    if activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise EncoderError(
            f"{family.model_type}: expected an activation out of {known}, found {activation!r}"
        )
    values["activation"] = _ACTIVATIONS[activation]
    values["pad_id"] = settings.get("pad_token_id") or 0
    values["segments"] = values.get("segments", 0)
    values["norm"] = "pre" if family in (MEGATRON_BERT, GPT2) else "post"
    values["causal"] = family is GPT2 or bool(settings.get("is_decoder", False))
    values["shared_layers"] = family is ALBERT
    values["pooler"] = pooler
    if family is GPT2 and values["ffn_size"] is None:
        values["ffn_size"] = 4 * values["hidden_size"]
    if family is ELECTRA and values["embedding_size"] == values["hidden_size"]:
        values["embedding_size"] = None  # that class has no projection then
    if family is ROBERTA:
        values["max_positions"] -= position_offset(values["pad_id"], family)
    return BertConfig(**values)


def position_offset(pad_id: int, family: Family) -> int:
    """Rows at the start of their position table that no token ever uses: RoBERTa counts from pad_id + 1."""
    return pad_id + 1 if family is ROBERTA else 0


def _no_family(what: str) -> UsageError:
    return UsageError(f"no Hugging Face class computes this model: {what}")


__all__ = [
    "ALBERT",
    "BERT",
    "DISTILBERT",
    "ELECTRA",
    "FAMILIES",
    "GPT2",
    "MEGATRON_BERT",
    "ROBERTA",
    "Family",
    "Weight",
    "family_of",
    "our_config",
    "position_offset",
    "their_settings",
]
