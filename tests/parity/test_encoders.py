"""The encoders give the vectors and scores of Hugging Face's `transformers`, on its weights."""

import re

import keras
import numpy as np
import pytest

import keras_arch as ka

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

V, PAD = 31, 1
SHAPE = {"vocabulary_size": V, "width": 16, "layers": 2, "heads": 4, "hidden_width": 24}
THEIRS = {
    "vocab_size": V,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "pad_token_id": PAD,
}

_BLOCK = r"block_(\d)/"
_ATTENTION = f"{_BLOCK}attention/self_attention/"
_LAYER = r"encoder.layer.\1."
#: Our layer -> theirs, side by side in one matrix; both without a prefix of the whole.
BLOCKS = {
    f"{_ATTENTION}query_key_value": [
        f"{_LAYER}attention.self.{name}" for name in ("query", "key", "value")
    ],
    f"{_ATTENTION}output_projection": [f"{_LAYER}attention.output.dense"],
    f"{_BLOCK}attention/norm": [f"{_LAYER}attention.output.LayerNorm"],
    f"{_BLOCK}feedforward/feedforward/up": [f"{_LAYER}intermediate.dense"],
    f"{_BLOCK}feedforward/feedforward/down": [f"{_LAYER}output.dense"],
    f"{_BLOCK}feedforward/norm": [f"{_LAYER}output.LayerNorm"],
}
EMBEDDING = {
    "tokens": ["embeddings.word_embeddings"],
    "position_table": ["embeddings.position_embeddings"],
    "embedding_norm": ["embeddings.LayerNorm"],
}
TYPES = {"token_types": ["embeddings.token_type_embeddings"]}
POOLER = {"pooler": ["pooler.dense"]}
BERT = EMBEDDING | TYPES | BLOCKS | POOLER
ELECTRA = EMBEDDING | TYPES | BLOCKS | {"embedding_projection": ["embeddings_project"]}
_DISTIL_LAYER = r"transformer.layer.\1."
DISTILBERT = EMBEDDING | {
    f"{_ATTENTION}query_key_value": [f"{_DISTIL_LAYER}attention.{name}_lin" for name in "qkv"],
    f"{_ATTENTION}output_projection": [f"{_DISTIL_LAYER}attention.out_lin"],
    f"{_BLOCK}attention/norm": [f"{_DISTIL_LAYER}sa_layer_norm"],
    f"{_BLOCK}feedforward/feedforward/up": [f"{_DISTIL_LAYER}ffn.lin1"],
    f"{_BLOCK}feedforward/feedforward/down": [f"{_DISTIL_LAYER}ffn.lin2"],
    f"{_BLOCK}feedforward/norm": [f"{_DISTIL_LAYER}output_layer_norm"],
}


#: Heads, with the prefix that the body has under them.
BERT_PREDICTIONS = {
    "prediction_dense": ["cls.predictions.transform.dense"],
    "prediction_norm": ["cls.predictions.transform.LayerNorm"],
    "prediction_bias": ["cls.predictions"],
}
ELECTRA_REPLACED = {
    "replaced_dense": ["discriminator_predictions.dense"],
    "replaced_score": ["discriminator_predictions.dense_prediction"],
}


def under(prefix, table):
    return {ours: [f"{prefix}.{name}" for name in names] for ours, names in table.items()}


def bert():
    theirs = transformers.BertModel(transformers.BertConfig(max_position_embeddings=24, **THEIRS))
    ours = ka.models.bert(ka.models.BERTConfig(**SHAPE, context_length=24))
    return copied(theirs, ours, BERT)


def roberta():
    theirs = transformers.RobertaModel(
        transformers.RobertaConfig(
            max_position_embeddings=26, type_vocab_size=1, layer_norm_eps=1e-5, **THEIRS
        )
    )
    ours = ka.models.roberta(ka.models.RoBERTaConfig(**SHAPE, context_length=24))
    return copied(theirs, ours, BERT)


