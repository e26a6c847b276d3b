"""Tokenizers for the tests of `keras_arch.text`."""

import functools

import pytest

from keras_arch.text import (
    BytePairTokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    MarianTokenizer,
    SentencePieceTokenizer,
    UnicodeTokenizer,
    WordPieceTokenizer,
)
from keras_arch.text.sentence_piece import load_processor, model_pieces
from tests.text.texts import CORPUS, TEXTS


@functools.cache
def bpe():
    return SentencePieceTokenizer.train(CORPUS, 4000, "bpe", character_coverage=0.98)


def marian():
    """The pieces of a model in the opposite order, without the last, among special tokens."""
    pieces = model_pieces(load_processor(bpe().model))[3:]
    return MarianTokenizer(
        bpe().model,
        ["</s>", "<unk>", ">>de<<", *reversed(pieces[:-1]), "<pad>"],
        {"unknown": "<unk>", "end": "</s>", "pad": "<pad>", ">>de<<": ">>de<<"},
    )


MAKERS = {
    "characters": lambda: CharacterTokenizer.from_text("".join(TEXTS)),
    "bytes": ByteTokenizer,
    "unicode": UnicodeTokenizer,
    "byte_pair": lambda: BytePairTokenizer.train(CORPUS, 1500),
    "word_piece": lambda: WordPieceTokenizer.train(CORPUS, 7000, alphabet_size=3000),
    "unigram": lambda: SentencePieceTokenizer.train(CORPUS, 4000, character_coverage=0.98),
    "bpe": bpe,
    "marian": marian,
}


@pytest.fixture(scope="session")
def tokenizers():
    """All tokenizers by the name of the algorithm, made when first asked for."""
    return Made()


class Made(dict):
    def __missing__(self, name):
        self[name] = MAKERS[name]()
        return self[name]


@pytest.fixture
def byte_pair(tokenizers):
    return tokenizers["byte_pair"]


@pytest.fixture
def word_piece(tokenizers):
    return tokenizers["word_piece"]


@pytest.fixture(params=MAKERS)
def tokenizer(request, tokenizers):
    return tokenizers[request.param]
