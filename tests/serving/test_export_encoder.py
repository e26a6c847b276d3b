"""Encoders behind a SavedModel, against the model and the functions of the core in this process."""

import functools
import tempfile

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.contracts.tiny import build
from tests.serving.client import ask_all, ask_by_c

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)

CONTEXT = 24
LONG = "the quick brown fox jumps over the lazy dog and the naïve cat sat on the mat. " * 3
TEXTS = ["the cat sat", "", "Né 中文 naïve ☃!", LONG, "a dog, and a fox."]
QUESTIONS = ["what sat?", "who", "né?", "who jumps over the lazy dog", ""]
LABELS = ["ham", "späm", "eggs"]
SPECIAL = {"begin": "<s>", "end": "</s>", "mask": "<mask>"}


@functools.cache
def tokenizer(kind="word_piece"):
    if kind == "word_piece":
        return ka.text.WordPieceTokenizer.train([LONG + TEXTS[2]], 120)
    return ka.text.BytePairTokenizer.train([LONG], 290, SPECIAL)


@functools.cache
def encoder(kind="bert"):
    config_class, _ = ka.models.catalog[kind]
    words = tokenizer("byte_pair" if kind == "roberta" else "word_piece")
    shape = {"width": 16, "layers": 1, "heads": 2, "context_length": CONTEXT}
    return build(config_class(vocabulary_size=words.vocabulary_size, **shape))


def grown(model):
    """The model with a head whose weights are large enough to matter."""
    random = np.random.default_rng(1)
    for weight in model.weights:
        if weight.path.startswith(("classes", "span_scores", "prediction")):
            weight.assign(random.normal(scale=2.0, size=weight.shape))
    return model


def centred(model):
    """The classifier with a bias by which no class is the greatest of all texts."""
    bias = model.get_layer("classes").bias
    bias.assign(bias - run(model, packed(TEXTS)).mean(axis=0))
    return model


def loaded(model):
    """The classifier as it comes back from a checkpoint, and the names of its classes."""
    with tempfile.TemporaryDirectory() as folder:
        ka.checkpoints.save(model, folder, labels=LABELS)
        loaded = ka.checkpoints.read(folder, head="sequence_classification")
    return loaded.model, {"labels": loaded.report.labels}


HEADS = {
    "vector": lambda: (ka.models.sentence_embedding(encoder()), {}),
    "similarity": lambda: (
        ka.models.pair_similarity(ka.models.sentence_embedding(encoder("distilbert"))),
        {},
    ),
    "label": lambda: loaded(centred(grown(ka.models.sequence_classification(encoder(), 3)))),
    "tag": lambda: (grown(ka.models.token_classification(encoder(), 3)), {"labels": LABELS}),
    "tokens": lambda: (grown(ka.models.masked_lm(encoder("electra"))), {"top": 3}),
    "answer": lambda: (grown(ka.models.span_answers(encoder())), {"stride": 4, "longest": 5}),
    "roberta": lambda: (
        grown(ka.models.span_answers(encoder("roberta"))),
        {"between": 2, "longest": 4, "stride": 6},
    ),
}
MASKED = ["the [MASK] sat", "[MASK] né [MASK]!"]
REQUESTS = {name: [{"text": TEXTS}, {"text": TEXTS[2:3]}, {"text": []}] for name in HEADS}
REQUESTS |= {"tokens": [{"text": MASKED}, {"text": MASKED[:1]}, {"text": []}]}
REQUESTS |= {"similarity": [{"text": TEXTS, "other_text": QUESTIONS}]}
for _name in ("answer", "roberta"):
    REQUESTS[_name] = [
        {"question": QUESTIONS, "text": TEXTS},
        {"question": QUESTIONS[3:4], "text": TEXTS[3:4]},
        {"question": [], "text": []},
    ]


@pytest.fixture(scope="module")
def made():
    """Head -> model and options."""
    return {name: make() for name, make in HEADS.items()}


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """Exports of all heads, moved from where they were written."""
    folder = tmp_path_factory.mktemp("encoders")
    for name, (model, options) in made.items():
        words = tokenizer("byte_pair" if name == "roberta" else "word_piece")
        path = ka.serving.export_encoder(model, folder / "here" / name, words, **options)
        assert path == folder / "here" / name / "1"
    (folder / "here").rename(folder / "there")
    return folder / "there"


