"""Fleets on Ray on this machine, for tests and for `scenarios.py`."""

import os
import secrets
import tempfile
from pathlib import Path

TOKEN = Path(tempfile.mkdtemp(prefix="tacit-ray-")) / "token"
TOKEN.write_text(secrets.token_hex(32))
# Before Ray is imported: all clusters of a process know one token, so that it can join each of them.
os.environ |= {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN_PATH": str(TOKEN),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
