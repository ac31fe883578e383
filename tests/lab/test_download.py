"""Downloads against a local server that breaks off, forgets, changes its mind, lies and hangs."""

import re
import threading
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pistol_lab import download
from pistol_lab.download import (
    ChecksumError,
    DownloadError,
    cache_folder,
    check,
    fetch,
)

OLD, NEW = b"an old file\n" * 9000, b"a new one\n" * 12000  # more than a block each
SUM = sha256(OLD).hexdigest()
DATE = "Sun, 02 Nov 2025 10:00:00 GMT"


class Server(ThreadingHTTPServer):
    """Plays one answer a request; the last one stays."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.awake = [], [], threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file"

    def plays(self, *answers):
        self.answers, self.asked = list(answers), []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(dict(self.headers))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", length=None, **headers):
        self.send_response(status)
        headers = {k.replace("_", "-"): v for k, v in headers.items() if v}
        for item in {"Content-Length": len(body) if length is None else length, **headers}.items():
            self.send_header(*map(str, item))
        self.end_headers()
        self.wfile.write(body)


def whole(body=OLD, etag='"old"', sent=None, date=None):
    """All of the file, or only the first bytes of it, whatever part was asked for."""
    return lambda h: h.say(200, body[:sent], len(body), ETag=etag, Last_Modified=date)


def ranged(body=OLD, etag='"old"', sent=None, date=None, careless=False):
    """What was asked for, or all of it if the file has changed (a careless server never looks)."""

    def answer(h):
        wanted = re.fullmatch(r"bytes=(\d+)-", h.headers["Range"] or "")
        if not wanted or not (careless or h.headers["If-Range"] in {etag, date}):
            return whole(body, etag, sent, date)(h)
        start = int(wanted[1])
        if start >= len(body):
            return h.say(416, Content_Range=f"bytes */{len(body)}")
        rest, span = body[start:], f"bytes {start}-{len(body) - 1}/{len(body)}"
        h.say(206, rest[:sent], len(rest), ETag=etag, Last_Modified=date, Content_Range=span)

    return answer


def hangs(h):
    """Half the file, then nothing until the test is over."""
    whole(sent=len(OLD) // 2)(h)
    h.wfile.flush()
    h.server.awake.wait(20)


@contextmanager
def running():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.awake.set()
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, running() as server:
        patch.setattr(download, "PAUSE", 0.0)
        patch.setattr(download, "TIMEOUT", 10.0)
        patch.setenv("no_proxy", "127.0.0.1")
        yield server


@pytest.fixture
def target(tmp_path):
    return tmp_path / "folder" / "file"


def left(target):
    """What lies in the folder beside the lock."""
    return {path.name for path in target.parent.iterdir()} - {"file.lock"}


def test_a_download_is_whole_and_leaves_nothing_else(server, target):
    server.plays(whole())
    assert fetch(server.url, target, SUM) == target
    assert target.read_bytes() == OLD
    assert left(target) == {"file"}


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(OLD) - 1), min_size=1, max_size=2), st.booleans())
def test_wherever_it_breaks_off_it_goes_on_there(server, cuts, dated):
    marks = {"etag": None, "date": DATE} if dated else {"etag": '"old"'}
    server.plays(*(ranged(sent=cut, **marks) for cut in cuts), ranged(**marks))
    with TemporaryDirectory() as folder:
        target = fetch(server.url, Path(folder, "file"), SUM)
        assert target.read_bytes() == OLD
    there = 0
    for cut, asked in zip(cuts, server.asked[1:], strict=False):
        there = min(there + cut, len(OLD))
        assert asked.get("Range") == (f"bytes={there}-" if there else None)


def test_a_server_that_knows_no_ranges_makes_us_begin_anew(server, target):
    server.plays(whole(sent=50_000), whole())
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert server.asked[1]["Range"] == "bytes=50000-"


@pytest.mark.parametrize("careless", [False, True])
def test_parts_of_two_versions_are_never_joined(server, target, careless):
    server.plays(ranged(sent=50_000), ranged(NEW, '"new"', careless=careless))
    assert fetch(server.url, target).read_bytes() == NEW
    assert server.asked[1]["If-Range"] == '"old"'


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_mark_of_the_version_it_is_not_continued(server, target, etag):
    server.plays(ranged(etag=etag, sent=50_000), ranged(etag=etag, careless=True))
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert "Range" not in server.asked[1]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(server, target):
    server.plays(ranged(NEW, '"old"', sent=115_000), ranged())
    assert fetch(server.url, target, SUM).read_bytes() == OLD


def test_the_mark_of_the_version_is_kept_where_later_answers_lack_it(server, target):
    server.plays(ranged(sent=50_000), ranged(etag=None, sent=7, careless=True), ranged())
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert server.asked[2]["Range"] == "bytes=50007-"


def test_an_answer_from_another_place_is_not_appended(server, target):
    def elsewhere(h):
        h.say(206, OLD[9:], ETag='"old"', Content_Range=f"bytes 9-{len(OLD) - 1}/{len(OLD)}")

    server.plays(ranged(sent=50_000), elsewhere, ranged())
    assert fetch(server.url, target, SUM).read_bytes() == OLD


def test_too_little_is_not_accepted_but_kept_for_the_next_time(server, target):
    server.plays(whole(sent=50_000))
    with pytest.raises(DownloadError, match=f"{server.url}.* after 50000 of {len(OLD)} bytes"):
        fetch(server.url, target, SUM)
    assert len(server.asked) == download.TRIES
    assert not target.exists()
    server.plays(ranged())
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert server.asked[0]["Range"] == "bytes=50000-"


def test_an_interruption_loses_nothing(server, target):
    def interrupt(done, total):
        raise KeyboardInterrupt

    server.plays(ranged())
    with pytest.raises(KeyboardInterrupt):
        fetch(server.url, target, SUM, interrupt)
    assert not target.exists()
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert server.asked[1]["Range"] == f"bytes={download.BLOCK}-"


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (407, 1), (503, 3)])
def test_a_refusal_names_address_and_status(server, target, status, requests):
    server.plays(lambda h: h.say(status))
    with pytest.raises(DownloadError, match=f"{server.url} .*{status} "):
        fetch(server.url, target)
    assert len(server.asked) == requests
    assert not left(target)


def test_a_server_in_trouble_is_asked_again(server, target):
    server.plays(lambda h: h.say(503), whole())
    assert fetch(server.url, target).read_bytes() == OLD


def test_a_server_that_hangs_is_given_up(server, target, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.plays(hangs)
    with pytest.raises(DownloadError, match=f"{server.url} .*timed out"):
        fetch(server.url, target)


def test_where_nobody_listens_the_address_is_named(target, monkeypatch):
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with running() as gone:
        url = gone.url
    with pytest.raises(DownloadError, match=f"{url} could not be downloaded: .*refused"):
        fetch(url, target)


def test_a_wrong_sum_is_an_error_and_nothing_of_it_is_kept(server, target):
    server.plays(whole(NEW))
    with pytest.raises(ChecksumError) as error:
        fetch(server.url, target, SUM)
    for part in (server.url, SUM, sha256(NEW).hexdigest(), "Try again"):
        assert part in str(error.value)
    assert not left(target)
    server.plays(whole())
    assert fetch(server.url, target, SUM).read_bytes() == OLD
    assert "Range" not in server.asked[0]


def test_a_file_that_is_there_is_looked_at_but_not_asked_for(server, target):
    server.plays(whole())
    fetch(server.url, target, SUM)
    fetch(server.url, target, SUM)
    assert len(server.asked) == 1
    target.write_bytes(NEW)
    with pytest.raises(ChecksumError) as error:
        fetch(server.url, target, SUM)
    for part in (str(target), SUM, sha256(NEW).hexdigest(), "Delete"):
        assert part in str(error.value)


def test_without_a_known_sum_the_first_one_counts(server, target):
    server.plays(whole())
    fetch(server.url, target)
    assert target.with_name("file.sha256").read_text() == f"{SUM}  file\n"
    assert check(target) == SUM
    target.write_bytes(OLD[1:])
    with pytest.raises(ChecksumError, match=SUM):
        check(target)
    target.unlink()
    server.plays(whole(NEW))
    assert check(fetch(server.url, target)) == sha256(NEW).hexdigest()


def test_progress_grows_to_the_total(server, target):
    seen = []
    server.plays(ranged(sent=70_000), ranged())
    fetch(server.url, target, SUM, lambda done, total: seen.append((done, total)))
    done = [n for n, _ in seen]
    assert done == sorted(set(done))
    assert {total for _, total in seen} == {len(OLD)}
    assert done[-1] == len(OLD)


def test_of_several_at_once_one_downloads(server, target):
    def slow(h):
        sleep(0.2)
        whole()(h)

    server.plays(slow)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fetch(server.url, target, SUM).read_bytes()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [OLD] * 4
    assert len(server.asked) == 1


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("PISTOL_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "pistol"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "pistol"
    monkeypatch.setenv("PISTOL_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
