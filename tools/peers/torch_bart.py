"""`transformers` on PyTorch: a BART, eager, as its users run it."""

import torch
import transformers

from peers.torch_greedy import greedy
from peers.torch_steps import step_seconds


def _model(shape):
    config = transformers.BartConfig(
        vocab_size=shape.vocabulary_size,
        d_model=shape.width,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=4 * shape.width,
        decoder_ffn_dim=4 * shape.width,
        max_position_embeddings=shape.context_length,
        dropout=0.0,
        pad_token_id=0,
        bos_token_id=1,
        decoder_start_token_id=1,
        eos_token_id=None,
        forced_eos_token_id=None,
    )
    return transformers.BartForConditionalGeneration(config)


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    ids, labels = torch.from_numpy(inputs).long(), torch.from_numpy(targets).long()
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    return step_seconds(_model(shape), values | {"decoder_input_ids": ids}, steps)


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates from the prompts as sources and returns the new ids."""
    return greedy(_model(shape), prompts, new_tokens)
