"""Unicode's White_Space characters, for the character classes of regular expressions.

RE2's own `\\s` has only five of them, Python's has four more.
"""

LINE_END = "\n\r"
WITHIN_LINE = "\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
SPACE = LINE_END + WITHIN_LINE
