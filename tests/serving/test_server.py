"""The server as a whole, in processes of its own; needs the extra `server`."""

import asyncio
import concurrent.futures
import contextlib
import functools
import importlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import types

import pytest
import requests

from bert_tf.serving import client
from bert_tf.serving import options as serving_options
from tests import runs

for package in ("orjson", "prometheus_client", "starlette", "uvicorn"):
    pytest.importorskip(package, reason="needs the extra server")
server = importlib.import_module("bert_tf.serving.server")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["the rain", "", "中文 été"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def started_server(export_dir, *flags):
    """Yields the port and the process of a server."""
    port = free_port()
    flags = [f"--export_dir={export_dir}", f"--port={port}", *flags]
    with subprocess.Popen(
        [sys.executable, "tools/serve_model.py", *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as process:
        try:
            yield port, process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def running(single_export, tmp_path_factory):
    """The port, process and model of a server with a short queue and small bodies."""
    folder = tmp_path_factory.mktemp("models") / "single"
    shutil.copytree(single_export, folder / "1")
    with started_server(folder, "--max_body_mb=1", "--log_format=json") as (
        port,
        process,
    ):
        line = process.stdout.readline()
        address = f"http://localhost:{port}"
        assert line == f"single, version 1, is served at {address}.\n"
        yield port, process, folder
        # A request in progress is answered before the server stops.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            last = pool.submit(predict, port, inputs=["rain and snow " * 9] * 2048)
            while "bert_tf_queued_requests 1.0" not in get(port, "/metrics").text:
                assert not last.done(), "The request was never seen in progress."
            process.terminate()
            assert last.result().status_code == 200
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, ""), err
        assert "Traceback" not in err
        *_, line, end = err.strip().split("\n")
        assert end == "bert_tf serve: stopped."
        line = json.loads(line)
        assert (line["rows"], line["status"]) == (2048, 200)


@pytest.fixture
def port(running):
    return running[0]


def predict(port, **body):
    url = f"http://localhost:{port}/v1/models/single:predict"
    return requests.post(url, json=body, timeout=60)


def get(port, path, status=200):
    reply = requests.get(f"http://localhost:{port}{path}", timeout=60)
    assert reply.status_code == status, reply.text
    return reply


def test_the_server_answers_as_the_saved_model(port, single_export):
    assert predict(port, inputs=TEXTS).ok
    expected = client.open_saved_model(single_export).ask(text=TEXTS)
    url = f"http://localhost:{port}/v1/models/single"
    for path in (url, f"{url}/versions/1"):
        runs.assert_close(client.open_server(path).ask(text=TEXTS), expected)


def test_the_server_describes_itself(port):
    predict(port, inputs=TEXTS)
    model = "/v1/models/single"
    [status] = get(port, model).json()["model_version_status"]
    assert (status["version"], status["state"]) == ("1", "AVAILABLE")
    metadata = get(port, f"{model}/versions/1/metadata").json()["metadata"]
    text = metadata["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert text["text"]["dtype"] == "DT_STRING"
    for path in ("/livez", "/readyz"):
        assert get(port, path).text == "ok"
    assert "<form" in get(port, "/").text
    assert 'status="200"' in get(port, "/metrics").text
    error = get(port, "/v1/models/other", status=404).json()["error"]
    assert error == "Expected model single, version 1."
    assert predict(port, inputs=["a" * 2**20]).status_code == 413


@pytest.mark.slow
def test_sigterm_during_the_start_ends_in_one_line(single_export):
    with started_server(single_export) as (port, process):
        while True:  # Until it answers, but the model is still loading.
            with contextlib.suppress(requests.ConnectionError):
                get(port, "/readyz", status=503)
                break
        assert get(port, "/livez").text == "ok"
        process.terminate()
        out, err = process.communicate(timeout=60)
    lines = [line for line in err.splitlines() if line.startswith("bert_tf")]
    assert (process.returncode, out) == (143, ""), err
    assert lines == ["bert_tf serve: stopped before the model was loaded."]


def test_a_model_that_never_answers_ends_the_server(single_export, monkeypatch):
    ends = []
    model = types.SimpleNamespace(name="m", version=1)
    seconds = functools.partial(next, iter([0.0, 179.0, 181.0]))
    queue = types.SimpleNamespace(busy_seconds=seconds)
    app = types.SimpleNamespace(model=model, queue=queue)
    monkeypatch.setattr(server, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(
        server.server_model, "end_process", lambda *end: ends.append(end)
    )
    monkeypatch.setattr(server.server_model, "ServedModel", lambda *_: model)
    options = serving_options.ServeModelOptions(export_dir=single_export)
    server._load_versions(options, app)
    assert ends == [("The model does not answer.", 1)]


def test_the_page_shows_the_classes_of_a_text(port):
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs the package playwright"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    if chromium is None:
        pytest.skip("needs Chromium")
    errors = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://localhost:{port}/")
        page.fill("textarea[name=text]", "the rain")
        page.click("button")
        page.wait_for_selector("#answer td")
        names = page.locator("#answer td:first-child").all_inner_texts()
        assert sorted(names) == ["rain", "snow", "été"]
        shares = page.locator("#answer td:last-child").all_inner_texts()
        assert shares == sorted(shares, reverse=True)
        assert (page.inner_text("#error"), errors) == ("", [])
        browser.close()


@pytest.mark.slow  # The last test of this server.
def test_new_versions_are_served_and_broken_ones_are_not(running, single_export):
    port, process, folder = running

    shutil.copytree(single_export, folder / "2")
    data = folder / "2" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    while '"error"' not in (line := process.stderr.readline()):
        assert line
    error = json.loads(line)["error"]
    assert error.startswith(f"{folder}/2 is not served: ")
    assert "variables.data-00000-of-00001 is truncated" in error
    [state] = get(port, "/v1/models/single").json()["model_version_status"]
    assert state["version"] == "1"
    shutil.copytree(single_export, folder / "3")
    assert process.stdout.readline().startswith("single, version 3, is served at ")
    assert get(port, "/v1/models/single/versions/3/metadata").ok


@pytest.mark.parametrize("num_requests", [1, 2])
def test_a_client_that_never_reads_is_disconnected(monkeypatch, num_requests):
    monkeypatch.setattr(server, "_IDLE_SECONDS", 1)
    done = threading.Event()

    async def large_answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(2**26)})
        done.set()

    async def talk():
        running = server._uvicorn_server(large_answer)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(running.serve(sockets=[listener]))
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.transport.pause_reading()
            request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
            writer.write(request * num_requests)
            while not running.server_state.connections:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(30):
                while running.server_state.connections:
                    await asyncio.sleep(0.01)
            running.should_exit = True
            await serving
            writer.transport.abort()

    asyncio.run(talk())
    assert done.is_set()


def test_a_port_in_use_and_a_broken_model_end_in_one_line(
    run_tool, single_export, tmp_path
):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flags = {"export_dir": single_export, "port": port}
        result = run_tool("serve_model", **flags, exit_code=1)
    assert len(result.stderr.splitlines()) == 1
    assert f"Cannot listen on port {port}: Address already" in result.stderr
    assert "or pass another --port." in result.stderr
    # A program that calls the tool still ends at Ctrl-C in its own way.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    result = run_tool("serve_model", f"--export_dir={tmp_path}", exit_code=1)
    assert "contains no saved_model.pb and no version" in result.stderr


def test_a_server_without_its_extra_names_it(monkeypatch, run_tool):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "bert_tf.serving.server")
    result = run_tool("serve_model", "--export_dir=models", exit_code=1)
    assert "run pip install 'bert_tf[server]'." in result.stderr


def test_the_token_is_in_a_variable_or_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_TF_SERVER_TOKEN", "one")
    assert server._token() == "one"
    (tmp_path / "token").write_text("two\n")
    monkeypatch.setenv("BERT_TF_SERVER_TOKEN_FILE", str(tmp_path / "token"))
    assert server._token() == "two"


@pytest.mark.parametrize(
    "variable, hint", [("TOKEN", "a token, or no variable"), ("TOKEN_FILE", "a path")]
)
def test_an_empty_token_never_means_none(monkeypatch, single_export, variable, hint):
    monkeypatch.setenv(f"BERT_TF_SERVER_{variable}", "")
    options = serving_options.ServeModelOptions(export_dir=single_export)
    message = f"BERT_TF_SERVER_{variable} is empty; expected {hint}"
    with pytest.raises(ValueError, match=message):
        server.run(options)


@pytest.mark.slow
def test_a_model_that_openvino_cannot_compute_ends_in_one_line(
    exports, run_tool_process
):
    flags = [f"--export_dir={exports['masks'][1]}", f"--port={free_port()}"]
    result = run_tool_process("serve_model", *flags, "--backend=openvino", exit_code=1)
    is_installed = importlib.util.find_spec("openvino") is not None
    expected = "fills masked words" if is_installed else "openvino, which is not"
    assert expected in result.stderr
