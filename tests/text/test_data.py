import functools
import hashlib
import http.server
import logging
import pydoc_data.topics
import threading

import pytest

from keras_arch.text import data, find_corpus, read_text

CONTENT = b"Be not afraid of greatness.\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Gives each test an empty cache and no data folder; the network is refused."""

    def refuse(url, timeout):
        raise OSError("no network")

    monkeypatch.delenv("KERAS_ARCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(data.urllib.request, "urlopen", refuse)
    return tmp_path / "cache" / "keras_arch"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serves the folder it returns; the corpus `"small"` points into it. Counts the requests."""
    monkeypatch.undo()
    monkeypatch.delenv("KERAS_ARCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "served"
    folder.mkdir()
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requests.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{web.server_port}/input.txt"
        sha256 = hashlib.sha256(CONTENT).hexdigest()
        small = data.Download(url=url, place="small/input.txt", sha256=sha256)
        monkeypatch.setitem(data.DOWNLOADS, "small", small)
        yield folder, requests
        web.shutdown()
        thread.join()


def small_corpus(monkeypatch):
    small = data.DOWNLOADS["shakespeare"]._replace(sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(data.DOWNLOADS, "shakespeare", small)


def test_a_file_and_a_folder_are_taken(tmp_path):
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d.txt").mkdir()
    assert find_corpus(tmp_path / "c.md") == [tmp_path / "c.md"]
    assert find_corpus(str(tmp_path)) == [tmp_path / "a.txt", tmp_path / "b.txt"]


def test_a_folder_without_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match=rf"must hold \.txt files; received the folder {tmp_path}"):
        find_corpus(tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"\['python-docs', 'shakespeare'\]; received 'milton'"):
        find_corpus("milton")


def test_the_data_folder_comes_before_the_cache(tmp_path, monkeypatch, cache):
    small_corpus(monkeypatch)
    for folder in (tmp_path / "data", cache):
        (folder / "tinyshakespeare").mkdir(parents=True)
        (folder / "tinyshakespeare" / "input.txt").write_bytes(CONTENT)
    assert find_corpus("shakespeare") == [cache / "tinyshakespeare" / "input.txt"]
    monkeypatch.setenv("KERAS_ARCH_DATA", str(tmp_path / "data"))
    assert find_corpus("shakespeare") == [tmp_path / "data" / "tinyshakespeare" / "input.txt"]


def test_a_damaged_file_is_named(tmp_path, monkeypatch):
    path = tmp_path / "tinyshakespeare" / "input.txt"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    monkeypatch.setenv("KERAS_ARCH_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=rf"{path} is damaged: .* \(28 bytes\)"):
        find_corpus("shakespeare")


def test_a_download_is_kept(server):
    folder, requests = server
    (folder / "input.txt").write_bytes(CONTENT)
    files = find_corpus("small")
    assert read_text(files) == CONTENT.decode()
    assert find_corpus("small") == files
    assert requests == ["/input.txt"]


def test_a_damaged_download_is_named_and_not_kept(server, tmp_path):
    folder, _ = server
    (folder / "input.txt").write_bytes(CONTENT[:-1])
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:\d+/input\.txt is damaged"):
        find_corpus("small")
    assert not (tmp_path / "cache").exists()


def test_a_refusal_by_the_server_gives_the_built_in_corpus(server, caplog):
    assert find_corpus("small") == find_corpus("python-docs")
    assert "404" in caplog.text


def test_without_network_the_built_in_corpus_is_used_and_said_aloud(caplog):
    with caplog.at_level(logging.WARNING):
        files = find_corpus("shakespeare")
    assert files == find_corpus("python-docs")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    for part in ("'shakespeare'", "no network", "'python-docs'", "KERAS_ARCH_DATA"):
        assert part in record.getMessage()


def test_the_built_in_corpus_is_the_language_reference(cache):
    (path,) = find_corpus("python-docs")
    assert path.parent == cache
    text = read_text([path])
    topics = pydoc_data.topics.topics
    assert all(topic in text for topic in topics.values())
    assert len(text) == sum(map(len, topics.values())) + 2 * (len(topics) - 1)


def test_a_half_written_built_in_corpus_is_written_again():
    (path,) = find_corpus("python-docs")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert find_corpus("python-docs") == [path]
    assert path.read_bytes() == whole
