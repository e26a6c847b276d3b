"""PyTorch: eager training as its users write it, and `transformers` for generation."""

import time

from peers.torch_gpt import make_step
from peers.torch_greedy import greedy


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    step = make_step(shape._asdict(), inputs, targets)
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates after the prompts and returns the new ids."""
    import transformers

    config = transformers.GPT2Config(
        vocab_size=shape.vocabulary_size,
        n_positions=shape.context_length,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        bos_token_id=0,
        eos_token_id=None,
    )
    return greedy(transformers.GPT2LMHeadModel(config), prompts, new_tokens)
