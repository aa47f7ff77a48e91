import contextlib
import socket
import time
from threading import Thread

import pytest

from simulations.laboratory.nodes.line import Line


@pytest.fixture
def reached():
    """Connect to an echo over a line: (line, connection)."""
    with contextlib.ExitStack() as stack:
        far = stack.enter_context(socket.create_server(("127.0.0.2", 0)))
        port = far.getsockname()[1]

        def echo():
            with far.accept()[0] as connection:
                while data := connection.recv(2**16):
                    connection.sendall(data)

        thread = Thread(target=echo)
        thread.start()
        line = Line()
        stack.enter_context(line.between(("127.0.0.1", port), ("127.0.0.2", port)))
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield line, connection
        connection.close()
        thread.join()


def there_and_back(connection, data):
    started = time.monotonic()
    connection.sendall(data)
    got = b""
    while len(got) < len(data):
        got += connection.recv(2**16)
    assert got == data
    return time.monotonic() - started


def test_a_round_trip_takes_its_delay(reached):
    line, connection = reached
    there_and_back(connection, b"first")
    line.delay = 0.05
    assert there_and_back(connection, b"second") >= 0.05
    assert line.passed == {"up": 11, "down": 11}


def test_a_message_takes_its_size_by_the_rate_in_each_direction(reached):
    line, connection = reached
    there_and_back(connection, b"first")
    line.rate = 1e6
    assert there_and_back(connection, bytes(50_000)) >= 0.05
