import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from bert_tf.serving import client
from bert_tf.serving import connection
from tests.serving import rest_double

ANSWER = (200, {"outputs": {"value": [0.5]}})
PATH = "/v1/models/topics"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(connection, "BACKOFF_SECONDS", 0.001)


def ask(address, **settings):
    model = client.open_server(address + PATH, **settings)
    return model.ask(text=["a"])


def failing(times, failure):
    """Returns a `reply` that fails several times before it answers."""
    replies = iter([failure] * times)
    return lambda path, body: next(replies, ANSWER)


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_server_is_asked_again(status):
    with rest_double.serving(failing(2, (status, {"error": "busy"}))) as address:
        assert ask(address) == [{"value": 0.5}]


def test_an_output_that_comes_without_a_name_gets_it_from_the_metadata():
    outputs = {"serving_default": {"outputs": {"value": {"dtype": "DT_FLOAT"}}}}
    metadata = {"metadata": {"signature_def": {"signature_def": outputs}}}
    paths = []

    def reply(path, body):
        paths.append(path)
        if body is None:
            return 200, metadata
        return 200, {"outputs": [0.5] * len(body["inputs"]["text"])}

    with rest_double.serving(reply) as address:
        model = client.open_server(address + PATH)
        assert model.ask(text=["a", "b"]) == [{"value": 0.5}, {"value": 0.5}]
        assert model.ask(text=["c"]) == [{"value": 0.5}]
        metadata = {"metadata": {}}
        with pytest.raises(ValueError, match="does not name the output of the signatu"):
            client.open_server(address + PATH).ask(text=["a"])
    assert paths.count(f"{PATH}/metadata") == 2  # Once per client.


def test_the_last_failure_is_quoted():
    reply = failing(4, (429, {"error": "queue full"}))
    with rest_double.serving(reply) as address:
        with pytest.raises(ValueError, match="refused the query: 429, queue full"):
            ask(address)
        assert ask(address) == [{"value": 0.5}]


def test_an_answer_that_is_too_slow_is_not_asked_for_again():
    calls = []

    def reply(path, body):
        calls.append(path)
        time.sleep(0.5)
        return ANSWER

    with rest_double.serving(reply) as address:
        with pytest.raises(TimeoutError, match=r"did not answer within 0\.1 seconds"):
            ask(address, timeout_seconds=0.1)
    assert len(calls) == 1


def test_an_answer_that_stops_in_the_middle_is_too_slow():
    has_given_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def begin_to_answer():
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
            has_given_up.wait()
            connection.close()

        thread = threading.Thread(target=begin_to_answer)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=r"did not answer within 0\.2 seconds"):
            ask(address, timeout_seconds=0.2)
        has_given_up.set()
        thread.join()


def test_headers_are_sent(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    headers = []
    with rest_double.serving(failing(0, None), headers=headers) as address:
        ask(address, headers=("Authorization: Bearer abc", "X-Team: a:b"))
    assert headers[0]["Authorization"] == "Bearer abc"
    assert headers[0]["X-Team"] == "a:b"


@pytest.mark.parametrize("header", ["Bearer abc", "X-Name: a\nb", "X-Name: 日本"])
def test_a_malformed_header_is_refused(header):
    with pytest.raises(ValueError, match="expected 'Name: value' in printable ASCII"):
        ask("http://localhost", headers=(header,))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Paths of a self-signed certificate of 127.0.0.1 and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl")
    folder = tmp_path_factory.mktemp("tls")
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=IP:127.0.0.1,DNS:localhost"
    subprocess.run(
        [*command.split(), "-keyout", key_file, "-out", cert_file],
        check=True,
        capture_output=True,
    )
    return str(cert_file), str(key_file)


def test_tls_verifies_the_server(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with rest_double.serving(failing(0, None), tls=context) as address:
        with pytest.raises(ConnectionError, match="REQUESTS_CA_BUNDLE"):
            ask(address)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0])
        assert ask(address) == [{"value": 0.5}]


@pytest.mark.parametrize("path", ["", "/versions/12/", "/labels/stable"])
def test_an_address_may_select_a_version(path):
    paths = []

    def reply(path, body):
        paths.append(path)
        return ANSWER

    with rest_double.serving(reply) as address:
        client.open_server(f"{address}/proxy{PATH}{path}").ask(text=["a"])
        for url in (f"{address}{PATH}{path}/other", f"localhost{PATH}", address):
            with pytest.raises(ValueError, match="http://HOST:PORT/v1/models/NAME"):
                client.open_server(url)
    assert paths == [f"/proxy{PATH}{path.rstrip('/')}:predict"]
