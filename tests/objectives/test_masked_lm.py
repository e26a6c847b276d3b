import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.objectives import TokenCrossentropy, mask_for_mlm
from tests.contracts.tiny import CONFIGS, V

PAD, CLS, SEP, MASK = range(4)
SPECIAL = (PAD, CLS, SEP)
SIZE = 200
OPTIONS = {"mask_id": MASK, "vocabulary_size": SIZE, "special_ids": SPECIAL}


def rows(count=4, length=50, vocabulary_size=SIZE):
    """[CLS], tokens, [SEP], and pads behind most rows."""
    random = np.random.default_rng(0)
    ids = random.integers(4, vocabulary_size, (count, length)).astype("int32")
    ends = np.linspace(length // 2, length - 1, count).astype(int)[:, None]
    ids[:, 0] = CLS
    ids = np.where(np.arange(length) == ends, SEP, ids)
    valid = np.arange(length) <= ends
    return np.where(valid, ids, PAD), valid


@pytest.mark.once
def test_the_shares_hold_and_special_tokens_are_left_alone():
    ids, valid = (np.repeat(x[-1:], 10_000, axis=0) for x in rows())
    inputs, targets, weights = mask_for_mlm(ids, valid, 0, **OPTIONS)
    found, places = inputs["token_ids"], inputs["masked_positions"]
    each = np.arange(len(ids))[:, None]
    before, after = ids[each, places][weights], found[each, places][weights]
    assert weights.sum() / (48 * 10_000) == pytest.approx(0.15, rel=0.01)
    assert not np.isin(before, SPECIAL).any()
    np.testing.assert_array_equal(targets[weights], before)
    assert (targets[~weights] == -1).all()
    masked, kept = after == MASK, after == before
    # One random token of 196 is the one that stood there.
    for share, expected in ((masked, 0.8), (kept, 0.1 + 0.1 / 196), (~masked & ~kept, 0.1)):
        assert share.mean() == pytest.approx(expected, rel=0.02)
    drawn = np.bincount(after[~masked & ~kept], minlength=SIZE)
    assert not drawn[:4].any()
    assert drawn[4:].min() > 0
    # Nothing else has changed, and each token is told once.
    assert all(len({*row[w]}) == w.sum() for row, w in zip(places[:100], weights, strict=False))
    found[each, places] = np.where(weights, targets, found[each, places])
    np.testing.assert_array_equal(found, ids)


@pytest.mark.once
def test_the_seed_alone_decides():
    ids, valid = rows()
    before = ids.copy()
    first, again, other = (mask_for_mlm(ids, valid, seed, **OPTIONS)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(ids, before)
    np.testing.assert_array_equal(first["token_ids"], again["token_ids"])
    assert not np.array_equal(first["token_ids"], other["token_ids"])
    assert first["masked_positions"].shape == (4, 8)


@pytest.mark.once
def test_whole_words_are_chosen():
    # Tokens of 100 and more go on with the word before them; none does after [CLS].
    ids, valid = rows(200)
    ids[:, 1] = 50
    inputs, _, weights = mask_for_mlm(
        ids, valid, 0, rate=0.4, continuation_ids=range(100, SIZE), **OPTIONS
    )
    chosen = np.zeros(ids.shape, bool)
    for row, places, told in zip(chosen, inputs["masked_positions"], weights, strict=True):
        row[places[told]] = True
    follows = (ids >= 100) & valid
    assert follows[:, 1:].any()
    np.testing.assert_array_equal(chosen[:, 1:][follows[:, 1:]], chosen[:, :-1][follows[:, 1:]])
    open_places = valid & ~np.isin(ids, SPECIAL)
    assert chosen.sum() / open_places.sum() == pytest.approx(0.4, rel=0.1)


@pytest.mark.once
def test_a_row_of_pads_has_nothing_to_tell():
    inputs, targets, weights = mask_for_mlm([[CLS, SEP, PAD]], [[True, True, False]], 0, **OPTIONS)
    np.testing.assert_array_equal(inputs["token_ids"], [[CLS, SEP, PAD]])
    np.testing.assert_array_equal(targets, [[-1]])
    assert not weights.any()


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1.0}, r"rate=1\.0"),
        ({"mask_share": 0.95}, r"mask_share=0\.95, random_share=0\.1"),
        ({"random_share": -0.1}, r"random_share=-0\.1"),
        ({"mask_id": SIZE}, "mask_id.*received 200"),
        ({"special_ids": [-1]}, "special_ids.*received -1"),
        ({"vocabulary_size": 60}, "token_ids must lie in"),
        ({"vocabulary_size": 0}, "vocabulary_size=0"),
        ({"seed": -1}, "seed=-1"),
        ({"valid": np.ones((4, 50), int)}, "valid must be.*int64"),
        ({"token_ids": np.ones(3, int)}, r"shapes \(3,\)"),
        ({"token_ids": np.ones((4, 50))}, "token_ids must be integers"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    ids, valid = rows()
    arguments = {"token_ids": ids, "valid": valid, "seed": 0, **OPTIONS, **changes}
    with pytest.raises(ValueError, match=message):
        mask_for_mlm(**arguments)


def test_a_batch_without_masks_trains_the_other_head():
    model = ka.models.bert_pretraining(ka.models.bert(CONFIGS["bert"]))
    model.compile(
        keras.optimizers.SGD(0.1),
        {
            "tokens": TokenCrossentropy(),
            "next_sentence": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        },
    )
    ids, valid = rows(2, 6, V)
    inputs = {"token_ids": ids, "valid": valid, "type_ids": 0 * ids}
    inputs["masked_positions"] = np.zeros((2, 1), "int32")
    targets = {"tokens": np.full((2, 1), -1), "next_sentence": np.array([0, 1])}
    bias = model.get_layer("prediction_bias").get_weights()[0]
    head = model.get_layer("next_sentence").get_weights()[0]
    losses = model.fit(inputs, targets, epochs=2, verbose=0).history
    assert losses["tokens_loss"] == [0.0, 0.0]
    assert np.isfinite(losses["loss"]).all()
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    np.testing.assert_array_equal(model.get_layer("prediction_bias").get_weights()[0], bias)
    assert np.abs(model.get_layer("next_sentence").get_weights()[0] - head).max() > 0
