"""Text -> vectors, and everything that trains an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

__all__ = ["encoder_identity", "load_encoder"]


def load_encoder(name: str | None = None) -> TextEncoder:
    """The encoder that a name stands for; the one place where names become encoders.

    Args:
        name: A model directory, a hub id, `hash` or `hash:DIMENSION` for the model-free double, or None for
            the default encoder.

    Raises:
        EncoderNotFound: Nothing is known under this name.
        EncoderError: The model is there but cannot be used.

    Example:
        >>> load_encoder("hash").dimension
        64
    """
    # Imported here: a command that needs no encoder must not pay for one.
    if _is_hash(name):
        from likewise.embedder.hash_encoder import HashEncoder

        return HashEncoder.from_name(str(name))
    from likewise.embedder.encoder import Encoder

    return Encoder.load(name)


def encoder_identity(name: str | None = None) -> str:
    """Fingerprint of the encoder that a name stands for, without loading it.

    Digests of its files are remembered, so that this takes milliseconds from the second time on. The hub is
    not asked.

    Args:
        name: As for `load_encoder`.

    Raises:
        EncoderNotFound: Nothing on this machine has this name.
        EncoderError: The model is there but incomplete, or its weights are not the published ones.

    Example:
        >>> encoder_identity("hash") == load_encoder("hash").fingerprint
        True
    """
    if _is_hash(name):
        return load_encoder(name).fingerprint
    from likewise.embedder.fingerprint import fingerprint
    from likewise.embedder.resolve import resolve
    from likewise.embedder.spec import read_spec

    location = resolve(name, offline=True)
    return fingerprint(read_spec(location.directory, location.name), weights_sha256=location.weights_sha256)


def _is_hash(name: str | None) -> bool:
    return name is not None and (name == "hash" or name.startswith("hash:"))
