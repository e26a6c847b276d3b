"""What a `tokenizer.json` of the `tokenizers` package says, as far as our tokenizers can do it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from keras_arch.text.byte_pair_words import PATTERNS
from keras_arch.text.word_joiner import CONTINUATION
from keras_arch.text.word_piece import LONGEST_WORD

# They put special tokens around a text, or change where tokens stand, and no id else.
AROUND = ("TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel")
NONE_OR_EMPTY = (None, "")
BYTE_PAIR_FIELDS = {
    "type": (None, "BPE"),
    "dropout": (None, 0.0),
    "continuing_subword_prefix": NONE_OR_EMPTY,
    "end_of_word_suffix": NONE_OR_EMPTY,
}


def model_type(content: Mapping) -> str:
    """Returns the kind of model: "WordPiece", "BPE" (of bytes), "SentencePiece" or another.

    Raises:
        ValueError: If the content is that of another file.
    """
    model = content.get("model")
    if not isinstance(model, Mapping) or "vocab" not in model:
        raise ValueError(
            "tokenizer.json must be a file of the tokenizers package, with a model and its vocab; "
            f"received one with {sorted(content)}. What Tokenizer.save wrote, load_tokenizer reads."
        )
    # Old files do not name it.
    default = "WordPiece" if "max_input_chars_per_word" in model else "BPE"
    kind = model.get("type") or default
    return "SentencePiece" if kind == "Unigram" or model.get("byte_fallback") else kind


def word_piece_options(content: Mapping) -> dict:
    """Returns the options of `WordPieceTokenizer` that a WordPiece model has.

    Raises:
        ValueError: If a part is not BERT's; names it.
    """
    fields = {
        "type": (None, "WordPiece"),
        "continuing_subword_prefix": (CONTINUATION,),
        "max_input_chars_per_word": (LONGEST_WORD,),
    }
    check_part("model", content["model"], fields, ("vocab", "unk_token"))
    own = ("handle_chinese_chars", "strip_accents", "lowercase")
    fields = {"type": ("BertNormalizer",), "clean_text": (True,)}
    check_part("normalizer", content.get("normalizer"), fields, own)
    check_part("pre_tokenizer", content.get("pre_tokenizer"), {"type": ("BertPreTokenizer",)})
    check_post_processor(content.get("post_processor"))
    ideographs, strip_accents, lowercase = (content["normalizer"][name] for name in own)
    return {
        "lowercase": lowercase,
        "strip_accents": strip_accents,
        "part_ideographs": ideographs,
    }


def byte_pair_options(content: Mapping) -> dict:
    """Returns the options of `BytePairTokenizer` that a byte-level BPE model has.

    Raises:
        ValueError: If a part is another than those of GPT-2, LLaMA 3 or Qwen2; names it.
    """
    fields = {
        **BYTE_PAIR_FIELDS,
        "byte_fallback": (None, False),
        "ignore_merges": (None, False, True),
    }
    # With all bytes in the vocabulary nothing is unknown.
    check_part("model", content["model"], fields, ("vocab", "merges", "unk_token", "fuse_unk"))
    normalizer = content.get("normalizer")
    if normalizer is not None:
        check_part("normalizer", normalizer, {"type": ("NFC",)})
    check_post_processor(content.get("post_processor"))
    return {
        "pattern": _pattern(content.get("pre_tokenizer")),
        "whole_words": bool(content["model"].get("ignore_merges")),
        "composes": normalizer is not None,
    }


def check_post_processor(part: Mapping | None) -> None:
    """Raises ValueError for what does more than to put special tokens around a text."""
    parts = [part] if part else []
    if part and part.get("type") == "Sequence":
        parts = part["processors"]
    for each in parts:
        if each.get("type") not in AROUND:
            raise refused("post_processor", each, f"one of {AROUND}")


def _pattern(part):
    """Returns the name of the pattern that a pre-tokenizer splits by."""
    steps = part["pretokenizers"] if part and part.get("type") == "Sequence" else [part]
    name, splits = "gpt2", len(steps) == 2
    if splits:
        fields = {"type": ("Split",), "behavior": ("Isolated",), "invert": (False,)}
        check_part("pre_tokenizer", steps[0], fields, ("pattern",))
        published = {pattern.published: name for name, pattern in PATTERNS.items()}
        regex = steps[0]["pattern"].get("Regex")
        if regex not in published:
            raise refused("pre_tokenizer's pattern", steps[0]["pattern"], f"one of {[*published]}")
        name = published[regex]
    fields = {
        "type": ("ByteLevel",),
        "add_prefix_space": (False,),
        "use_regex": (False,) if splits else (None, True),
    }
    check_part("pre_tokenizer", steps[-1], fields, ("trim_offsets",))
    return name


def check_part(
    name: str, part: Mapping | None, fields: Mapping, free: Collection[str] = ()
) -> None:
    """Raises ValueError if a part has fields of other values, or others than these and `free`."""
    if not isinstance(part, Mapping):
        raise refused(name, part, f"an object of type {fields['type'][-1]}")
    for key in {**dict.fromkeys(fields), **dict.fromkeys(part)}:
        if key not in free and part.get(key) not in fields.get(key, (None,)):
            wanted = f"with {key} of {[*fields[key]]}" if key in fields else f"without {key}"
            raise refused(f"{name} ({part.get('type')})", {key: part.get(key)}, wanted)


def merge_pairs(merges: Sequence[str | Sequence[str]]) -> list[tuple[str, ...]]:
    """Returns the merges of a file; old ones write the two halves in one string."""
    return [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in merges]


def tokens_by_id(vocabulary: Mapping[str, int]) -> list[str]:
    """Returns the tokens of a vocabulary by their ids.

    Raises:
        ValueError: If the ids are not 0 to V - 1.
    """
    tokens = sorted(vocabulary, key=vocabulary.get)
    if [vocabulary[token] for token in tokens] != [*range(len(tokens))]:
        raise ValueError(
            f"the vocabulary must hold each id from 0 to {len(tokens) - 1} once; received "
            f"{len(tokens)} tokens with other ids."
        )
    return tokens


def refused(name: str, part: object, wanted: str) -> ValueError:
    """Returns the error for a part that cannot be done here."""
    return ValueError(
        f"tokenizer.json must have a {name} that can be done here: {wanted}; received {part}."
    )
