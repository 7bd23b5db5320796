"""The exception tree. Each error names the guilty side; a session is dropped after any of them.

- `TacitError`: the root.
- `MisuseError`: the caller's fault (wrong shape, wrong dtype, bad file); nothing was sent.
- `PeerError`: the other side sent something else than the protocol expects.
- `TransportError`: the connection failed, timed out, or could not be authenticated.
- `UnsupportedError`: a model or option this version cannot run; names the node and a way out.
"""

from tacit._core import MisuseError, PeerError, TacitError, TransportError, UnsupportedError

__all__ = ["MisuseError", "PeerError", "TacitError", "TransportError", "UnsupportedError"]
