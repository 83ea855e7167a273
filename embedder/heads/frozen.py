"""A head on the sentence vectors of an encoder that stays as it is, and what such a model predicts.

The vectors of a pair are put together as (u, v, |u - v|, u * v), as InferSent did (Conneau et al. 2017).
Predicting needs the encoder and NumPy, neither torch nor transformers.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.encoder import Encoder
from likewise.embedder.heads.data import Example, TextExample
from likewise.embedder.heads.task import LongText, Task
from likewise.embedder.heads.vector_cache import VectorCache
from likewise.embedder.prepare import RuntimeName
from likewise.embedder.resolve import resolve
from likewise.embedder.texts import as_texts
from likewise.errors import EncoderError, UsageError

Vectors = NDArray[np.float32]
HEAD_FILE, ENCODER_FOLDER = "head.safetensors", "encoder"


@dataclass(frozen=True, eq=False)
class Layers:
    """A head as arrays: one linear layer, or two with a ReLU between.

    Attributes:
        weights: float32 of shape (inputs, outputs), one for each layer.
        biases: float32 of shape (outputs,), one for each layer.
    """

    weights: tuple[Vectors, ...]
    biases: tuple[Vectors, ...]

    def __call__(self, features: Vectors) -> Vectors:
        """Logits of shape (examples, outputs)."""
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            features = (np.maximum(features, 0) if number else features) @ weight + bias
        return features


class FrozenHead:
    """A head on sentence vectors.

    Args:
        task: What it does; has a method `from_logits`.
        encoder: Makes the vectors.
        layers: The head.
    """

    def __init__(self, task: Any, encoder: Encoder, layers: Layers) -> None:
        self.task = task
        self.encoder = encoder
        self.notices = encoder.notices
        self._layers = layers

    @classmethod
    def load(
        cls,
        folder: Path,
        record: Mapping[str, Any],
        *,
        runtime: RuntimeName = "auto",
        device: str | None = None,
    ) -> FrozenHead:
        """Load what `save` wrote.

        Raises:
            EncoderError: A file is missing, or the encoder is not the one that the head was trained on.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        from likewise.embedder.heads.tasks import make_task

        encoder = load_encoder(folder / ENCODER_FOLDER, runtime=runtime, device=device)
        if encoder.fingerprint != record["frozen"]["fingerprint"]:
            raise EncoderError(
                f"the encoder in {folder / ENCODER_FOLDER} is not the one that the head was trained on",
                remedy="save the model again: its files do not belong together",
            )
        try:
            arrays = load_file(folder / HEAD_FILE)
            numbers = range(len(arrays) // 2)
            layers = Layers(
                tuple(arrays[f"{number}.weight"] for number in numbers),
                tuple(arrays[f"{number}.bias"] for number in numbers),
            )
            task = make_task(record["kind"], record["labels"], record["settings"])
        except (OSError, SafetensorError, KeyError, TypeError) as error:
            raise EncoderError(f"cannot read the head in {folder}: {error!r}") from error
        return cls(task, encoder, layers)

    @property
    def runtime(self) -> str:
        """What computes the vectors."""
        return self.encoder.runtime

    def predict(
        self, examples: Sequence[Example], *, progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """A prediction for each example, whose labels are not looked at."""
        return self.predict_counted(examples, progress=progress)[0]

    def predict_counted(
        self, examples: Sequence[Example], *, progress: Callable[[int], None] | None = None
    ) -> tuple[list[Any], int]:
        """The same, and how many texts were cut."""
        if not examples:
            return [], 0
        vectors = TextVectors(self.encoder, self.task.long_text)
        found = self.predict_features(features_of(examples, vectors, pair=self.task.pair))
        if progress is not None:
            progress(len(examples))
        return found, vectors.truncated

    def predict_features(self, features: Vectors) -> list[Any]:
        """A prediction for each row of features."""
        predictions: list[Any] = self.task.from_logits(self._layers(features))
        return predictions

    def predict_texts(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Any]:
        """A prediction for each text, or pair of texts."""
        if seconds is None:
            return self.predict([TextExample((text,)) for text in texts])
        return self.predict([TextExample(pair) for pair in zip(texts, seconds, strict=True)])


def load_encoder(name: str | Path | None, **options: Any) -> Encoder:
    """An encoder, whose notices are for the caller to show instead of warnings."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return Encoder.load(name, **options)


class TextVectors:
    """Vectors of texts, of long ones from their beginning or as the mean over all of them.

    Args:
        encoder: Makes the vectors.
        long_text: "first" or "windows".
        cache: Keeps vectors between runs; None computes all.
        progress: Called with the texts done, and how many have to be computed.

    Attributes:
        truncated: Texts that were cut so far; those whose vectors were kept are not counted.
    """

    def __init__(
        self,
        encoder: Encoder,
        long_text: LongText = "first",
        *,
        cache: VectorCache | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.truncated = 0
        self._encoder, self._long_text = encoder, long_text
        self._cache, self._progress = cache, progress

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """float32 of shape (texts, dimension), L2-normalised."""
        if self._cache is None:
            return self._compute(list(texts))
        return self._cache.vectors(texts, self._compute, progress=self._progress)

    def _compute(self, texts: list[str]) -> Vectors:
        if self._long_text == "first":
            embedded = self._encoder.embed(texts, role="passage")
            self.truncated += len(embedded.truncated)
            return embedded.vectors
        whole = as_texts(texts)
        tokens = self._encoder.token_spans(whole)
        pieces = [self._pieces(text, spans) for text, spans in zip(whole, tokens, strict=True)]
        vectors = self._encoder.encode_passages([piece for group in pieces for piece in group])
        sizes = np.array([len(group) for group in pieces])
        sums = np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        means: Vectors = (sums / np.maximum(norms, 1e-12)).astype(np.float32)
        return means

    def _pieces(self, text: str, spans: NDArray[np.int32]) -> list[str]:
        room = self._encoder.passage_tokens
        if len(spans) <= room:
            return [text]
        # Pieces of about equal length: a short last one would count as much as the others.
        count = -(-len(spans) // room)
        cuts = np.linspace(0, len(spans), count + 1).astype(int)
        return [text[spans[a, 0] : spans[b - 1, 1]] for a, b in pairwise(cuts.tolist())]


def features_of(
    examples: Sequence[Example], vectors: Callable[[Sequence[str]], Vectors], *, pair: bool
) -> Vectors:
    """What a head sees of each example, float32 of shape (examples, inputs).

    Args:
        examples: Texts or pairs.
        vectors: Of texts.
        pair: Whether an example has two texts.

    Raises:
        UsageError: An example has another number of texts.
    """
    texts = [example.texts for example in examples if isinstance(example, TextExample)]
    if any(len(group) != 1 + pair for group in texts):
        raise UsageError(f"expected {'pairs of texts' if pair else 'single texts'} for this model")
    if not pair:
        return vectors([text for (text,) in texts])
    both = vectors([text for group in texts for text in group])
    u, v = both[0::2], both[1::2]
    return np.concatenate((u, v, np.abs(u - v), u * v), axis=1)


def save_frozen(
    task: Task, encoder_name: str | None, encoder: Encoder, layers: Layers, folder: Path, *, head: str
) -> None:
    """Write a head together with its encoder, so that the folder is all that is needed.

    Args:
        task: Its settings are written beside it.
        encoder_name: As given to `Encoder.load`.
        encoder: What that loaded.
        layers: The head.
        folder: Where to.
        head: Kind of head.
    """
    from safetensors.numpy import save_file

    source = resolve(encoder_name, offline=True).directory
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, folder / ENCODER_FOLDER, dirs_exist_ok=True)
    arrays: dict[str, Vectors] = {}
    for number, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        arrays[f"{number}.weight"] = np.ascontiguousarray(weight, dtype=np.float32)
        arrays[f"{number}.bias"] = np.ascontiguousarray(bias, dtype=np.float32)
    save_file(arrays, folder / HEAD_FILE)
    record = {
        "format": 1,
        "kind": task.kind,
        "labels": list(task.labels),
        "settings": task.settings(),
        "frozen": {"encoder": encoder.name, "fingerprint": encoder.fingerprint, "head": head},
    }
    (folder / "likewise.json").write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")
