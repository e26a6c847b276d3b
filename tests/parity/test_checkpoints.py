"""Checkpoints of Hugging Face's `transformers` give its logits here, and go back as they came."""

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_arch as ka

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

V, PAD = 31, 1

GPT2 = {"vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 24}
GPT2 |= {"bos_token_id": None, "eos_token_id": None}

#: Label -> class in transformers, its config's fields.
CASES = {
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2-untied": (
        "GPT2LMHeadModel",
        GPT2
        | {"n_inner": 24, "activation_function": "gelu", "layer_norm_epsilon": 0.1}
        | {"tie_word_embeddings": False},
    ),
}


def random_model(label):
    """Theirs, with weights large enough for everything to matter."""
    name, fields = CASES[label]
    architecture = getattr(transformers, name)
    model = architecture(architecture.config_class(**fields)).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            mean = 1.0 if parameter.ndim == 1 else 0.0
            parameter.normal_(mean, 0.3, generator=random)
    return model


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    """Theirs, the folder it was saved in, and what that was read as."""
    theirs = random_model(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, ka.checkpoints.read(folder)


def test_logits_are_equal(pair):
    theirs, _, ours = pair
    random = np.random.default_rng(2)
    valid = np.arange(13) < np.array([[5], [13], [1]])
    token_ids = np.where(valid, random.integers(4, V, valid.shape), PAD).astype("int32")
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(token_ids, dtype=torch.int64),
            attention_mask=torch.tensor(valid, dtype=torch.int64),
        ).logits.numpy()
    found = keras.ops.convert_to_numpy(ours.model({"token_ids": token_ids, "valid": valid}))
    assert np.abs(expected[valid]).max() > 0.3
    np.testing.assert_allclose(found[valid], expected[valid], rtol=0, atol=1e-5)


def test_it_goes_back_bit_for_bit(pair, tmp_path):
    theirs, folder, ours = pair
    ka.checkpoints.save(ours.model, tmp_path / "saved")
    again, info = type(theirs).from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not any(info.values()), info
    saved, original = (load_file(x / "model.safetensors") for x in (tmp_path / "saved", folder))
    assert saved.keys() == original.keys()
    for name, tensor in original.items():
        np.testing.assert_array_equal(saved[name], tensor, err_msg=name)
    with torch.no_grad():
        token_ids = torch.tensor([[5, 3, 8, 7]])
        np.testing.assert_array_equal(again(token_ids).logits, theirs(token_ids).logits)
