"""Forms of an address host:port that people type, right and wrong ones, generated from hosts, ports and additions."""

HOSTS = {
    "localhost": "localhost",
    "Coordinator.example": "Coordinator.example",
    "a_b.c-d": "a_b.c-d",
    "xn--cordinator-fcb.example": "xn--cordinator-fcb.example",
    "10.1.2.3": "10.1.2.3",
    "[::1]": "::1",
    "[2001:db8::1]": "2001:db8::1",
    "[::ffff:10.1.2.3]": "::ffff:10.1.2.3",
}
"""Hosts as they are typed in front of a port, and by themselves."""

NO_HOSTS = [
    "",
    " ",
    "::1",
    "2001:db8::1",
    "[2001:db8::1",
    "2001:db8::1]",
    "[]",
    "[localhost]",
    "[10.1.2.3]",
    "[::1%eth0]",
    "[2001:db8::g]",
    "[1::2::3]",
    "256.0.0.1",
    "1.2.3",
    "010.0.0.1",
    "4711",
    "-a.example",
    "a-.example",
    "a..example",
    ".example",
    "example.",
    f"{'a' * 64}.example",
    ".".join(["a" * 60] * 5),
    "user:secret@coordinator.example",
    "coördinator.example",
    "straße.example",
    "coo\N{COMBINING DIAERESIS}rdinator.example",
    "例え.example",
    "a b",
    "*",
]
NO_PORTS = ["", "0", "65536", "99999", "-1", "+1", "1.0", "x", "²", "٣", " 1", "9" * 5000]

RIGHT = {f"{host}:{port}": (alone, port) for host, alone in HOSTS.items() for port in (1, 9443, 65535)}
WRONG = [
    *(f"{host}:9443" for host in NO_HOSTS),
    *(f"localhost:{port}" for port in NO_PORTS),
    *(
        form
        for host in ("coordinator.example:9443", "[2001:db8::1]:9443")
        for form in (
            f"https://{host}",
            f"grpc://{host}",
            f"//{host}",
            f"{host}/",
            f"{host}/path",
            f"{host}?a",
            f"{host}#a",
            f" {host}",
            f"{host} ",
            f"{host}\n",
            f"{host}\r",
            f"\ufeff{host}",
            f'"{host}"',
            f"{host},{host}",
            host.rpartition(":")[0],
        )
    ),
]
