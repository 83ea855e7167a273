"""Runs a model with OpenVINO on the CPU: converted once, kept, and started from the kept files in 0.1 s.

Nothing is sent anywhere: importing openvino usually reports usage and writes to the home folder, so that is
switched off first. Must not import torch or transformers.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.batching import Batch
from likewise.embedder.cache import read_json, write_bytes, write_json
from likewise.embedder.fingerprint import sha256_of
from likewise.embedder.runtimes.signal_stack import kept_signal_stack
from likewise.embedder.spec import JsonObject

Precision = Literal["fastest", "f32"]

MODEL_FILE = "model.xml"
_PRECISIONS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
_FIRST_USE = threading.Lock()
_WEIGHTS, _COMPILED, _MANIFEST = "model.bin", "compiled.blob", "manifest.json"


class DamagedCache(Exception):
    """The kept files are missing, incomplete or not what was written: they are made again."""


class Refused(Exception):
    """OpenVINO cannot run this model, or not with the same result: torch does."""


class OpenVinoRuntime:
    """A model compiled for this CPU.

    Args:
        compiled: An `openvino.CompiledModel`.
    """

    batch_tokens = 2048

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._inputs = [node.get_any_name() for node in compiled.inputs]
        _fill_type_table(compiled)
        self._local = threading.local()
        self.concurrency = max(1, int(compiled.get_property("NUM_STREAMS")))
        precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        self.name = f"openvino cpu {_PRECISIONS.get(precision, precision)}"

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Vectors of the batch's texts, float32 of shape (texts, dimension).

        Each calling thread has an inference request of its own: the queue that OpenVINO offers for this
        corrupts memory when inputs change shape while it is busy (seen in 2026.4).
        """
        request = getattr(self._local, "request", None)
        if request is None:
            request = self._local.request = self._compiled.create_infer_request()
        inputs = {name: getattr(batch, name) for name in self._inputs}
        output = request.infer(inputs, share_inputs=True, share_outputs=True)[0]
        return np.array(output, dtype=np.float32)  # a copy: the request's memory is used again

    def export(self) -> bytes:
        """The compiled model, without its weights."""
        exported = self._compiled.export_model()
        return exported if isinstance(exported, bytes) else bytes(exported.read())


def _fill_type_table(compiled: Any) -> None:
    """Make OpenVINO fill its table of types now, in one thread.

    It is filled at the first inference otherwise, behind a C++ guard that lets go of the interpreter lock on
    the way: two threads whose first inferences met there waited for each other forever (seen in 2026.4).
    """
    with _FIRST_USE:
        for node in (*compiled.inputs, *compiled.outputs):
            node.get_element_type().to_dtype()


def cache_key() -> str:
    """Name of the folder for models converted by this OpenVINO for this kind of CPU."""
    with without_telemetry() as openvino:
        release = re.sub(r"[^\w.]+", "-", openvino.get_version())
    cpu = hashlib.sha256("\n".join([platform.machine(), *_cpu_features()]).encode()).hexdigest()[:8]
    return f"openvino-{release}-{cpu}"


def compile_model(generation: Path, precision: Precision) -> OpenVinoRuntime:
    """Compile a converted model.

    Args:
        generation: The folder that holds `MODEL_FILE` and its weights.
        precision: `"fastest"` is what OpenVINO chooses for this CPU, bfloat16 where it has instructions for
            it.
    """
    with without_telemetry() as openvino:
        return OpenVinoRuntime(
            openvino.Core().compile_model(generation / MODEL_FILE, "CPU", _settings(precision))
        )


def keep(runtime: OpenVinoRuntime, generation: Path, precision: Precision, parity: float) -> None:
    """Publish a compiled model, so that `open_kept` on the folder above `generation` starts it.

    Args:
        runtime: From `compile_model`.
        generation: As given to `compile_model`. Older generations are removed.
        precision: As given to `compile_model`.
        parity: Lowest cosine similarity to torch, kept for people to see.
    """
    write_bytes(generation / _COMPILED, runtime.export())
    files = {}
    for name in (MODEL_FILE, _WEIGHTS, _COMPILED):
        status = (generation / name).stat()
        files[name] = [status.st_size, status.st_mtime_ns, sha256_of(generation / name)]
    # Last, as it vouches for the others.
    write_json(
        generation.parent / _MANIFEST,
        {"generation": generation.name, "precision": precision, "parity": parity, "files": files},
    )
    _remove_generations(generation.parent, but=generation)


