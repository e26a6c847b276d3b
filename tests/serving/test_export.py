from pathlib import Path

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation import Greedy, Sample, Temperature, TopK
from keras_arch.generation.score import score
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, logits
from tests.serving.client import ask, ask_by_c

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .\né"
TEXTS = ["the cat", "", "a", "né 中 x", "cats. and dogs"]
LONG = "the quick brown fox jumps over the lazy dog and the lazy cat and me"

tensorflow_only = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = ka.text.CharacterTokenizer(CHARACTERS)
    assert tokenizer.vocabulary_size == V
    return tokenizer


def same_generation(answer, expected):
    """Asserts that an answer is what `ka.generate` returned."""
    assert answer["text"] == expected.texts
    np.testing.assert_array_equal(answer["token_ids"], expected.token_ids)
    np.testing.assert_array_equal(answer["token_count"], expected.valid.sum(axis=1))
    np.testing.assert_allclose(
        answer["log_probabilities"], expected.log_probabilities, rtol=0, atol=1e-5
    )


def same_score(answer, expected):
    """Asserts that an answer is what `ka.score` returned."""
    np.testing.assert_array_equal(answer["token_count"], expected.token_counts)
    np.testing.assert_allclose(answer["log_likelihood"], expected.totals, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer["perplexity"], expected.perplexities, rtol=1e-5)


@tensorflow_only
@pytest.mark.parametrize("label", ["gpt2", "llama-window"])
def test_a_moved_export_answers_as_the_model_does(label, tokenizer, tmp_path):
    model = build(CONFIGS[label])
    start, stop = tokenizer.encode("\n")[0], tokenizer.encode("e")
    options = {"max_new_tokens": 9, "stop_ids": stop, "bos_id": start}
    path = ka.serving.export(model, tmp_path / "here", tokenizer, **options)
    assert path == tmp_path / "here" / "1"
    (tmp_path / "here").rename(tmp_path / "there")
    batches = [TEXTS, ["b"]]
    scored = [[*TEXTS, LONG], ["b"], [LONG]]
    token_ids = [tokenizer.encode("the cat"), tokenizer.encode("dog   .")]
    valid = [[True] * 7, [False] * 2 + [True] * 3 + [False] * 2]
    answers = ask(
        tmp_path / "there" / "1",
        *(("serving_default", {"text": texts}) for texts in batches),
        *(("score", {"text": texts}) for texts in scored),
        ("logits", {"token_ids": token_ids, "valid": valid}),
        *((name, {"text": []}) for name in ("serving_default", "score")),
    )
    options |= {"tokenizer": tokenizer, "return_logprobs": True}
    for texts in batches:
        same_generation(answers.pop(0), ka.generate(model, texts, **options))
    for texts in scored:
        same_score(answers.pop(0), score(model, texts, tokenizer, bos_id=start))
    got, expected = np.array(answers.pop(0)["logits"]), logits(model, token_ids, valid)
    np.testing.assert_allclose(got[valid], expected[valid], rtol=0, atol=1e-5)
    assert [answer["token_count"] for answer in answers] == [[], []]


@tensorflow_only
def test_a_request_may_give_seed_length_and_temperature(tokenizer, tmp_path):
    def request(seed=5, max_new_tokens=12, temperature=0.9):
        numbers = {"seed": seed, "max_new_tokens": max_new_tokens, "temperature": temperature}
        return "generate", {"text": ["abc", "né"], **numbers}

    def expected(seed, sampler, max_new_tokens=12):
        options = {"seed": seed, "tokenizer": tokenizer, "return_logprobs": True}
        return ka.generate(model, ["abc", "né"], max_new_tokens, sampler, **options)

    sampler = Sample(Temperature(0.9), TopK(20))
    model = build(CONFIGS["gpt2"], scale=0.2)
    ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=12, sampler=sampler)
    seeds = [0, 5, 2**33 + 5, 2**63 - 1]
    answers = ask(
        tmp_path / "1",
        *(request(seed) for seed in seeds),
        request(max_new_tokens=4),
        request(temperature=0.3),
        request(temperature=0.0),
        request(seed=-1),
        request(seed=-1),
        ("serving_default", {"text": ["abc", "né"]}),
        ("serving_default", {"text": ["abc", "né"]}),
    )
    for seed in seeds:
        same_generation(answers.pop(0), expected(seed, sampler))
    same_generation(answers.pop(0), expected(5, sampler, 4))
    same_generation(answers.pop(0), expected(5, Sample(Temperature(0.3), TopK(20))))
    same_generation(answers.pop(0), expected(None, Greedy()))
    assert len({str(answer["token_ids"]) for answer in answers}) == 4
    # A client that leaves the numbers out, as one may by gRPC, gets the signature's defaults.
    rows = ask_by_c(tmp_path, "--signature", "generate", "--text", "abc", "--text", "né")
    assert [len(row["token_ids"]) for row in rows] == [12, 12]
    inputs = '{"text": ["abc", "né"], "seed": 5}'
    rows = ask_by_c(tmp_path, "--signature", "generate", "--inputs", inputs)
    assert [row["text"] for row in rows] == expected(5, sampler).texts