@pytest.fixture(scope="module")
def answers(folder):
    """Head -> answers to its requests, by one process."""
    asked = [
        (folder / name / "1", [("serving_default", request) for request in requests])
        for name, requests in REQUESTS.items()
    ]
    return dict(zip(REQUESTS, ask_all(*asked), strict=True))


def packed(texts):
    first, separator = tokenizer().edge_ids
    return ka.objectives.pack_texts(
        [tokenizer().encode(text) for text in texts],
        length=CONTEXT,
        classification_id=first,
        separator_id=separator,
    )


def run(model, inputs):
    names = {x.name for x in model.inputs}
    outputs = model({name: x for name, x in inputs.items() if name in names})
    return keras.ops.convert_to_numpy(outputs).astype("float64")


def softmax(logits):
    logits = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return logits / logits.sum(axis=-1, keepdims=True)


def close(received, expected):
    np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)


def test_vectors(made, answers):
    expected = run(made["vector"][0], packed(TEXTS))
    five, one, none = (answer["vector"] for answer in answers["vector"])
    close(five, expected)
    close(one, expected[2:3])
    assert none == []
    close(np.linalg.norm(five, axis=-1), 1)


def test_similarities(made, answers):
    embedding = next(x for x in made["similarity"][0].layers if isinstance(x, keras.Model))
    first, second = (run(embedding, packed(texts)) for texts in (TEXTS, QUESTIONS))
    close(answers["similarity"][0]["similarity"], (first * second).sum(axis=-1))


def test_classes(made, answers):
    expected = softmax(run(made["label"][0], packed(TEXTS)))
    five, one, none = answers["label"]
    close(five["probabilities"], expected)
    close(one["probabilities"], expected[2:3])
    assert five["label"] == [LABELS[i] for i in expected.argmax(axis=-1)]
    assert len(set(five["label"])) > 1
    assert none == {"probabilities": [], "label": []}


def test_tags(made, answers):
    expected = softmax(run(made["tag"][0], packed(TEXTS)))
    five, one, none = answers["tag"]
    assert none["word_count"] == []
    for i, text in enumerate(TEXTS):
        places = tokenizer().locate(text)
        firsts = [places.words.index(word) for word in sorted(set(places.words))]
        lasts = [first - 1 for first in firsts[1:]] + [len(places.words) - 1]
        told = [k for k in firsts if k < CONTEXT - 2]
        count = five["word_count"][i]
        assert count == len(told)
        chances = expected[i, np.array(told, int) + 1]
        assert five["tag"][i][:count] == [LABELS[k] for k in chances.argmax(axis=-1)]
        close(five["probability"][i][:count], chances.max(axis=-1))
        assert five["start"][i][:count] == [places.starts[k] for k in told]
        assert five["end"][i][:count] == [places.ends[k] for k in lasts[:count]]
        for column, pad in (("tag", ""), ("probability", 0), ("start", 0), ("end", 0)):
            assert set(five[column][i][count:]) <= {pad}
    assert one["tag"][0] == five["tag"][2][: one["word_count"][0]]
    words = [TEXTS[4][a:b] for a, b in zip(five["start"][4], five["end"][4], strict=True)]
    assert words[: five["word_count"][4]] == ["a", "dog", ",", "and", "a", "fox", "."]


def test_filled_masks(made, answers):
    expected = ka.fill_mask(made["tokens"][0], MASKED, tokenizer(), top=3)
    two, one, none = answers["tokens"]
    assert two["mask_count"] == [1, 2]
    for i, masks in enumerate(expected):
        for k, fillings in enumerate(masks):
            assert two["tokens"][i][k] == [filling.token for filling in fillings]
            assert two["token_ids"][i][k] == [filling.token_id for filling in fillings]
            close(two["probabilities"][i][k], [filling.probability for filling in fillings])
    assert two["tokens"][0][1] == ["", "", ""]
    assert one["tokens"] == [two["tokens"][0][:1]]
    assert none == {"tokens": [], "token_ids": [], "probabilities": [], "mask_count": []}


