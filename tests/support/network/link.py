"""Links between hosts and a bridge, for kernels without netem: frames arrive late, or never.

For each link this process makes two TAP devices, ``endN`` for the host and ``portN`` for the
bridge, in the namespace in which it starts. Frames from the host are delayed and some are lost;
those to the host pass at once. The devices are gone with the process, which ends with its standard
input.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import random
import selectors
import struct
import sys
import time

_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000
_MOST_BYTES = 65_536


def _tap(name: str) -> int:
    """A new TAP device: a file that gives and takes one frame at a time."""
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, _TUNSETIFF, struct.pack("16sH", name.encode(), _TAP_WITHOUT_HEADER))
    return opened


def main() -> None:
    """Arguments: the number of links, the delay in ms, the loss in percent."""
    count, delay_s = int(sys.argv[1]), float(sys.argv[2]) / 1000
    lost = float(sys.argv[3]) / 100
    rng = random.Random(16)
    # All frames have the same delay, so they leave in the order in which they came.
    underway: collections.deque[tuple[float, int, bytes]] = collections.deque()
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        for number in range(count):
            end, port = _tap(f"end{number}"), _tap(f"port{number}")
            selector.register(end, selectors.EVENT_READ, (port, True))
            selector.register(port, selectors.EVENT_READ, (end, False))
        print("ready", flush=True)
        while True:
            wait_s = max(0.0, underway[0][0] - time.monotonic()) if underway else None
            for key, _ in selector.select(wait_s):
                if key.data is None:
                    return
                to, delayed = key.data
                # A device that is down gives and takes nothing.
                with contextlib.suppress(OSError):
                    frame = os.read(key.fd, _MOST_BYTES)
                    if not delayed:
                        os.write(to, frame)
                    elif rng.random() >= lost:
                        underway.append((time.monotonic() + delay_s, to, frame))
            while underway and underway[0][0] <= time.monotonic():
                _, to, frame = underway.popleft()
                with contextlib.suppress(OSError):
                    os.write(to, frame)


if __name__ == "__main__":
    main()
