"""What this machine can do at most, on the cores it is given."""

import os
import time

import numpy as np


def bytes_per_second(size):
    """Returns the rate at which one pass after another reads an array of `size` bytes.

    The size of the weights: small ones stay in the caches, as they do for a decoder.
    """
    array = np.ones(size // 4, "float32")
    return array.nbytes / _shortest(lambda: array @ array)


def operations_per_second():
    """Returns the FLOP/s of a large matrix product by the numerical library of PyTorch or NumPy."""
    try:
        import torch
    except ImportError:
        a = np.ones((2048, 2048), "float32")
    else:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        a = torch.ones(2048, 2048)
    return 2 * 2048**3 / _shortest(lambda: a @ a)


def _shortest(function, times=7):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
