import itertools
import unicodedata

import pytest
import tokenizers

from keras_arch.text.bert_words import PRIVATE, BertWords, within
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once

CODES = [code for code in range(0x40000) if not 0xD800 <= code <= 0xDFFF]
OPTIONS = list(itertools.product([False, True], repeat=2))


def reference_words(text, lowercase, strip_accents):
    """The words of the `tokenizers` package, BERT's."""
    normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    return [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))]


@pytest.mark.parametrize(("lowercase", "strip_accents"), OPTIONS)
def test_words_equal_the_reference(lowercase, strip_accents):
    words = BertWords(lowercase, strip_accents)
    texts = TEXTS + [f"a{chr(code)}b" for code in CODES]
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


def test_ideographs_are_parted_unless_it_is_told_not_to():
    text = "a\u4e2d\u6587b, \u3400"
    assert BertWords(False, False).spread(text).split() == ["a", *"\u4e2d\u6587b,\u3400"]
    words = BertWords(False, False, part_ideographs=False)
    assert words.spread(text).split() == ["a\u4e2d\u6587b", ",", "\u3400"]


def test_the_private_characters_are_those_of_unicode():
    private = [code for code in range(0x110000) if unicodedata.category(chr(code)) == "Co"]
    assert private == [code for code in range(0x110000) if within(code, PRIVATE)]
    assert not BertWords(False, False).spread("".join(map(chr, private)))


@pytest.mark.parametrize(
    ("lowercase", "part_ideographs"), [(False, True), (True, True), (False, False)]
)
def test_the_table_holds_what_changes(lowercase, part_ideographs):
    words = BertWords(lowercase, lowercase, part_ideographs)
    table = words.table()
    for code in [*range(0x3500), *range(0x3500, 0x110000, 13)]:
        if not 0xD800 <= code <= 0xDFFF and not within(code, PRIVATE):
            expected = words.spread(chr(code))
            received = table.get(code, chr(code))
            assert received == expected or f" {received} " == expected
    assert not any(0x4E00 <= code <= 0x9FFF for code in table)
