import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.generation import InverseSigmoidSampling, LinearSampling, scheduled_sampling

V = 13
FORCED, FREE = LinearSampling(1, 0, 1), LinearSampling(0, 0, 0)


def attentive(dropout=0.0):
    config = ka.models.AttentionSeq2SeqConfig(
        vocabulary_size=V, width=6, encoder_width=4, decoder_width=8, dropout=dropout
    )
    return ka.models.attention_seq2seq(config)


def gpt(dropout=0.0):
    config = ka.models.GPT2Config(
        vocabulary_size=V, width=8, layers=1, heads=2, context_length=8, dropout=dropout
    )
    return ka.models.gpt2(config)


def randomised(model):
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(scale=0.6, size=weight.shape))
    return model


def inputs(model):
    random = np.random.default_rng(1)
    values = {
        "token_ids": random.integers(0, V, (2, 5)).astype("int32"),
        "valid": np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], "bool"),
        "source_ids": random.integers(0, V, (2, 3)).astype("int32"),
        "source_valid": np.array([[1, 1, 1], [1, 1, 0]], "bool"),
    }
    names = [x.name for x in model.inputs]
    return {name: values[name] for name in names}


def free_running(model, values):
    """Feeds each row's first token, then the most probable; the whole model again at each step."""
    values = {name: value.copy() for name, value in values.items()}
    token_ids, valid = values["token_ids"], values["valid"]
    for t in range(token_ids.shape[1]):
        logits = ops.convert_to_numpy(model(values))
        begun = valid[:, :t].any(axis=1) & valid[:, t]
        token_ids[:, t] = np.where(begun, logits[:, t - 1].argmax(axis=-1), token_ids[:, t])
    return ops.convert_to_numpy(model(values))


@pytest.mark.parametrize("make", [attentive, gpt])
def test_runs_forced_and_free(make):
    model = randomised(make())
    values = inputs(model)
    whole = ops.convert_to_numpy(model(values))
    real = values["valid"]
    expected = {FORCED: whole, FREE: free_running(model, values)}
    assert np.abs(expected[FREE] - whole)[real].max() > 0.1
    for schedule, wanted in expected.items():
        trained = scheduled_sampling(model, schedule)
        found = ops.convert_to_numpy(trained(values, training=True))
        np.testing.assert_allclose(found[real], wanted[real], atol=1e-5)
        np.testing.assert_array_equal(ops.convert_to_numpy(trained(values)), whole)


@pytest.mark.parametrize("make", [attentive, gpt])
def test_plain_fit_trains_the_model_itself(make, tmp_path):
    model = make(dropout=0.2)
    before = model.get_weights()
    trained = scheduled_sampling(model, InverseSigmoidSampling(2.0))
    values = inputs(model)
    trained.compile(keras.optimizers.Adam(0.01), ka.objectives.TokenCrossentropy())
    targets = values["token_ids"].astype("int32")
    options = {"sample_weight": values["valid"].astype("float32"), "batch_size": 2, "verbose": 0}
    losses = trained.fit(values, targets, epochs=3, **options).history["loss"]
    assert np.isfinite(losses).all()
    assert all(np.abs(a - b).max() > 0 for a, b in zip(before, model.get_weights(), strict=True))
    layer = trained.get_layer("scheduled_sampling")
    assert int(ops.convert_to_numpy(layer.count)) == 3
    trained.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    layer = again.get_layer("scheduled_sampling")
    assert int(ops.convert_to_numpy(layer.count)) == 3
    assert layer.schedule == InverseSigmoidSampling(2.0)
    np.testing.assert_allclose(again.predict(values, verbose=0), model.predict(values, verbose=0))


def test_the_schedule_follows_the_steps():
    # True tokens at the first step, its own from the second on.
    model = randomised(attentive())
    values = inputs(model)
    trained = scheduled_sampling(model, LinearSampling(1.0, 1.0, 0.0))
    found = [ops.convert_to_numpy(trained(values, training=True)) for _ in range(2)]
    real = values["valid"]
    whole = ops.convert_to_numpy(model(values))
    for output, wanted in zip(found, [whole, free_running(model, values)], strict=True):
        np.testing.assert_allclose(output[real], wanted[real], atol=1e-5)


def test_a_schedule_of_another_kind_is_named():
    with pytest.raises(ValueError, match=r"SamplingSchedule; received schedule=0\.5"):
        scheduled_sampling(gpt(), 0.5)
