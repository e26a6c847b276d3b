"""Lengths that are rounded up, so that few programs serve all."""


def bucket(length):
    """Returns the length `length` is padded to: a power of 2 from 16 to 256, then every 256."""
    if length > 256:
        return -(-length // 256) * 256
    return max(16, 1 << (length - 1).bit_length())


def padded_length(length, limit):
    """Returns the bucket of a length, but at most `limit`; None means no limit."""
    return bucket(length) if limit is None else min(bucket(length), limit)
