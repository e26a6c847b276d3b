import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.generation import decoder_of, encoder_of
from tests.contracts.tiny import CONFIGS, build, context_of, inputs_of

TOKEN_IDS = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "int32")


def test_the_halves_give_what_the_whole_gives(tmp_path):
    # T5's decoder has a bias of its own, and its head is the encoder's table.
    model = build(CONFIGS["t5"])
    encoder, decoder = encoder_of(model), decoder_of(model)
    assert sorted(x.name for x in encoder.inputs) == ["source_ids", "source_valid"]
    source, values = context_of(model, 3), inputs_of(model, TOKEN_IDS)
    context = {"source_memory": encoder(source)}
    context["source_valid"] = source["source_valid"]
    del values["source_ids"]
    expected = ops.convert_to_numpy(model(inputs_of(model, TOKEN_IDS)))
    inputs = {name: ops.convert_to_tensor(x) for name, x in {**values, **context}.items()}
    found = ops.convert_to_numpy(decoder(inputs))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    decoder.save(tmp_path / "decoder.keras")
    prompts = [[1, 2, 3], [4], [5, 6]]
    whole = ka.generate(model, prompts, 6, context=source)
    for half in (decoder, keras.saving.load_model(tmp_path / "decoder.keras")):
        found = ka.generate(half, prompts, 6, context=context)
        np.testing.assert_array_equal(found.token_ids, whole.token_ids)


def test_the_halves_share_the_weights_of_the_whole():
    model = build(CONFIGS["bart"])
    encoder, decoder = encoder_of(model), decoder_of(model)
    shared = {id(w) for w in model.weights}
    parts = [{id(w) for w in half.weights} for half in (encoder, decoder)]
    assert set.union(*parts) == shared
    # The table alone is of both.
    assert set.intersection(*parts) == {id(model.get_layer("tokens").table)}
    # Cutting leaves the whole as it was.
    assert [w.path for w in keras.models.clone_model(model).weights] == [
        w.path for w in model.weights
    ]


def test_a_model_without_an_encoder_is_named():
    for cut in (encoder_of, decoder_of):
        with pytest.raises(ValueError, match="'source_memory'; received 'gpt2'"):
            cut(build(CONFIGS["gpt2"]))
