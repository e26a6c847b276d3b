"""Texts that tokenizers fail on."""

import random

# All kinds of spaces, contractions, digits of two scripts, an emoji joined by U+200D, a byte
# order mark, controls.
DIFFICULT = (
    "",
    " ",
    "a  b",
    "a   ",
    "   a",
    "a\n\n\nb",
    "\r\n\t \v\f",
    "a\u00a0b",
    "\u3000\u2028\u2029\u0085\u1680\u202f",
    "don't we'll 's 'S",
    "\u096c",
    "1\u096c \u096c\u096c",
    "\u4e2d\u6587\u6587\u672c",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\ufeffa\ufeff",
    "\x00\x1c\x7f",
    "e\u0301",
    "The end.<|endoftext|>Next",
)


def random_texts(count):
    """Strings of 0 to 39 characters: the difficult ones, and any of Unicode 14 without the gaps."""
    generator = random.Random(0)
    common = "".join(DIFFICULT) + "  \n"

    def character():
        if generator.random() < 0.7:
            return generator.choice(common)
        return chr(
            generator.choice((generator.randrange(0xD800), 0x1F300 + generator.randrange(500)))
        )

    return ["".join(character() for _ in range(generator.randrange(40))) for _ in range(count)]


TEXTS = [*DIFFICULT, *random_texts(1000)]
# Repeated, so that spaces of all kinds are merged, which real code and tables bring about.
CORPUS = ["".join(TEXTS)] * 3
