"""Loading a saved tokenizer without knowing its class."""

from __future__ import annotations

import os
from pathlib import Path

from keras_arch.text.byte_pair import BytePairTokenizer
from keras_arch.text.bytes import ByteTokenizer
from keras_arch.text.characters import CharacterTokenizer
from keras_arch.text.code_points import UnicodeTokenizer
from keras_arch.text.files import read_json
from keras_arch.text.folder import SETTINGS_FILE
from keras_arch.text.marian import MarianTokenizer
from keras_arch.text.sentence_piece import SentencePieceTokenizer
from keras_arch.text.tokenizer import Tokenizer
from keras_arch.text.word_piece import WordPieceTokenizer

TOKENIZERS = {
    tokenizer.name: tokenizer
    for tokenizer in (
        CharacterTokenizer,
        ByteTokenizer,
        UnicodeTokenizer,
        BytePairTokenizer,
        WordPieceTokenizer,
        SentencePieceTokenizer,
        MarianTokenizer,
    )
}
# Those that learn `vocabulary_size` tokens: `TRAINABLE[name].train(sources, vocabulary_size)`.
TRAINABLE = {name: cls for name, cls in TOKENIZERS.items() if hasattr(cls, "train")}


def load_tokenizer(folder: str | os.PathLike) -> Tokenizer:
    """Loads the tokenizer that `Tokenizer.save` wrote into a folder.

    Args:
        folder: The folder that holds `tokenizer.json`.

    Returns:
        The tokenizer.

    Raises:
        FileNotFoundError: If the folder has no `tokenizer.json`, or a file that belongs to it is
            missing.
        ValueError: If a file is damaged or names a tokenizer that does not exist.
    """
    path = Path(folder) / SETTINGS_FILE
    name = read_json(path).get("tokenizer")
    if not isinstance(name, str) or name not in TOKENIZERS:
        raise ValueError(
            f"{path} must name a known tokenizer, one of {sorted(TOKENIZERS)}; "
            f"received tokenizer={name!r}."
        )
    return TOKENIZERS[name].load(folder)
