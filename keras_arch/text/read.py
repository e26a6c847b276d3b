"""Reading the tokenizer of a Hugging Face folder as one of ours."""

from __future__ import annotations

import os
from pathlib import Path

from keras_arch.text.byte_pair import (
    MERGES_FILE,
    VOCABULARY_FILE,
    BytePairTokenizer,
    parse_merges,
)
from keras_arch.text.files import read_json, split_lines
from keras_arch.text.folder import SETTINGS_FILE
from keras_arch.text.marian_folder import SPM_FILES, read_marian
from keras_arch.text.named_tokens import (
    ADDED_FILE,
    CONFIG_FILE,
    MAP_FILE,
    NamedTokens,
    read_named_tokens,
)
from keras_arch.text.sentence_piece import (
    SentencePieceTokenizer,
    load_processor,
    model_pieces,
    named_by,
)
from keras_arch.text.sentence_piece_json import build_model
from keras_arch.text.sentence_piece_model import append_control
from keras_arch.text.tokenizer import Tokenizer
from keras_arch.text.tokenizer_json import (
    byte_pair_options,
    check_post_processor,
    merge_pairs,
    model_type,
    tokens_by_id,
    word_piece_options,
)
from keras_arch.text.word_piece import VOCABULARY_FILE as PIECES_FILE
from keras_arch.text.word_piece import WordPieceTokenizer

MODEL_FILES = ("spiece.model", "tokenizer.model")
#: All that is read, where it is there.
FILES = (
    SETTINGS_FILE,
    *MODEL_FILES,
    PIECES_FILE,
    VOCABULARY_FILE,
    MERGES_FILE,
    CONFIG_FILE,
    MAP_FILE,
    ADDED_FILE,
)
# What their files mean without a tokenizer.json.
WORD_PIECE_KINDS = ("bert", "distilbert", "electra")
BYTE_PAIR_KINDS = ("gpt2", "roberta", "bart")
SENTENCE_PIECE_KINDS = ("t5", "mt5", "llama", "mistral")
T5_SENTINELS, MOST_SENTINELS = 100, 10_000


