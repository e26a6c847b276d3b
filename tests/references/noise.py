"""The bits of `keras_arch.backend.random_bits`, one entry at a time in Python's integers."""

_MASK = 2**32 - 1


def mix(x):
    """Wellons' hash of 32 bits with 16, 0x21f0aaad, 15, 0xd35a2d97, 15."""
    x ^= x >> 16
    x = x * 0x21F0AAAD & _MASK
    x ^= x >> 15
    x = x * 0xD35A2D97 & _MASK
    return x ^ x >> 15


def bits(seed, place):
    """The bits of the entry at a place of the flat tensor, by a seed of two numbers."""
    first, second = (mix(part + 0x9E3779B1 & _MASK) for part in seed)
    return mix(mix(place * 0x9E3779B1 + first & _MASK) ^ second)