def distilbert():
    theirs = transformers.DistilBertModel(
        transformers.DistilBertConfig(
            vocab_size=V,
            dim=16,
            n_layers=2,
            n_heads=4,
            hidden_dim=24,
            max_position_embeddings=24,
            pad_token_id=PAD,
        )
    )
    ours = ka.models.distilbert(ka.models.DistilBERTConfig(**SHAPE, context_length=24))
    return copied(theirs, ours, DISTILBERT)


def electra():
    config = transformers.ElectraConfig(max_position_embeddings=24, embedding_size=8, **THEIRS)
    ours = ka.models.electra(ka.models.ELECTRAConfig(**SHAPE, context_length=24, embedding_width=8))
    return copied(transformers.ElectraModel(config), ours, ELECTRA)


def bert_masked_lm():
    config = transformers.BertConfig(max_position_embeddings=24, **THEIRS)
    encoder = ka.models.bert(ka.models.BERTConfig(**SHAPE, context_length=24))
    table = under("bert", EMBEDDING | TYPES | BLOCKS) | BERT_PREDICTIONS
    # Their copies of the table and of the bias.
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    theirs = transformers.BertForMaskedLM(config)
    return copied(theirs, ka.models.masked_lm(encoder), table, tied)


def electra_replaced():
    config = transformers.ElectraConfig(max_position_embeddings=24, embedding_size=8, **THEIRS)
    encoder = ka.models.electra(
        ka.models.ELECTRAConfig(**SHAPE, context_length=24, embedding_width=8)
    )
    table = under("electra", ELECTRA) | ELECTRA_REPLACED
    theirs = transformers.ElectraForPreTraining(config)
    return copied(theirs, ka.models.replaced_tokens(encoder), table)


def copied(theirs, ours, table, tied=frozenset()):
    """Gives both the same random weights; every one of theirs must have its place in ours."""
    theirs.eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            mean = 1.0 if name.lower().endswith("norm.weight") else 0.0
            parameter.normal_(mean, 0.2, generator=random)
    state = {name: x.numpy() for name, x in theirs.state_dict().items()}
    used = set()
    for weight in ours.weights:
        layer, _, kind = weight.path.rpartition("/")
        (found,) = ((p, names) for p, names in table.items() if re.fullmatch(p, layer))
        suffix = "bias" if kind in ("bias", "offset") else "weight"
        names = [f"{re.sub(found[0], name, layer)}.{suffix}" for name in found[1]]
        used |= set(names)
        arrays = [state[name].T if kind == "kernel" else state[name] for name in names]
        weight.assign(np.concatenate(arrays, axis=-1))
    assert set(state) - tied == used
    return theirs, ours


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


@pytest.mark.parametrize("make", [bert, roberta, distilbert, electra])
def test_vectors_are_equal(make):
    theirs, ours = make()
    of_theirs, of_ours = arguments(ours)
    with torch.no_grad():
        expected = theirs(**of_theirs)
    found = {name: keras.ops.convert_to_numpy(x) for name, x in ours(of_ours).items()}
    valid = of_ours["valid"]
    close(found["hidden"][valid], expected.last_hidden_state.numpy()[valid])
    if "pooled" in found:
        close(found["pooled"], expected.pooler_output.numpy())


def test_masks_are_told_alike():
    theirs, ours = bert_masked_lm()
    of_theirs, of_ours = arguments(ours)
    # Every column: where the mask is, makes no difference to the network.
    of_ours["masked_positions"] = np.tile(np.arange(13, dtype="int32"), (3, 1))
    with torch.no_grad():
        expected = theirs(**of_theirs).logits.numpy()
    valid = of_ours["valid"]
    close(keras.ops.convert_to_numpy(ours(of_ours))[valid], expected[valid])


def test_replaced_tokens_are_told_alike():
    theirs, ours = electra_replaced()
    of_theirs, of_ours = arguments(ours)
    with torch.no_grad():
        expected = theirs(**of_theirs).logits.numpy()
    valid = of_ours["valid"]
    close(keras.ops.convert_to_numpy(ours(of_ours))[valid], expected[valid])


def close(found, expected):
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
