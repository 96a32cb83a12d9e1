"""An object store of S3's kind on this machine, over HTTP: moto's server, which can be told to fail
as networks and stores do.
"""

import contextlib
import logging
import random
import socket
import threading
from collections.abc import Callable

import pytest

FAULTS = ("drop", "lost", "cut", "500", "503")
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


CODES = {"403": "AccessDenied", "404": "NoSuchUpload", "503": "SlowDown"}
OWN = "of-the-test"  # among what a client says of itself; its requests never fail
ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"

Fault = Callable[[str, str], str | None]  # of a method and a path with its query


class Server:
    """The store.

    Attributes:
        url: of the server.
        fault: asked before each request: None, or how it fails. ``drop`` closes the connection at
            once, ``lost`` once the request is done, ``cut`` within the answer; a number is the
            status of the answer.
        requests: (method, path with query) of each.
        failed: how many of them did.
    """

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.fault = lambda method, path: None
        self.requests = []
        self.failed = 0
        self._store = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()

    def __call__(self, environ, start_response):
        method, query = environ["REQUEST_METHOD"], environ["QUERY_STRING"]
        path = f"{environ['PATH_INFO']}?{query}".removesuffix("?")
        self.requests.append((method, path))
        own = OWN in environ.get("HTTP_USER_AGENT", "")
        how = None if own else self.fault(method, path)
        if how is None:
            return self._store(environ, start_response)
        self.failed += 1
        if how.isdigit():
            code = CODES.get(how, "InternalError")
            start_response(f"{how} {code}", [("Content-Type", "text/xml")])
            told = ERROR.format(code, "as it was told to").encode()
            return [] if method == "HEAD" else [told]
        connection = environ["werkzeug.socket"]
        if how == "drop":
            return _hang_up(connection, start_response)
        answer = []

        def keep(status, headers, info=None):
            answer.extend((status, headers))

        body = b"".join(self._store(environ, keep))
        if how == "lost" or len(body) < 2:
            return _hang_up(connection, start_response)
        start_response(*answer)
        return _cut(body, connection)

    def at_random(self, rate, seed):
        """A fault that so many requests have, each kind alike."""
        chance, lock = random.Random(seed), threading.Lock()

        def fault(method, path):
            with lock:
                return chance.choice(FAULTS) if chance.random() < rate else None

        return fault

    @contextlib.contextmanager
    def failing(self, fault):
        """For a while."""
        self.failed, before, self.fault = 0, self.fault, fault
        try:
            yield
        finally:
            self.fault = before


def _hang_up(connection, start_response=None):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    if start_response is not None:  # for what does not know that nobody hears it
        start_response("500 hung up", [])
    return [b""]


def _cut(body, connection):
    yield body[: len(body) // 2]
    _hang_up(connection)


def environment(server):
    """Of a process that is to find the store; the retries are those of its package."""
    return CREDENTIALS | {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_MAX_ATTEMPTS": "10",
        "AWS_RETRY_MODE": "legacy",
    }


@contextlib.contextmanager
def running():
    """(the server, s3fs for the test's own use), with an empty bucket named ``bucket``; this
    process finds it by its environment.
    """
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    server = Server()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(server).items():
            patch.setenv(name, value)
        own = {"user_agent_extra": OWN}
        store = s3fs.S3FileSystem(
            use_listings_cache=False, skip_instance_cache=True, config_kwargs=own
        )
        store.makedirs("bucket", exist_ok=True)  # a request that is answered late is repeated
        try:
            yield server, store
        finally:
            server.stop()
            s3fs.S3FileSystem.clear_instance_cache()


def uploads(store):
    """The objects whose upload began, but is neither complete nor abandoned."""
    found = store.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", [])
    return [upload["Key"] for upload in found]


def contents(store, name):
    """Of all objects below a folder of the bucket, by their names in it."""
    folder = f"bucket/{name}"
    return {path.removeprefix(f"{folder}/"): store.cat_file(path) for path in store.find(folder)}


def upload(store, folder, name):
    """A copy of the files in a folder; its URL."""
    for path in folder.iterdir():
        store.pipe_file(f"bucket/{name}/{path.name}", path.read_bytes())
    return f"s3://bucket/{name}"
