import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.analysis import attention_weights
from keras_arch.generation import BeamSearch, Sample, Stepper, Temperature, generate_beams
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.score import score
from tests.contracts.tiny import CONFIGS, V, build, context_of, logits
from tests.serving.client import ask

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)
SOURCES = ["the cat", "a", "né 中 x", "cats. and dogs"]
START, STOP, N = 29, 4, 7
OPTIONS = {"stop_ids": [STOP], "bos_id": START}
SEARCH = BeamSearch(3, length_penalty=0.7)


@pytest.fixture(scope="module")
def tokenizer():
    return ka.text.CharacterTokenizer("abcdefghijklmnopqrstuvwxyz .\né")


@pytest.fixture(scope="module")
def model():
    return build(CONFIGS["attention_seq2seq"])


@pytest.fixture(scope="module")
def folder(model, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    sampler = Sample(Temperature(0.9))
    options = {"max_new_tokens": N, "sampler": sampler, "search": SEARCH, **OPTIONS}
    ka.serving.export(model, folder, tokenizer, **options)
    return folder.rename(folder.with_name("there")) / "1"


def sources(tokenizer, texts=SOURCES, edges=((), ())):
    first, last = edges
    return {"source_ids": [[*first, *tokenizer.encode(text), *last] for text in texts]}


def searched(model, tokenizer, search=SEARCH, max_new_tokens=N, edges=((), ())):
    prompts = [[START]] * len(SOURCES)
    context = sources(tokenizer, edges=edges)
    options = {"context": context, "tokenizer": tokenizer, "stop_ids": [STOP]}
    return generate_beams(model, prompts, max_new_tokens, search, **options)


def same(answer, expected):
    """Asserts that an answer is the best that `generate_beams` found."""
    assert answer["text"] == [texts[0] for texts in expected.texts]
    np.testing.assert_array_equal(answer["token_ids"], expected.token_ids[:, 0])
    np.testing.assert_array_equal(answer["token_count"], expected.valid[:, 0].sum(axis=1))
    columns = {
        "log_probabilities": expected.log_probabilities[:, 0],
        "score": expected.scores[:, 0],
    }
    for name, values in columns.items():
        np.testing.assert_allclose(answer[name], values, rtol=0, atol=1e-5)


def test_a_moved_export_answers_as_the_model_does(model, tokenizer, folder):
    token_ids = np.random.default_rng(3).integers(0, V, (3, 6))
    valid = np.arange(6) < [[6], [4], [5]]
    context = context_of(model, 3)
    targets = ["dog", "", "xyz é", "b"]
    seeded = {"text": SOURCES, "seed": 5, "max_new_tokens": N, "temperature": 0.9}
    answers = ask(
        folder,
        ("serving_default", {"text": SOURCES}),
        ("search", {"text": SOURCES, "width": 2, "max_new_tokens": 4}),
        ("search", {"text": SOURCES, "width": 1, "max_new_tokens": N}),
        ("attention", {"text": SOURCES, "width": 3, "max_new_tokens": 5}),
        ("generate", seeded),
        ("score", {"text": SOURCES, "target": targets}),
        (
            "logits",
            {
                **{"token_ids": token_ids.tolist(), "valid": valid.tolist()},
                **{name: x.tolist() for name, x in context.items()},
            },
        ),
        ("serving_default", {"text": []}),
        ("attention", {"text": [], "width": 2, "max_new_tokens": 5}),
    )
    same(answers.pop(0), searched(model, tokenizer))
    same(answers.pop(0), searched(model, tokenizer, dataclasses.replace(SEARCH, width=2), 4))
    same(answers.pop(0), searched(model, tokenizer, dataclasses.replace(SEARCH, width=1)))
    same_attention(answers.pop(0), model, tokenizer)
    prompts, sampler = [[START]] * len(SOURCES), Sample(Temperature(0.9))
    sampled = ka.generate(
        model,
        prompts,
        N,
        sampler,
        seed=5,
        stop_ids=[STOP],
        tokenizer=tokenizer,
        context=sources(tokenizer),
    )
    assert answers.pop(0)["text"] == sampled.texts
    answer = answers.pop(0)
    expected = score(model, targets, tokenizer, bos_id=START, context=sources(tokenizer))
    np.testing.assert_array_equal(answer["token_count"], expected.token_counts)
    np.testing.assert_allclose(answer["log_likelihood"], expected.totals, rtol=0, atol=1e-5)
    got, expected = np.array(answers.pop(0)["logits"]), logits(model, token_ids, valid)
    np.testing.assert_allclose(got[valid], expected[valid], rtol=0, atol=1e-5)
    assert [answer["text"] for answer in answers] == [[], []]


def same_attention(answer, model, tokenizer):
    """Asserts that the weights are those of teacher forcing on what was found."""
    expected = searched(model, tokenizer, max_new_tokens=5)
    same(answer, expected)
    rows = sources(tokenizer)["source_ids"]
    lengths = np.array([[len(row)] for row in rows])
    source_valid = np.arange(lengths.max()) < lengths
    source_ids = np.zeros(source_valid.shape, "int32")
    source_ids[source_valid] = np.concatenate(rows)
    ids, valid = expected.token_ids[:, 0], expected.valid[:, 0]
    read = np.concatenate([np.full((len(ids), 1), START), ids[:, :-1]], axis=1)
    inputs = {"token_ids": read, "valid": valid}
    inputs |= {"source_ids": source_ids, "source_valid": source_valid}
    weights = attention_weights(model, inputs)["decoder"]
    np.testing.assert_allclose(answer["attention"], weights, rtol=0, atol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=-1), valid, rtol=0, atol=1e-5)
    for name, all_ids, real in (
        ("tokens", ids, valid),
        ("source_tokens", source_ids, source_valid),
    ):
        words = [
            [tokenizer.decode([i]) if r else "" for i, r in zip(*row, strict=True)]
            for row in zip(all_ids, real, strict=True)
        ]
        assert answer[name] == words