@tensorflow_only
def test_draws_differ_whatever_the_global_seed_is(tokenizer, tmp_path):
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    path = ka.serving.export(
        build(CONFIGS["gpt2"], scale=0.1), tmp_path, tokenizer, max_new_tokens=12, sampler=Sample()
    )
    drawn = set()
    for _ in range(3):
        tf.random.set_seed(1)
        serve = tf.saved_model.load(str(path)).signatures["serving_default"]
        drawn.add(serve(text=tf.constant(["abc"]))["text"].numpy()[0])
    assert len(drawn) == 3


@pytest.fixture(scope="module")
def signatures(tokenizer, tmp_path_factory):
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("export")
    path = ka.serving.export(build(CONFIGS["gpt2"]), folder, tokenizer, max_new_tokens=9)
    return tf.saved_model.load(str(path)).signatures


@tensorflow_only
@pytest.mark.parametrize(
    ("texts", "numbers", "message"),
    [
        (["a" * (CONTEXT - 8)], {}, rf"context of {CONTEXT} tokens.*{CONTEXT - 8}.*9"),
        (["a" * CONTEXT], {"max_new_tokens": 1}, rf"context of {CONTEXT} tokens.*{CONTEXT}.*1"),
        (["a", ""], {}, "empty text"),
        (["a"], {"max_new_tokens": 10}, "from 1 to 9.*max_new_tokens=.*10"),
        (["a"], {"max_new_tokens": 0}, "from 1 to 9.*max_new_tokens=.*0"),
        (["a"], {"seed": -2}, "seed=.*-2"),
        (["a"], {"temperature": -0.5}, "temperature=.*-0.5"),
        (["a"], {"temperature": float("nan")}, "temperature=.*nan"),
        (["a"], {"temperature": float("inf")}, "temperature=.*inf"),
    ],
)
def test_requests_that_cannot_be_answered_are_errors(signatures, texts, numbers, message):
    import tensorflow as tf

    inputs = {"seed": -1, "max_new_tokens": 9, "temperature": 1.0, **numbers}
    specs = signatures["generate"].structured_input_signature[1]
    tensors = {name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        signatures["generate"](text=tf.constant(texts), **tensors)


@tensorflow_only
def test_a_text_may_fill_the_context(signatures):
    import tensorflow as tf

    answer = signatures["serving_default"](text=tf.constant(["a" * (CONTEXT - 9)]))
    assert answer["token_count"].numpy().tolist() == [9]


@tensorflow_only
@pytest.mark.parametrize(
    ("token_ids", "valid", "message"),
    [
        ([[1, V]], [[True, True]], f"from 0 to {V - 1}.*{V}"),
        ([[1, -1]], [[True, True]], f"from 0 to {V - 1}.*-1"),
        ([[1, 2]], [[True]], "one shape"),
        ([[1] * (CONTEXT + 1)], [[True] * (CONTEXT + 1)], f"context of {CONTEXT}.*{CONTEXT + 1}"),
    ],
)
def test_ids_without_logits_are_errors(signatures, token_ids, valid, message):
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        signatures["logits"](token_ids=tf.constant(token_ids), valid=tf.constant(valid))


@tensorflow_only
def test_bad_arguments_are_named(tokenizer, tmp_path):
    model = build(CONFIGS["gpt2"])
    with pytest.raises(ValueError, match=f"max_new_tokens=24, context_length={CONTEXT}"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=24)
    with pytest.raises(ValueError, match="version=0"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4, version=0)
    with pytest.raises(ValueError, match=f"stop_ids.*{V}"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4, stop_ids=[V])
    (tmp_path / "1").mkdir()
    with pytest.raises(FileExistsError, match=r"version 1 exists.*version="):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["1"]


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="this is its backend")
def test_other_backends_are_told_what_to_do(tokenizer, tmp_path):
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        ka.serving.export(build(CONFIGS["gpt2"]), tmp_path, tokenizer)
    assert not list(tmp_path.iterdir())
