import pytest

from keras_arch.text.byte_symbols import BYTE_OF_SYMBOL, SYMBOLS, token_bytes

pytestmark = pytest.mark.once


def test_symbols_are_256_printable_characters():
    assert len(set(SYMBOLS)) == 256
    assert all(symbol.isprintable() and not symbol.isspace() for symbol in SYMBOLS)
    assert all(SYMBOLS[BYTE_OF_SYMBOL[symbol]] == symbol for symbol in SYMBOLS)


def test_symbols_are_those_of_the_published_vocabulary():
    # Known from GPT-2's vocabulary: a space is spelt U+0120 and a line break U+010A.
    assert SYMBOLS[ord("A")] == "A"
    assert (SYMBOLS[0x20], SYMBOLS[0x0A], SYMBOLS[0xAD], SYMBOLS[0xE9]) == ("Ġ", "Ċ", "Ń", "é")


def test_a_token_gives_its_bytes():
    assert token_bytes("ĠÃ©") == " é".encode()
