"""The encoders give the vectors and scores of Hugging Face's `transformers`, on its weights."""

import keras
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.parity.round_trip import check_round_trip, randomised, saved  # noqa: E402 (needs torch)

V, PAD = 31, 1
SHAPE = {
    "vocab_size": V,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
    "pad_token_id": PAD,
}

DISTILBERT = {
    "vocab_size": V,
    "dim": 16,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 24,
    "max_position_embeddings": 24,
    "pad_token_id": PAD,
}
DISTILBERT_CLASSES = DISTILBERT | {"num_labels": 3, "n_layers": 1}
ROBERTA = SHAPE | {"max_position_embeddings": 26, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
ELECTRA = SHAPE | {"embedding_size": 8}
TANH = {"hidden_act": "gelu_new"}
#: The stack beneath is that of the others.
CLASSES = {"num_labels": 3, "num_hidden_layers": 1}

#: Class in transformers -> its config's fields, our head.
MODELS = {
    "BertModel": (SHAPE, None),
    "BertForMaskedLM": (SHAPE | TANH, "masked_lm"),
    "BertForQuestionAnswering": (SHAPE, "span_answers"),
    "BertForNextSentencePrediction": (SHAPE, "next_sentence"),
    "BertForPreTraining": (SHAPE | TANH, "bert_pretraining"),
    "BertForSequenceClassification": (SHAPE | CLASSES, "sequence_classification"),
    "BertForTokenClassification": (SHAPE | CLASSES, "token_classification"),
    "RobertaModel": (ROBERTA, None),
    "RobertaForMaskedLM": (ROBERTA | TANH, "masked_lm"),
    "RobertaForQuestionAnswering": (ROBERTA, "span_answers"),
    "RobertaForSequenceClassification": (ROBERTA | CLASSES, "sequence_classification"),
    "RobertaForTokenClassification": (ROBERTA | CLASSES, "token_classification"),
    "DistilBertModel": (DISTILBERT, None),
    "DistilBertForMaskedLM": (DISTILBERT | {"activation": "relu"}, "masked_lm"),
    "DistilBertForQuestionAnswering": (DISTILBERT, "span_answers"),
    "DistilBertForSequenceClassification": (DISTILBERT_CLASSES, "sequence_classification"),
    "DistilBertForTokenClassification": (DISTILBERT_CLASSES, "token_classification"),
    "ElectraModel": (SHAPE | {"embedding_size": 16}, None),
    "ElectraForPreTraining": (ELECTRA | TANH, "replaced_tokens"),
    "ElectraForMaskedLM": (ELECTRA | TANH, "masked_lm"),
    "ElectraForQuestionAnswering": (ELECTRA, "span_answers"),
    "ElectraForSequenceClassification": (ELECTRA | TANH | CLASSES, "sequence_classification"),
    "ElectraForTokenClassification": (ELECTRA | CLASSES, "token_classification"),
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    """Theirs, and what it was read as here."""
    fields, head = MODELS[request.param]
    architecture = getattr(transformers, request.param)
    theirs = randomised(architecture(architecture.config_class(**fields)), scale=0.2)
    theirs, loaded = saved(theirs, tmp_path_factory.mktemp("theirs"), head=head)
    return theirs, loaded.model


def rows():
    """Ragged rows, their validity, and types where a second text begins."""
    random = np.random.default_rng(1)
    valid = np.arange(13) < np.array([13, 5, 1])[:, None]
    token_ids = np.where(valid, random.integers(4, V, valid.shape), PAD).astype("int32")
    return token_ids, valid, (valid & (np.arange(13) > 2)).astype("int32")


def arguments(model):
    """What both models take: theirs, ours."""
    token_ids, valid, type_ids = rows()
    theirs = {
        "input_ids": torch.tensor(token_ids, dtype=torch.int64),
        "attention_mask": torch.tensor(valid, dtype=torch.int64),
    }
    ours = {"token_ids": token_ids, "valid": valid}
    if "type_ids" in {x.name for x in model.inputs}:
        theirs["token_type_ids"] = torch.tensor(type_ids, dtype=torch.int64)
        ours["type_ids"] = type_ids
    return theirs, ours


def test_outputs_are_equal(pair):
    theirs, ours = pair
    of_theirs, of_ours = arguments(ours)
    valid = of_ours["valid"]
    if "masked_positions" in {x.name for x in ours.inputs}:
        # Every column: where the mask is, makes no difference to the network.
        of_ours["masked_positions"] = np.tile(np.arange(13, dtype="int32"), (3, 1))
    with torch.no_grad():
        expected = theirs(**of_theirs)
    found = ours(of_ours)
    if isinstance(found, dict):
        if "pooled" in found:
            close(found["pooled"], expected.pooler_output)
        if "next_sentence" in found:
            close(found["next_sentence"], expected.seq_relationship_logits)
        found = found["hidden" if "hidden" in found else "tokens"]
    found = keras.ops.convert_to_numpy(found)
    if ours.name.endswith(("next_sentence", "classification")):
        close(found, expected[0])
    elif ours.name.endswith("span_answers"):
        expected = torch.stack([expected.start_logits, expected.end_logits], 1)
        close(found.swapaxes(1, 2)[valid], expected.swapaxes(1, 2)[valid])
    else:
        close(found[valid], expected[0][valid])


def test_it_goes_back_bit_for_bit(pair, tmp_path):
    check_round_trip(*pair, tmp_path, arguments(pair[1])[0])


def close(found, expected):
    expected = expected.numpy()
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected, rtol=0, atol=1e-5)
