"""Text -> vectors, and everything that trains an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

__all__ = ["load_encoder"]


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
    if name is not None and (name == "hash" or name.startswith("hash:")):
        from likewise.embedder.hash_encoder import HashEncoder

        return HashEncoder.from_name(name)
    from likewise.embedder.encoder import Encoder

    return Encoder.load(name)
