"""The socket of a server."""

from __future__ import annotations

import socket

import pytest

from emulator.server.serving import CannotListen, listen


def test_it_is_a_tcp_socket_by_name() -> None:
    """asyncio turns Nagle's algorithm off only then: else each request waits 40 ms."""
    with listen("127.0.0.1", 0) as made:
        assert made.proto == socket.IPPROTO_TCP
        with pytest.raises(CannotListen, match=r"127\.0\.0\.1:\d+: .*; another server runs there"):
            listen("127.0.0.1", made.getsockname()[1])


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(CannotListen, match=r"cannot listen on 192\.0\.2\.1:0"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("host", ["999.1.1.1", "192.0.2.1", "no.such.host.invalid", "a" * 70])
def test_a_bad_host_is_told_from_a_taken_port(host: str) -> None:
    with pytest.raises(CannotListen) as caught:
        listen(host, 0)
    assert "give an address of this machine with --host" in str(caught.value)
    assert "another server" not in str(caught.value)
    assert "--port" not in str(caught.value)


def test_ip_version_6_is_served_where_there_is_any() -> None:
    try:
        made = listen("::1", 0)
    except CannotListen:
        pytest.skip("this machine has no IPv6")
    with made:
        assert made.family == socket.AF_INET6