@pytest.mark.parametrize(("name", "kind"), [("answer", "word_piece"), ("roberta", "byte_pair")])
def test_answers(made, answers, name, kind):
    model, options = made[name]
    words, between = tokenizer(kind), options.get("between", 1)
    first, separator = words.edge_ids
    five, one, none = answers[name]
    for i, (question, text) in enumerate(zip(QUESTIONS, TEXTS, strict=True)):
        places = words.locate(text)
        inputs, columns, _ = ka.objectives.answer_windows(
            words.encode(question)[: CONTEXT // 2],
            places.token_ids,
            length=CONTEXT,
            stride=options["stride"],
            classification_id=first,
            separator_id=separator,
            between=between,
        )
        best = ka.objectives.best_answer(run(model, inputs), columns, options["longest"])
        close(five["score_of_none"][i], best.score_of_none)
        if best.first is None:
            assert (five["answer"][i], five["start"][i], five["end"][i]) == ("", 0, 0)
            assert five["score"][i] < -1e38
            continue
        start, end = places.starts[best.first], places.ends[best.last]
        assert (five["start"][i], five["end"][i]) == (start, end)
        assert five["answer"][i] == text[start:end]
        close(five["score"][i], best.score)
    assert five["answer"][1] == ""
    assert one["answer"] == five["answer"][3:4]
    assert none["answer"] == []


def test_the_c_api_answers_too(folder, answers):
    rows = ask_by_c(folder / "label", "--text", TEXTS[2])
    assert [row["label"] for row in rows] == answers["label"][1]["label"]
    for name in HEADS:
        assert not ka.serving.foreign_operations(folder / name / "1")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["the [MASK]", "the cat"], "must have a mask.*the cat"),
        (["[MASK] " * (CONTEXT - 1)], f"context of {CONTEXT} tokens.*{CONTEXT + 1}"),
    ],
)
def test_requests_that_cannot_be_answered_are_errors(folder, texts, message):
    import tensorflow as tf

    serve = tf.saved_model.load(str(folder / "tokens" / "1")).signatures["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        serve(text=tf.constant(texts))


def test_bad_arguments_are_named(made, tmp_path):
    def attempt(head, message, words=None, **changes):
        model, options = made[head] if isinstance(head, str) else (head, {})
        with pytest.raises(ValueError, match=message):
            ka.serving.export_encoder(model, tmp_path, words or tokenizer(), **options | changes)

    attempt("label", r"3 classes.*received labels=\['ham'\]", labels=["ham"])
    attempt("label", r"3 classes.*received labels='abc'", labels="abc")
    attempt("label", r"distinct .*received labels=\['a', 'b', 'a'\]", labels=["a", "b", "a"])
    attempt("tag", r"distinct .*received labels=\['a', 'b', ''\]", labels=["a", "b", ""])
    attempt("label", r"3 classes.*received labels=\(\)", labels=None)
    attempt("vector", "labels is for another head than the model's, Embedding", labels=LABELS)
    attempt("tokens", "top=0", top=0)
    attempt("answer", "stride must be at most 9, .*received stride=10", stride=10)
    attempt("answer", "longest=0", longest=0)
    attempt("answer", "between=0", between=0)
    attempt("tag", "version=0", version=0)
    without = ka.text.WordPieceTokenizer(tokenizer().vocabulary, {"unknown": "[UNK]"})
    attempt("tag", r"separator or end token; received one with \['unknown'\]", without)
    attempt("vector", "tokenizer of 290 tokens", tokenizer("byte_pair"))
    attempt(encoder(), "must have one output")
    attempt(ka.models.token_vectors(encoder()), "must have a head of keras_arch.models")
    attempt(ka.models.replaced_tokens(encoder()), "must have a head of keras_arch.models")
    squashed = keras.layers.Dense(3, activation="softmax")(encoder().output["pooled"])
    attempt(keras.Model(encoder().inputs, squashed), "must have a head", labels=LABELS)
    attempt("similarity", "tokenizer of 290 tokens", tokenizer("byte_pair"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"path must be a folder; received path=.*file is a file"):
        ka.serving.export_encoder(made["vector"][0], tmp_path / "file" / "a", tokenizer())
