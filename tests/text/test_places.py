"""Where tokens stand, against the `tokenizers` package, in Python and inside a graph."""

import pytest
import tensorflow as tf
import tokenizers

from keras_arch.text import ByteTokenizer, WordPieceTokenizer
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once


def reference_of_word_piece(tokenizer):
    """BERT's tokenizer of the `tokenizers` package, with the same pieces."""
    pieces = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    options = {"strip_accents": tokenizer.strip_accents, "lowercase": tokenizer.lowercase}
    bert = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    bert.normalizer = tokenizers.normalizers.BertNormalizer(**options)
    bert.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return bert


def reference_of_byte_pair(tokenizer):
    """RoBERTa's tokenizer of the `tokenizers` package, with the same merges."""
    special = tokenizer.special_tokens.values()
    plain = {token: i for token, i in tokenizer.vocabulary.items() if token not in special}
    roberta = tokenizers.Tokenizer(tokenizers.models.BPE(plain, tokenizer.merges))
    roberta.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return roberta


@pytest.mark.parametrize("lowercase", [False, True])
def test_word_pieces_stand_where_berts_do(word_piece, lowercase):
    tokenizer = WordPieceTokenizer(word_piece.vocabulary, lowercase=lowercase)
    reference = reference_of_word_piece(tokenizer)
    texts = ["Déjà vu, don't!", "a\u4e2d\u6587b \u4e2d", "Ünknown" * 20 + " the", *TEXTS]
    for text in texts:
        expected, found = reference.encode(text), tokenizer.locate(text)
        assert found.token_ids == tokenizer.encode(text) == expected.ids
        assert [*zip(found.starts, found.ends, strict=True)] == expected.offsets, text
        assert found.words == expected.word_ids, text
    assert_same_in_graph(tokenizer, texts)


def test_byte_pairs_stand_where_robertas_do(byte_pair):
    reference = reference_of_byte_pair(byte_pair)
    texts = ["Déjà vu, don't!", " a  b\n\n c", *TEXTS]
    for text in texts:
        expected, found = reference.encode(text), byte_pair.locate(text)
        assert found.token_ids == byte_pair.encode(text)
        for start, end, (a, b) in zip(found.starts, found.ends, expected.offsets, strict=True):
            # Without the space before a word.
            assert text[a:b] in (text[start:end], " " + text[start:end])
            assert b == end
            assert b - a == 1 or text[start] != " " or text[a:start] == " "
        assert found.words == expected.word_ids
    assert_same_in_graph(byte_pair, texts)


def assert_same_in_graph(tokenizer, texts):
    places = tokenizer.locate_tensor(tf.constant(texts))
    expected = [tokenizer.locate(text) for text in texts]
    for name in ("token_ids", "starts", "ends", "words"):
        assert getattr(places, name).to_list() == [getattr(own, name) for own in expected], name
    assert tokenizer.locate_tensor(tf.zeros([0], tf.string)).starts.to_list() == []


def test_by_hand():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "na", "##ive", "cafe", "!"]
    found = WordPieceTokenizer(pieces).locate("Naïve  xyz café!")
    assert found.token_ids == [5, 6, 1, 7, 8]
    assert [*zip(found.starts, found.ends, strict=True)] == [
        (0, 2),
        (2, 5),
        (7, 10),
        (11, 15),
        (15, 16),
    ]
    assert found.words == [0, 0, 1, 2, 3]


def test_tokenizers_that_cannot_tell_say_so():
    with pytest.raises(ValueError, match="received a ByteTokenizer"):
        ByteTokenizer().locate("a")
    with pytest.raises(ValueError, match="received a ByteTokenizer"):
        ByteTokenizer().locate_tensor(tf.constant(["a"]))
