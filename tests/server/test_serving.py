"""The socket of a server."""

from __future__ import annotations

import socket

import pytest

from emulator.server.serving import PortTaken, listen


def test_it_is_a_tcp_socket_by_name() -> None:
    """asyncio turns Nagle's algorithm off only then: else each request waits 40 ms."""
    with listen("127.0.0.1", 0) as made:
        assert made.proto == socket.IPPROTO_TCP
        with pytest.raises(PortTaken, match=r"cannot listen on 127\.0\.0\.1"):
            listen("127.0.0.1", made.getsockname()[1])


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(PortTaken, match=r"cannot listen on 192\.0\.2\.1:0"):
        listen("192.0.2.1", 0)


def test_ip_version_6_is_served_where_there_is_any() -> None:
    try:
        made = listen("::1", 0)
    except PortTaken:
        pytest.skip("this machine has no IPv6")
    with made:
        assert made.family == socket.AF_INET6
