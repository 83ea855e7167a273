"""Write a trained model as a Sentence Transformers directory.

That library loads it, and `Encoder.load` does, both with the vectors that the model in memory gives. Only the
long-standing names of modules and settings are used, which its releases old and new understand.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import nn

from likewise.embedder.bert import Bert
from likewise.embedder.hf_export import save_hugging_face
from likewise.embedder.runtimes.torch import Dense, Normalize
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.spec import ModelSpec
from likewise.embedder.starting_point import load_tokenizer
from likewise.version import __version__

_MODULES = "sentence_transformers.models"
_POOLING_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def save_sentence_model(model: SentenceModel, spec: ModelSpec, folder: Path) -> None:
    """Write the directory; files of a model that was there before are replaced.

    Args:
        model: On the CPU.
        spec: Of the model that training started from: tokenizer, limit and prompts are taken over.
        folder: Made if it does not exist.

    Example:
        See `likewise.embedder.siamese.train`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(spec.transformer, offline=True)
    if isinstance(model.body, Bert):
        save_hugging_face(model.body, folder, tokenizer=tokenizer, model_type=spec.model_type)
        hidden = model.body.config.hidden_size
    else:
        body: Any = model.body
        body.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        hidden = int(body.config.hidden_size)
    _write(
        folder / "sentence_bert_config.json",
        {"max_seq_length": spec.max_tokens, "do_lower_case": spec.lower_case},
    )
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    _write(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": hidden,
            **_pooling_settings(model.pooling),
            "include_prompt": spec.include_prompt,
        },
    )
    for number, head in enumerate([*model.heads, Normalize()], start=2):
        kind = type(head).__name__
        place = f"{number}_{kind}"
        shutil.rmtree(folder / place, ignore_errors=True)
        (folder / place).mkdir()
        if isinstance(head, Dense):
            _save_dense(head, folder / place)
        modules.append((place, kind))
    _write(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": place, "type": f"{_MODULES}.{kind}"}
            for number, (place, kind) in enumerate(modules)
        ],
    )
    prompts = {"query": spec.prompts.query, "document": spec.prompts.passage}
    _write(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {"likewise": __version__},
            "prompts": prompts if any(prompts.values()) else {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def _pooling_settings(modes: tuple[str, ...]) -> dict[str, Any]:
    if list(modes) == [mode for mode in _POOLING_FLAGS if mode in modes]:
        return {flag: mode in modes for mode, flag in _POOLING_FLAGS.items()}
    # Flags have an order of their own; only recent releases know another one.
    return {"pooling_mode": list(modes)}


def _save_dense(head: Dense, folder: Path) -> None:
    activation = type(head.activation)
    _write(
        folder / "config.json",
        {
            "in_features": head.linear.in_features,
            "out_features": head.linear.out_features,
            "bias": head.linear.bias is not None,
            "activation_function": f"{activation.__module__}.{activation.__qualname__}",
            **({"use_residual": True} if head.residual is not None else {}),
        },
    )
    state = {f"linear.{name}": value for name, value in head.linear.state_dict().items()}
    if isinstance(head.residual, nn.Linear):
        state["residual.weight"] = head.residual.weight
    save_file({name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors")


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")
