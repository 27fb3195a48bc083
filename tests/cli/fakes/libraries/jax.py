"""In the place of JAX, whose import takes most of the time of a command and of which the fake job needs nothing."""

from types import SimpleNamespace

config = SimpleNamespace()


def devices() -> list[SimpleNamespace]:
    """One device, without programs."""
    return [SimpleNamespace(client=SimpleNamespace(live_executables=list))]


local_devices = devices
