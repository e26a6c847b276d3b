"""A tokenizer's folder: its settings as JSON, its files, and their checksums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_arch.text.files import read_json, write_bytes, write_json

SETTINGS_FILE = "tokenizer.json"


def write_folder(
    folder: str | os.PathLike, settings: Mapping[str, object], files: Mapping[str, bytes]
) -> None:
    """Writes the files and, last, `tokenizer.json` with the settings and the files' SHA-256."""
    folder = Path(folder)
    for name, content in files.items():
        write_bytes(folder / name, content)
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_json(folder / SETTINGS_FILE, {**settings, "sha256": checksums})


def read_folder(folder: str | os.PathLike, names: Sequence[str]) -> tuple[dict, dict[str, bytes]]:
    """Returns the settings and the contents of the named files.

    Files that someone else wrote need no checksum.

    Raises:
        FileNotFoundError: If `tokenizer.json` or a file is missing.
        ValueError: If `tokenizer.json` is damaged, or a file differs from its checksum.
    """
    folder = Path(folder)
    settings = read_json(folder / SETTINGS_FILE)
    checksums = settings.pop("sha256", {})
    if not isinstance(checksums, dict):
        raise ValueError(
            f"{folder / SETTINGS_FILE} must hold an object under sha256; received {checksums!r}."
        )
    files = {name: (folder / name).read_bytes() for name in names}
    for name, content in files.items():
        received = hashlib.sha256(content).hexdigest()
        if checksums.get(name, received) != received:
            raise ValueError(
                f"{folder / name} is damaged: {SETTINGS_FILE} says SHA-256 {checksums[name]}; "
                f"received {received} ({len(content)} bytes)."
            )
    return settings, files
