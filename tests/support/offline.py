"""A process without a network, for tests of what must not need one."""

import socket


def refuse_network(monkeypatch, error):
    """Raise `error` at each connection and look-up of a name; return the list of what was tried, which grows."""
    tried = []

    def refuse(*words, **_):
        tried.append(words)
        raise error

    for place, names in ((socket.socket, ("connect", "connect_ex")), (socket, ("getaddrinfo", "gethostbyname"))):
        for name in names:
            monkeypatch.setattr(place, name, refuse)
    return tried
