"""A store that speaks as much of S3 as checkpoints need, and loses answers when it is asked to.

A put looks and writes under one lock, so that of two that ask for ``If-None-Match: *`` one wins.
``python -m tests.consumers.s3 PORT`` serves until it is ended.
"""

import hashlib
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

__all__ = ["ENVIRONMENT", "Store"]

#: What a client needs in its environment, beside the address.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


class Store:
    """The server, on a free port or the one given.

    Attributes
    ----------
    objects : dict
        Bytes by bucket and key.
    lose : float
        Share of puts whose answer is lost after they have succeeded.
    delay : float
        Seconds that each request takes on its way.
    answers : int or None
        Status by which each request is refused, as 503 or 403; None for none.
    lost, refused : int
        Answers lost so far; puts refused, as there was an object.
    """

    def __init__(self, port=0):
        self.objects = {}
        self.lose = self.delay = 0.0
        self.answers = None
        self.lost = self.refused = 0
        self.lock = threading.Lock()
        self.random = random.Random(0)
        handler = type("Handler", (_Handler,), {"store": self})
        self.server = _Server(("127.0.0.1", port), handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": self.address}

    def put(self, key, data, *, only_new):
        """Put an object, unless it is to be new and there is one; say whether it was put."""
        with self.lock:
            if only_new and key in self.objects:
                self.refused += 1
                return False
            self.objects[key] = data
            return True

    def loses(self):
        with self.lock:
            lost = self.random.random() < self.lose
            self.lost += lost
            return lost

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # or each answer waits for 40 ms
    store: Store

    def log_message(self, *_):
        pass

    def parse_request(self):
        if not super().parse_request():
            return False
        time.sleep(self.store.delay)
        parts = urlsplit(self.path)
        self.key, self.query = unquote(parts.path).lstrip("/"), parse_qs(parts.query)
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.store.answers is not None:
            self.answer(self.store.answers)
            return False
        return True

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_PUT(self):
        put = self.store.put(self.key, self.body, only_new=self.headers.get("If-None-Match") == "*")
        if put and self.store.loses():
            self.close_connection = True
            return
        self.answer(200 if put else 412, ETag=f'"{hashlib.sha256(self.body).hexdigest()}"')

    def do_GET(self):
        if "list-type" in self.query:
            self.list()
            return
        data = self.store.objects.get(self.key)
        if data is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        self.answer(200, data, ETag=tag, Last_Modified="Sun, 22 Nov 2026 12:00:00 GMT")

    def list(self):
        prefix = self.query.get("prefix", [""])[0]
        bucket = self.key.strip("/") + "/"
        with self.store.lock:
            sizes = {key: len(data) for key, data in self.store.objects.items()}
        keys = sorted(key.removeprefix(bucket) for key in sizes if key.startswith(bucket + prefix))
        folders = sorted(
            {prefix + k[len(prefix) :].split("/")[0] + "/" for k in keys if "/" in k[len(prefix) :]}
        )
        objects = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{sizes[bucket + key]}</Size>"
            "<LastModified>2026-11-22T12:00:00.000Z</LastModified><ETag>tag</ETag></Contents>"
            for key in keys
            if "/" not in key[len(prefix) :]
        )
        result = "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders
        )
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{objects}{result}"
        self.answer(200, f"{text}</ListBucketResult>".encode(), Content_Type="application/xml")

    def do_POST(self):
        """Delete objects, which is the only thing that is posted."""
        bucket = self.key.strip("/")
        space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        asked = ET.fromstring(self.body)  # noqa: S314 - from the client beside it
        keys = [one.text for name in ("Key", f"{space}Key") for one in asked.iter(name)]
        with self.store.lock:
            for key in keys:
                self.store.objects.pop(f"{bucket}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def do_DELETE(self):
        with self.store.lock:
            self.store.objects.pop(self.key, None)
        self.answer(204)


if __name__ == "__main__":
    with Store(int(sys.argv[1])) as store:
        store.thread.join()
