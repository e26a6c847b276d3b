"""Greedy generation by `transformers`."""

import torch


def greedy(model, prompts, new_tokens):
    """Returns a function that generates after, or from, the prompts and returns the new ids.

    Args:
        model: A model of `transformers` that knows no end.
        prompts: int `[B, T]`.
        new_tokens: Tokens to generate.
    """
    model, ids = model.eval(), torch.from_numpy(prompts).long()

    @torch.no_grad()
    def generate():
        return model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new_tokens,
            do_sample=False,
            num_beams=1,
            pad_token_id=0,
        )[:, -new_tokens:]

    return generate