def refuse(folder: Path, reason: str) -> None:
    """Keep the finding that the model cannot be run here, so that it is not tried at every start."""
    write_json(folder / _MANIFEST, {"refused": reason})
    _remove_generations(folder)


def open_kept(folder: Path) -> OpenVinoRuntime:
    """Start the model that `keep` published.

    Raises:
        Refused: It was found that OpenVINO cannot run this model as it should.
        DamagedCache: There is none, or its files are not as they were written.
    """
    manifest = read_json(folder / _MANIFEST)
    if "refused" in manifest:
        raise Refused(str(manifest["refused"]))
    generation = _verified(folder, manifest)
    precision: Precision = "f32" if manifest.get("precision") == "f32" else "fastest"
    settings = {**_settings(precision), "WEIGHTS_PATH": str(generation / _WEIGHTS)}
    with without_telemetry() as openvino:
        try:
            blob = (generation / _COMPILED).read_bytes()
            return OpenVinoRuntime(openvino.Core().import_model(blob, "CPU", settings))
        except (OSError, RuntimeError) as error:
            raise DamagedCache(str(error)) from error


def _remove_generations(folder: Path, *, but: Path | None = None) -> None:
    import shutil

    for generation in folder.iterdir():
        if generation.is_dir() and generation != but:
            # Another process may have it mapped, which Windows does not let one delete: then it stays.
            shutil.rmtree(generation, ignore_errors=True)


def _settings(precision: Precision) -> dict[str, Any]:
    settings: dict[str, Any] = {
        # One stream per few cores, each with its own batch: more passages per second than all cores on one.
        "PERFORMANCE_HINT": "THROUGHPUT",
        # Pinned threads of two processes would share one core while another idles.
        "ENABLE_CPU_PINNING": False,
        # The compiled model refers to the weights instead of holding a copy.
        "CACHE_MODE": "OPTIMIZE_SIZE",
    }
    if precision == "f32":
        settings["INFERENCE_PRECISION_HINT"] = "f32"
    return settings


def _verified(folder: Path, manifest: JsonObject) -> Path:
    """The published generation, its files compared with the manifest.

    The size and time of the large ones, since reading them would take longer than a search; their content
    only where these differ.
    """
    try:
        generation = folder / str(manifest["generation"])
        for name in (MODEL_FILE, _WEIGHTS, _COMPILED):
            size, modified, digest = manifest["files"][name]
            status = (generation / name).stat()
            same = [status.st_size, status.st_mtime_ns] == [size, modified]
            # OpenVINO reads the compiled model without checks of its own, and it is small.
            if (not same or name == _COMPILED) and sha256_of(generation / name) != digest:
                raise DamagedCache(f"{generation / name} is not what was written")
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedCache(f"no complete model in {folder}: {error}") from error
    return generation


@contextmanager
def without_telemetry() -> Iterator[ModuleType]:
    """The openvino module, imported so that it cannot find the package that reports usage."""
    with _hidden("openvino_telemetry"), kept_signal_stack():
        if "openvino" in sys.modules:
            import openvino
        else:
            # The converter is half of the import time, and a kept model needs none. Whoever asks for it gets
            # it, from here or elsewhere in the process.
            with _hidden("openvino.tools.ovc"):
                import openvino
            openvino.__getattr__ = _converter
        yield openvino


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """For a while, make `import name` fail as if it were not installed."""
    missing = object()
    before: Any = sys.modules.get(name, missing)
    sys.modules[name] = None  # type: ignore[assignment]  # what makes the import fail
    try:
        yield
    finally:
        if before is missing:
            del sys.modules[name]
        else:
            sys.modules[name] = before


def _converter(name: str) -> Any:
    """`openvino.convert_model`, imported when it is first asked for (PEP 562)."""
    if name != "convert_model":
        raise AttributeError(f"module 'openvino' has no attribute {name!r}")
    with _hidden("openvino_telemetry"):
        from openvino.tools.ovc import convert_model

    return convert_model


def _cpu_features() -> list[str]:
    """What tells one kind of CPU from another as far as compiled code is concerned."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return sorted(line.partition(":")[2].split())
    return [platform.processor()]
