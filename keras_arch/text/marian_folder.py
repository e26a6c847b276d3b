"""The two tokenizers of a Marian translator's folder."""

from __future__ import annotations

import re
from pathlib import Path

from keras_arch.text.files import read_json
from keras_arch.text.marian import VOCABULARY_FILE, MarianTokenizer
from keras_arch.text.named_tokens import NamedTokens
from keras_arch.text.tokenizer_json import tokens_by_id

SPM_FILES = {"source": "source.spm", "target": "target.spm"}
TARGET_FILE = "target_vocab.json"
# What language a source is to be translated into, before its text.
LANGUAGE = re.compile(r">>.+<<")


def read_marian(folder: Path, named: NamedTokens, size: int | None, side: str) -> MarianTokenizer:
    """Reads the tokenizer of a side.

    Args:
        folder: With `source.spm`, `target.spm`, `vocab.json` and, where the sides have
            vocabularies of their own, `target_vocab.json`.
        named: What the other files name.
        size: Of the model's vocabulary, or None.
        side: "source" or "target". Marian starts a target from the pad, which is its begin.

    Raises:
        ValueError: If a file is damaged or asks for what is not done here.
    """
    named = named._replace(kind="marian")
    named.refuse(sp_model_kwargs=({},))
    file = VOCABULARY_FILE
    if named.config.get("separate_vocabs") and side == "target":
        # The ids of added tokens are those of the source's vocabulary.
        file, named = TARGET_FILE, named._replace(added={})
    vocabulary = tokens_by_id(read_json(folder / file))
    languages = [token for token in vocabulary if LANGUAGE.fullmatch(token)]
    named = named._replace(special=[*named.special, *languages])
    tokens, special_tokens = named.complete(vocabulary, True, size)
    if side == "target" and "pad" in special_tokens:
        special_tokens.setdefault("begin", special_tokens["pad"])
    model = (folder / SPM_FILES[side]).read_bytes()
    return MarianTokenizer(model, tokens, special_tokens)
