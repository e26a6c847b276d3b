import pytest
import sentencepiece

from keras_arch.text.sentence_piece_model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    append_control,
    make_control,
    make_model,
)

pytestmark = pytest.mark.once


def pieces(processor):
    return [
        (processor.id_to_piece(i), processor.get_score(i), processor.is_control(i))
        for i in range(processor.get_piece_size())
    ]


def test_only_the_named_pieces_change(tokenizers):
    model = tokenizers["unigram"].model
    before = pieces(sentencepiece.SentencePieceProcessor(model_proto=model))
    changed = make_control(model, {300, 3000})
    after = pieces(sentencepiece.SentencePieceProcessor(model_proto=changed))
    expected = [(*row[:2], row[2] or i in (300, 3000)) for i, row in enumerate(before)]
    assert after == expected
    assert make_control(model, set()) == model


def test_long_pieces_keep_their_length():
    # A field of 126 bytes, length in one byte, becomes one of 128, length in two bytes.
    content = b"\x0a\x7c" + b"a" * 124
    changed = make_control(b"\x0a\x7e" + content, {0})
    assert changed == b"\x0a\x80\x01" + content + b"\x18\x03"


def test_control_symbols_come_behind_the_pieces(tokenizers):
    model = tokenizers["bpe"].model
    names = ["<x>", "\u4e2d" * 200]
    before, after = (
        pieces(sentencepiece.SentencePieceProcessor(model_proto=content))
        for content in (model, append_control(model, names))
    )
    assert after == [*before, *((name, 0.0, True) for name in names)]


def test_a_model_is_read_as_it_was_made():
    rows = [("<u>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("\u2581\u4e2d", -1.5, NORMAL)]
    rows += [(f"<0x{byte:02X}>", -float(2**24), BYTE) for byte in range(256)]
    trainer = {"model_type": 1, "vocab_size": 259, "byte_fallback": True, "unk_piece": "<u>"}
    normalizer = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=make_model(rows, trainer, normalizer)
    )
    assert pieces(processor) == [(name, score, kind == CONTROL) for name, score, kind in rows]
    assert processor.unk_id() == 0
    assert processor.encode(" \u4e2dA ") == [2, 3 + ord("A"), 3 + 0xE2, 3 + 0x96, 3 + 0x81]
    prefixed = make_model(rows, trainer, normalizer | {"add_dummy_prefix": True})
    assert sentencepiece.SentencePieceProcessor(model_proto=prefixed).encode("\u4e2d") == [2]


@pytest.mark.parametrize("wrong", [b"\x0a", b"\x0a\x05abc", b"\x08\x01", b"\xff\xff"])
def test_what_is_no_model_is_refused(wrong):
    with pytest.raises(ValueError, match="a SentencePiece model is needed"):
        make_control(wrong, {0})
