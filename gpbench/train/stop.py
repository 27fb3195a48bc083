"""Stopping at a checkpoint: signals and a time limit are noted, and the loop asks for them between chunks."""

import contextlib
import os
import signal
import sys
import threading
import time
from types import TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # of a scheduler or service, Ctrl-C, and a closed terminal

# `timeout -s INT` signals a process and then its group: two SIGINTs at once are one wish, and not a second Ctrl-C.
_SAME_WISH_S = 0.2


class StopRequest:
    """A context that turns `SIGNALS` and `time_limit`, in seconds from the construction, into a `reason`.  A second
    SIGINT ends the process at once, even while a compiled call holds the main thread: Python's own handlers would wait
    for that call to return, so the signals are read from a wake-up pipe in a thread.  SIGHUP counts unless it is
    ignored, as under nohup.  Outside the main thread, which alone handles signals, there is only the time limit."""

    def __init__(self, time_limit: float | None = None):
        self.time_limit = time_limit
        self._start = time.monotonic()
        self._signal: str | None = None
        self._handlers: dict[int, signal._HANDLER] = {}

    @property
    def reason(self) -> str | None:
        """Reason to stop ("SIGTERM", "SIGINT", "time limit of 60 s"); None while there is none."""
        if self._signal is None and (seconds := self.seconds_left()) is not None and seconds <= 0:
            return f"time limit of {self.time_limit:g} s"
        return self._signal

    @property
    def is_signalled(self) -> bool:
        """True where the reason is a signal."""
        return self._signal is not None

    def seconds_left(self) -> float | None:
        """Seconds until the time limit, negative when past it; None without a limit."""
        return None if self.time_limit is None else self.time_limit - (time.monotonic() - self._start)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is not threading.main_thread():
            return self
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        heeded = [s for s in SIGNALS if s != signal.SIGHUP or signal.getsignal(s) != signal.SIG_IGN]
        # A handler must be Python's for the number to reach the pipe; it has nothing else to do.
        self._handlers = {s: signal.signal(s, lambda *_: None) for s in heeded}
        self._wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, heeded)  # those that a job of a sweep got before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self._handlers:
            return
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._write_end)
        self._watcher.join()
        os.close(self._read_end)

    def _watch(self) -> None:
        interrupted = None
        while number := os.read(self._read_end, 1):
            now = time.monotonic()
            if number[0] not in self._handlers:  # of a handler of the user's, which has been called
                with contextlib.suppress(OSError):
                    os.write(self._wakeup, number)
                continue
            self._signal = self._signal or signal.Signals(number[0]).name
            if number[0] == signal.SIGINT:
                if interrupted is not None and now - interrupted > _SAME_WISH_S:
                    os._exit(130)
                if interrupted is None:
                    interrupted = now
                    line = "stopping at the next checkpoint; Ctrl-C again to end at once"
                    with contextlib.suppress(OSError):
                        print(line, file=sys.stderr, flush=True)
