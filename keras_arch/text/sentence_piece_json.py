"""SentencePiece models made of a `tokenizer.json` that no model's file lies beside."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence

from keras_arch.text.sentence_piece import SPACE, load_processor
from keras_arch.text.sentence_piece_model import (
    BYTE,
    CONTROL,
    MODEL_TYPES,
    NORMAL,
    UNKNOWN,
    make_model,
)
from keras_arch.text.tokenizer_json import (
    BYTE_PAIR_FIELDS,
    check_part,
    check_post_processor,
    merge_pairs,
    refused,
    tokens_by_id,
)

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# White space of Unicode but U+0085, which SentencePiece's own normalizer leaves in texts, too.
WHITE_SPACE = (
    *"\t\n\v\f\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000",
    *map(chr, range(8192, 8203)),
)
ESCAPE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPEND = {"type": "Prepend", "prepend": SPACE}
STRIP = {"type": "Strip", "strip_left": False, "strip_right": True}
NO_SPLIT = {
    "type": "Split",
    "pattern": {"String": " "},
    "behavior": "MergedWithPrevious",
    "invert": False,
}


def build_model(
    content: Mapping, special: Collection[str], unknown: str | None = None
) -> tuple[bytes, str | None]:
    """Makes the SentencePiece model that a `tokenizer.json` of Unigram or byte pairs copies.

    Of a Unigram model the text is normalized as by T5's or XLM-RoBERTa's files: a charsmap, then
    one space before each word. Of byte pairs with bytes for unknown characters the spaces are as
    in LLaMA's or Gemma's. Merges become scores; they must be all that lead to a piece, and in the
    order of the pieces, as SentencePiece's are.

    Args:
        content: The content of the file.
        special: Names of pieces that no text gives.
        unknown: That of the unknown token, where the file names none.

    Returns:
        The model, and the `prepend_scheme` of `SentencePieceTokenizer` that it needs.

    Raises:
        ValueError: If a part does what a SentencePiece model cannot; names it.
    """
    check_post_processor(content.get("post_processor"))
    if content["model"].get("type") == "Unigram":
        return _unigram(content, special), None
    return _byte_pairs(content, special, unknown)


def _unigram(content, special):
    model = content["model"]
    fields = {"type": ("Unigram",), "byte_fallback": (None, False, True)}
    check_part("model", model, fields, ("vocab", "unk_id"))
    pieces = [piece for piece, _ in model["vocab"]]
    if not isinstance(model.get("unk_id"), int) or not 0 <= model["unk_id"] < len(pieces):
        raise refused("model's unk_id", model.get("unk_id"), "the id of a piece")
    inside = [piece for piece in pieces if SPACE in piece.lstrip(SPACE) and piece not in special]
    if inside:
        raise refused("vocab", inside[:3], f"{SPACE} at the beginning of a piece")
    unknown = pieces[model["unk_id"]]
    in_bytes = bool(model.get("byte_fallback"))
    scores = [float(score) for _, score in model["vocab"]]
    rows = _rows(pieces, scores, unknown, special, in_bytes)
    if min(scores) < min((score for _, score, kind in rows if kind == NORMAL), default=0.0):
        # There what is unknown is weighed by the lowest of all scores.
        raise refused("vocab", f"a special one of {min(scores)}", "the lowest score at a piece")
    charsmap = _charsmap(content)
    built = _model("unigram", rows, unknown, in_bytes, charsmap, words=True, prefix=True)
    normalize = load_processor(built).normalize
    kept = [f"U+{ord(x):04X}" for x in WHITE_SPACE if x in normalize(f"a{x}b")]
    if kept:
        raise refused("normalizer", f"one that keeps {kept}", "spaces for all white space")
    return built


def _charsmap(content):
    """Returns the precompiled charsmap of a file whose texts become words after one space each."""
    *first, last = _steps(content.get("pre_tokenizer"), "pretokenizers")
    if _prepend_scheme(last, splits=True) != "always":
        raise refused("pre_tokenizer", last, "with prepend_scheme of 'always'")
    charsmap, *rest = _steps(content.get("normalizer"), "normalizers")
    check_part("normalizer", charsmap, {"type": ("Precompiled",)}, ("precompiled_charsmap",))
    joins = [
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": to} for to in (SPACE, " ")
    ]
    # Words are split at white space; or spaces at the end are taken away, and else joined.
    if first == [{"type": "WhitespaceSplit"}]:
        known = [[], *([join] for join in joins), *([STRIP, join] for join in joins)]
    elif not first:
        known = [[STRIP, joins[0]]]
    else:
        raise refused("pre_tokenizer", first, "WhitespaceSplit and Metaspace, or Metaspace alone")
    if rest not in known:
        raise refused("normalizer", rest, f"Precompiled and then one of {known}")
    return base64.b64decode(charsmap["precompiled_charsmap"] or "")


def _byte_pairs(content, special, unknown):
    model = content["model"]
    fields = {**BYTE_PAIR_FIELDS, "byte_fallback": (True,), "ignore_merges": (None, False)}
    check_part("model", model, fields, ("vocab", "merges", "unk_token", "fuse_unk"))
    pieces = tokens_by_id(model["vocab"])
    unknown = model.get("unk_token") or unknown
    if unknown not in model["vocab"]:
        raise refused("model's unk_token", unknown, "a piece")
    merges = merge_pairs(model["merges"])
    no_text = {*special, unknown, *BYTES}
    ranks = _ranks([piece for piece in pieces if piece not in no_text], merges, {*special, unknown})
    scores = [-float(ranks.get(piece, len(merges))) for piece in pieces]
    rows = _rows(pieces, scores, unknown, special, True)
    scheme = _spaces(content)
    return _model("bpe", rows, unknown, True, b"", False, prefix=scheme is None), scheme


def _spaces(content):
    """Returns the `prepend_scheme` of byte pairs, None where the model itself prepends."""
    normalizer, pre_tokenizer = content.get("normalizer"), content.get("pre_tokenizer")
    if normalizer is None:
        return _prepend_scheme(pre_tokenizer, splits=False)
    steps = _steps(normalizer, "normalizers")
    # Where no space is left to split at, nothing is split.
    if steps not in ([ESCAPE], [PREPEND, ESCAPE]):
        raise refused("normalizer", steps, f"{[ESCAPE]} or {[PREPEND, ESCAPE]}")
    if pre_tokenizer not in (None, NO_SPLIT):
        raise refused("pre_tokenizer", pre_tokenizer, f"None or {NO_SPLIT}")
    return None if len(steps) == 2 else "never"


def _prepend_scheme(part, splits):
    fields = {
        "type": ("Metaspace",),
        "replacement": (SPACE,),
        "prepend_scheme": (None, "always", "first", "never"),
        "split": (None, True) if splits else (False,),
        "str_rep": (None, SPACE),
        "add_prefix_space": (None, True, False),
    }
    check_part("pre_tokenizer", part, fields)
    # Old files say it by `add_prefix_space`.
    default = "never" if part.get("add_prefix_space") is False else "always"
    return part.get("prepend_scheme") or default


def _ranks(pieces: Iterable[str], merges: Sequence[tuple[str, str]], special: Collection[str]):
    """Returns piece to the rank of the first merge that makes it.

    SentencePiece merges any two neighbours that make a piece, the best score first.

    Raises:
        ValueError: If the merges of a piece are not all there, or not one after the other.
    """
    left = [(a, b) for a, b in merges if not {a, b, a + b} & {*special}]
    ranks = {}
    for rank, (a, b) in enumerate(left):
        ranks.setdefault(a + b, {})[a, b] = rank
    known = {*pieces}
    wrong = [piece for piece in ranks if piece not in known]
    for piece in known:
        halves = ((piece[:i], piece[i:]) for i in range(1, len(piece)))
        wanted = {pair for pair in halves if all(len(x) == 1 or x in known for x in pair)}
        found = ranks.get(piece, {})
        if found.keys() != wanted or (
            found and max(found.values()) - min(found.values()) >= len(found)
        ):
            wrong.append(piece)
    if wrong:
        raise refused(
            "merges", f"other merges, of {wrong[:3]}", "for each piece all that make it, in a row"
        )
    return {piece: min(found.values()) for piece, found in ranks.items()}


def _rows(pieces, scores, unknown, special, in_bytes):
    """Returns the pieces of a model with their scores and types."""
    if in_bytes and not {*BYTES} <= {*pieces}:
        raise refused("vocab with byte_fallback", "one without them", "all of <0x00> to <0xFF>")
    types = dict.fromkeys(BYTES, BYTE) if in_bytes else {}
    types |= dict.fromkeys(special, CONTROL) | {unknown: UNKNOWN}
    return [
        (piece, score, types.get(piece, NORMAL))
        for piece, score in zip(pieces, scores, strict=True)
    ]


def _model(kind, rows, unknown, in_bytes, charsmap, words, prefix):
    trainer = {
        "model_type": MODEL_TYPES[kind],
        "vocab_size": len(rows),
        "byte_fallback": in_bytes,
        "unk_id": [piece for piece, _, _ in rows].index(unknown),
        "unk_piece": unknown,
    }
    normalizer = {
        "precompiled_charsmap": charsmap,
        "add_dummy_prefix": prefix,
        "remove_extra_whitespaces": words,
        "escape_whitespaces": True,
    }
    return make_model(rows, trainer, normalizer)


def _steps(part, key):
    return part[key] if part and part.get("type") == "Sequence" else [part]
