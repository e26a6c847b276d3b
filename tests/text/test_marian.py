import io

import pytest
import sentencepiece
import tensorflow as tf

from keras_arch.text import MarianTokenizer
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once

SPECIAL = {"unknown": "<unk>", "end": "</s>"}


@pytest.fixture(scope="module")
def model():
    """A model as others train them: NFKC, spaces joined, a space before the text."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the fox and the hound", "the hound ate the fox"] * 5),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def test_pieces_are_the_models_and_ids_the_vocabularys(model):
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    known = sorted({*library.encode("the fox and the hound", out_type=str)})
    # One is no piece of the model, but what it calls unknown has its name.
    vocabulary = ["</s>", *known, "\u4e2d", "<unk>"]
    tokenizer = MarianTokenizer(model, vocabulary, SPECIAL)
    unknown = vocabulary.index("<unk>")
    texts = [*TEXTS[:300], "  the fox  and", "the hound ate", "\u4e2d", "a\u4e2d\u6587", "</s>"]
    expected = [
        [
            vocabulary.index(piece) if piece in (*known, "\u4e2d") else unknown
            for piece in library.encode(text, out_type=str)
        ]
        for text in texts
    ]
    assert [tokenizer.encode(text) for text in texts] == expected
    assert tokenizer.encode_tensor(tf.constant(texts)).to_list() == expected
    assert tokenizer.encode("\u4e2d")[-1] == unknown - 1
    assert tokenizer.special_ids == {"unknown": unknown, "end": 0}


def test_texts_come_back_without_extra_spaces(model):
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    tokenizer = MarianTokenizer(model, ["<unk>", *pieces, "</s>"], SPECIAL)
    ids = tokenizer.encode("  the   fox ")
    assert tokenizer.decode(ids) == "the fox"
    assert tokenizer.decode_tensor(tf.constant([ids])).numpy()[0] == b"the fox"
    assert tokenizer.decode([*ids, tokenizer.special_ids["end"]]) == "the fox</s>"


def test_bytes_are_spelt(tokenizers):
    tokenizer = tokenizers["marian"]
    text = "\U0001f680 a"
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("vocabulary", "special", "message"),
    [
        (["<unk>", "a", "a"], {"unknown": "<unk>"}, "received 3 tokens of which 2 are distinct"),
        (["<unk>", "a"], SPECIAL, r"received .* \['</s>'\] of which the vocabulary lacks"),
        (["</s>", "a"], {"end": "</s>"}, "one of them unknown; received"),
    ],
)
def test_wrong_arguments_are_refused(model, vocabulary, special, message):
    with pytest.raises(ValueError, match=message):
        MarianTokenizer(model, vocabulary, special)
