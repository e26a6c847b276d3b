"""`transformers` on PyTorch: a BERT with a classifier, eager, as its users run it."""

import torch
import transformers

from peers.bert_shapes import CLASSES
from peers.torch_steps import step_seconds


def _model(shape):
    config = transformers.BertConfig(
        vocab_size=shape.vocabulary_size,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=shape.context_length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=CLASSES,
    )
    return transformers.BertForSequenceClassification(config)


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    ids = torch.from_numpy(inputs).long()
    labels = torch.from_numpy(targets[:, 0] % CLASSES).long()
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    return step_seconds(_model(shape), values, steps)


def reader(shape, ids, mode):
    """Returns a function that reads the ids and returns logits."""
    model, ids = _model(shape).eval(), torch.from_numpy(ids).long()

    @torch.inference_mode()
    def read():
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    return read