def test_transformers_translate_by_beams(tokenizer, tmp_path):
    model = build(dataclasses.replace(CONFIGS["t5"], encoder_layers=1, decoder_layers=1))
    edges = [START, 7], [STOP]
    options = {"max_new_tokens": N, "search": SEARCH, "source_edges": edges, **OPTIONS}
    ka.serving.export(model, tmp_path, tokenizer, **options)
    (answer,) = ask(tmp_path / "1", ("serving_default", {"text": SOURCES}))
    same(answer, searched(model, tokenizer, edges=edges))


def test_the_weights_of_heads_are_cut_to_the_tokens(tokenizer):
    import tensorflow as tf

    from keras_arch.serving.decoder import Decoder
    from keras_arch.serving.translation import TranslationModule

    model = build(dataclasses.replace(CONFIGS["transformer"], decoder_layers=1))
    decoder = Decoder(Stepper(model), N, Greedy(), BeamSearch(1), [STOP])
    module = TranslationModule(decoder, tokenizer, START, tokenizer, ([], []))
    answer = module.signatures()["attention"](*map(tf.constant, (SOURCES, 1, 4)))
    weights = answer["attention"].numpy()
    assert weights.shape == (len(SOURCES), 4, 4, max(map(len, SOURCES)))
    valid = np.arange(4) < answer["token_count"].numpy()[:, None]
    np.testing.assert_allclose(
        weights.sum(axis=-1), np.broadcast_to(valid[:, None], weights.shape[:3]), atol=1e-5
    )


@pytest.fixture(scope="module")
def signatures(folder):
    import tensorflow as tf

    return tf.saved_model.load(str(folder)).signatures


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("search", {"text": ["a", ""]}, "source text is empty.*a"),
        ("search", {"width": 0}, "from 1 to 3.*width=.*0"),
        ("search", {"width": 4}, "from 1 to 3.*width=.*4"),
        ("search", {"max_new_tokens": N + 1}, f"from 1 to {N}.*max_new_tokens=.*{N + 1}"),
        ("generate", {"temperature": -1.0}, "temperature=.*-1"),
        ("score", {"text": ["a", "b"], "target": ["a"]}, "as many"),
    ],
)
def test_requests_that_cannot_be_answered_are_errors(signatures, name, inputs, message):
    import tensorflow as tf

    specs = signatures[name].structured_input_signature[1]
    defaults = {"text": ["a"], "width": 3, "max_new_tokens": N, "seed": -1, "temperature": 1.0}
    inputs = {key: ({**defaults, **inputs})[key] for key in specs}
    tensors = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        signatures[name](**tensors)


def test_a_language_model_is_searched_too(tokenizer, tmp_path):
    model = build(CONFIGS["lstm_lm"])
    search = BeamSearch(4, groups=2, diversity=0.5)
    ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=5, search=search, **OPTIONS)
    request = {"text": ["the", ""], "width": 2, "max_new_tokens": 5}
    (answer,) = ask(tmp_path / "1", ("search", request))
    search = dataclasses.replace(search, width=2)
    expected = generate_beams(model, ["the", ""], 5, search, tokenizer=tokenizer, **OPTIONS)
    same(answer, expected)


@pytest.mark.parametrize(
    ("label", "options", "message"),
    [
        ("seq2seq", {"bos_id": None}, "bos_id=None"),
        ("seq2seq", {"search": 5}, "search=5"),
        ("seq2seq", {"search": BeamSearch(V + 1)}, f"width={V + 1}"),
        ("seq2seq", {"search": BeamSearch(2, n_best=2)}, "n_best=2"),
        (
            "seq2seq",
            {"source_tokenizer": ka.text.CharacterTokenizer("abc")},
            f"source_tokenizer.*4 tokens.*{V}",
        ),
        (
            "gpt2",
            {"source_tokenizer": ka.text.CharacterTokenizer("abc")},
            "source_tokenizer and source_edges need a model with",
        ),
        ("gpt2", {"source_edges": ([], [1])}, r"source_edges need .* source_edges=\(\[\], \[1\]\)"),
        ("seq2seq", {"source_edges": ([], [V])}, rf"ids of the source's vocabulary, \[0, {V}\)"),
        ("seq2seq", {"source_edges": [[1]]}, r"two lists .* source_edges=\[\[1\]\]"),
    ],
)
def test_bad_arguments_are_named(label, options, message, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=message):
        ka.serving.export(
            build(CONFIGS[label]), tmp_path, tokenizer, max_new_tokens=4, **{**OPTIONS, **options}
        )
    assert not list(tmp_path.iterdir())


def test_other_inputs_are_refused(tokenizer, tmp_path):
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
        "image": keras.Input((8,), name="image"),
    }
    x = ka.layers.TokenEmbedding(V, 8, name="tokens")(inputs["token_ids"])
    x = x + keras.layers.Dense(8)(inputs["image"])[:, None]
    model = keras.Model(inputs, keras.layers.Dense(V)(x))
    with pytest.raises(ValueError, match=r"received one that takes \['image'\]"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4, **OPTIONS)
