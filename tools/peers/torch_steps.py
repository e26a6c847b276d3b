"""Times the training steps of a model of `transformers`, which computes its own loss."""

import time

import torch


def step_seconds(model, values, steps):
    """Returns the seconds of each of `steps` steps on one batch.

    Args:
        model: A model of `transformers`.
        values: What it is called with, labels included.
        steps: Steps.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = model(**values).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    return seconds
