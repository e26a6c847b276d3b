"""Decoder-only checkpoints give the logits of `transformers` here, and go back as they came."""

import keras
import numpy as np
import pytest

import keras_arch as ka

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.parity.round_trip import check_round_trip, randomised, saved  # noqa: E402 (needs torch)

V, PAD = 31, 1

GPT2 = {"vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 24}
GPT2 |= {"bos_token_id": None, "eos_token_id": None}
LLAMA = {"vocab_size": V, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
LLAMA |= {"bos_token_id": None, "eos_token_id": None}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 4.0}
YARN |= {"original_max_position_embeddings": 8}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0}
LLAMA3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0}

#: Label -> class in transformers, its config's fields.
CASES = {
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2-untied": (
        "GPT2LMHeadModel",
        GPT2
        | {"n_inner": 24, "activation_function": "gelu", "layer_norm_epsilon": 0.1}
        | {"tie_word_embeddings": False},
    ),
    "llama": ("LlamaForCausalLM", LLAMA | {"rope_parameters": LLAMA3, "rms_norm_eps": 0.1}),
    "llama-biases": (
        "LlamaForCausalLM",
        LLAMA
        | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 6}
        | {"hidden_act": "gelu_pytorch_tanh", "rope_parameters": LINEAR},
    ),
    "mistral": ("MistralForCausalLM", LLAMA | {"sliding_window": 3}),
    "qwen2": (
        "Qwen2ForCausalLM",
        LLAMA
        | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}
        | {"rope_parameters": YARN},
    ),
    "qwen3": ("Qwen3ForCausalLM", LLAMA | {"head_dim": 6, "tie_word_embeddings": True}),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    """Theirs, and what it was read as here."""
    name, fields = CASES[request.param]
    architecture = getattr(transformers, name)
    theirs = randomised(architecture(architecture.config_class(**fields)))
    return saved(theirs, tmp_path_factory.mktemp("theirs"))


def test_logits_are_equal(pair):
    theirs, ours = pair
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
    theirs, ours = pair
    check_round_trip(theirs, ours.model, tmp_path, {"input_ids": torch.tensor([[5, 3, 8, 7]])})


@pytest.mark.parametrize("pair", ["gpt2", "llama"], indirect=True)
def test_greedy_ids_are_equal(pair):
    theirs, ours = pair
    prompts = [[5, 3, 8, 7, 9], [12, 4]]
    # Padded on the left, as they want it.
    token_ids = torch.tensor([prompts[0], [PAD] * 3 + prompts[1]])
    mask = torch.tensor([[1] * 5, [0] * 3 + [1] * 2])
    expected = theirs.generate(
        token_ids, attention_mask=mask, max_new_tokens=8, do_sample=False, pad_token_id=PAD
    )
    found = ka.generate(ours.model, prompts, 8)
    np.testing.assert_array_equal(found.token_ids, expected[:, 5:].numpy())
