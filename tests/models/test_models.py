import keras
import numpy as np
import pytest

import keras_arch as ka

#: As published: GPT-2's by its release (the tied head counted once), LLaMA's by Touvron et al.,
#: those of T5, BART, Marian and the encoders as their checkpoints count; the Transformer's in
#: `test_encoder_decoders.py`.
PUBLISHED = {
    ("gpt2", "small"): 124_439_808,
    ("gpt2", "medium"): 354_823_168,
    ("gpt2", "large"): 774_030_080,
    ("gpt2", "xl"): 1_557_611_200,
    ("llama", "7b"): 6_738_415_616,
    ("llama", "13b"): 13_015_864_320,
    ("llama", "33b"): 32_528_943_616,
    ("llama", "65b"): 65_285_660_672,
    ("transformer", "base"): 63_045_632,
    ("transformer", "big"): 214_171_648,
    ("t5", "small"): 60_506_624,
    ("t5", "base"): 222_903_552,
    ("t5", "large"): 737_668_096,
    ("t5", "3b"): 2_851_598_336,
    ("t5", "11b"): 11_307_321_344,
    ("t5", "v1_1_small"): 76_961_152,
    ("t5", "v1_1_base"): 247_577_856,
    ("t5", "v1_1_large"): 783_150_080,
    ("t5", "v1_1_xl"): 2_849_757_184,
    ("t5", "v1_1_xxl"): 11_135_332_352,
    ("bart", "base"): 139_420_416,
    ("bart", "large"): 406_291_456,
    ("marian", "base"): 73_944_309,
    ("bert", "base"): 109_482_240,
    ("bert", "large"): 335_141_888,
    ("bert", "base_cased"): 108_310_272,
    ("bert", "large_cased"): 333_579_264,
    ("roberta", "base"): 124_645_632,
    ("roberta", "large"): 355_359_744,
    ("distilbert", "base"): 66_362_880,
    ("electra", "small"): 13_483_008,
    ("electra", "base"): 108_891_648,
    ("electra", "large"): 334_092_288,
}
SHAPE = {"vocabulary_size": 31, "width": 16, "layers": 2, "heads": 4, "context_length": 24}


def test_every_size_has_its_published_count():
    sizes = {(name, size) for name, sizes in ka.models.SIZES.items() for size in sizes}
    assert sizes == set(PUBLISHED)
    for (name, size), count in PUBLISHED.items():
        assert ka.analysis.count_parameters(ka.models.SIZES[name][size]) == count


def test_every_block_is_a_node():
    model = ka.models.gpt2(ka.models.GPT2Config(**SHAPE))
    names = [layer.name for layer in model.layers]
    assert {"tokens", "positions", "position_table", "block_0", "block_1", "final_norm"} <= {*names}
    assert type(model).__name__ == "Functional"


def test_a_tied_table_is_one_weight():
    tied, untied = (
        ka.models.gpt2(ka.models.GPT2Config(**SHAPE, tied=tied)) for tied in (True, False)
    )
    assert untied.count_params() - tied.count_params() == 31 * 16
    tables = [w for w in tied.weights if tuple(w.shape) in {(31, 16), (16, 31)}]
    assert len(tables) == 1


def test_matrices_that_write_into_the_stream_start_smaller():
    shape = {**SHAPE, "width": 64, "layers": 8}
    model = ka.models.gpt2(ka.models.GPT2Config(**shape, initializer_range=0.1))

    def deviation(part):
        found = [w for w in model.weights if w.path.endswith(part)]
        assert len(found) == 8
        return np.std([keras.ops.convert_to_numpy(w) for w in found])

    assert deviation("query_key_value/kernel") == pytest.approx(0.1, rel=0.02)
    assert deviation("up/kernel") == pytest.approx(0.1, rel=0.02)
    assert deviation("output_projection/kernel") == pytest.approx(0.1 / 4, rel=0.02)
    assert deviation("down/kernel") == pytest.approx(0.1 / 4, rel=0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 5}, "width=16, heads=5"),
        ({"layers": 0}, "layers=0"),
        ({"vocabulary_size": 3.5}, r"vocabulary_size=3\.5"),
        ({"context_length": True}, "context_length=True"),
        ({"dropout": 1.0}, r"dropout=1\.0"),
        ({"dropout": "0.1"}, "dropout='0.1'"),
        ({"hidden_width": -1}, "hidden_width=-1"),
        ({"norm_epsilon": float("nan")}, "norm_epsilon.*nan"),
        ({"initializer_range": 0.0}, r"initializer_range.*0\.0"),
    ],
)
@pytest.mark.parametrize("name", ["GPT2Config", "LlamaConfig", "BERTConfig"])
def test_bad_fields_are_named(name, changes, message):
    rest = {"hidden_width": 24} if name == "LlamaConfig" else {}
    with pytest.raises(ValueError, match=message):
        getattr(ka.models, name)(**{**SHAPE, **rest, **changes})


def test_rotary_needs_even_heads():
    with pytest.raises(ValueError, match="width=20, heads=4"):
        ka.models.LlamaConfig(**{**SHAPE, "width": 20}, hidden_width=24)


def test_a_config_of_no_model_is_named():
    with pytest.raises(ValueError, match="ELECTRAConfig; received config='gpt2'"):
        ka.models.builder("gpt2")
