"""Runs a fine-tuned model: OpenVINO on the CPU, converted once, compared with torch and kept; else torch.

The counterpart of `prepare` for models with a head. Opening a kept model imports neither torch nor
transformers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.embedder.cache import cache_root, writable
from likewise.embedder.fingerprint import sha256_of, weight_files
from likewise.embedder.heads.scoring import InputBatch, LogitsRuntime, TorchHead
from likewise.embedder.prepare import RuntimeName
from likewise.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from likewise.embedder.runtimes.openvino import Precision

# Largest difference to torch of any logit on the probes, as a share of the largest logit (or of 1). A tenth
# of a percent is float noise; a percent moves a probability by less than anyone reads off it.
_PRECISIONS: tuple[tuple[Precision, float], ...] = (("fastest", 0.01), ("f32", 0.001))


def open_runtime(
    folder: Path,
    *,
    auto_class: str,
    segments: bool,
    probes: Callable[[], Sequence[InputBatch]],
    runtime: RuntimeName = "auto",
    device: str | None = None,
) -> tuple[LogitsRuntime, list[str]]:
    """Open a fine-tuned model.

    Args:
        folder: The model.
        auto_class: Class of transformers that loads it.
        segments: Whether it takes segment ids.
        probes: Makes inputs on which runtimes are compared.
        runtime: "auto" is OpenVINO for the CPU where it gives the same logits as torch.
        device: As for `torch_device`; None for the CPU.

    Returns:
        The runtime, and what a person should know about it.

    Raises:
        EncoderError: The model cannot be loaded, or not by the runtime that was ordered.
        UsageError: The runtime does not exist or cannot use the device.
    """
    if runtime not in ("auto", "openvino", "torch"):
        raise UsageError(f"expected runtime auto, openvino or torch, found {runtime!r}")
    on_cpu = device in (None, "cpu")
    if runtime == "openvino" and not on_cpu:
        raise UsageError(f"the openvino runtime computes on the CPU, not on {device}")
    if runtime == "torch" or not on_cpu:
        return load_torch(folder, auto_class, segments=segments, device=device), []
    from likewise.embedder.runtimes.openvino import Refused

    try:
        return _open_openvino(folder, auto_class, segments, probes), []
    except Refused as refusal:
        if runtime == "openvino":
            raise EncoderError(
                f"the openvino runtime cannot run {folder}: {refusal}", remedy="use runtime auto or torch"
            ) from refusal
        notice = f"{folder} runs in torch, which is slower: {refusal}"
        return load_torch(folder, auto_class, segments=segments, device=None), [notice]


def load_torch(folder: Path, auto_class: str, *, segments: bool, device: str | None) -> TorchHead:
    """The model in torch, float32.

    Raises:
        EncoderError: It cannot be loaded.
    """
    import torch
    import transformers

    from likewise.embedder.devices import torch_device
    from likewise.embedder.runtimes.torch import quiet

    try:
        with quiet():
            model, report = getattr(transformers, auto_class).from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise EncoderError(f"{folder} cannot be loaded as {auto_class}: {error}") from error
    if missing := sorted(report["missing_keys"]):
        raise EncoderError(
            f"expected a model with a trained head in {folder}, found one without {missing[0]}",
            remedy="likewise finetune gives an encoder a head",
        )
    return TorchHead(model.eval().to(torch_device(device)), segments=segments)


def identity_of(folder: Path) -> str:
    """SHA-256 over everything that decides a logit, hexadecimal."""
    digest = hashlib.sha256()
    for path in [folder / "config.json", folder / "tokenizer.json", *weight_files(folder)]:
        if path.is_file():
            digest.update(f"{path.name} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def difference(reference: LogitsRuntime, candidate: LogitsRuntime, batches: Sequence[InputBatch]) -> float:
    """Largest difference of any logit, as a share of the largest logit or of 1, whichever is more.

    Infinite if one gives anything but numbers. Logits of padding are not compared.
    """
    worst = 0.0
    for batch in batches:
        expected, found = reference.run(batch), candidate.run(batch)
        if expected.shape != found.shape:
            return float("inf")
        if expected.ndim == 3:
            real = batch.attention_mask.astype(bool)
            expected, found = expected[real], found[real]
        if not np.isfinite(found).all():
            return float("inf")
        scale = max(1.0, float(np.abs(expected).max()))
        worst = max(worst, float(np.abs(expected - found).max()) / scale)
    return worst


def _open_openvino(
    folder: Path, auto_class: str, segments: bool, probes: Callable[[], Sequence[InputBatch]]
) -> LogitsRuntime:
    """The kept model, or a new one where there is none that is sound."""
    from likewise.embedder.runtimes.openvino import DamagedCache, cache_key, open_kept

    home = cache_root() / "heads" / identity_of(folder)[:32] / cache_key()
    try:
        return open_kept(home)
    except DamagedCache:
        from filelock import FileLock

        if not writable(home):
            import tempfile

            # Converted for this process alone; the system removes its folder some day.
            return _convert(folder, auto_class, segments, probes, Path(tempfile.mkdtemp(prefix="likewise-")))
        # Of several processes that start at once, one converts and the others use what it made.
        with FileLock(home / "lock"):
            try:
                return open_kept(home)
            except DamagedCache:
                return _convert(folder, auto_class, segments, probes, home)


def _convert(
    folder: Path,
    auto_class: str,
    segments: bool,
    probes: Callable[[], Sequence[InputBatch]],
    home: Path,
) -> LogitsRuntime:
    """Convert the model, compare it with torch, and keep it if they agree.

    Raises:
        Refused: They do not, or it cannot be converted.
    """
    from secrets import token_hex

    from likewise.embedder.heads.conversion import convert
    from likewise.embedder.runtimes.openvino import Refused, compile_model, keep, refuse

    reference = load_torch(folder, auto_class, segments=segments, device=None)
    batches = list(probes())
    # A folder of its own: another process may have the files of the last one mapped into memory.
    generation = home / token_hex(4)
    try:
        convert(reference.model, batches[0], generation, segments=segments)
    except EncoderError as error:
        reason = error.message.splitlines()[0]
    else:
        off = float("inf")
        for precision, limit in _PRECISIONS:
            candidate: Any = compile_model(generation, precision)
            off = difference(reference, candidate, batches)
            if off <= limit:
                keep(candidate, generation, precision, 1 - off)
                kept: LogitsRuntime = candidate
                return kept
        reason = f"in OpenVINO its logits differ from torch by {off:.1%}"
    refuse(home, reason)
    raise Refused(reason)
