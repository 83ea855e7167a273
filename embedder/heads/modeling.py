"""Hugging Face models with a head: load an encoder as one, freeze parts of it, adapt it, save it.

The result loads with the same class of transformers, with equal logits and label names. Nothing here trains.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from likewise.embedder.heads.task import Task
from likewise.embedder.heads.tokens import WindowTokenizer
from likewise.embedder.resolve import resolve
from likewise.embedder.runtimes.torch import quiet
from likewise.embedder.spec import read_spec
from likewise.embedder.starting_point import load_tokenizer
from likewise.errors import EncoderError, UsageError
from likewise.extras import require

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What configurations call the dropout on attention weights.
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")
# For a model that names no limit: attention over a book would need all memory there is.
_UNLIMITED = 512


@dataclass(eq=False)
class HeadModel:
    """A model with a head and its tokenizer.

    Attributes:
        model: A `PreTrainedModel`, or one that LoRA has wrapped.
        tokenizer: That of transformers, to be saved beside it.
        positions: Most tokens in a window.
        name: What it was made from.
        kept: Values of its configuration that training overrides and saving restores.
    """

    model: Any
    tokenizer: PreTrainedTokenizerBase
    positions: int
    name: str
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pad_id(self) -> int:
        """Fills batches up."""
        return int(self.tokenizer.pad_token_id or 0)

    def windows(self) -> WindowTokenizer:
        """The tokenizer as the tasks need it."""
        return WindowTokenizer.of(self.tokenizer, segments=takes_segments(self.model, self.tokenizer))

    def parameters(self) -> dict[str, int]:
        """How many parameters there are, and how many of them are trained."""
        every = list(self.model.parameters())
        return {
            "parameters": sum(p.numel() for p in every),
            "trained parameters": sum(p.numel() for p in every if p.requires_grad),
        }


def load_for(
    name_or_path: str | Path | None, task: Task, *, seed: int, offline: bool | None = None
) -> HeadModel:
    """An encoder with a new head for a task.

    Attention dropout is off: it rules out the fused attention of CPUs, and the other dropouts stay. The
    saved configuration has its value of before.

    Args:
        name_or_path: Any encoder: a folder, a hub id, or None for the default one.
        task: Decides the class, and the names of the outputs.
        seed: Of the head's weights.
        offline: Never ask the network.

    Raises:
        EncoderNotFound: There is no such model.
        EncoderError: It cannot have such a head, or its files are damaged.
    """
    import transformers

    location = resolve(name_or_path, offline=offline)
    folder = read_spec(location.directory, location.name).transformer
    tokenizer = load_tokenizer(folder, offline=True)
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        kept = {name: getattr(config, name) for name in _ATTENTION_DROPOUT if hasattr(config, name)}
        config.update(dict.fromkeys(kept, 0.0))
        config.id2label = dict(enumerate(task.labels)) or {0: "start", 1: "end"}
        config.label2id = {label: number for number, label in config.id2label.items()}
        config.problem_type = task.problem_type
        if config.pad_token_id is None:
            config.pad_token_id = tokenizer.pad_token_id
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model = getattr(transformers, task.auto_class).from_pretrained(
                folder, config=config, local_files_only=True, dtype=torch.float32
            )
    except (OSError, ValueError, RuntimeError, AttributeError) as error:
        raise EncoderError(
            f"{location.name} cannot be loaded as {task.auto_class}: {str(error).splitlines()[0]}",
            remedy="choose an encoder whose architecture has such a head in transformers",
        ) from error
    if task.auto_class == "AutoModelForQuestionAnswering":
        # Its two outputs are places, not labels.
        model.config.id2label, model.config.label2id = (
            {0: "LABEL_0", 1: "LABEL_1"},
            {"LABEL_0": 0, "LABEL_1": 1},
        )
    return HeadModel(model, tokenizer, position_limit(model, tokenizer), location.name, kept)


def takes_segments(model: Any, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a model tells the two texts of a pair apart by segment ids, and its tokenizer makes them.

    Both must: some architectures have a table of segments that their checkpoints never learned to use.
    """
    import inspect

    if "token_type_ids" not in tokenizer.model_input_names:
        return False

    base = getattr(model, "base_model", model)
    takes = "token_type_ids" in inspect.signature(type(base).forward).parameters
    kinds = int(getattr(model.config, "type_vocab_size", 0) or 0)
    return takes and kinds > 1


