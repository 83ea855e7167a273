"""The version, in a module that imports nothing, so that every part may ask. `pyproject.toml` agrees."""

__version__ = "0.1.0"
