import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, V, build, logits

TOKEN_IDS = np.random.default_rng(0).integers(0, V, (2, 8)).astype("int32")
VALID = np.array([[1] * 8, [0, 1, 1, 1, 1, 0, 0, 1]], "bool")


def segment(now, fresh):
    return {"token_ids": TOKEN_IDS[:, now], "valid": VALID[:, now], "fresh": np.array(fresh)}


FIRST, SECOND = slice(0, 4), slice(4, 8)


@pytest.mark.parametrize("label", ["rnn_lm", "lstm_lm", "lstm_lm-normalised", "gru_lm", "ngram"])
@pytest.mark.parametrize("training", [False, True])
def test_two_segments_are_one_text(label, training):
    model = build(CONFIGS[label])
    carried = ka.generation.stateful(model, 2)
    parts = [
        carried(segment(now, fresh), training=training)
        for now, fresh in ((FIRST, [True, True]), (SECOND, [False, False]))
    ]
    both = ops.convert_to_numpy(ops.concatenate(parts, axis=1))
    whole = logits(model, TOKEN_IDS, VALID)
    np.testing.assert_allclose(both[VALID], whole[VALID], rtol=0, atol=1e-5)


def test_a_fresh_row_forgets_and_others_do_not():
    model = build(CONFIGS["lstm_lm"])
    carried = ka.generation.stateful(model, 2)
    carried(segment(FIRST, [True, True]))
    second = ops.convert_to_numpy(carried(segment(SECOND, [True, False])))
    alone = logits(model, TOKEN_IDS[:, SECOND], VALID[:, SECOND])
    whole = logits(model, TOKEN_IDS, VALID)[:, SECOND]
    np.testing.assert_allclose(second[0], alone[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(second[1, 3], whole[1, 3], rtol=0, atol=1e-5)


def test_training_and_evaluation_carry_their_own():
    model = build(CONFIGS["gru_lm"])
    carried = ka.generation.stateful(model, 2)
    carried(segment(FIRST, [True, True]), training=True)
    carried(segment(SECOND, [True, True]))
    second = ops.convert_to_numpy(carried(segment(SECOND, [False, False]), training=True))
    whole = logits(model, TOKEN_IDS, VALID)[:, SECOND]
    np.testing.assert_allclose(second[VALID[:, SECOND]], whole[VALID[:, SECOND]], rtol=0, atol=1e-5)


def test_fit_goes_on_and_trains_the_model():
    """With a learning rate of 0 the loss of both steps is the loss of the whole text."""
    model = build(CONFIGS["lstm_lm"])
    ids = np.random.default_rng(1).integers(0, V, 17)
    carried = ka.generation.stateful(model, 2)
    metrics = [ka.objectives.TokenNats(name="nats")]
    carried.compile(
        keras.optimizers.SGD(0.0), ka.objectives.TokenCrossentropy(), weighted_metrics=metrics
    )
    data = ka.text.contiguous_rows(ids, context=4, batch_size=2, epochs=1)
    history = carried.fit(data, validation_data=data, verbose=0, shuffle=False).history
    scores = np.float64(logits(model, [ids[:8], ids[8:16]]))
    scores -= scores.max(-1, keepdims=True)
    nats = np.log(np.exp(scores).sum(-1))
    nats -= np.take_along_axis(scores, np.stack([ids[1:9], ids[9:]])[..., None], axis=-1)[..., 0]
    assert history["nats"] == pytest.approx([nats.mean()], rel=1e-5)
    assert history["val_nats"] == pytest.approx([nats.mean()], rel=1e-5)
    assert {id(w) for w in carried.trainable_weights} == {id(w) for w in model.trainable_weights}


def test_a_state_that_grows_is_refused():
    model = build(CONFIGS["gpt2"])
    with pytest.raises(ValueError, match=r"'block_0' .DecoderBlock. keeps one that grows"):
        ka.generation.stateful(model, 2)


def test_no_rows_are_refused():
    model = build(CONFIGS["rnn_lm"])
    with pytest.raises(ValueError, match="received batch_size=0"):
        ka.generation.stateful(model, 0)
