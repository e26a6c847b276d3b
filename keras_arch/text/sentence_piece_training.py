"""Training SentencePiece models that lose nothing."""

from __future__ import annotations

import io
import os
import types
from collections.abc import Iterable, Iterator, Mapping

from keras_arch.text.files import training_blocks
from keras_arch.text.special_tokens import check_special_tokens, distinct
from keras_arch.text.subword_training import check_vocabulary_size

ALGORITHMS = ("unigram", "bpe")
LEAST_COVERAGE = 0.98  # The library's bound.
LONGEST_LINE = 2**30  # Bytes; the library drops longer lines.
# SentencePiece's own names, in the order of its ids.
SENTENCE_PIECE_TOKENS = types.MappingProxyType({"unknown": "<unk>", "begin": "<s>", "end": "</s>"})
OPTION_OF_ROLE = {"unknown": "unk", "begin": "bos", "end": "eos", "pad": "pad"}


def train_model(
    sources: Iterable[str | os.PathLike],
    vocabulary_size: int,
    algorithm: str,
    special_tokens: Mapping[str, str],
    character_coverage: float,
) -> bytes:
    """Returns a model's file; see `SentencePieceTokenizer.train`.

    It keeps every character and every space as it is, and spells what is no piece in bytes.
    """
    import sentencepiece

    special_tokens = check_special_tokens(special_tokens)
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {ALGORITHMS}; received {algorithm!r}.")
    if not LEAST_COVERAGE <= character_coverage <= 1:
        raise ValueError(
            f"character_coverage must lie between {LEAST_COVERAGE} and 1; "
            f"received character_coverage={character_coverage}."
        )
    least = 256 + len(distinct(special_tokens)) + 1
    check_vocabulary_size(vocabulary_size, least, "the bytes, the special tokens and a character")
    lines = _lines(training_blocks(sources))
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            model_writer=model,
            model_type=algorithm,
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            character_coverage=character_coverage,
            byte_fallback=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            max_sentence_length=LONGEST_LINE,
            num_threads=1,  # The sums of several threads round otherwise.
            minloglevel=2,
            **_special_options(special_tokens),
        )
    except RuntimeError as error:
        raise ValueError(f"sentencepiece cannot train on these sources: {error}") from error
    return model.getvalue()


def _special_options(special_tokens: Mapping[str, str]) -> dict:
    """Returns the trainer's options for special tokens: ids from 0 on, the unknown token first."""
    unknown = special_tokens.get("unknown", SENTENCE_PIECE_TOKENS["unknown"])
    options = {"bos_id": -1, "eos_id": -1, "pad_id": -1, "unk_id": 0, "unk_piece": unknown}
    named = [unknown]
    for role, name in special_tokens.items():
        if role in OPTION_OF_ROLE and name not in named:
            option = OPTION_OF_ROLE[role]
            options |= {f"{option}_id": len(named), f"{option}_piece": name}
            named.append(name)
    others = [name for name in distinct(special_tokens) if name not in named]
    return {**options, "control_symbols": others}


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    for block in blocks:
        yield from filter(None, block.split("\n"))
