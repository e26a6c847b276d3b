"""Loading a saved tokenizer without knowing its class."""

from __future__ import annotations

import os
from pathlib import Path

from keras_arch.text.byte_pair import BytePairTokenizer
from keras_arch.text.characters import CharacterTokenizer
from keras_arch.text.files import read_json
from keras_arch.text.tokenizer import SETTINGS_FILE, Tokenizer

TOKENIZERS = {
    CharacterTokenizer.name: CharacterTokenizer,
    BytePairTokenizer.name: BytePairTokenizer,
}


def load_tokenizer(folder: str | os.PathLike) -> Tokenizer:
    """Loads the tokenizer that `Tokenizer.save` wrote into a folder.

    Args:
        folder: The folder that holds `tokenizer.json`.

    Returns:
        The tokenizer.

    Raises:
        FileNotFoundError: If the folder has no `tokenizer.json`.
        ValueError: If a file is damaged or names a tokenizer that does not exist.
    """
    path = Path(folder) / SETTINGS_FILE
    name = read_json(path).get("tokenizer")
    if name not in TOKENIZERS:
        raise ValueError(
            f"{path} must name a known tokenizer, one of {sorted(TOKENIZERS)}; "
            f"received tokenizer={name!r}."
        )
    return TOKENIZERS[name].load(folder)
