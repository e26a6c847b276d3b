"""Encoders' checkpoints: spellings, heads and missing poolers as in published files."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_arch as ka
from keras_arch.checkpoints.families import family_named
from keras_arch.checkpoints.fields import Fields
from tests.checkpoints.hand_made import in_any_order
from tests.checkpoints.hand_made_encoders import (
    BERT_PREDICTIONS,
    CONTEXT,
    DISTILBERT,
    ELECTRA,
    FILES,
    HIDDEN,
    POOLER,
    ROBERTA,
    SHAPE,
    D,
    V,
    body,
    tensors,
)

once = pytest.mark.once


def write(folder, given, model_type="bert", **fields):
    folder.mkdir(exist_ok=True)
    save_file(given, folder / "model.safetensors")
    config = {"model_type": model_type, **SHAPE, **fields}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def saved(model, folder):
    """Returns what is written of a model: the config and the tensors, by name."""
    ka.checkpoints.save(model, folder)
    return json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")


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


@once
@pytest.mark.parametrize("architecture", FILES)
def test_it_goes_back_as_it_came(architecture, tmp_path):
    model_type, head, fields, shapes = FILES[architecture]
    given = tensors(shapes)
    (tmp_path / "given").mkdir()
    save_file(given, tmp_path / "given" / "model.safetensors")
    (tmp_path / "given" / "config.json").write_text(json.dumps(fields))
    model = ka.checkpoints.load(tmp_path / "given", model_type, head=head)
    config, found = saved(model, tmp_path / "saved")
    assert (config["model_type"], config["architectures"]) == (model_type, [architecture])
    assert config.items() >= fields.items()
    assert found.keys() == given.keys()
    for name, tensor in given.items():
        np.testing.assert_array_equal(found[name], tensor)


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
    config, found = saved(model, tmp_path / "saved")
    # As the bare model names them.
    assert found.keys() == body("").keys()
    assert config["architectures"] == ["BertModel"]


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
        ("electra", "masked_lm", {"tie_word_embeddings": False}),
        ("roberta", None, {"type_vocab_size": 2}),
        ("roberta", None, {"position_embedding_type": "relative_key_query"}),
        ("distilbert", None, {"activation": "mish"}),
        ("electra", "replaced_tokens", {"hidden_act": "mish"}),
    ],
)
def test_fields_that_are_refused(model_type, head, field):
    ((name, value),) = field.items()
    with pytest.raises(ValueError, match=in_any_order(f"{name}={value!r}")):
        config_of(model_type, head, **field)


def config_of(model_type, head=None, **fields):
    smallest = {"distilbert": DISTILBERT, "electra": SHAPE | ELECTRA, "roberta": SHAPE | ROBERTA}
    fields = Fields(smallest.get(model_type, SHAPE) | fields)
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
    # Neither reads the table again.
    for model_type, head in [("bert", "token_vectors"), ("electra", "replaced_tokens")]:
        config_of(model_type, head, tie_word_embeddings=False)
    with pytest.raises(ValueError, match="must have pad_token_id; received None"):
        config_of("roberta", pad_token_id=None)
    config = config_of("roberta", pad_token_id=0, layer_norm_eps=1e-5)
    assert (config.position_offset, config.context_length) == (1, CONTEXT + 1)
    assert config.norm_epsilon == 1e-5
    # The table of sinusoids is in the file like any other.
    config = config_of("distilbert", sinusoidal_pos_embds=True, tie_weights_=True, qa_dropout=0.1)
    assert (config.norm_epsilon, config.activation) == (1e-12, "gelu")
    config = config_of("electra", embedding_size=D, summary_type="first")
    assert config.embedding_width == config.width == D


@once
def test_what_a_family_cannot_express_is_refused_by_name(tmp_path):
    shape = {"vocabulary_size": V, "width": D, "layers": 1, "heads": 2, "context_length": CONTEXT}
    model = ka.models.distilbert(ka.models.DistilBERTConfig(**shape, norm_epsilon=1e-5))
    with pytest.raises(ValueError, match="distilbert cannot express norm_epsilon=1e-05"):
        ka.checkpoints.save(model, tmp_path / "new")
    model = ka.models.roberta(ka.models.RoBERTaConfig(**shape, position_offset=0))
    with pytest.raises(ValueError, match="roberta cannot express position_offset=0"):
        ka.checkpoints.save(model, tmp_path / "new")
    # Its encoder has another activation, and theirs that one.
    encoder = ka.models.bert(ka.models.BERTConfig(**shape, activation="relu"))
    with pytest.raises(ValueError, match="the layer prediction_dense of bert_masked_lm"):
        ka.checkpoints.save(ka.models.masked_lm(encoder), tmp_path / "new")
