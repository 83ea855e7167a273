"""What the files of a model say: prompts, limits, pooling, and what its fingerprint depends on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.embedder.fingerprint import fingerprint
from likewise.embedder.prompts import Prompts, find_prompts
from likewise.embedder.spec import read_spec
from likewise.errors import UsageError


def checkpoint(folder: Path, config: dict[str, Any], tokenizer: dict[str, Any] | None = None) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer or {}))
    return folder


@pytest.mark.parametrize(
    ("config", "name", "expected"),
    [
        ({}, "intfloat/e5-small-v2", Prompts("query: ", "passage: ")),
        ({}, "/models/multilingual-e5-base/", Prompts("query: ", "passage: ")),
        ({}, "C:\\models\\bge-base-zh-v1.5", Prompts("为这个句子生成表示以用于检索相关文章：", "")),
        ({}, "BAAI/bge-m3", Prompts()),
        ({}, "nomic-ai/nomic-embed-text-v1.5", Prompts("search_query: ", "search_document: ")),
        ({}, "thenlper/gte-base", Prompts()),
        ({}, "my-e5-small-v2-finetuned", Prompts()),
        ({"prompts": {"query": "", "document": ""}}, "intfloat/e5-small", Prompts("query: ", "passage: ")),
        ({"prompts": {"query": "Q ", "passage": "P "}}, "intfloat/e5-small", Prompts("Q ", "P ")),
        ({"prompts": {"query": "Q ", "document": "", "corpus": "C "}}, "x", Prompts("Q ", "C ")),
        (
            {"prompts": {"s2p": "Instruct: "}, "default_prompt_name": "s2p"},
            "x",
            Prompts("Instruct: ", "Instruct: "),
        ),
        ({"prompts": None, "default_prompt_name": None}, "x", Prompts()),
    ],
)
def test_prompts(config: dict[str, Any], name: str, expected: Prompts) -> None:
    assert find_prompts(config, name) == expected


def test_qwen_asks_its_queries_only() -> None:
    prompts = find_prompts({}, "Qwen/Qwen3-Embedding-0.6B")
    assert prompts.of("query").startswith("Instruct: ")
    assert prompts.of("query").endswith("Query:")
    assert prompts.of("passage") == ""


@pytest.mark.parametrize(
    ("config", "tokenizer", "limit"),
    [
        ({"max_position_embeddings": 512}, {"model_max_length": 128}, 128),
        ({"max_position_embeddings": 512}, {"model_max_length": 10**30}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, {}, 512),
        (
            {"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1},
            {"model_max_length": 514},
            512,
        ),
        ({"max_position_embeddings": -1}, {}, 512),
        ({}, {"model_max_length": 77}, 77),
    ],
)
def test_token_limits(config: dict[str, Any], tokenizer: dict[str, Any], limit: int, tmp_path: Path) -> None:
    assert read_spec(checkpoint(tmp_path, config, tokenizer), "x").max_tokens == limit


@pytest.mark.parametrize(
    ("pooling", "modes"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, ("max", "mean")),
        ({"pooling_mode_weightedmean_tokens": True}, ("weightedmean",)),
        ({"pooling_mode_lasttoken": True}, ("lasttoken",)),
        ({"pooling_mode": ["mean", "cls"]}, ("mean", "cls")),
        ({"pooling_mode": "max", "pooling_mode_cls_token": True}, ("max",)),
        ({}, ("mean",)),
    ],
)
def test_pooling_old_and_new(pooling: dict[str, Any], modes: tuple[str, ...], tmp_path: Path) -> None:
    checkpoint(tmp_path, {"hidden_size": 8})
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    spec = read_spec(tmp_path, "x")
    assert spec.pooling == modes
    assert spec.dimension == 8 * len(modes)
    assert spec.foreign == ()


def test_a_dense_module_fixes_the_number_of_pooled_vectors(sentence_model: Callable[..., Path]) -> None:
    from sentence_transformers.sentence_transformer.modules import Dense

    folder = sentence_model("bert", more=[Dense(32, 8)])
    assert read_spec(folder, "x", pooling="cls").dimension == 8
    with pytest.raises(UsageError, match="takes 1 pooled vectors, not 2"):
        read_spec(folder, "x", pooling="cls+mean")


def test_what_a_fingerprint_depends_on(sentence_model: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(sentence_model("bert"), folder)
    base = fingerprint(read_spec(folder, "x"))
    assert fingerprint(read_spec(folder, "another name")) == base

    def changed(name: str, **values: Any) -> str:
        copy = tmp_path / f"changed-{name}-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(folder, copy)
        path = copy / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
        return fingerprint(read_spec(copy, "x"))

    # Where it came from, how the file is laid out, and how a batch would be padded, make no difference.
    assert changed("config.json", _name_or_path="elsewhere", transformers_version="9") == base
    assert changed("tokenizer.json", padding={"strategy": {"Fixed": 8}}) == base
    differing = {
        changed("config.json", hidden_act="relu"),
        changed("1_Pooling/config.json", pooling_mode="cls"),
        changed("config_sentence_transformers.json", prompts={"query": "Q: "}),
        changed("config_sentence_transformers.json", truncate_dim=8),
        changed("tokenizer.json", normalizer={"type": "Lowercase"}),
        changed("tokenizer_config.json", model_max_length=32),
        base,
    }
    assert len(differing) == 7


def test_a_digest_is_remembered_as_long_as_the_file_is_the_same(
    sentence_model: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.embedder import fingerprint as module

    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    folder = sentence_model("bert")
    read: list[str] = []
    original = module.sha256_of
    monkeypatch.setattr(module, "sha256_of", lambda path: read.append(path.name) or original(path))
    base = fingerprint(read_spec(folder, "x"))
    assert read == ["model.safetensors"]
    assert fingerprint(read_spec(folder, "x")) == base
    assert read == ["model.safetensors"]
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(1, 1))
    assert fingerprint(read_spec(folder, "x")) != base
    # A damaged memory of digests costs time, nothing else.
    for file in (tmp_path / "cache" / "digests").iterdir():
        file.write_text("{")
    assert fingerprint(read_spec(folder, "x")) != base
