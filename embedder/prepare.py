"""Brings a model into a form that starts fast, once, and opens that form ever after.

The order of attempts: the kept OpenVINO model; converting it now; torch. What cannot be kept, because the
cache cannot be written, still works and is said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from likewise.embedder.batching import Batch, pad
from likewise.embedder.cache import CACHE_VARIABLE, cache_root, writable
from likewise.embedder.runtimes.base import Runtime, parity
from likewise.embedder.spec import ModelSpec
from likewise.embedder.tokenizer import TextTokenizer, prepare_tokenizer
from likewise.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from likewise.embedder.runtimes.openvino import Precision
    from likewise.embedder.runtimes.torch import Attention

RuntimeName = Literal["auto", "openvino", "torch"]

# Cosine similarity to torch that every probe text must reach. Above it, rankings differ in ties at most.
PARITY = 0.9995
# What to try, fastest first. bfloat16 is held to more, as float32 is at hand if it falls short.
_PRECISIONS: tuple[tuple[Precision, float], ...] = (("fastest", 0.9999), ("f32", PARITY))

_LONG_PROBE = 512
_PROBES = (
    "",
    "a",
    "How do I rotate a signing key?",
    "The quick brown fox jumps over the lazy dog, and 1,234.5 other things happened in 1999.",
    "如何輪換簽署金鑰？敏捷的棕色狐狸跳過懶狗。",
    "def rotate(key: Key, *, now: datetime) -> Key:\n    return replace(key, issued=now)",
    "emoji 🗝️ und Umlaute äöü, مرحبا بالعالم, naïve café",
)


class Workshop:
    """Where the prepared form of one model is kept, and where it is made when that cannot be written to.

    Args:
        kept: Its folder in the cache.
    """

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.notices: list[str] = []
        self._temporary: Path | None = None

    def writable(self, name: str) -> Path:
        """The folder of that name, created; a temporary one where the cache cannot be written to."""
        if self._temporary is None:
            if writable(self.kept / name):
                return self.kept / name
            import tempfile
            from shutil import rmtree
            from weakref import finalize

            self._temporary = Path(tempfile.mkdtemp(prefix="likewise-"))
            finalize(self, rmtree, self._temporary, ignore_errors=True)
            self.notices.append(
                f"cannot write to {self.kept}: the encoder is prepared anew each time; set {CACHE_VARIABLE}"
            )
        folder = self._temporary / name
        folder.mkdir(exist_ok=True)
        return folder


class Prepared(NamedTuple):
    """A model ready to run.

    Attributes:
        tokenizer: Its tokenizer.
        runtime: What computes its vectors.
        workshop: Holds files that could not be kept for as long as they are needed, and what a person should
            know about that.
    """

    tokenizer: TextTokenizer
    runtime: Runtime
    workshop: Workshop


def prepare(spec: ModelSpec, fingerprint: str, *, runtime: RuntimeName, device: str | None) -> Prepared:
    """Open the prepared form of a model, making it first where there is none.

    Args:
        spec: The model.
        fingerprint: Its fingerprint, the key in the cache.
        runtime: `"openvino"` and `"torch"` are meant as orders; `"auto"` is OpenVINO for the CPU, and torch
            where OpenVINO does not give the same vectors or another device is asked for.
        device: As for `torch_device`, None for the CPU.

    Raises:
        UsageError: The runtime does not exist or cannot use the device.
        EncoderError: The model cannot be loaded, or not by the runtime that was ordered.
    """
    if runtime not in ("auto", "openvino", "torch"):
        raise UsageError(f"expected runtime auto, openvino or torch, found {runtime!r}")
    if runtime == "openvino" and device not in (None, "cpu"):
        raise UsageError(
            f"the openvino runtime computes on the CPU, not on {device}", remedy="use runtime torch"
        )
    if spec.static and (runtime != "auto" or device not in (None, "cpu", "auto")):
        raise UsageError(
            f"{spec.name} is a table of token vectors, which runs on the CPU without {runtime}",
            remedy="use runtime auto and the CPU",
        )
    workshop = Workshop(cache_root() / "encoders" / fingerprint[:32])
    tokenizer = _open_tokenizer(spec, workshop)
    if spec.static:
        from likewise.embedder.runtimes.static import StaticRuntime, load_table

        return Prepared(tokenizer, StaticRuntime(load_table(spec), spec.truncate_dimension), workshop)
    on_cpu = device in (None, "cpu")
    if runtime == "torch" or not on_cpu or (spec.foreign and runtime == "auto"):
        return Prepared(tokenizer, _torch_runtime(spec, device), workshop)
    if spec.foreign:
        raise EncoderError(
            f"the openvino runtime cannot run parts of {spec.name}: {', '.join(spec.foreign)}",
            remedy="use runtime auto or torch",
        )
    from likewise.embedder.runtimes.openvino import Refused

    try:
        made = open_or_make(workshop, lambda home: _convert(spec, tokenizer, home))
        return Prepared(tokenizer, made, workshop)
    except Refused as refusal:
        if runtime == "openvino":
            raise EncoderError(
                f"the openvino runtime cannot run {spec.name}: {refusal}", remedy="use runtime auto or torch"
            ) from refusal
        workshop.notices.append(f"{spec.name} runs in torch, which is slower: {refusal}")
        return Prepared(tokenizer, _torch_runtime(spec, device), workshop)


def _open_tokenizer(spec: ModelSpec, workshop: Workshop) -> TextTokenizer:
    try:
        return TextTokenizer.load(workshop.kept, max_tokens=spec.max_tokens)
    except EncoderError:
        folder = workshop.writable("")
        if spec.static:
            from likewise.embedder.runtimes.static import prepare_static_tokenizer

            prepare_static_tokenizer(spec, folder)
        else:
            prepare_tokenizer(spec, folder)
        return TextTokenizer.load(folder, max_tokens=spec.max_tokens)


def _torch_runtime(spec: ModelSpec, device: str | None) -> Runtime:
    from likewise.embedder.devices import torch_device

    place = torch_device(device)
    if spec.foreign:
        from likewise.embedder.runtimes.foreign import ForeignRuntime

        return ForeignRuntime(spec, place)
    from likewise.embedder.runtimes.torch import TorchRuntime, load_model

    return TorchRuntime(load_model(spec), place)


def open_or_make(workshop: Workshop, make: Callable[[Path], Runtime]) -> Runtime:
    """The kept OpenVINO model, or a new one where there is none that is sound.

    Args:
        workshop: Where it is kept.
        make: Converts the model into the given folder and keeps it there.

    Raises:
        Refused: OpenVINO cannot run the model, or not with the same result.
    """
    from likewise.embedder.runtimes.openvino import DamagedCache, cache_key, open_kept

    key = cache_key()
    try:
        return open_kept(workshop.kept / key)
    except DamagedCache:
        from filelock import FileLock

        home = workshop.writable(key)
        # Of several processes that start at once, one converts and the others use what it made.
        with FileLock(home / "lock"):
            try:
                return open_kept(home)
            except DamagedCache:
                return make(home)


def _convert(spec: ModelSpec, tokenizer: TextTokenizer, home: Path) -> Runtime:
    """Convert the model, compare it with torch, and keep it if they agree.

    Raises:
        Refused: They do not, or it cannot be converted.
    """
    from secrets import token_hex

    from likewise.embedder.devices import torch_device
    from likewise.embedder.runtimes.convert import convert
    from likewise.embedder.runtimes.openvino import Refused, compile_model, keep, refuse
    from likewise.embedder.runtimes.torch import TorchRuntime, load_model

    reference = TorchRuntime(load_model(spec), torch_device(None))
    batches = probe_batches(spec, tokenizer)
    inputs = ["input_ids", "attention_mask", *([] if spec.include_prompt else ["pooling_mask"])]
    # With fused attention, OpenVINO makes NaN of padding that may attend to nothing: local attention has it.
    reason = ""
    attempts: tuple[Attention, ...] = ("fused", "written out")
    for attention in attempts:
        model = reference.model if attention == "fused" else load_model(spec, attention=attention)
        # A folder of its own: another process may have the files of the last one mapped into memory.
        generation = home / token_hex(4)
        try:
            convert(model, batches[0], generation, inputs=inputs)
        except EncoderError as error:
            reason = str(error).splitlines()[0]
            continue
        for precision, threshold in _PRECISIONS:
            candidate = compile_model(generation, precision)
            lowest = parity(reference, candidate, batches)
            if lowest >= threshold:
                keep(candidate, generation, precision, lowest)
                return candidate
        reason = f"in OpenVINO its vectors differ from torch (cosine {lowest:.4f}, expected {PARITY} or more)"
    refuse(home, reason)
    raise Refused(reason)


def probe_batches(spec: ModelSpec, tokenizer: TextTokenizer) -> list[Batch]:
    """Inputs on which runtimes are compared: padded and not, short and as long as the model takes."""
    prompted = [
        f"{prompt}{text}" for prompt in {spec.prompts.query, spec.prompts.passage} for text in _PROBES
    ]
    rows = [row.ids for row in tokenizer.rows(prompted)]
    [long] = tokenizer.rows([" ".join(_PROBES) * (1 + _LONG_PROBE // 64)])
    longest = long.ids[: min(_LONG_PROBE, tokenizer.max_tokens)]
    unpooled = 0 if spec.include_prompt else tokenizer.prompt_length(spec.prompts.passage)

    def batch(*ids: list[int]) -> Batch:
        return pad(ids, pad_id=tokenizer.pad_id, unpooled=unpooled)

    return [batch(*rows), *(batch(row) for row in rows[:3]), batch(longest, rows[2]), batch(longest)]
