"""What is kept between runs: used when sound, made again when not, and never trusted blindly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.embedder.encoder import Encoder
from likewise.embedder.runtimes import openvino as runtime

TEXTS = ["How do I rotate a signing key?", "如何輪換簽署金鑰？"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentence_model: Callable[..., Path]) -> Path:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return sentence_model("bert")


def kept(tmp_path: Path, pattern: str) -> Path:
    [path] = (tmp_path / "cache").rglob(pattern)
    return path


def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Generations made from here on."""
    from likewise.embedder.runtimes import convert

    made: list[Path] = []
    original = convert.convert

    def spy(model: object, example: object, generation: Path, **options: bool) -> None:
        made.append(generation)
        original(model, example, generation, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(convert, "convert", spy)
    return made


def test_the_second_start_converts_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversions(monkeypatch)
    first = Encoder.load(model).encode_passages(TEXTS)
    second = Encoder.load(model).encode_passages(TEXTS)
    assert len(made) == 1
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("compiled.blob", "flip"),
        ("compiled.blob", "cut"),
        ("manifest.json", "cut"),
        ("model.bin", "flip"),
        ("model.bin", "delete"),
        ("model.xml", "cut"),
        ("tokenizer.json", "flip"),
        ("tokenizer.json", "cut"),
        ("tokenizer-settings.json", "delete"),
    ],
)
def test_damage_is_mended(
    name: str, damage: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Encoder.load(model).encode_passages(TEXTS)
    path = kept(tmp_path, name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    # A new file in place of the old one, as a disk fault or a restored backup leaves it.
    path.unlink()
    if damage != "delete":
        path.write_bytes(bytes(content) if damage == "flip" else bytes(content[: len(content) // 3]))
    np.testing.assert_allclose(Encoder.load(model).encode_passages(TEXTS), expected, atol=1e-3)
    assert kept(tmp_path, name).stat().st_size > len(content) // 2
    made = conversions(monkeypatch)
    Encoder.load(model)
    assert made == []  # sound again


def test_a_touched_file_is_checked_by_content_not_made_again(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Encoder.load(model)
    made = conversions(monkeypatch)
    os.utime(kept(tmp_path, "model.bin"), (1, 1))
    Encoder.load(model)
    assert made == []


def test_a_compiled_model_of_something_else_is_made_again(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound by its checksum, yet OpenVINO does not take it."""
    Encoder.load(model)
    manifest = kept(tmp_path, "manifest.json")
    blob = kept(tmp_path, "compiled.blob")
    blob.unlink()
    blob.write_bytes(b"not a model at all")
    content = json.loads(manifest.read_text())
    content["files"]["compiled.blob"] = [18, blob.stat().st_mtime_ns, runtime.sha256_of(blob)]
    manifest.write_text(json.dumps(content))
    made = conversions(monkeypatch)
    assert Encoder.load(model).runtime.startswith("openvino")
    assert len(made) == 1
    assert len(list(manifest.parent.glob("*/model.xml"))) == 1


def test_disagreement_falls_back_to_torch_and_says_so(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.embedder import prepare

    monkeypatch.setattr(prepare, "parity", lambda *_: 0.98)
    made = conversions(monkeypatch)
    with pytest.warns(UserWarning, match=r"runs in torch, which is slower: .*cosine 0\.9800"):
        encoder = Encoder.load(model)
    assert encoder.runtime == "torch cpu float32"
    assert len(encoder.notices) == 1
    assert len(made) == 2  # fused attention, then written out
    # The finding is kept, the useless files are not.
    with pytest.warns(UserWarning, match="runs in torch"):
        Encoder.load(model)
    assert len(made) == 2
    assert not list((tmp_path / "cache").rglob("model.bin"))
    from likewise.errors import EncoderError

    with pytest.raises(EncoderError, match="openvino runtime cannot run"):
        Encoder.load(model, runtime="openvino")


def test_float32_where_bfloat16_is_not_enough(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.embedder import prepare

    figures = iter([0.9996, 0.99999])
    monkeypatch.setattr(prepare, "parity", lambda *_: next(figures))
    assert Encoder.load(model).runtime == "openvino cpu float32"
    assert Encoder.load(model).runtime == "openvino cpu float32"


def test_a_cache_that_cannot_be_written(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the way")
    monkeypatch.setenv("LIKEWISE_CACHE", str(blocked))
    with pytest.warns(UserWarning, match="cannot write to .*a-file.*LIKEWISE_CACHE"):
        encoder = Encoder.load(model)
    assert encoder.runtime.startswith("openvino")
    assert encoder.encode_passages(TEXTS).shape == (2, 32)


def test_another_model_at_the_same_path(
    model: Path, monkeypatch: pytest.MonkeyPatch, sentence_model: Callable[..., Path]
) -> None:
    before = Encoder.load(model)
    shutil.copytree(sentence_model("bert", "cls"), model, dirs_exist_ok=True)
    after = Encoder.load(model)
    assert after.fingerprint != before.fingerprint
    assert after.pooling == ("cls",)


_OFFLINE = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("a socket was opened")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from likewise.embedder import load_encoder
encoder = load_encoder()
print(encoder.encode_queries(["rotate a key"]).shape)
heavy = {"torch", "transformers", "sentence_transformers", "huggingface_hub", "openvino_telemetry"}
print(sorted(heavy & {name for name, module in sys.modules.items() if module is not None}))
"""


def test_nothing_leaves_the_machine_or_enters_the_home_folder(tmp_path: Path) -> None:
    """With sockets forbidden and an empty home, both making and using the kept model."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CACHE_HOME": str(tmp_path / "xdg"),
        "LIKEWISE_CACHE": str(tmp_path / "cache"),
    }
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        environment.pop(name, None)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _OFFLINE], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert outputs[0][0] == "(1, 384)"
    assert "openvino_telemetry" not in outputs[0][1]
    assert outputs[1] == ["(1, 384)", "[]"]
    assert list(home.iterdir()) == []


def test_openvino_is_left_as_others_expect_it(model: Path) -> None:
    program = f"""
import sys
from likewise.embedder.encoder import Encoder
Encoder.load({str(model)!r}).encode_queries(["a"])
import openvino
assert "openvino_telemetry" not in sys.modules
assert "openvino.tools.ovc" not in sys.modules or sys.modules["openvino.tools.ovc"] is not None
assert callable(openvino.convert_model)
"""
    Encoder.load(model)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_type_table_is_filled_before_any_thread_infers() -> None:
    """OpenVINO fills it behind a guard that two first inferences at once deadlock on."""
    asked = []

    class Node:
        def get_any_name(self) -> str:
            return "input_ids"

        def get_element_type(self) -> Node:
            return self

        def to_dtype(self) -> None:
            asked.append(self)

        def to_string(self) -> str:
            return "f32"

    class Compiled:
        inputs = (Node(),)
        outputs = (Node(),)

        def get_property(self, name: str) -> Any:
            return 2 if name == "NUM_STREAMS" else Node()

    assert runtime.OpenVinoRuntime(Compiled()).concurrency == 2
    assert asked == [*Compiled.inputs, *Compiled.outputs]
