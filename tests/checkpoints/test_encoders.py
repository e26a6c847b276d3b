"""Encoders' checkpoints, made by hand: names, spellings and heads as in published files."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_arch as ka
from keras_arch.checkpoints.families import family_named
from keras_arch.checkpoints.fields import Fields
from tests.checkpoints.hand_made import in_any_order

once = pytest.mark.once
V, D, HIDDEN, CONTEXT = 11, 8, 12, 6
SHAPE = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": HIDDEN,
    "max_position_embeddings": CONTEXT,
}
EMBEDDING = {
    "embeddings.word_embeddings.weight": (V, D),
    "embeddings.position_embeddings.weight": (CONTEXT, D),
    "embeddings.token_type_embeddings.weight": (2, D),
    "embeddings.LayerNorm.weight": (D,),
    "embeddings.LayerNorm.bias": (D,),
}
LAYER = {
    "attention.self.query": (D, D),
    "attention.self.key": (D, D),
    "attention.self.value": (D, D),
    "attention.output.dense": (D, D),
    "attention.output.LayerNorm": (D,),
    "intermediate.dense": (HIDDEN, D),
    "output.dense": (D, HIDDEN),
    "output.LayerNorm": (D,),
}
POOLER = {"pooler.dense.weight": (D, D), "pooler.dense.bias": (D,)}
BERT_PREDICTIONS = {
    "cls.predictions.bias": (V,),
    "cls.predictions.transform.dense.weight": (D, D),
    "cls.predictions.transform.dense.bias": (D,),
    "cls.predictions.transform.LayerNorm.weight": (D,),
    "cls.predictions.transform.LayerNorm.bias": (D,),
}


def body(prefix, *parts):
    shapes = dict(EMBEDDING)
    for name, shape in LAYER.items():
        shapes[f"encoder.layer.0.{name}.weight"] = shape
        shapes[f"encoder.layer.0.{name}.bias"] = shape[:1]
    for part in parts:
        shapes |= part
    return {prefix + name: shape for name, shape in shapes.items()}


def tensors(shapes):
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def write(folder, given, model_type="bert", **fields):
    folder.mkdir(exist_ok=True)
    save_file(given, folder / "model.safetensors")
    config = {"model_type": model_type, **SHAPE, **fields}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def weights(model):
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.weights}


def refused(source, *words, **options):
    with pytest.raises(ValueError, match=in_any_order(*words)):
        ka.checkpoints.load(source, **options)


@pytest.fixture(scope="module")
def pretrained():
    """A BERT of all its pretraining, as published: norms spelt as in TensorFlow, a buffer."""
    given = tensors(body("bert.", POOLER) | BERT_PREDICTIONS)
    given["cls.seq_relationship.weight"] = np.zeros((2, D), "float32")
    for name in [name for name in given if "LayerNorm" in name]:
        old = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        given[old] = given.pop(name)
    return given | {"bert.embeddings.position_ids": np.arange(CONTEXT)[None]}


def test_one_file_is_read_with_and_without_its_heads(pretrained, tmp_path):
    write(tmp_path, pretrained, architectures=["BertForPreTraining"])
    other = "of a head that was not asked for"
    model, config, report = ka.checkpoints.read(tmp_path)
    assert config == ka.models.BERTConfig(
        vocabulary_size=V, width=D, layers=1, heads=2, hidden_width=HIDDEN, context_length=CONTEXT
    )
    found = weights(model)
    np.testing.assert_array_equal(
        found["embedding_norm/scale"], pretrained["bert.embeddings.LayerNorm.gamma"]
    )
    np.testing.assert_array_equal(found["pooler/kernel"], pretrained["bert.pooler.dense.weight"].T)
    assert report.ignored["cls.predictions.bias"] == other
    assert report.ignored["bert.embeddings.position_ids"] == "0, 1, 2 and on, a constant"
    model, _, report = ka.checkpoints.read(tmp_path, head="masked_lm")
    found = weights(model)
    np.testing.assert_array_equal(
        found["prediction_norm/offset"], pretrained["cls.predictions.transform.LayerNorm.beta"]
    )
    np.testing.assert_array_equal(found["prediction_bias/bias"], pretrained["cls.predictions.bias"])
    assert report.ignored["cls.seq_relationship.weight"] == other
    assert report.ignored["bert.pooler.dense.bias"].startswith("of the pooler")


@once
def test_a_file_without_a_pooler(pretrained, tmp_path):
    given = {name: x for name, x in pretrained.items() if "pooler" not in name}
    write(tmp_path / "given", given)
    refused(tmp_path / "given", "bert.pooler.dense.weight is missing", "head='token_vectors'")
    model = ka.checkpoints.load(tmp_path / "given", head="token_vectors")
    assert list(model.output) == ["hidden"]
    ka.checkpoints.save(model, tmp_path / "saved")
    # As the bare model names them.
    assert load_file(tmp_path / "saved" / "model.safetensors").keys() == body("").keys()
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    assert config.items() >= SHAPE.items()


@once
def test_copies_of_the_table_and_the_bias(pretrained, tmp_path):
    table, bias = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
    copies = {
        table: pretrained["bert.embeddings.word_embeddings.weight"],
        bias: pretrained["cls.predictions.bias"],
    }
    write(tmp_path, pretrained | copies)
    ignored = ka.checkpoints.read(tmp_path, head="masked_lm").report.ignored
    assert ignored[table] == ignored[bias] == "the head is the table, and one bias"
    for name in copies:
        write(tmp_path, pretrained | copies | {name: copies[name] + 1})
        refused(tmp_path, f"{name} must equal", head="masked_lm")
        # A head that is not read may hold anything.
        ka.checkpoints.load(tmp_path)


@once
def test_what_is_not_there_or_not_known_is_named(pretrained, tmp_path):
    write(tmp_path, tensors(body("", POOLER)))
    refused(tmp_path, "cls.predictions.bias is missing", head="masked_lm")
    refused(tmp_path, "head must be one of", "'masked_lm'", "head='tags'", head="tags")
    refused(tmp_path, "[None] for gpt2", "head='masked_lm'", family="gpt2", head="masked_lm")
    write(tmp_path, pretrained | {"extra_head.weight": np.zeros(D, "float32")})
    refused(tmp_path, "extra_head.weight (8,) has no place here")
    # A table padded to a multiple of some number.
    padded = tensors(body("", POOLER) | {"embeddings.word_embeddings.weight": (V + 5, D)})
    refused(write(tmp_path, padded), "word_embeddings.weight (16, 8) must be (11, 8)")


@once
@pytest.mark.parametrize(
    ("model_type", "head", "field"),
    [
        ("bert", None, {"position_embedding_type": "relative_key"}),
        ("bert", None, {"is_decoder": True}),
        ("bert", None, {"hidden_act": "mish"}),
        ("bert", None, {"pooler_type": "mean"}),
        ("bert", "masked_lm", {"tie_word_embeddings": False}),
    ],
)
def test_fields_that_are_refused(model_type, head, field):
    ((name, value),) = field.items()
    with pytest.raises(ValueError, match=in_any_order(f"{name}={value!r}")):
        config_of(model_type, head, **field)


def config_of(model_type, head=None, **fields):
    fields = Fields(SHAPE | fields)
    config = family_named(model_type, head).read(fields)
    fields.harmless()
    return config


@once
def test_fields_that_are_honoured():
    config = config_of(
        "bert",
        hidden_act="gelu_new",
        layer_norm_eps=1e-6,
        type_vocab_size=3,
        position_embedding_type="absolute",
        tie_word_embeddings=False,
        hidden_dropout_prob=0.1,
        pooler_fc_size=768,
    )
    assert (config.activation, config.norm_epsilon, config.types) == ("gelu_tanh", 1e-6, 3)
