import numpy as np
import pytest
from keras import ops

import keras_arch as ka

SHAPE = {"vocabulary_size": 31, "width": 16, "layers": 3}
BUILDERS = [
    (ka.models.RNNLMConfig, ka.models.rnn_lm, 1),
    (ka.models.LSTMLMConfig, ka.models.lstm_lm, 4),
    (ka.models.GRULMConfig, ka.models.gru_lm, 3),
]


@pytest.mark.parametrize(("config", "build", "gates"), BUILDERS)
def test_parameters_by_the_formula(config, build, gates):
    """A table, and in each layer the gates' two matrices and biases; the head is the table."""
    model = build(config(**SHAPE))
    layer = gates * (2 * 16 * 16 + 16)
    # The candidate of this GRU has a bias beside the state's product as well.
    extra = 16 if build is ka.models.gru_lm else 0
    assert model.count_params() == 31 * 16 + 3 * (layer + extra)
    untied = build(config(**SHAPE, tied=False))
    assert untied.count_params() - model.count_params() == 31 * 16


def test_dropped_units_are_the_same_at_all_steps():
    model = ka.models.lstm_lm(ka.models.LSTMLMConfig(**SHAPE, dropout=0.5))
    names = ["embedding_dropout", "dropout_0", "dropout_1", "dropout_2"]
    for name in names:
        kept = ops.convert_to_numpy(model.get_layer(name)(np.ones((4, 5, 16)), training=True)) != 0
        np.testing.assert_array_equal(kept, np.broadcast_to(kept[:, :1], kept.shape))
        assert 0.2 < kept[:, 0].mean() < 0.8
        assert not (kept[0, 0] == kept[1, 0]).all()


def test_residual_adds_the_input_of_each_layer():
    plain, residual = (
        ka.models.rnn_lm(ka.models.RNNLMConfig(**SHAPE | {"layers": 1}, residual=residual))
        for residual in (False, True)
    )
    residual.set_weights(plain.get_weights())
    inputs = {"token_ids": np.array([[3, 5, 7]]), "valid": np.ones((1, 3), "bool")}
    table = ops.convert_to_numpy(plain.get_layer("tokens").table)
    difference = ops.convert_to_numpy(residual(inputs) - plain(inputs))
    np.testing.assert_allclose(difference[0], table[[3, 5, 7]] @ table.T, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers must be a positive integer; received layers=0"),
        ({"dropout": 1.0}, "dropout must be in .0, 1.; received dropout=1.0"),
        ({"recurrent_dropout": -0.1}, "recurrent_dropout=-0.1"),
        ({"initializer_range": 0.0}, "initializer_range must be positive; received .*=0.0"),
    ],
)
def test_bad_fields_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ka.models.GRULMConfig(**SHAPE | changes)
