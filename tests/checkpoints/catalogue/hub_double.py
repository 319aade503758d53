"""A double of the HTTP API of Hugging Face's hub that serves the files of a folder."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import re
import threading
import urllib.parse

API = re.compile(r"/api/models/(?P<name>[\w.-]+/[\w.-]+)(/(?P<kind>\w+)/(?P<at>.+))?")
FILE = re.compile(r"/(?P<name>[\w.-]+/[\w.-]+)/resolve/(?P<at>[^/]+)/(?P<path>.+)")


class Hub:
    """Models by name, each a folder; every revision is the same commit.

    Attributes:
        models: name -> folder.
        gated: names whose files need permission.
        revisions: names of revisions.
        requests: "METHOD path" of everything that was asked for.
    """

    def __init__(self):
        self.models = {}
        self.gated = set()
        self.revisions = {"main", "v1"}
        self.requests = []
        self.url = ""

    def commit_of(self, name):
        """Returns the commit of a model, which depends on its files' names."""
        return hashlib.sha1(" ".join(self.files_of(name)).encode()).hexdigest()

    def files_of(self, name):
        """Returns the paths of a model's files."""
        folder = pathlib.Path(self.models[name])
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return [path.relative_to(folder).as_posix() for path in paths]

    def downloaded(self):
        """Returns the paths of the files that were downloaded."""
        paths = [FILE.match(one.removeprefix("GET ")) for one in self.requests]
        return sorted({found["path"] for found in paths if found})

    def answer(self, path):
        """Returns (status, headers, content)."""
        api, file = API.fullmatch(path), FILE.fullmatch(path)
        found = api or file
        if found is None or found["name"] not in self.models:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        name, at = found["name"], found["at"] or "main"
        if at not in {*self.revisions, self.commit_of(name)}:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if api:
            is_tree = api["kind"] == "tree"
            content = self._tree(name) if is_tree else self._info(name)
            return 200, {"Content-Type": "application/json"}, json.dumps(content)
        if name in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        content = (pathlib.Path(self.models[name]) / file["path"]).read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": self.commit_of(name)}
        return 200, headers, content

    def _info(self, name):
        siblings = [{"rfilename": path} for path in self.files_of(name)]
        return {"id": name, "sha": self.commit_of(name), "siblings": siblings}

    def _tree(self, name):
        folder = pathlib.Path(self.models[name])
        return [
            {
                "type": "file",
                "path": path,
                "size": (folder / path).stat().st_size,
                "oid": hashlib.sha1((folder / path).read_bytes()).hexdigest(),
            }
            for path in self.files_of(name)
        ]


@contextlib.contextmanager
def serving():
    """Serves a `Hub` on a local port."""
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = urllib.parse.unquote(self.path.partition("?")[0])
            hub.requests.append(f"{self.command} {path}")
            status, headers, content = hub.answer(path)
            content = content.encode() if isinstance(content, str) else content
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub
        server.shutdown()
