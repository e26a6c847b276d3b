import numpy as np
import pytest
from safetensors.numpy import save_file

import keras_arch as ka
from keras_arch.checkpoints.families import FAMILIES, families_named, family_named
from keras_arch.checkpoints.fields import Fields
from keras_arch.checkpoints.matching import check_repeats, match
from keras_arch.checkpoints.tensor_files import TensorFiles
from tests.checkpoints.hand_made import in_any_order

pytestmark = pytest.mark.once

LLAMA = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
T5 = {"vocab_size": 32, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_heads": 2}
BART = {
    "vocab_size": 32,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 8,
}
GPT2 = {"vocab_size": 32, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 8}
DISTILBERT = {
    "vocab_size": 32,
    "dim": 16,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 8,
}
MARIAN = BART | {"scale_embedding": True}
SMALLEST = {"gpt2": GPT2, "t5": T5, "bart": BART, "marian": MARIAN, "distilbert": DISTILBERT}
SMALLEST |= {"bert": LLAMA, "roberta": LLAMA | {"pad_token_id": 1}}
SMALLEST |= {"electra": LLAMA | {"embedding_size": 8}}
SMALLEST |= dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), LLAMA)


def read(model_type, ignored=(), **fields):
    return FAMILIES[model_type].read(Fields(SMALLEST[model_type] | fields, ignored))


def refused(model_type, *words, **fields):
    with pytest.raises(ValueError, match=in_any_order(*words)):
        read(model_type, **fields)


HEADS = [(name, head) for name in FAMILIES for head in families_named(name)]


@pytest.mark.parametrize(("model_type", "head"), HEADS)
def test_a_table_has_each_weight_and_each_tensor_once(model_type, head):
    tied = {"tie_word_embeddings": False} if model_type not in ("bart", "marian") else {}
    config, family = read(model_type, **tied), family_named(model_type, head)
    rows = family.rows(config)
    paths = [weight.path for weight in ka.models.outline(config, family.build).weights]
    assert sorted(row.weight for row in rows) == sorted(paths)
    names = [name for row in rows for name in row.tensors]
    assert len(set(names)) == len(names)


