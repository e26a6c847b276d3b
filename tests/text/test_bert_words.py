import itertools
import unicodedata

import pytest
import tokenizers

from keras_arch.text.bert_words import ASCII_PUNCTUATION, BertWords
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once

OPTIONS = list(itertools.product([False, True], repeat=2))


def reference_words(text, lowercase, strip_accents):
    """The words of the `tokenizers` package, BERT's."""
    normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    return [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))]


def long_known(character):
    """Whether a character kept its class since Unicode 3.2; the reference knows no newer ones."""
    old = unicodedata.ucd_3_2_0.category(character)
    return old not in ("Cn", "Co", "Cs") and old == unicodedata.category(character)


@pytest.mark.parametrize(("lowercase", "strip_accents"), OPTIONS)
def test_words_equal_the_reference(lowercase, strip_accents):
    words = BertWords(lowercase, strip_accents)
    texts = [text for text in TEXTS if all(map(long_known, text))]
    texts += [f"a{chr(code)}b" for code in range(0x110000) if long_known(chr(code))]
    assert len(texts) > 90_000
    differing = [
        text
        for text in texts
        if words.spread(text).split() != reference_words(text, lowercase, strip_accents)
    ]
    assert differing == []


def test_case_and_accents_stay_unless_asked():
    text = "\u00c9t\u00e9 na\u00efve \uac00"
    assert BertWords(False, False).spread(text) == text
    assert BertWords(True, False).spread(text) == "\u00e9t\u00e9 na\u00efve \uac00"
    assert BertWords(False, True).spread(text) == "Ete naive \u1100\u1161"
    assert BertWords(True, True).spread(text) == "ete naive \u1100\u1161"


def test_ascii_punctuation_is_all_that_is_neither_letter_nor_digit_nor_space():
    printable = {chr(code) for code in range(0x21, 0x7F)}
    assert set(ASCII_PUNCTUATION) == {c for c in printable if not c.isalnum()}


@pytest.mark.parametrize(("lowercase", "strip_accents"), [(False, False), (True, True)])
def test_the_table_holds_what_changes(lowercase, strip_accents):
    words = BertWords(lowercase, strip_accents)
    table = words.table()
    for code in range(0x110000):
        if not 0xD800 <= code <= 0xDFFF:
            expected = words.spread(chr(code))
            received = table.get(code, chr(code))
            assert received == expected or f" {received} " == expected
    assert not any(0x4E00 <= code <= 0x9FFF for code in table)
