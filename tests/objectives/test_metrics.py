import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.objectives import BitsPerCharacter, Perplexity, TokenCrossentropy, TokenNats
from tests.references import objectives as reference

V = 5
#: Name -> (metric, what it makes of the mean nats per token).
METRICS = {
    "nats": (TokenNats, lambda nats: nats),
    "perplexity": (Perplexity, math.exp),
    "bits": (lambda: BitsPerCharacter(0.25), lambda nats: nats / math.log(2) * 0.25),
}


def scores_of(*probabilities):
    """Logits [1, T, 2] that give token 0 these probabilities."""
    p = np.array(probabilities)
    return np.log(np.stack([p, 1 - p], axis=-1))[None].astype("float32")


def result(metric):
    return ops.convert_to_numpy(metric.result())


def test_perplexity_is_of_the_corpus_not_a_mean_of_batches():
    # Three tokens at 1/2, then one at 1/8: (8 * 8) ** (1 / 4) = 2 ** 1.5.
    metric = Perplexity()
    metric.update_state(np.zeros((1, 3), "int32"), scores_of(0.5, 0.5, 0.5))
    metric.update_state(np.zeros((1, 1), "int32"), scores_of(0.125))
    np.testing.assert_allclose(result(metric), 2.828427, atol=1e-5)
    expected = reference.perplexity([0.5, 0.5, 0.5, 0.125])
    np.testing.assert_allclose(result(metric), expected, rtol=1e-6)


def data():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 6, V), scale=2.0).astype("float32")
    weights = np.arange(6) < np.array([[6], [1], [3], [0]])
    return rng.integers(0, V, (4, 6)).astype("int32"), scores, weights


@pytest.mark.parametrize("cuts", [(4,), (1, 1, 1, 1), (3, 1)])
@pytest.mark.parametrize("name", METRICS)
def test_any_batching_gives_the_same(name, cuts):
    metric, transform = METRICS[name][0](), METRICS[name][1]
    targets, scores, weights = data()
    begin = 0
    for size in cuts:
        part = slice(begin, begin + size)
        metric.update_state(targets[part], scores[part], weights[part])
        begin += size
    expected = transform(reference.mean_crossentropy(targets, scores, weights))
    np.testing.assert_allclose(result(metric), expected, rtol=1e-5)


def test_bits_per_character_of_characters():
    metric = BitsPerCharacter()
    metric.update_state(np.zeros((1, 2), "int32"), scores_of(0.5, 0.125))
    np.testing.assert_allclose(result(metric), 2.0, rtol=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_ignores_label_minus_one_and_what_stands_in_pads(name):
    metric, transform = METRICS[name][0](), METRICS[name][1]
    targets, scores, weights = data()
    expected = transform(reference.mean_crossentropy(targets, scores, weights))
    metric.update_state(
        np.where(weights, targets, -1), np.where(weights[..., None], scores, np.nan)
    )
    np.testing.assert_allclose(result(metric), expected, rtol=1e-5)


@pytest.mark.parametrize("name", METRICS)
def test_starts_and_resets_to_no_tokens(name):
    metric, transform = METRICS[name][0](), METRICS[name][1]
    np.testing.assert_allclose(result(metric), transform(0.0))
    metric.update_state(*data())
    metric.reset_state()
    np.testing.assert_allclose(result(metric), transform(0.0))


def compiled_model():
    model = keras.Sequential([keras.Input((6,), dtype="int32"), keras.layers.Embedding(V, V)])
    metrics = [TokenNats(), Perplexity(), BitsPerCharacter(0.5)]
    model.compile(keras.optimizers.SGD(), loss=TokenCrossentropy(), weighted_metrics=metrics)
    return model


def test_comes_back_with_a_compiled_model(tmp_path):
    model = compiled_model()
    targets, _, weights = data()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found = loaded.evaluate(
        targets, targets, sample_weight=weights, batch_size=2, verbose=0, return_dict=True
    )
    scores = model.get_weights()[0][targets]
    nats = reference.mean_crossentropy(targets, scores, weights)
    np.testing.assert_allclose(found["nats"], nats, rtol=1e-5)
    np.testing.assert_allclose(found["perplexity"], math.exp(nats), rtol=1e-5)
    np.testing.assert_allclose(found["bits_per_character"], nats / math.log(2) / 2, rtol=1e-5)


@pytest.mark.parametrize("kind", [TokenNats, Perplexity, BitsPerCharacter])
def test_comes_back_from_its_config(kind):
    metric = kind(name="given")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(again) is kind
    assert again.get_config() == metric.get_config()
    assert again.name == "given"


def test_bits_per_character_keeps_its_rate():
    metric = BitsPerCharacter(0.3)
    assert BitsPerCharacter.from_config(metric.get_config()).tokens_per_character == 0.3


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_names_the_bad_argument(rate):
    with pytest.raises(ValueError, match=f"tokens_per_character={rate}"):
        BitsPerCharacter(rate)
