import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, CONTEXT, build

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bat", "flew", "out", "##s", "of"]
CLS, SEP, MASK = 2, 3, 4


def tokenizer(size=31):
    rest = [f"word{chr(97 + i)}" for i in range(size - len(PIECES))]
    return ka.text.WordPieceTokenizer([*PIECES, *rest], lowercase=True)


@pytest.fixture(scope="module")
def model():
    return ka.models.masked_lm(build(CONFIGS["bert"]))


def test_tokens_are_ranked_by_their_probability(model):
    texts = ["the [MASK] flew out", "the bats [MASK] out of [MASK]"]
    found = ka.fill_mask(model, texts, tokenizer(), top=31)
    rows = [[CLS, 5, MASK, 7, 8, SEP], [CLS, 5, 6, 9, MASK, 8, 10, MASK, SEP]]
    assert [len(masks) for masks in found] == [1, 2]
    for row, masks in zip(rows, found, strict=True):
        places = np.flatnonzero(np.array(row) == MASK)
        values = {
            "token_ids": np.array([row], "int32"),
            "valid": np.ones((1, len(row)), bool),
            "type_ids": np.zeros((1, len(row)), "int32"),
            "masked_positions": places[None].astype("int32"),
        }
        logits = ops.convert_to_numpy(model(values))[0].astype("float64")
        chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        for fillings, expected in zip(masks, chances, strict=True):
            order = [filling.token_id for filling in fillings]
            np.testing.assert_array_equal(order, np.argsort(-expected))
            given = [filling.probability for filling in fillings]
            np.testing.assert_allclose(given, expected[order], atol=1e-5)
            assert [filling.token for filling in fillings] == [
                tokenizer().decode([i]) for i in order
            ]


def test_one_text_and_none(model):
    ((fillings,),) = ka.fill_mask(model, "the [MASK]", tokenizer(), top=2)
    assert len(fillings) == 2
    assert ka.fill_mask(model, [], tokenizer()) == []


def test_bad_requests_are_named(model):
    without = ka.text.WordPieceTokenizer([*PIECES], {"unknown": "[UNK]"}, lowercase=True)
    for texts, of, message in (
        (["[MASK]", "the bat"], tokenizer(), r"texts\[1\]='the bat'"),
        (None, tokenizer(), "texts must be a string or a list; received texts=None"),
        ("[MASK]", tokenizer(30), "vocabulary_size=30, the model's is 31"),
        ("[MASK]", without, r"received one with \['unknown'\]"),
        ("[MASK] " * 23, tokenizer(), f"length=25, context_length={CONTEXT}"),
    ):
        with pytest.raises(ValueError, match=message):
            ka.fill_mask(model, texts, of)
    with pytest.raises(ValueError, match="top=0"):
        ka.fill_mask(model, "[MASK]", tokenizer(), top=0)
    with pytest.raises(ValueError, match="masked_lm; received one with inputs"):
        ka.fill_mask(build(CONFIGS["bert"]), "[MASK]", tokenizer())