#: The fields of published files that decide the number of parameters, and that number.
PUBLISHED = {
    "Llama-3.2-1B": (
        "llama",
        {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192}
        | {"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8}
        | {"head_dim": 64, "max_position_embeddings": 131072, "tie_word_embeddings": True},
        1_235_814_400,
    ),
    "Qwen2.5-0.5B": (
        "qwen2",
        {"vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864}
        | {"num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2}
        | {"max_position_embeddings": 32768, "tie_word_embeddings": True},
        494_032_768,
    ),
    "Qwen3-0.6B": (
        "qwen3",
        {"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072}
        | {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8}
        | {"head_dim": 128, "max_position_embeddings": 40960, "tie_word_embeddings": True},
        596_049_920,
    ),
    "bert-base-uncased": (
        "bert",
        {"vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072}
        | {"num_hidden_layers": 12, "num_attention_heads": 12, "type_vocab_size": 2}
        | {"max_position_embeddings": 512},
        109_482_240,
    ),
    "roberta-base": (
        "roberta",
        {"vocab_size": 50265, "hidden_size": 768, "intermediate_size": 3072}
        | {"num_hidden_layers": 12, "num_attention_heads": 12, "type_vocab_size": 1}
        | {"max_position_embeddings": 514, "pad_token_id": 1},
        124_645_632,
    ),
    "distilbert-base-uncased": (
        "distilbert",
        {"vocab_size": 30522, "dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12}
        | {"max_position_embeddings": 512},
        66_362_880,
    ),
    "electra-small-discriminator": (
        "electra",
        {"vocab_size": 30522, "hidden_size": 256, "intermediate_size": 1024}
        | {"num_hidden_layers": 12, "num_attention_heads": 4, "type_vocab_size": 2}
        | {"max_position_embeddings": 512, "embedding_size": 128},
        13_483_008,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    model_type, fields, count = PUBLISHED[name]
    config = FAMILIES[model_type].read(Fields(fields))
    assert ka.analysis.count_parameters(config) == count


ROPES = {
    "none": ({}, 10000.0, None),
    "old": ({"rope_theta": 500, "rope_scaling": None}, 500.0, None),
    "linear": (
        {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
        500.0,
        ka.layers.LinearScaling(2.0),
    ),
    "dynamic": (
        {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
        10000.0,
        ka.layers.DynamicNTKScaling(2.0, 64),
    ),
    "yarn": (
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
        10000.0,
        ka.layers.YarnScaling(4.0, 16),
    ),
    # 0.1 ln(4) + 1.
    "yarn's own magnitude": (
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": 1.138629436}},
        10000.0,
        ka.layers.YarnScaling(4.0, 64),
    ),
    "llama3": (
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            }
        },
        500000.0,
        ka.layers.Llama3Scaling(8.0, 16),
    ),
}


@pytest.mark.parametrize("name", ROPES)
def test_rotary_fields(name):
    fields, base, scaling = ROPES[name]
    config = read("llama", **fields)
    assert (config.rotary_base, config.rotary_scaling) == (base, scaling)
    assert read("llama", **FAMILIES["llama"].write(config)) == config


@pytest.mark.parametrize(
    ("rope", "words"),
    [
        ({"rope_type": "longrope", "factor": 2.0}, ["rope_type='longrope'"]),
        ({"rope_type": "linear"}, ["must have factor"]),
        ({"rope_type": "default", "partial_rotary_factor": 0.5}, ["partial_rotary_factor=0.5"]),
        ({"type": "yarn", "factor": 2.0, "attention_factor": 1.0}, ["attention_factor=1.0"]),
        ({"type": "yarn", "factor": 2.0, "mscale": 0.7}, ["mscale=0.7"]),
        ({"type": "yarn", "factor": 2.0, "truncate": False}, ["truncate=False"]),
        ({"type": "linear", "factor": 2.0, "twist": 1}, ["twist=1", "ignore_fields=['twist']"]),
    ],
)
def test_rotary_fields_that_are_refused(rope, words):
    refused("llama", *words, rope_scaling=rope)


def test_windows():
    assert read("mistral").window == 4096
    assert read("mistral", sliding_window=None).window is None
    slides = {"use_sliding_window": True, "sliding_window": 8}
    for kind in ("qwen2", "qwen3"):
        assert read(kind).window is None
        assert read(kind, sliding_window=8, max_window_layers=0).window is None
        assert read(kind, **slides, max_window_layers=0).window == 8
        assert read(kind, **slides, max_window_layers=2).window is None
        refused(kind, "one window", "max_window_layers=1", **slides, max_window_layers=1)
        mixed = ["full_attention", "sliding_attention"]
        refused(kind, "layer_types", layer_types=mixed)
        refused(kind, "layer_types", layer_types=["chunked_attention"] * 2)


def test_biases_and_heads():
    def parts(config):
        names = ("use_bias", "use_output_bias", "use_feedforward_bias", "query_key_norm")
        return tuple(getattr(config, name) for name in names)

    assert parts(read("llama")) == (False, False, False, False)
    assert parts(read("llama", attention_bias=True)) == (True, True, False, False)
    assert parts(read("llama", mlp_bias=True)) == (False, False, True, False)
    assert parts(read("qwen2")) == (True, False, False, False)
    assert parts(read("qwen3")) == (False, False, False, True)
    assert read("qwen3").head_width == 128
    assert read("llama", num_key_value_heads=2, head_dim=6).head_width == 6
    assert read("llama", hidden_act="gelu_pytorch_tanh").activation == "gelu_tanh"


def test_versions_of_t5():
    def version(**fields):
        config = read("t5", **fields)
        return config.gated, config.activation, config.tied

    assert version() == (False, "relu", True)
    gelu = {"feed_forward_proj": "gated-gelu"}
    assert version(**gelu, tie_word_embeddings=False) == (True, "gelu_tanh", False)
    # As transformers 5 writes it.
    new = {"tie_word_embeddings": True, "scale_decoder_outputs": False, "dense_act_fn": "gelu_new"}
    assert version(**gelu, **new, is_gated_act=True) == (True, "gelu_tanh", False)
    assert version(feed_forward_proj="gated-silu") == (True, "silu", True)
    assert read("t5", num_decoder_layers=3).decoder_layers == 3
    refused("t5", "feed_forward_proj='mish'", feed_forward_proj="gated-mish")
    refused("t5", "dense_act_fn='gelu'", **gelu, dense_act_fn="gelu")
    refused("t5", "is_gated_act=True", is_gated_act=True)
    unscaled = {"tie_word_embeddings": False, "scale_decoder_outputs": True}
    refused("t5", "scale_decoder_outputs=True", **unscaled)


@pytest.mark.parametrize(
    "field",
    [
        {"scale_embedding": True},
        {"normalize_before": True},
        {"add_final_layer_norm": True},
        {"extra_pos_embeddings": 0},
        {"tie_word_embeddings": False},
        {"decoder_ffn_dim": 32},
        {"decoder_attention_heads": 4},
        {"num_hidden_layers": 2},
    ],
)
def test_barts_that_are_refused(field):
    ((name, value),) = field.items()
    refused("bart", f"{name}={value}", **field)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"scale_embedding": False}, ["scale_embedding=False"]),
        ({"scale_embedding": None}, ["must have scale_embedding"]),
        ({"normalize_embedding": True}, ["normalize_embedding=True"]),
        ({"static_position_embeddings": False}, ["static_position_embeddings=False"]),
        ({"tie_word_embeddings": False}, ["tie_word_embeddings=False"]),
        ({"d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 3}, ["width=15"]),
    ],
)
def test_marians_that_are_refused(field, words):
    refused("marian", *words, **field)


def test_the_tables_of_marian():
    assert read("marian").source_vocabulary_size is None
    apart = read("marian", share_encoder_decoder_embeddings=False, decoder_vocab_size=30)
    assert (apart.source_vocabulary_size, apart.vocabulary_size) == (32, 30)
    # As published files say it, and of no effect.
    published = {"add_bias_logits": False, "extra_pos_embeddings": 33, "num_beams": 6}
    published |= {"bad_words_ids": [[31]], "decoder_vocab_size": 32, "normalize_embedding": False}
    fields = Fields(MARIAN | published)
    assert FAMILIES["marian"].read(fields) == read("marian")
    assert {*fields.harmless()} == {"bad_words_ids", "num_beams"}


def zeros_of(family, config):
    """Returns the shapes of our weights, and zeros for each tensor of theirs, by name."""
    shapes = {w.path: tuple(w.shape) for w in ka.models.outline(config).weights}
    given = {}
    for row in family.rows(config):
        for name, shape in zip(row.tensors, row.shapes(shapes[row.weight]), strict=True):
            given[name] = np.zeros(shape, "float32")
    return shapes, given


@pytest.mark.parametrize("shared", [True, False])
def test_what_marians_files_hold_more(shared, tmp_path):
    family, config = FAMILIES["marian"], read("marian", share_encoder_decoder_embeddings=shared)
    shapes, given = zeros_of(family, config)
    assert given["final_logits_bias"].shape == (1, 32)
    own, place = np.zeros((32, 16), "float32"), np.ones((8, 16), "float32")
    places = [f"model.{side}coder.embed_positions.weight" for side in ("en", "de")]
    copies = ["lm_head.weight"]
    copies += [f"model.{side}coder.embed_tokens.weight" for side in ("en", "de") if shared]
    more = dict.fromkeys(places, place) | dict.fromkeys(copies, own)
    save_file(given | more, tmp_path / "model.safetensors")
    matched = match(family, config, TensorFiles([tmp_path / "model.safetensors"]), shapes)
    assert set(matched.ignored) == {*places, *copies}
    table = "model.shared.weight" if shared else "model.decoder.embed_tokens.weight"
    assert matched.repeats == dict.fromkeys(copies, table)


def test_what_repeats_the_shared_table_or_is_zero_is_not_read(tmp_path):
    family, config = FAMILIES["bart"], read("bart")
    shapes, given = zeros_of(family, config)
    given = {name.removeprefix("model."): tensor for name, tensor in given.items()}
    # A file of the bare model, as the published BART's is.
    given["encoder.embed_tokens.weight"] = given["shared.weight"]
    save_file(given, tmp_path / "bare.safetensors")
    matched = match(family, config, TensorFiles([tmp_path / "bare.safetensors"]), shapes)
    assert set(matched.ignored) == {"encoder.embed_tokens.weight"}
    whole = {f"model.{name}": tensor for name, tensor in given.items()}
    whole |= {"final_logits_bias": np.zeros((1, 32), "float32")}
    save_file(whole, tmp_path / "whole.safetensors")
    files = TensorFiles([tmp_path / "whole.safetensors"])
    matched = match(family, config, files, shapes)
    assert matched.repeats == {
        "final_logits_bias": 0.0,
        "model.encoder.embed_tokens.weight": "model.shared.weight",
    }
    check_repeats(matched, files)
    whole["final_logits_bias"][0, 3] = 1
    save_file(whole, tmp_path / "biased.safetensors")
    files = TensorFiles([tmp_path / "biased.safetensors"])
    with pytest.raises(ValueError, match=r"final_logits_bias must equal 0.0"):
        check_repeats(match(family, config, files, shapes), files)
