"""A copy of a model's directory with more tokens: other vocabulary and token table, all else as it is.

Needs neither torch nor transformers. Texts without any of the new tokens get the ids they had, so the vectors
they had. The result is loaded by transformers and sentence-transformers like any other directory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.fingerprint import weight_files
from likewise.embedder.spec import read_config, read_spec
from likewise.errors import EncoderError, UsageError

# The token table under the names that encoders of the BERT kind give it.
_TABLES = ("word_embeddings.weight", "embed_tokens.weight", "wte.weight")
# Other forms of the same weights, which would be out of date.
_LEFT_OUT = (
    "onnx",
    "openvino",
    "coreml",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.tflite",
    "*.gguf",
    "*.bin",
)


def grow_directory(
    source: Path, target: Path, tokens: Sequence[str], rows: NDArray[np.float32]
) -> dict[str, int]:
    """Write a copy of a model that knows more tokens.

    A token that the model has already keeps its id and gets the new row. In a WordPiece vocabulary whose
    normaliser sets Chinese characters apart, single characters become entries like any other, unless there
    are added tokens already. Everything else becomes an added token, which is found in a text before the
    vocabulary is asked, the longest first.

    Args:
        source: A Sentence Transformers directory or a plain checkpoint, with `tokenizer.json` and
            safetensors.
        target: Created; what is there is overwritten.
        tokens: Different, without white space.
        rows: float32 of shape (tokens, width of the token table).

    Returns:
        The id of each token.

    Raises:
        EncoderError: The model's files are of another kind.
        UsageError: The tokens or rows make no sense.
    """
    if len(set(tokens)) < len(tokens) or any(not token or token.split() != [token] for token in tokens):
        raise UsageError("expected different tokens without white space")
    if rows.shape[0] != len(tokens):
        raise UsageError(f"expected a row for each of {len(tokens)} tokens, found {rows.shape[0]}")
    spec = read_spec(source, str(source))
    inside = spec.transformer.relative_to(source)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    ids = _grow_tokenizer(spec.transformer, target / inside, tokens)
    size = _grow_weights(spec.transformer, target / inside, list(ids.values()), rows)
    config = read_config(spec.transformer / "config.json", required=True)
    _write_json(target / inside / "config.json", {**config, "vocab_size": size})
    return ids


def token_table(directory: Path) -> NDArray[np.float32]:
    """The token table of a checkpoint, float32 of shape (tokens, width).

    Raises:
        EncoderError: It is not in one file of safetensors, or under no known name.
    """
    from safetensors.numpy import load_file

    tensors = load_file(_weights(read_spec(directory, str(directory)).transformer))
    return tensors[_table_name(list(tensors), directory)].astype(np.float32)


def _grow_tokenizer(source: Path, target: Path, tokens: Sequence[str]) -> dict[str, int]:
    path = source / "tokenizer.json"
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        model, added = content["model"], content["added_tokens"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoderError(
            f"expected a tokenizer.json with a vocabulary in {source}: {error}",
            remedy="save the model with its fast tokenizer",
        ) from error
    vocabulary = model.get("vocab")
    known: dict[str, int] = (
        dict(vocabulary)
        if isinstance(vocabulary, dict)
        else {token: number for number, (token, _) in enumerate(vocabulary)}
    )
    known |= {entry["content"]: entry["id"] for entry in added}
    following = max(known.values()) + 1
    # Entries of the vocabulary come first: `vocab.txt` numbers its lines, so there must be no gap.
    apart = (
        model.get("type") == "WordPiece"
        and _sets_chinese_apart(content.get("normalizer"))
        and following == len(vocabulary)
    )
    ids: dict[str, int] = {}
    inside = [token for token in tokens if apart and len(token) == 1]
    for token in [*inside, *(token for token in tokens if not (apart and len(token) == 1))]:
        if token in known:
            ids[token] = known[token]
            continue
        ids[token] = following
        if apart and len(token) == 1:
            model["vocab"][token] = following
        else:
            added.append(_added(token, following))
        following += 1
    _write_json(target / "tokenizer.json", content)
    if inside and (source / "vocab.txt").is_file():
        lines = (source / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
        lines += [token for token in inside if token not in known]
        (target / "vocab.txt").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    return {token: ids[token] for token in tokens}


def _sets_chinese_apart(normalizer: Any) -> bool:
    return isinstance(normalizer, dict) and bool(normalizer.get("handle_chinese_chars"))


def _added(token: str, number: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": number, "content": token, **flags}


def _grow_weights(source: Path, target: Path, ids: Sequence[int], rows: NDArray[np.float32]) -> int:
    """Write the weights with the rows put in, and return the number of tokens."""
    from safetensors.numpy import load_file, save_file

    path = _weights(source)
    tensors = load_file(path)
    name = _table_name(list(tensors), source)
    table = tensors[name]
    if rows.shape[1] != table.shape[1]:
        raise UsageError(f"expected rows of width {table.shape[1]}, found {rows.shape[1]}")
    grown = np.zeros((max(len(table), max(ids, default=-1) + 1), table.shape[1]), table.dtype)
    grown[: len(table)] = table
    grown[list(ids)] = rows.astype(table.dtype)
    tensors[name] = grown
    save_file(tensors, target / path.name, metadata={"format": "pt"})
    return len(grown)


def _weights(directory: Path) -> Path:
    paths = weight_files(directory)
    if len(paths) != 1 or paths[0].suffix != ".safetensors":
        raise EncoderError(
            f"expected the weights in {directory} as one model.safetensors, found {paths[0].name}",
            remedy="save the model again with a recent transformers",
        )
    return paths[0]


def _table_name(names: Sequence[str], directory: Path) -> str:
    found = [name for name in names if name.endswith(_TABLES)]
    if len(found) != 1:
        raise EncoderError(
            f"expected one token table in {directory}, found {', '.join(found) or 'none'}",
            remedy="choose an encoder of the BERT family",
        )
    return found[0]


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")
