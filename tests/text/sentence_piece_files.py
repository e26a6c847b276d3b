"""Contents of `tokenizer.json` that copy SentencePiece models, by hand."""

import base64
import copy
import io

import sentencepiece

SPACE = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
METASPACE = {
    "type": "Metaspace",
    "replacement": SPACE,
    "prepend_scheme": "always",
    "split": True,
}
WORDS = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}
ESCAPE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPENDED = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, ESCAPE]}
STRIP = {"type": "Strip", "strip_left": False, "strip_right": True}
JOIN = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE}


def charsmap():
    """The precompiled charsmap of T5, of a model that normalizes by the library's default."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b"]), model_writer=model, vocab_size=6, minloglevel=2
    )
    from sentencepiece import sentencepiece_model_pb2

    content = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return base64.b64encode(content.normalizer_spec.precompiled_charsmap).decode()


def unigram(**changes):
    """As T5's."""
    vocabulary = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    vocabulary += [[SPACE, -2.0], ["a", -3.0], [f"{SPACE}a", -4.0], ["ab", -3.5], ["b", -5.0]]
    names = ["<pad>", "</s>", "<unk>"]
    content = {
        "added_tokens": [{"id": i, "content": x, "special": True} for i, x in enumerate(names)],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap()},
        "pre_tokenizer": WORDS,
        "model": {"type": "Unigram", "unk_id": 2, "vocab": vocabulary, "byte_fallback": False},
    }
    return changed(content, changes)


def byte_pairs(**changes):
    """As LLaMA 2's; `ab` is better than `\u2581a`."""
    pieces = ["<unk>", "<s>", *BYTES, SPACE, "a", "b", "ab", f"{SPACE}a", f"{SPACE}ab"]
    merges = [["a", "b"], [SPACE, "a"], [SPACE, "ab"], [f"{SPACE}a", "b"]]
    content = {
        "added_tokens": [
            {"id": i, "content": x, "special": True} for i, x in enumerate(pieces[:2])
        ],
        "normalizer": PREPENDED,
        "pre_tokenizer": None,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
            "merges": merges,
        },
    }
    return changed(content, changes)


def changed(content, changes):
    """The content with changes: `a__b=x` sets `["a"]["b"]`."""
    content = copy.deepcopy(content)
    for path, value in changes.items():
        *outer, last = path.split("__")
        part = content
        for name in outer:
            part = part[name]
        part[last] = value
    return content
