"""The fine-tuned model that people use: texts in, predictions out.

Loads what `finetune` wrote, and any model with a head that transformers saved. A kept model runs without
torch and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.embedder.heads.data import Example, QuestionExample, TextExample
from likewise.embedder.heads.scoring import InputBatch, LogitsRuntime, pad, score
from likewise.embedder.heads.task import Encoded, Task
from likewise.embedder.heads.tokens import Window, WindowTokenizer
from likewise.embedder.prepare import RuntimeName
from likewise.errors import EncoderError

if TYPE_CHECKING:
    from likewise.embedder.heads.frozen import FrozenHead

# Inputs on which runtimes are compared.
_PROBES = (
    "a",
    "How do I rotate a signing key?",
    "The quick brown fox jumps over the lazy dog, and 1,234.5 other things happened in 1999.",
    "如何輪換簽署金鑰？敏捷的棕色狐狸跳過懶狗。",
    "emoji 🗝️ und Umlaute äöü, naïve café",
)
_LONG_PROBE = 512
_HEADS = {
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "tagging",
    "ForQuestionAnswering": "questions",
}
_PROBLEMS = {"multi_label_classification": "multilabel", "regression": "regression"}


class Predictor:
    """A model with a head.

    Made by `Predictor.load`.

    Args:
        task: What it does.
        tokenizer: Cuts texts into windows.
        runtime: Computes logits.
        notices: What a person should know about it.
    """

    def __init__(
        self, task: Task, tokenizer: WindowTokenizer, runtime: LogitsRuntime, notices: Sequence[str] = ()
    ) -> None:
        self.task = task
        self.notices = tuple(notices)
        self._tokenizer = tokenizer
        self._runtime = runtime

    @classmethod
    def load(
        cls, folder: str | Path, *, runtime: RuntimeName = "auto", device: str | None = None
    ) -> Predictor | FrozenHead:
        """Load a model.

        The first time a model is used, it is converted for OpenVINO, which takes some seconds; the result is
        kept in the cache folder (`LIKEWISE_CACHE`).

        Args:
            folder: What `likewise finetune` wrote, or any model with a head as transformers saves it.
            runtime: "auto" is OpenVINO on the CPU where it gives the same logits as torch.
            device: A torch device; None for the CPU.

        Raises:
            EncoderError: There is no model with a head, or it cannot be run.
        """
        from likewise.embedder.heads.frozen import FrozenHead
        from likewise.embedder.heads.tasks import make_task

        folder = Path(folder).expanduser()
        record = read_record(folder)
        if "frozen" in record:
            return FrozenHead.load(folder, record, runtime=runtime, device=device)
        try:
            task = make_task(record["kind"], record["labels"], record["settings"])
            tokenizer = WindowTokenizer.load(
                folder, pad_id=int(record["pad_id"]), segments=bool(record["segments"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderError(
                f"expected the settings of a model with a head in {folder}, found {error!r}",
                remedy="save the model again: its files do not belong together",
            ) from error
        opened, notices = open_runtime_for(folder, task, tokenizer, runtime=runtime, device=device)
        return cls(task, tokenizer, opened, notices)

    @property
    def runtime(self) -> str:
        """What computes the predictions, such as "openvino cpu bfloat16"."""
        return self._runtime.name

    def predict(
        self, examples: Sequence[Example], *, progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """A prediction for each example, whose labels are not looked at.

        Args:
            examples: What fits the task.
            progress: Called with the number of windows that are done.

        Raises:
            UsageError: The examples do not fit the task.
        """
        return self.predict_counted(examples, progress=progress)[0]

    def predict_counted(
        self, examples: Sequence[Example], *, progress: Callable[[int], None] | None = None
    ) -> tuple[list[Any], int]:
        """The same, and how many texts were cut."""
        if not examples:
            return [], 0
        encoded = self.task.encode(examples, self._tokenizer)
        logits = predict_logits(
            self.task, encoded, self._runtime, pad_id=self._tokenizer.pad_id, progress=progress
        )
        return self.task.predict(examples, encoded, logits), encoded.truncated

    def predict_texts(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Any]:
        """A prediction for each text, or pair of texts."""
        if seconds is None:
            return self.predict([TextExample((text,)) for text in texts])
        return self.predict([TextExample(pair) for pair in zip(texts, seconds, strict=True)])

    def answer(self, question: str, context: str) -> Any:
        """The answer to a question in a context."""
        return self.predict([QuestionExample(question, context)])[0]

    def __repr__(self) -> str:
        return f"Predictor({self.task.kind!r}, runtime={self.runtime!r})"


def predict_logits(
    task: Task,
    encoded: Encoded,
    runtime: LogitsRuntime,
    *,
    pad_id: int,
    progress: Callable[[int], None] | None = None,
) -> list[Any]:
    """Logits of the windows of a task's examples."""
    per_token = task.auto_class != "AutoModelForSequenceClassification"
    return score(encoded.windows, runtime, pad_id=pad_id, per_token=per_token, progress=progress)