def read_tokenizer(
    folder: str | os.PathLike, vocabulary_size: int | None = None, side: str = "target"
) -> Tokenizer:
    """Reads the tokenizer of a Hugging Face folder as one of ours.

    It reads `tokenizer.json` of WordPiece (as BERT's) or byte pairs (as GPT-2's, RoBERTa's, LLaMA
    3's, Qwen2's); or a SentencePiece model, `spiece.model` or `tokenizer.model` (as T5's, LLaMA
    2's), or else its copy in `tokenizer.json` (also as XLM-RoBERTa's); or `vocab.txt`; or
    `vocab.json` and `merges.txt`. Special tokens are those of `tokenizer.json`,
    `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`, and other added
    tokens with names like `<tool_call>`. Or it reads `source.spm` or `target.spm` and `vocab.json`
    of Marian's, where languages as `>>de<<` are special tokens and a target begins with the pad.

    `encode(text)` gives the ids of the `tokenizers` package without the special tokens around a
    text, and `encode(text, parse_special=True)` those that it finds in a text by default. A
    SentencePiece model gives the ids of the `sentencepiece` package, which it was trained with. The
    copies in `transformers` differ: T5's at U+0085 and where marks follow a character that is
    normalized, LLaMA's, by version 5, for a text that begins with a space. Without the model's file
    it is made of its copy in `tokenizer.json`: byte pairs with the ids of `tokenizers`, Unigram
    but for those of T5's differences. Padding, truncation and the decoder are not read.

    Args:
        folder: The folder. Nothing in it is executed.
        vocabulary_size: Of the model, if the tokenizer must have as many tokens: models are padded,
            T5's from 32,100 to 32,128. `<|unused_32100|>` and so on take these ids.
        side: Of a Marian translator, which has two: `"source"` or `"target"`. Others have one for
            both.

    Returns:
        A `WordPieceTokenizer`, `BytePairTokenizer`, `SentencePieceTokenizer` or `MarianTokenizer`.

    Raises:
        ValueError: If there is no such file, one is damaged, two contradict each other, or one
            asks for what our tokenizers do not do; names it.
    """
    if side not in SPM_FILES:
        raise ValueError(f"side must be one of {[*SPM_FILES]}; received side={side!r}.")
    folder = Path(folder)
    content = read_json(folder / SETTINGS_FILE) if (folder / SETTINGS_FILE).exists() else None
    try:
        named = read_named_tokens(folder, (content or {}).get("added_tokens", ()))
        if content is None and (folder / SPM_FILES[side]).exists():
            return read_marian(folder, named, vocabulary_size, side)
        return _read(folder, content, named, vocabulary_size)
    except ValueError as error:
        raise ValueError(f"{folder} holds no tokenizer that can be read here: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:  # JSON may hold anything.
        raise ValueError(
            f"{folder} holds no tokenizer that can be read here: its JSON files must hold values "
            f"of the types that transformers writes; received others ({error!r})."
        ) from error


def _read(folder: Path, content: dict | None, named: NamedTokens, size: int | None) -> Tokenizer:
    kind = model_type(content) if content is not None else None
    if kind == "WordPiece":
        return _word_piece_of_json(content, named, size)
    if kind == "BPE":
        return _byte_pair_of_json(content, named, size)
    if kind not in (None, "SentencePiece"):
        raise ValueError(f"{SETTINGS_FILE} must have a known model; received a {kind} model.")
    models = [folder / name for name in MODEL_FILES if (folder / name).exists()]
    if models:
        return _sentence_piece(models[0].read_bytes(), content, named, size)
    if kind:
        return _sentence_piece_of_json(content, named, size)
    if (folder / PIECES_FILE).exists():
        return _word_piece(split_lines((folder / PIECES_FILE).read_bytes()), named, size)
    if (folder / VOCABULARY_FILE).exists() and (folder / MERGES_FILE).exists():
        merges = parse_merges((folder / MERGES_FILE).read_bytes())
        return _byte_pair(read_json(folder / VOCABULARY_FILE), merges, named, size)
    raise ValueError(
        f"it must hold {SETTINGS_FILE}, one of {MODEL_FILES}, {PIECES_FILE}, or {VOCABULARY_FILE} "
        f"and {MERGES_FILE}; received none of them."
    )


def _word_piece_of_json(content, named, size):
    options = word_piece_options(content)
    written = {
        "do_lower_case": options["lowercase"],
        "tokenize_chinese_chars": options["part_ideographs"],
        "strip_accents": options["strip_accents"],
    }
    named.refuse(**{name: (value,) for name, value in written.items()})
    unknown = content["model"]["unk_token"]
    if named.roles.setdefault("unknown", unknown) != unknown:
        raise ValueError(
            f"{SETTINGS_FILE} must have the unknown token of {CONFIG_FILE}, "
            f"{named.roles['unknown']!r}; received {unknown!r}."
        )
    return _make_word_piece(tokens_by_id(content["model"]["vocab"]), named, options, size)


def _word_piece(vocabulary, named, size):
    named = named._replace(kind=named.kind or "bert")
    _check_kind(named, WORD_PIECE_KINDS)
    named.refuse(do_basic_tokenize=(True,), never_split=([],))
    options = {
        "lowercase": named.config.get("do_lower_case", True),
        "strip_accents": named.config.get("strip_accents"),
        "part_ideographs": named.config.get("tokenize_chinese_chars", True),
    }
    return _make_word_piece(vocabulary, named, options, size)


def _make_word_piece(vocabulary, named, options, size):
    # White space before a special token is lost in any case.
    tokens, special_tokens = named.complete(vocabulary, True, size)
    return WordPieceTokenizer(tokens, special_tokens, **options)


def _byte_pair_of_json(content, named, size):
    options, model = byte_pair_options(content), content["model"]
    return _make_byte_pair(model["vocab"], merge_pairs(model["merges"]), named, options, size)


def _byte_pair(vocabulary, merges, named, size):
    _check_kind(named, BYTE_PAIR_KINDS)
    return _make_byte_pair(vocabulary, merges, named, {}, size)


def _make_byte_pair(vocabulary, merges, named, options, size):
    named.refuse(add_prefix_space=(False,))
    tokens, special_tokens = named.complete(
        tokens_by_id(vocabulary), options.get("composes", False), size
    )
    ids = {token: i for i, token in enumerate(tokens)}
    return BytePairTokenizer(
        ids, merges, special_tokens, takes_space=named.taking_space(), **options
    )


def _sentence_piece_of_json(content, named, size):
    model, scheme = build_model(content, named.special, named.roles.get("unknown"))
    named.refuse(add_prefix_space=(scheme != "never",))
    return _make_sentence_piece(model, named, [], size, scheme)


def _sentence_piece(model, content, named, size):
    if named.kind is not None:
        _check_kind(named, SENTENCE_PIECE_KINDS)
    named.refuse(add_prefix_space=(True,))
    pieces = model_pieces(load_processor(model))
    if content is not None:
        _check_copy(content, pieces, named)
    sentinels = []
    if named.kind == "t5" and max(named.added, default=0) < len(pieces):
        count = named.config.get("extra_ids", T5_SENTINELS)
        if count not in range(MOST_SENTINELS + 1):
            raise ValueError(
                f"extra_ids must be a number of 0 to {MOST_SENTINELS}; received {count!r}."
            )
        sentinels = [f"<extra_id_{i}>" for i in reversed(range(count))]
    return _make_sentence_piece(model, named, sentinels, size)


def _make_sentence_piece(model, named, sentinels, size, prepend_scheme=None):
    processor = load_processor(model)
    pieces = model_pieces(processor)
    if named.taking_space() and processor.normalize("a  ") != processor.normalize("a"):
        raise ValueError(
            "added tokens must leave the white space before them to a model that keeps it; "
            f"received {named.taking_space()} with lstrip."
        )
    control = [piece for i, piece in enumerate(pieces) if processor.is_control(i)]
    named = named._replace(
        roles=named_by(processor) | named.roles, special=[*named.special, *control, *sentinels]
    )
    tokens, special_tokens = named.complete([*pieces, *sentinels], True, size)
    model = append_control(model, tokens[len(pieces) :])
    return SentencePieceTokenizer(model, special_tokens, prepend_scheme)


def _check_copy(content, pieces, named):
    """Raises ValueError if a `tokenizer.json` is not of the SentencePiece model beside it."""
    check_post_processor(content.get("post_processor"))
    written = content["model"]["vocab"]
    written = (
        tokens_by_id(written) if isinstance(written, dict) else [piece for piece, _ in written]
    )
    added = {fields["content"] for fields in named.added.values()}
    if written[: len(pieces)] != pieces or not {*written[len(pieces) :]} <= added:
        raise ValueError(
            f"{SETTINGS_FILE} must hold the pieces of the SentencePiece model beside it and added "
            f"tokens; received {len(written)} others, {len(pieces)} in the model."
        )


def _check_kind(named, kinds):
    if named.kind not in kinds:
        raise ValueError(
            "tokenizer_class, or else the model_type in config.json, must be one of "
            f"{kinds} where {SETTINGS_FILE} does not say more; received {named.kind!r}."
        )
