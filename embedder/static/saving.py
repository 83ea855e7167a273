"""Write a static encoder as a Sentence Transformers directory: a StaticEmbedding and a normalisation.

That library loads it, and `Encoder.load` does, with the same vectors.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.embedder.static.files import TOKENIZER_FILE, WEIGHTS_FILE
from likewise.embedder.static.table import Floats
from likewise.version import __version__

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MODULES = "sentence_transformers.models"


def save_static(tokenizer: Tokenizer, table: Floats, folder: Path, *, max_tokens: int) -> None:
    """Write the directory; files of a model that was there before are replaced.

    Args:
        tokenizer: Without special tokens and padding.
        table: float32 of shape (vocabulary, dimension).
        folder: Made if it does not exist.
        max_tokens: Where texts are cut, so that passages of an index are as long as the teacher's.
    """
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer as Copy

    folder.mkdir(parents=True, exist_ok=True)
    for old in ("config.json", "sentence_bert_config.json", "1_Pooling"):
        path = folder / old
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    cut = Copy.from_str(tokenizer.to_str())
    cut.no_padding()
    cut.enable_truncation(max_length=max_tokens)
    cut.save(str(folder / TOKENIZER_FILE))
    save_file({"embedding.weight": np.ascontiguousarray(table, dtype=np.float32)}, folder / WEIGHTS_FILE)
    (folder / "1_Normalize").mkdir(exist_ok=True)
    _write(folder / "1_Normalize" / "config.json", {})
    modules = [("", "StaticEmbedding"), ("1_Normalize", "Normalize")]
    _write(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": place, "type": f"{_MODULES}.{kind}"}
            for number, (place, kind) in enumerate(modules)
        ],
    )
    _write(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {"likewise": __version__},
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")
