"""Keeping freed memory in the process, where giving it back costs more than the work."""

import ctypes

# Names and numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def keep_freed_memory():
    """Tells glibc to keep freed buffers for reuse; returns whether it will.

    XLA on CPU takes the temporary buffer of a step (tens of megabytes) anew at every step. By
    default glibc maps it from the kernel each time, and every page of it faults in again: for JAX
    a fifth of a small model's step. Has no effect on what is allocated on accelerators, and none
    at all without glibc. The process keeps its peak size.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 256 * 2**20}
    return all([mallopt(name, value) == 1 for name, value in settings.items()])
