"""Encoders' checkpoints of one block, made by hand: names and shapes as published."""

import numpy as np

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
    """Returns the shapes of a RoBERTa's encoder, by name."""
    tables = {
        "embeddings.position_embeddings.weight": (CONTEXT + 2, D),
        "embeddings.token_type_embeddings.weight": (1, D),
    }
    return body(prefix, tables, *parts)


def distilbert(prefix):
    """Returns the shapes of a DistilBERT's encoder, by name."""
    types = ("embeddings.token_type_embeddings.weight",)
    return body(prefix, layers="transformer.layer", layer=DISTILBERT_LAYER, left_out=types)


def electra(prefix):
    """Returns the shapes of an ELECTRA's encoder, by name."""
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
    """Returns tensors of these shapes, float32, by name."""
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}
