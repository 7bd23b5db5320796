"""Clients that mean no good, in a process of their own: `python hostile.py KIND HOST:PORT COUNT`.

It prints a line when its clients are at work, and goes on until it is killed.
"""

import contextlib
import os
import resource
import socket
import ssl
import sys
import threading
import time


def connected(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=60)


def idle(host: str, port: int, count: int) -> None:
    """Connections that say nothing."""
    held = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            held.append(connected(host, port))
    print(len(held), flush=True)
    while True:
        for place, peer in enumerate(held):  # a server that hangs up is called again
            peer.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                try:
                    gone = peer.recv(1) == b""
                except ConnectionError:
                    gone = True
                if gone:
                    peer.close()
                    with contextlib.suppress(OSError):
                        held[place] = connected(host, port)
        time.sleep(0.2)


def hello_of_tls() -> bytes:
    """The first message of a real TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def drip(host: str, port: int, count: int) -> None:
    """Connections that send the beginning of TLS a byte at a time."""
    message = hello_of_tls()
    held = [(connected(host, port), 0) for _ in range(count)]
    print(len(held), flush=True)
    while True:
        for place, (peer, sent) in enumerate(held):
            try:
                peer.sendall(message[sent : sent + 1])
                held[place] = (peer, (sent + 1) % len(message))
            except OSError:
                peer.close()
                with contextlib.suppress(OSError):
                    held[place] = (connected(host, port), 0)
        time.sleep(0.1)


def threads(count: int, work) -> None:
    def forever() -> None:
        while True:
            with contextlib.suppress(OSError):
                work()

    for _ in range(count):
        threading.Thread(target=forever, daemon=True).start()
    print(count, flush=True)
    threading.Event().wait()


def reopen(host: str, port: int, count: int) -> None:
    """Threads that connect and hang up without end."""
    threads(count, lambda: connected(host, port).close())


def garbage(host: str, port: int, count: int) -> None:
    """Threads that send what is neither TLS nor ours."""

    def once() -> None:
        with connected(host, port) as peer:
            peer.sendall(os.urandom(400))
            peer.recv(1)

    threads(count, once)


def tls(host: str, port: int, count: int) -> None:
    """Threads that shake hands properly and then send garbage inside TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def once() -> None:
        with connected(host, port) as peer, context.wrap_socket(peer) as secure:
            secure.sendall(os.urandom(400))
            secure.recv(1)

    threads(count, once)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kind, address, number = sys.argv[1:]
    name, at = address.rsplit(":", 1)
    globals()[kind](name, int(at), int(number))
