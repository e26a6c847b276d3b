import numpy as np
import pytest

from keras_arch.objectives import next_sentence_pairs, pack_texts

pytestmark = pytest.mark.once

CLS, SEP = 2, 3
SPECIAL = {"classification_id": CLS, "separator_id": SEP}


def test_pairs_stand_between_special_tokens():
    inputs = pack_texts([[10, 11], [12]], [[20], []], length=7, **SPECIAL)
    expected = {
        "token_ids": [[CLS, 10, 11, SEP, 20, SEP, 0], [CLS, 12, SEP, SEP, 0, 0, 0]],
        "type_ids": [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 0, 0, 0]],
        "valid": [[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]],
    }
    assert inputs.keys() == expected.keys()
    for name, rows in expected.items():
        np.testing.assert_array_equal(inputs[name], rows)


def test_a_text_stands_alone_and_roberta_has_two_separators():
    inputs = pack_texts([[10, 11, 12]], length=4, **SPECIAL)
    np.testing.assert_array_equal(inputs["token_ids"], [[CLS, 10, 11, SEP]])
    assert not inputs["type_ids"].any()
    inputs = pack_texts([[10]], [[20]], length=6, between=2, **SPECIAL)
    np.testing.assert_array_equal(inputs["token_ids"], [[CLS, 10, SEP, SEP, 20, SEP]])


@pytest.mark.parametrize("sizes", [(9, 2), (2, 9), (5, 5), (6, 5), (0, 9), (9, 0), (3, 3)])
def test_the_longer_text_loses_its_end_first(sizes):
    # As BERT's code has it, one token after another.
    first, second = list(range(10, 10 + sizes[0])), list(range(30, 30 + sizes[1]))
    kept = [first.copy(), second.copy()]
    while len(kept[0]) + len(kept[1]) > 6:
        kept[0 if len(kept[0]) > len(kept[1]) else 1].pop()
    inputs = pack_texts([first], [second], length=9, **SPECIAL)
    found = inputs["token_ids"][inputs["valid"]].tolist()
    assert found == [CLS, *kept[0], SEP, *kept[1], SEP]


#: Document d has sentences of the token d * 100 + number of the sentence.
DOCUMENTS = [[[100 * d + n] * 3 for n in range(12)] for d in range(1, 5)]


def sentences(text):
    return list(dict.fromkeys(text.tolist()))


def test_half_of_the_pairs_follow_each_other():
    kinds = []
    for seed in range(60):
        firsts, seconds, labels = next_sentence_pairs(DOCUMENTS, seed, length=14)
        kinds += labels.tolist()
        for first, second, label in zip(firsts, seconds, labels, strict=True):
            a, b = sentences(first), sentences(second)
            # Each text is a run of a document's sentences.
            for text in (a, b):
                assert text == list(range(text[0], text[0] + len(text)))
            same = a[0] // 100 == b[0] // 100
            assert same == (label == 0)
            if label == 0:
                assert b[0] == a[-1] + 1
            assert len(first) + len(second) < 14 + 2 * 3
        # Every sentence is read as a first or as its follower.
        read = [
            s
            for f, n, label in zip(firsts, seconds, labels, strict=True)
            for s in sentences(f) + (sentences(n) if label == 0 else [])
        ]
        assert sorted(read) == sorted(s for document in DOCUMENTS for s, *_ in document)
    assert np.mean(kinds) == pytest.approx(0.5, abs=0.06)


def test_the_seed_alone_decides_the_pairs():
    first, again, other = (next_sentence_pairs(DOCUMENTS, seed, 14) for seed in (1, 1, 2))
    assert [x.tolist() for x in first[0]] == [x.tolist() for x in again[0]]
    assert first[2].tolist() != other[2].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_texts([[1]], [], length=9, **SPECIAL), "1 firsts, 0 seconds"),
        (lambda: pack_texts([[1]], [[1]], length=3, **SPECIAL), "length=3"),
        (lambda: pack_texts([[1]], length=9, classification_id=-1, separator_id=3), "received -1"),
        (lambda: pack_texts([[1]], length=9, between=0, **SPECIAL), "between=0"),
        (lambda: pack_texts([[-1]], length=9, **SPECIAL), "token_ids must lie in"),
        (lambda: next_sentence_pairs([[[1]], [[]]], 0, 9), "at least; received 1"),
        (lambda: next_sentence_pairs(DOCUMENTS, 0, 0), "length=0"),
        (lambda: next_sentence_pairs(DOCUMENTS, -1, 9), "seed=-1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
