"""A headless Chromium, controlled with its DevTools protocol over a pipe: no driver, no network."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_NAMES = "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync disable-background-networking"
_NAMES += " disable-component-update disable-dev-shm-usage remote-debugging-pipe"
_FLAGS = [*(f"--{name}" for name in _NAMES.split()), "about:blank"]


class Browser:
    """One page.  `complaints` are errors and warnings of its console, and uncaught exceptions."""

    def __init__(self) -> None:
        assert CHROMIUM
        self.complaints: list[str] = []
        self._folder = tempfile.mkdtemp(prefix="gpbench-browser-")
        to_it, self._write = self._pipe()
        self._read, from_it = self._pipe()
        # it reads from descriptor 3 and writes to 4
        pipes = f'exec "$@" 3<&{to_it} 4>&{from_it}'
        words = ["bash", "-c", pipes, "bash", CHROMIUM, f"--user-data-dir={self._folder}", *_FLAGS]
        quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        self._process = subprocess.Popen(words, pass_fds=(to_it, from_it), **quiet)
        os.close(to_it)
        os.close(from_it)
        self._count, self._rest, self._session = 0, b"", ""
        (target,) = [t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self._session = self("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, until: str = "", **parameters: Any) -> dict:
        """The answer to a command; with `until`, once the event of this name has come, too."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer, waits = None, bool(until)
        while answer is None or waits:
            message = self._next()
            self._listen(message)
            waits = waits and message.get("method") != until
            if message.get("id") == self._count:
                assert "error" not in message, message
                answer = message["result"]
        return answer

    def open(self, page: Path) -> None:
        self("Page.navigate", until="Page.loadEventFired", url=page.resolve().as_uri())

    def value(self, expression: str) -> Any:
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _pipe() -> list[int]:
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD, 10))  # not 3 or 4
            os.close(end)
        return ends

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            if not (more := os.read(self._read, 1 << 16)):
                raise EOFError("Chromium has ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _listen(self, message: dict) -> None:
        match message.get("method"), message.get("params", {}):
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(str(details))
            case "Runtime.consoleAPICalled", {"type": "error" | "warning" as kind, "args": args}:
                self.complaints.append(f"{kind}: {args}")
            case "Log.entryAdded", {"entry": {"level": "error" | "warning" as level, "text": text}}:
                self.complaints.append(f"{level}: {text}")
