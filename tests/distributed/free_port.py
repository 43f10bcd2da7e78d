# SPDX-License-Identifier: BSD-3-Clause
"""A port for the store of a job."""

import random
import socket


def free_port():
    """Below the ports of clients: of these a rank that waits for the store may be
    given the store's own, and is then connected with itself."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
