"""A server on this machine, for tests of downloads."""

import contextlib
import http.server
import threading


@contextlib.contextmanager
def serving(answer, head=None):
    """Yields the address of a server whose handler calls `answer(handler)` for GET, and `head(handler)` for HEAD."""
    methods = {"do_GET": answer, "do_HEAD": head or answer, "log_message": lambda *_: None}
    handler = type("Handler", (http.server.BaseHTTPRequestHandler,), methods)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
