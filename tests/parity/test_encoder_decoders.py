"""T5 and BART give the logits and the tokens of Hugging Face's `transformers`, on its weights."""

import re

import keras
import numpy as np
import pytest

import keras_arch as ka

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

V, START, STOP, PAD = 31, 2, 22, 1
SHAPE = {
    "vocabulary_size": V,
    "width": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "heads": 4,
    "hidden_width": 24,
}
IDS = {"pad_token_id": PAD, "eos_token_id": STOP, "decoder_start_token_id": START}

_BLOCK = r"(\w+coder)_block_(\d)/"
#: Our layer -> theirs, side by side in one matrix.
T5_LAYERS = {
    "tokens": ["shared"],
    "head/projection": ["lm_head"],
    r"(\w+coder)_bias": [r"\1.block.0.layer.0.SelfAttention.relative_attention_bias"],
    r"(\w+coder)_norm": [r"\1.final_layer_norm"],
    f"{_BLOCK}attention/self_attention/query_key_value": [
        rf"\1.block.\2.layer.0.SelfAttention.{name}" for name in "qkv"
    ],
    f"{_BLOCK}attention/self_attention/output_projection": [r"\1.block.\2.layer.0.SelfAttention.o"],
    f"{_BLOCK}attention/norm": [r"\1.block.\2.layer.0.layer_norm"],
    f"{_BLOCK}cross_attention/cross_attention/query": [r"\1.block.\2.layer.1.EncDecAttention.q"],
    f"{_BLOCK}cross_attention/cross_attention/key_value": [
        rf"\1.block.\2.layer.1.EncDecAttention.{name}" for name in "kv"
    ],
    f"{_BLOCK}cross_attention/cross_attention/output_projection": [
        r"\1.block.\2.layer.1.EncDecAttention.o"
    ],
    f"{_BLOCK}cross_attention/norm": [r"\1.block.\2.layer.1.layer_norm"],
    r"encoder_block_(\d)/feedforward/feedforward/down": [
        r"encoder.block.\1.layer.1.DenseReluDense.wo"
    ],
    r"decoder_block_(\d)/feedforward/feedforward/down": [
        r"decoder.block.\1.layer.2.DenseReluDense.wo"
    ],
    r"encoder_block_(\d)/feedforward/norm": [r"encoder.block.\1.layer.1.layer_norm"],
    r"decoder_block_(\d)/feedforward/norm": [r"decoder.block.\1.layer.2.layer_norm"],
}
PLAIN = {
    r"encoder_block_(\d)/feedforward/feedforward/up": [
        r"encoder.block.\1.layer.1.DenseReluDense.wi"
    ],
    r"decoder_block_(\d)/feedforward/feedforward/up": [
        r"decoder.block.\1.layer.2.DenseReluDense.wi"
    ],
}
GATED = {ours: [f"{theirs}_{i}" for i in (0, 1)] for ours, (theirs,) in PLAIN.items()}
BART_LAYERS = {
    "tokens": ["model.shared"],
    "source_position_table": ["model.encoder.embed_positions"],
    "target_position_table": ["model.decoder.embed_positions"],
    "source_embedding_norm": ["model.encoder.layernorm_embedding"],
    "target_embedding_norm": ["model.decoder.layernorm_embedding"],
    f"{_BLOCK}attention/self_attention/query_key_value": [
        rf"model.\1.layers.\2.self_attn.{name}_proj" for name in "qkv"
    ],
    f"{_BLOCK}attention/self_attention/output_projection": [
        r"model.\1.layers.\2.self_attn.out_proj"
    ],
    f"{_BLOCK}attention/norm": [r"model.\1.layers.\2.self_attn_layer_norm"],
    f"{_BLOCK}cross_attention/cross_attention/query": [r"model.\1.layers.\2.encoder_attn.q_proj"],
    f"{_BLOCK}cross_attention/cross_attention/key_value": [
        rf"model.\1.layers.\2.encoder_attn.{name}_proj" for name in "kv"
    ],
    f"{_BLOCK}cross_attention/cross_attention/output_projection": [
        r"model.\1.layers.\2.encoder_attn.out_proj"
    ],
    f"{_BLOCK}cross_attention/norm": [r"model.\1.layers.\2.encoder_attn_layer_norm"],
    f"{_BLOCK}feedforward/feedforward/up": [r"model.\1.layers.\2.fc1"],
    f"{_BLOCK}feedforward/feedforward/down": [r"model.\1.layers.\2.fc2"],
    f"{_BLOCK}feedforward/norm": [r"model.\1.layers.\2.final_layer_norm"],
}
#: Copies of the table, and the bias of zeros that is no parameter.
TIED = {"encoder.embed_tokens", "decoder.embed_tokens", "lm_head"}
TIED |= {f"model.{name}" for name in TIED}


