import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.backend import compile_function
from keras_arch.models import AttentionSeq2SeqConfig, Seq2SeqConfig, attention_seq2seq, seq2seq

V = 19
SHAPE = {"vocabulary_size": V, "width": 6, "encoder_width": 4, "decoder_width": 8}
#: Label -> function from nothing to a model.
MODELS = {
    "copy": lambda: seq2seq(
        Seq2SeqConfig(**SHAPE, bridge="copy", encoder_layers=2, decoder_layers=2)
    ),
    "gru": lambda: seq2seq(
        Seq2SeqConfig(**{**SHAPE, "width": 8}, cell="gru", bidirectional=False, tied=True)
    ),
    "bahdanau": lambda: attention_seq2seq(AttentionSeq2SeqConfig(**SHAPE)),
    "coverage": lambda: attention_seq2seq(
        AttentionSeq2SeqConfig(**SHAPE, normalised=True, coverage=True, source_vocabulary_size=23)
    ),
    "luong": lambda: attention_seq2seq(
        AttentionSeq2SeqConfig(
            **SHAPE, attention="general", order="luong", decoder_layers=2, bridge="dense"
        )
    ),
    "dot": lambda: attention_seq2seq(
        AttentionSeq2SeqConfig(
            **SHAPE, attention="dot", order="luong", input_feeding=False, bridge="zero"
        )
    ),
    "local": lambda: attention_seq2seq(
        AttentionSeq2SeqConfig(**SHAPE, attention="local", window=2, order="luong", cell="gru")
    ),
    "location": lambda: attention_seq2seq(
        AttentionSeq2SeqConfig(**SHAPE, attention="location", max_source_length=9)
    ),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())

#: Pads on the left; none; on the right and inside.
VALID = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0]], "bool")
SOURCE_VALID = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 1]], "bool")


def randomised(make):
    model = make()
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(scale=0.5, size=weight.shape))
    return model


def inputs(batch=3, source=5, time=6):
    random = np.random.default_rng(1)
    return {
        "source_ids": random.integers(0, V, (batch, source)).astype("int32"),
        "source_valid": np.resize(SOURCE_VALID, (batch, source)),
        "token_ids": random.integers(0, V, (batch, time)).astype("int32"),
        "valid": np.resize(VALID, (batch, time)),
    }


def logits(model, values):
    run = compile_function(lambda *v: model(dict(zip(values, v, strict=True))), model.variables)
    return ops.convert_to_numpy(run(*values.values()))


@every_model
def test_steps_equal_the_whole_after_a_round_trip(make, tmp_path):
    model, values = randomised(make), inputs()
    whole = logits(model, values)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    stepper = ka.generation.Stepper(again)
    for chunks in ([1] * 6, [3, 3], [6]):

        def run(source_ids, source_valid, token_ids, valid, chunks=chunks):
            context = {"source_ids": source_ids, "source_valid": source_valid}
            state, begin, outputs = stepper.start(3, 6, context), 0, []
            for size in chunks:
                part = slice(begin, begin + size)
                output, state = stepper.step(token_ids[:, part], valid[:, part], state)
                outputs.append(output)
                begin += size
            return ops.concatenate(outputs, axis=1)

        stepped = compile_function(run, stepper.variables)(*values.values())
        stepped = ops.convert_to_numpy(stepped)
        np.testing.assert_allclose(stepped[VALID], whole[VALID], rtol=0, atol=1e-5)


@every_model
def test_another_batch_and_source_length_after_reload(make, tmp_path):
    # tfa#2675: memory baked into the graph.
    model = randomised(make)
    logits(model, inputs(batch=2, source=4))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    values = inputs(batch=5, source=9)
    np.testing.assert_allclose(logits(again, values), logits(model, values), atol=1e-6)


@every_model
def test_source_pads_change_nothing(make):
    model, values = randomised(make), inputs()
    values["source_valid"] = np.ones((3, 5), "bool")
    alone = logits(model, values)
    for left, right in ((0, 4), (3, 1)):
        sides = ((0, 0), (left, right))
        padded = {
            **values,
            "source_ids": np.pad(values["source_ids"], sides, constant_values=7),
            "source_valid": np.pad(values["source_valid"], sides),
        }
        np.testing.assert_allclose(logits(model, padded)[VALID], alone[VALID], atol=1e-5)


@every_model
def test_the_source_matters_and_later_tokens_do_not(make):
    model, values = randomised(make), inputs()
    before = logits(model, values)
    source = {**values, "source_ids": (values["source_ids"] + 1) % V}
    assert np.abs(logits(model, source) - before).max() > 1e-3
    later = {**values, "token_ids": values["token_ids"].copy()}
    later["token_ids"][:, 4:] = (later["token_ids"][:, 4:] + 1) % V
    np.testing.assert_array_equal(logits(model, later)[:, :4], before[:, :4])


@pytest.mark.parametrize("name", ["gru", "coverage", "luong"])
def test_one_batch_is_learned(name):
    model = MODELS[name]()
    random = np.random.default_rng(2)
    rows = random.integers(1, V, (3, 7)).astype("int32")
    values, targets, weights = ka.objectives.next_token(rows, np.ones(rows.shape, "bool"))
    values |= {k: v for k, v in inputs().items() if k.startswith("source")}
    model.compile(keras.optimizers.Adam(0.05), ka.objectives.TokenCrossentropy())
    options = {"sample_weight": weights, "batch_size": 3, "verbose": 0, "shuffle": False}
    losses = model.fit(values, targets, epochs=100, **options).history["loss"]
    assert losses[0] == pytest.approx(np.log(V), abs=0.3)
    assert losses[-1] < 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_width": 0}, "encoder_width=0"),
        ({"cell": "rnn"}, r"cell must be one of \('lstm', 'gru'\); received cell='rnn'"),
        ({"bridge": "none"}, "bridge='none'"),
        ({"tied": True}, "tied needs decoder_width equal to width; received decoder_width=8"),
        ({"bridge": "copy", "bidirectional": False}, "encoder_width=4, bidirectional=False"),
        ({"bridge": "copy", "decoder_layers": 2}, "encoder_layers=1, decoder_layers=2"),
        ({"attention": "bahdanau"}, "attention='bahdanau'"),
        ({"order": "both"}, "order='both'"),
        ({"attention": "dot", "encoder_width": 5}, "attention='dot' needs.*encoder_width=5"),
        ({"attention": "local"}, "window=None"),
        ({"attention": "location"}, "max_source_length=None"),
        ({"window": 3}, "window=3, attention='additive'"),
        ({"attention": "general", "coverage": True}, "coverage=True, attention='general'"),
        ({"input_feeding": False}, "input_feeding=False needs order='luong'"),
        ({"recurrent_dropout": 1.0}, r"recurrent_dropout=1\.0"),
        ({"source_vocabulary_size": 0}, "source_vocabulary_size=0"),
    ],
)
def test_bad_fields_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        AttentionSeq2SeqConfig(**{**SHAPE, **changes})


def test_a_decoder_that_would_not_see_the_source_is_refused():
    with pytest.raises(ValueError, match="bridge='zero'"):
        Seq2SeqConfig(**SHAPE, bridge="zero")
