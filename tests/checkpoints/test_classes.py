"""Classes of heads in `config.json`: how many, their names, and what is not a class of one kind."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_arch as ka
from keras_arch.checkpoints.classes import read_labels
from keras_arch.checkpoints.families import family_named
from keras_arch.checkpoints.fields import Fields
from tests.checkpoints.hand_made import in_any_order
from tests.checkpoints.hand_made_encoders import (
    DISTILBERT,
    ROBERTA,
    SHAPE,
    D,
    distilbert,
    roberta,
    tensors,
)

pytestmark = pytest.mark.once

NAMES = ("ham", "späm", "eggs")
NUMBERED = {"0": "ham", "1": "späm", "2": "eggs"}
#: The published classifiers of DistilBERT and RoBERTa.
HEADS = {
    "distilbert": {
        "pre_classifier.weight": (D, D),
        "pre_classifier.bias": (D,),
        "classifier.weight": (3, D),
        "classifier.bias": (3,),
    },
    "roberta": {
        "classifier.dense.weight": (D, D),
        "classifier.dense.bias": (D,),
        "classifier.out_proj.weight": (3, D),
        "classifier.out_proj.bias": (3,),
    },
}
FIELDS = {"distilbert": DISTILBERT, "roberta": SHAPE | ROBERTA}
BODIES = {"distilbert": distilbert("distilbert."), "roberta": roberta("roberta.")}


def write(folder, model_type, **fields):
    """Writes a classifier; returns its tensors."""
    folder.mkdir(exist_ok=True)
    given = tensors(BODIES[model_type] | HEADS[model_type])
    save_file(given, folder / "model.safetensors")
    config = {"model_type": model_type, **FIELDS[model_type], "id2label": NUMBERED, **fields}
    (folder / "config.json").write_text(json.dumps(config))
    return given


def saved(model, folder, **options):
    """Returns what is written of a model: the config and the tensors, by name."""
    ka.checkpoints.save(model, folder, **options)
    return json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, ("LABEL_0", "LABEL_1")),
        ({"num_labels": 3}, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ({"id2label": NUMBERED}, NAMES),
        ({"id2label": {"1": "b", "0": "a"}, "num_labels": 2}, ("a", "b")),
        ({"id2label": None, "num_labels": 1}, ("LABEL_0",)),
    ],
)
def test_the_classes_that_a_file_tells(fields, labels):
    assert read_labels(Fields(fields)) == labels


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id2label": {"1": "a", "2": "b"}}, ["id2label={'1': 'a', '2': 'b'}"]),
        ({"id2label": {}}, ["id2label={}"]),
        ({"id2label": NUMBERED, "num_labels": 2}, ["num_labels must be 3", "num_labels=2"]),
    ],
)
def test_classes_that_are_not_counted_are_refused(fields, words):
    with pytest.raises(ValueError, match=in_any_order(*words)):
        read_labels(Fields(fields))


@pytest.mark.parametrize("model_type", HEADS)
def test_a_classifier_goes_back_as_it_came(model_type, tmp_path):
    given = write(tmp_path / "given", model_type)
    loaded = ka.checkpoints.read(tmp_path / "given", dropout=0.25, head="sequence_classification")
    assert loaded.report.labels == NAMES
    assert "classes: ham, späm, eggs" in str(loaded.report)
    assert loaded.model.output.shape == (None, 3)
    # A .keras file keeps no names.
    loaded.model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    config, found = saved(model, tmp_path / "saved", labels=loaded.report.labels)
    assert config["id2label"] == NUMBERED
    assert config["label2id"] == {"ham": 0, "späm": 1, "eggs": 2}
    rate = {"distilbert": "seq_classif_dropout", "roberta": "classifier_dropout"}[model_type]
    assert config[rate] == 0.25
    assert found.keys() == given.keys()
    for name, tensor in given.items():
        np.testing.assert_array_equal(found[name], tensor)


def test_the_heads_dropout_is_its_own(tmp_path):
    config = ka.models.DistilBERTConfig(
        vocabulary_size=9, width=D, layers=1, heads=2, context_length=4, dropout=0.5
    )
    encoder = ka.models.distilbert(config)
    pooled = ka.models.with_pooler(encoder, "relu")
    model = ka.models.sequence_classification(pooled, 2, dropout=0.25)
    fields, _ = saved(model, tmp_path / "rows")
    assert (fields["dropout"], fields["seq_classif_dropout"]) == (0.5, 0.25)
    assert fields["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"}
    # One without their layer between is none of theirs.
    for bare in (ka.models.sequence_classification(encoder, 2), ka.models.with_pooler(encoder)):
        with pytest.raises(ValueError, match=f"received {bare.name}: none of"):
            ka.checkpoints.save(bare, tmp_path / "new")
    tanh = ka.models.sequence_classification(ka.models.with_pooler(encoder), 2)
    with pytest.raises(ValueError, match="the layer pooler of distilbert_pooler_classification"):
        ka.checkpoints.save(tanh, tmp_path / "new")
    with pytest.raises(ValueError, match=r"the head's 2 classes; received labels=\['ham'\]"):
        ka.checkpoints.save(model, tmp_path / "new", labels=["ham"])
    with pytest.raises(ValueError, match=r"the head's 0 classes; received labels=\['ham'\]"):
        ka.checkpoints.save(encoder, tmp_path / "new", labels=["ham"])


@pytest.mark.parametrize(
    ("head", "fields", "words"),
    [
        (
            "token_classification",
            {"architectures": ["BertForSequenceClassification"]},
            ["ForTokenClassification", "architectures=['BertForSequenceClassification']"],
        ),
        (
            "sequence_classification",
            {"architectures": ["BertForMultipleChoice"]},
            ["head='sequence_classification'", "ignore_fields=['architectures']"],
        ),
        (
            "sequence_classification",
            {"problem_type": "multi_label_classification"},
            ["problem_type='multi_label_classification'"],
        ),
        ("sequence_classification", {"problem_type": "regression"}, ["problem_type='regression'"]),
    ],
)
def test_other_kinds_of_heads_are_refused(head, fields, words):
    family = family_named("bert", head)
    with pytest.raises(ValueError, match=in_any_order(*words)):
        family.read(Fields(SHAPE | fields))
    family.read(Fields(SHAPE | fields, ignored=list(fields)))
    # What the head is, is nothing to the encoder alone.
    family_named("bert").read(Fields(SHAPE | fields))


def test_another_number_of_classes_than_the_files_is_named(tmp_path):
    write(tmp_path, "roberta", id2label={"0": "a", "1": "b"})
    words = ["classifier.out_proj.weight (3, 8) must be (2, 8)", "classes/kernel"]
    with pytest.raises(ValueError, match=in_any_order(*words)):
        ka.checkpoints.load(tmp_path, head="sequence_classification")