def t5(gated):
    """A tiny T5 of version 1.0 or, gated, of 1.1, theirs and ours."""
    theirs = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=V,
            d_model=16,
            num_layers=2,
            num_decoder_layers=3,
            num_heads=4,
            d_kv=6,
            d_ff=24,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=10,
            feed_forward_proj="gated-gelu" if gated else "relu",
            tie_word_embeddings=not gated,
            **IDS,
        )
    )
    if gated:
        # This version of transformers ties what its config says is not tied.
        theirs.lm_head.weight = torch.nn.Parameter(torch.empty(V, 16))
    config = ka.models.T5Config(
        **SHAPE,
        head_width=6,
        buckets=8,
        max_distance=10,
        gated=gated,
        activation="gelu_tanh" if gated else "relu",
        tied=not gated,
    )
    return copied(theirs, ka.models.t5(config), T5_LAYERS | (GATED if gated else PLAIN))


def bart():
    """A tiny BART, theirs and ours."""
    theirs = transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            vocab_size=V,
            d_model=16,
            encoder_layers=2,
            decoder_layers=3,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            max_position_embeddings=24,
            bos_token_id=0,
            forced_eos_token_id=None,
            **IDS,
        )
    )
    model = ka.models.bart(ka.models.BARTConfig(**SHAPE, context_length=24))
    return copied(theirs, model, BART_LAYERS)


def copied(theirs, ours, table):
    """Gives both the same random weights; every one of theirs must have its place in ours."""
    theirs.eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            mean = 1.0 if name.endswith(("norm.weight", "norm_embedding.weight")) else 0.0
            parameter.normal_(mean, 0.2, generator=random)
    state = {name: x.numpy() for name, x in theirs.state_dict().items()}
    used = {"final_logits_bias"}
    for weight in ours.weights:
        layer, _, kind = weight.path.rpartition("/")
        (found,) = ((p, names) for p, names in table.items() if re.fullmatch(p, layer))
        suffix = "bias" if kind in ("bias", "offset") else "weight"
        names = [f"{re.sub(found[0], name, layer)}.{suffix}" for name in found[1]]
        used |= set(names)
        arrays = [state[name].T if kind == "kernel" else state[name] for name in names]
        weight.assign(np.concatenate(arrays, axis=-1))
    rest = set(state) - used
    assert {name.rpartition(".")[0] for name in rest} <= TIED
    return theirs, ours


MODELS = {"t5": lambda: t5(gated=False), "t5_v1_1": lambda: t5(gated=True), "bart": bart}


@pytest.fixture(scope="module", params=MODELS)
def pair(request):
    return MODELS[request.param]()


def ragged(length, lengths, seed):
    random = np.random.default_rng(seed)
    valid = np.arange(length) < np.array(lengths)[:, None]
    return np.where(valid, random.integers(4, V, valid.shape), PAD).astype("int32"), valid


def source():
    return dict(zip(("source_ids", "source_valid"), ragged(14, [14, 3, 9], 1), strict=True))


def of_source():
    ids, valid = source().values()
    return {
        "input_ids": torch.tensor(ids, dtype=torch.int64),
        "attention_mask": torch.tensor(valid, dtype=torch.int64),
    }


def test_logits_are_equal(pair):
    theirs, ours = pair
    token_ids, valid = ragged(13, [5, 13, 1], 2)
    with torch.no_grad():
        expected = theirs(
            **of_source(),
            decoder_input_ids=torch.tensor(token_ids, dtype=torch.int64),
            decoder_attention_mask=torch.tensor(valid, dtype=torch.int64),
        ).logits.numpy()
    found = keras.ops.convert_to_numpy(ours({**source(), "token_ids": token_ids, "valid": valid}))
    assert np.abs(expected[valid]).max() > 0.3
    np.testing.assert_allclose(found[valid], expected[valid], rtol=0, atol=1e-5)


@pytest.mark.parametrize("width", [1, 3], ids=["greedy", "beams"])
def test_generated_ids_are_equal(pair, width):
    theirs, ours = pair
    with torch.no_grad():
        # A length penalty of 0: theirs divides by another function of the length.
        expected = theirs.generate(
            **of_source(),
            max_new_tokens=8,
            do_sample=False,
            num_beams=width,
            length_penalty=0.0,
            use_cache=False,
        ).numpy()[:, 1:]
    prompts, options = [[START]] * 3, {"stop_ids": [STOP], "context": source()}
    if width == 1:
        found = ka.generate(ours, prompts, 8, **options)
        token_ids, valid = found.token_ids, found.valid
    else:
        found = ka.generation.generate_beams(
            ours, prompts, 8, ka.generation.BeamSearch(width), **options
        )
        token_ids, valid = found.token_ids[:, 0], found.valid[:, 0]
    time = expected.shape[1]
    token_ids = np.where(valid, token_ids, PAD)
    np.testing.assert_array_equal(token_ids[:, :time], expected)
    assert not valid[:, time:].any()
