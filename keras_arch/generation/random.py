"""Random numbers that are a pure function of seed, row and step, the same on every backend."""

from keras import ops

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(key, counter):
    """The Threefry-2x32 block cipher of 20 rounds. Source: Salmon et al. 2011, section 4.

    In int32, whose sums wrap on every backend; read the results as unsigned.

    Args:
        key: Pair of int32 tensors.
        counter: Pair of int32 tensors of one shape.

    Returns:
        Pair of int32 tensors, 64 random bits.
    """
    keys = (key[0], key[1], ops.bitwise_xor(ops.bitwise_xor(key[0], key[1]), PARITY))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for distance in ROTATIONS[block % 2]:
            x = x + y
            y = ops.bitwise_xor(_rotate_left(y, distance), x)
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + (block + 1)
    return x, y


def _rotate_left(x, distance):
    # int32 shifts right with its sign: the mask takes the copies of it away.
    low = ops.bitwise_and(ops.right_shift(x, 32 - distance), (1 << distance) - 1)
    return ops.bitwise_or(ops.left_shift(x, distance), low)


def row_uniforms(seed, rows, step):
    """Returns one number in [0, 1) for each row, float32 `[B]`, a multiple of 2^-23.

    Args:
        seed: int32 `[2]`.
        rows: B; an int or a scalar tensor.
        step: int32 scalar.
    """
    row = ops.arange(rows, dtype="int32")
    bits, _ = threefry((seed[0], seed[1]), (row, ops.zeros_like(row) + step))
    return ops.cast(ops.bitwise_and(bits, (1 << 23) - 1), "float32") * 2.0**-23
