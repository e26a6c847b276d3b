import keras
import numpy as np
import pytest
from matplotlib.image import imread

import keras_arch as ka
from keras_arch.analysis import attention_weights, plot_alignment
from tests.generation import encoder_decoder


def a_model():
    config = ka.models.AttentionSeq2SeqConfig(
        vocabulary_size=11, width=4, encoder_width=3, decoder_width=4
    )
    return ka.models.attention_seq2seq(config)


def inputs():
    return {
        "source_ids": np.array([[1, 2, 3, 4], [5, 6, 0, 0]], "int32"),
        "source_valid": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], "bool"),
        "token_ids": np.array([[1, 2, 3], [4, 5, 0]], "int32"),
        "valid": np.array([[1, 1, 1], [1, 1, 0]], "bool"),
    }


def test_weights_come_from_the_decoder_by_name():
    model, values = a_model(), inputs()
    weights = attention_weights(model, values)
    assert list(weights) == ["decoder"]
    weights = weights["decoder"]
    assert weights.shape == (2, 3, 4)
    np.testing.assert_allclose(weights.sum(axis=-1), values["valid"], atol=1e-6)
    assert not weights[1, :, 2:].any()
    assert weights[values["valid"]][:, :2].all()


def test_a_residual_part_tells_the_weights_of_its_attention():
    found = attention_weights(encoder_decoder.build(), inputs())
    assert {name: weights.shape for name, weights in found.items()} == {"cross": (2, 2, 3, 4)}
    np.testing.assert_allclose(found["cross"].sum(axis=-1), 1.0, atol=1e-6)


def test_models_and_inputs_without_attention_are_named():
    x = keras.Input((3,), name="x")
    with pytest.raises(ValueError, match="'plain' has no layer that attends"):
        attention_weights(keras.Model(x, keras.layers.Dense(2)(x), name="plain"), {"x": 0})
    with pytest.raises(ValueError, match=r"inputs must hold.*received \['token_ids'\]"):
        attention_weights(a_model(), {"token_ids": inputs()["token_ids"]})


def test_the_picture_is_dark_where_the_weight_is(tmp_path):
    weights = np.zeros((2, 3))
    weights[0, 2] = weights[1, 0] = 1.0
    plot_alignment(weights, ["ein", "Hund", "läuft"], ["a", "dog"], tmp_path / "map.png")
    picture = imread(tmp_path / "map.png")[..., :3]
    # The darkest blue of matplotlib's "Blues".
    dark = np.abs(picture - np.array([8, 48, 107]) / 255).max(axis=-1) < 0.02
    rows, columns = np.nonzero(dark)
    middle = (rows.min() + rows.max()) / 2
    upper, lower = columns[rows < middle], columns[rows > middle]
    assert upper.min() > lower.max()
    assert 0.25 < dark[rows.min() : rows.max(), columns.min() : columns.max()].mean() < 0.4


def test_tokens_of_another_number_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"\(1, 3\), of target and source; received \(2, 3\)"):
        plot_alignment(np.zeros((2, 3)), ["a", "b", "c"], ["d"], tmp_path / "map.png")


def test_any_token_can_be_drawn(tmp_path):
    # A backspace has no glyph, and between dollars stands a formula that is none.
    plot_alignment(np.zeros((1, 3)), ["\b", "$^_$", "\n"], ["a"], tmp_path / "map.png")
    assert imread(tmp_path / "map.png").any()
