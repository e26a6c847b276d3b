"""T5, BART and Marian give the logits and tokens of `transformers`, on its weights."""

import keras
import numpy as np
import pytest

import keras_arch as ka

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.parity.round_trip import check_round_trip, randomised, saved  # noqa: E402 (needs torch)

V, START, STOP, PAD = 31, 2, 22, 1
IDS = {"pad_token_id": PAD, "eos_token_id": STOP, "decoder_start_token_id": START}


def t5(**fields):
    """A tiny T5 of theirs."""
    return transformers.T5ForConditionalGeneration(
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
            **IDS,
            **fields,
        )
    )


def t5_v1_1():
    """A tiny T5 of version 1.1."""
    model = t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    # This version of transformers ties what its config says is not tied.
    model.lm_head.weight = torch.nn.Parameter(torch.empty(V, 16))
    return model


def bart():
    """A tiny BART of theirs."""
    return transformers.BartForConditionalGeneration(
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


def marian(**fields):
    """A tiny Marian of theirs: its decoder starts from the pad."""
    shape = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 16}
    shape |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
    shape |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24)
    shape |= {"max_position_embeddings": 24, "activation_function": "swish"}
    ids = IDS | {"decoder_start_token_id": PAD, "forced_eos_token_id": None}
    fields = {"vocab_size": V, "scale_embedding": True, **shape, **ids, **fields}
    model = transformers.MarianMTModel(transformers.MarianConfig(**fields))
    model.final_logits_bias.normal_(generator=torch.Generator().manual_seed(1))
    return model


def marian_apart():
    """One whose source has a table of its own, of more tokens."""
    own = {"vocab_size": V + 3, "decoder_vocab_size": V, "activation_function": "relu"}
    return marian(share_encoder_decoder_embeddings=False, **own)


MODELS = {
    "t5": t5,
    "t5_v1_1": t5_v1_1,
    "bart": bart,
    "marian": marian,
    "marian_apart": marian_apart,
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    theirs = randomised(MODELS[request.param](), scale=0.2)
    theirs, loaded = saved(theirs, tmp_path_factory.mktemp("theirs"))
    return theirs, loaded.model


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


def test_it_goes_back_bit_for_bit(pair, tmp_path):
    inputs = {**of_source(), "decoder_input_ids": torch.tensor([[START, 5, 7]] * 3)}
    # Theirs has a Marian's pad at the end of the published vocabulary.
    check_round_trip(*pair, tmp_path, inputs, fields=IDS)


@pytest.mark.once
def test_the_published_marian_has_as_many_parameters():
    config = ka.models.SIZES["marian"]["base"]
    with torch.device("meta"):
        theirs = transformers.MarianMTModel(
            transformers.MarianConfig(
                vocab_size=58101,
                d_model=512,
                encoder_layers=6,
                decoder_layers=6,
                encoder_attention_heads=8,
                decoder_attention_heads=8,
                encoder_ffn_dim=2048,
                decoder_ffn_dim=2048,
                max_position_embeddings=512,
            )
        )
    # Their sinusoids are parameters that are not trained, their bias is a buffer.
    count = theirs.num_parameters(only_trainable=True) + theirs.final_logits_bias.numel()
    assert ka.analysis.count_parameters(config) == count


# The other Marian's decoder is the first one's.
@pytest.mark.parametrize("pair", [x for x in MODELS if x != "marian_apart"], indirect=True)
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
    start = theirs.config.decoder_start_token_id
    prompts, options = [[start]] * 3, {"stop_ids": [STOP], "context": source()}
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
