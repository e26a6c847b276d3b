import keras
import numpy as np
import pytest

from keras_arch.layers import TokenEmbedding
from tests.layers import rows
from tests.layers.gradients import gradients

V = 11
TOKEN_IDS = np.array([[0, 10, 3], [3, 3, 1]], "int32")


def embedding(**options):
    layer = TokenEmbedding(V, rows.WIDTH, **options)
    layer.build((None, None))
    return rows.randomize(layer)


@pytest.mark.parametrize("scale", [1.0, rows.WIDTH**0.5])
def test_looks_tokens_up(scale):
    layer = embedding(scale=scale)
    expected = scale * layer.get_weights()[0][TOKEN_IDS]
    np.testing.assert_allclose(rows.run(layer, TOKEN_IDS), expected, atol=1e-6)


def test_reverse_scores_all_tokens_by_the_same_table():
    x = rows.normal(2, 3, rows.WIDTH)
    for scale in (1.0, 0.25):
        layer = embedding(scale=3.0, reverse_scale=scale)
        expected = scale * x @ layer.get_weights()[0].T
        np.testing.assert_allclose(rows.run(layer, x, reverse=True), expected, atol=1e-5)


def tied_model():
    layer = TokenEmbedding(V, rows.WIDTH, name="tokens")
    token_ids = keras.Input((None,), dtype="int32")
    return keras.Model(token_ids, layer(layer(token_ids), reverse=True)), layer


def test_a_tied_model_has_one_variable():
    model, layer = tied_model()
    assert len(model.variables) == 1
    assert model.count_params() == V * rows.WIDTH
    assert model.output_shape == (None, None, V)
    rows.randomize(layer)
    table = layer.get_weights()[0]
    np.testing.assert_allclose(rows.run(model, TOKEN_IDS), table[TOKEN_IDS] @ table.T, atol=1e-5)


def test_a_training_step_of_a_tied_model_moves_embedding_and_head_alike():
    model, layer = tied_model()
    rows.randomize(layer)
    before = layer.get_weights()[0]
    used = np.unique(TOKEN_IDS)
    (gradient,) = gradients(
        lambda: keras.ops.sum(model(keras.ops.convert_to_tensor(TOKEN_IDS))), layer.variables
    )
    # Sum over tokens i and rows v of E_i . E_v: as embedding each E_i gets sum_v E_v, and as head
    # each E_v gets sum_i E_i.
    expected = np.zeros_like(before) + before[TOKEN_IDS].sum((0, 1))
    for i in TOKEN_IDS.ravel():
        expected[i] += before.sum(0)
    np.testing.assert_allclose(gradient, expected, atol=1e-4)
    assert len(used) < V
    model.compile(keras.optimizers.SGD(0.01), "mse")
    model.train_on_batch(TOKEN_IDS, np.zeros((2, 3, V), "float32"))
    table = layer.get_weights()[0]
    assert abs(table - before).max() > 1e-4
    np.testing.assert_allclose(rows.run(model, TOKEN_IDS), table[TOKEN_IDS] @ table.T, atol=1e-5)


def test_a_saved_tied_model_stays_tied(tmp_path):
    model, layer = tied_model()
    rows.randomize(layer)
    model.save(tmp_path / "tied.keras")
    loaded = keras.saving.load_model(tmp_path / "tied.keras")
    assert len(loaded.variables) == 1
    np.testing.assert_array_equal(rows.run(loaded, TOKEN_IDS), rows.run(model, TOKEN_IDS))


def test_equal_tables_start_from_different_numbers():
    initializer = keras.initializers.RandomNormal()
    tables = []
    for name in "ab":
        layer = TokenEmbedding(V, rows.WIDTH, embeddings_initializer=initializer, name=name)
        layer.build((None, None))
        tables.append(layer.get_weights()[0])
    assert abs(tables[0] - tables[1]).min() > 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TokenEmbedding(0, 8), "vocabulary_size=0"),
        (lambda: TokenEmbedding(8, -1), "width=-1"),
        (lambda: TokenEmbedding("8", 8), "vocabulary_size='8'"),
    ],
)
def test_names_the_bad_argument(make, words):
    with pytest.raises(ValueError, match=words):
        make()
