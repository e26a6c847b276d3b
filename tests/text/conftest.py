"""Tokenizers for the tests of `keras_arch.text`."""

import pytest

from keras_arch.text import BytePairTokenizer, CharacterTokenizer
from tests.text.texts import CORPUS, TEXTS


@pytest.fixture(scope="session")
def byte_pair():
    return BytePairTokenizer.train(CORPUS, 1500)


@pytest.fixture(scope="session")
def characters():
    return CharacterTokenizer.from_text("".join(TEXTS))


@pytest.fixture(params=["characters", "byte_pair"])
def tokenizer(request):
    return request.getfixturevalue(request.param)