def open_runtime_for(
    folder: Path,
    task: Task,
    tokenizer: WindowTokenizer,
    *,
    runtime: RuntimeName = "auto",
    device: str | None = None,
) -> tuple[LogitsRuntime, list[str]]:
    """Open the runtime of a task's model; see `runtime.open_runtime`."""
    from likewise.embedder.heads.runtime import open_runtime

    return open_runtime(
        folder,
        auto_class=task.auto_class,
        segments=tokenizer.segments,
        probes=lambda: _probes(task, tokenizer),
        runtime=runtime,
        device=device,
    )


def read_record(folder: Path) -> dict[str, Any]:
    """What is known of a model with a head: its kind, labels, settings and how it wants its inputs.

    Raises:
        EncoderError: There is none in the folder.
    """
    config = _json(folder / "config.json")
    record = _json(folder / "likewise.json")
    if "frozen" in record:
        return record
    architecture = next(iter(config.get("architectures") or ()), "")
    kind = next((kind for ending, kind in _HEADS.items() if architecture.endswith(ending)), None)
    if kind is None:
        if not folder.is_dir():
            raise EncoderError(f"there is no folder {folder}", remedy="likewise finetune ... -o FOLDER")
        if not config and (folder / "training").is_dir():
            raise EncoderError(
                f"expected a model in {folder}, found a run that is not finished",
                remedy="the likewise finetune command that began it goes on from there",
            )
        found = architecture or "no config.json with an architecture"
        raise EncoderError(
            f"expected a model with a head for texts, words or answers in {folder}, found {found}",
            remedy="likewise finetune classify|pair|tag|qa DATA",
        )
    names = config.get("id2label") or {}
    # Without names, transformers leaves them out where there are two.
    labels = [names[key] for key in sorted(names, key=int)] or ["LABEL_0", "LABEL_1"]
    if kind == "classification":
        kind = _PROBLEMS.get(config.get("problem_type") or "", "regression" if len(labels) == 1 else kind)
    positions = int(config.get("max_position_embeddings") or _LONG_PROBE)
    length = min(256, positions - int(config.get("pad_token_id") or 0) - 1)
    inputs = _json(folder / "tokenizer_config.json").get("model_input_names") or ["token_type_ids"]
    known = {
        "kind": kind,
        "settings": {"length": length},
        "segments": int(config.get("type_vocab_size") or 0) > 1 and "token_type_ids" in inputs,
        "pad_id": int(config.get("pad_token_id") or 0),
    }
    return known | record | {"labels": labels}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _probes(task: Task, tokenizer: WindowTokenizer) -> list[InputBatch]:
    length = int(task.settings()["length"])
    texts = list(_PROBES)
    long = [" ".join(_PROBES) * (1 + length // 32)]
    pair = task.kind == "questions" or bool(task.settings().get("pair"))
    others, long_others = (texts[::-1], long) if pair else (None, None)
    windows, _ = tokenizer.first(texts, others, length=length)
    [longest], _ = tokenizer.first(long, long_others, length=min(length, _LONG_PROBE))

    def batch(*chosen: Window) -> InputBatch:
        return pad(chosen, pad_id=tokenizer.pad_id)

    return [batch(*windows), batch(windows[0]), batch(longest, windows[1]), batch(longest)]