def position_limit(model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens that a model takes: what its positions and its tokenizer allow."""
    config: Any = model.config
    limits = [_UNLIMITED]
    if tokenizer.model_max_length and tokenizer.model_max_length < 1e9:  # 1e30 stands for "no limit"
        limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions:
        # RoBERTa and its kin count positions from the padding id on.
        tables = [m for n, m in model.named_modules() if n.endswith("position_embeddings")]
        offsets = [m.padding_idx + 1 for m in tables if getattr(m, "padding_idx", None) is not None]
        limits.append(int(positions) - max(offsets, default=0))
    return min(limits)


def layers_of(model: Any) -> tuple[nn.Module, list[nn.Module]]:
    """Embeddings and layers of an encoder, from the bottom up.

    Raises:
        UsageError: It is built otherwise.
    """
    base = getattr(model, "base_model", model)
    count = int(getattr(model.config, "num_hidden_layers", 0) or 0)
    embeddings = getattr(base, "embeddings", None)
    lists = [m for m in base.modules() if isinstance(m, nn.ModuleList) and len(m) == count]
    if not isinstance(embeddings, nn.Module) or not lists or not count:
        raise UsageError(
            f"expected an encoder of embeddings and layers, found {type(base).__name__}, which is built "
            "otherwise",
            remedy="leave out --freeze-layers",
        )
    return embeddings, list(lists[0])


def freeze(model: Any, layers: int | None) -> None:
    """Stop the embeddings and the lowest layers from learning.

    Args:
        model: A Hugging Face model with a head.
        layers: How many; 0 freezes nothing, None the whole encoder below the head.

    Raises:
        UsageError: The encoder has fewer layers.
    """
    if layers is None:
        for parameter in getattr(model, "base_model", model).parameters():
            parameter.requires_grad_(False)
    elif layers:
        embeddings, stack = layers_of(model)
        if layers > len(stack):
            raise UsageError(f"expected at most {len(stack)} layers to freeze, found {layers}")
        for part in (embeddings, *stack[:layers]):
            for parameter in part.parameters():
                parameter.requires_grad_(False)


def add_lora(made: HeadModel, task: Task, *, rank: int) -> None:
    """Train low-rank changes of all linear layers instead of the weights (Hu et al. 2021, 2106.09685).

    Args:
        made: Changed in place; saving merges the changes into the weights.
        task: Decides which head is trained whole.
        rank: Of the changes, at least 1.

    Raises:
        MissingExtra: `peft` is not installed.
    """
    require("peft", extra="lora", purpose="training with LoRA")
    import peft

    kinds = {
        "AutoModelForSequenceClassification": "SEQ_CLS",
        "AutoModelForTokenClassification": "TOKEN_CLS",
        "AutoModelForQuestionAnswering": "QUESTION_ANS",
    }
    config = peft.LoraConfig(
        task_type=kinds[task.auto_class],
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        target_modules="all-linear",
    )
    with quiet():
        made.model = peft.get_peft_model(made.model, config)


def save(made: HeadModel, task: Task, folder: Path, *, more: Mapping[str, Any]) -> None:
    """Write a model so that transformers and `predictor.Predictor` load it.

    Args:
        made: The trained model.
        task: Its settings are written beside it.
        folder: Where to.
        more: Further facts for `likewise.json`.
    """
    model = made.model.cpu()
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    trained = {name: getattr(model.config, name) for name in made.kept}
    model.config.update(dict(made.kept))
    folder.mkdir(parents=True, exist_ok=True)
    with quiet():
        model.save_pretrained(folder)
    model.config.update(trained)
    made.tokenizer.save_pretrained(folder)
    record = {
        "format": FORMAT,
        "kind": task.kind,
        "settings": task.settings(),
        "segments": takes_segments(model, made.tokenizer),
        "pad_id": made.pad_id,
        **more,
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")


FORMAT = 1
RECORD = "likewise.json"
