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
ROBERTA_HEAD = {
    "lm_head.bias": (V,),
    "lm_head.dense.weight": (D, D),
    "lm_head.dense.bias": (D,),
    "lm_head.layer_norm.weight": (D,),
    "lm_head.layer_norm.bias": (D,),
}
DISTILBERT_LAYER = {
    "attention.q_lin": (D, D),
    "attention.k_lin": (D, D),
    "attention.v_lin": (D, D),
    "attention.out_lin": (D, D),
    "sa_layer_norm": (D,),
    "ffn.lin1": (HIDDEN, D),
    "ffn.lin2": (D, HIDDEN),
    "output_layer_norm": (D,),
}
DISTILBERT_HEAD = {
    "vocab_transform.weight": (D, D),
    "vocab_transform.bias": (D,),
    "vocab_layer_norm.weight": (D,),
    "vocab_layer_norm.bias": (D,),
    "vocab_projector.bias": (V,),
}
DISTILBERT = {"vocab_size": V, "dim": D, "n_layers": 1, "n_heads": 2, "hidden_dim": HIDDEN}
DISTILBERT |= {"max_position_embeddings": CONTEXT}
#: Of vectors half as wide as the stream.
ELECTRA_EMBEDDING = {name: (*shape[:-1], D // 2) for name, shape in EMBEDDING.items()}
PROJECTION = {"embeddings_project.weight": (D, D // 2), "embeddings_project.bias": (D,)}
DISCRIMINATOR = {
    "discriminator_predictions.dense.weight": (D, D),
    "discriminator_predictions.dense.bias": (D,),
    "discriminator_predictions.dense_prediction.weight": (1, D),
    "discriminator_predictions.dense_prediction.bias": (1,),
}
GENERATOR = {
    "generator_predictions.dense.weight": (D // 2, D),
    "generator_predictions.dense.bias": (D // 2,),
    "generator_predictions.LayerNorm.weight": (D // 2,),
    "generator_predictions.LayerNorm.bias": (D // 2,),
    "generator_lm_head.bias": (V,),
}


def body(prefix, *parts, layers="encoder.layer", layer=LAYER, left_out=()):
    """Returns the shapes of an encoder, by name; parts are more of them, or others."""
    shapes = dict(EMBEDDING)
    for name, shape in layer.items():
        shapes[f"{layers}.0.{name}.weight"] = shape
        shapes[f"{layers}.0.{name}.bias"] = shape[:1]
    for part in parts:
        shapes |= part
    return {prefix + name: shapes[name] for name in shapes if name not in left_out}


def roberta(prefix, *parts):
    tables = {
        "embeddings.position_embeddings.weight": (CONTEXT + 2, D),
        "embeddings.token_type_embeddings.weight": (1, D),
    }
    return body(prefix, tables, *parts)


def distilbert(prefix):
    types = ("embeddings.token_type_embeddings.weight",)
    return body(prefix, layers="transformer.layer", layer=DISTILBERT_LAYER, left_out=types)


def electra(prefix):
    return body(prefix, ELECTRA_EMBEDDING, PROJECTION)


ROBERTA = {"max_position_embeddings": CONTEXT + 2, "pad_token_id": 1, "type_vocab_size": 1}
ELECTRA = {"embedding_size": D // 2}
#: Class in transformers -> `model_type`, our head, fields, shapes.
FILES = {
    "BertModel": ("bert", None, SHAPE, body("", POOLER)),
    "BertForMaskedLM": ("bert", "masked_lm", SHAPE, body("bert.") | BERT_PREDICTIONS),
    "RobertaModel": ("roberta", None, SHAPE | ROBERTA, roberta("", POOLER)),
    "RobertaForMaskedLM": (
        "roberta",
        "masked_lm",
        SHAPE | ROBERTA,
        roberta("roberta.") | ROBERTA_HEAD,
    ),
    "DistilBertModel": ("distilbert", None, DISTILBERT, distilbert("")),
    "DistilBertForMaskedLM": (
        "distilbert",
        "masked_lm",
        DISTILBERT,
        distilbert("distilbert.") | DISTILBERT_HEAD,
    ),
    "ElectraModel": ("electra", None, SHAPE | ELECTRA, electra("")),
    "ElectraForPreTraining": (
        "electra",
        "replaced_tokens",
        SHAPE | ELECTRA,
        electra("electra.") | DISCRIMINATOR,
    ),
    "ElectraForMaskedLM": (
        "electra",
        "masked_lm",
        SHAPE | ELECTRA,
        electra("electra.") | GENERATOR,
    ),
}


def tensors(shapes):
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}


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
