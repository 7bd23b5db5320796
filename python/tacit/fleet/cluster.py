"""Ray: connecting to a cluster or starting one, and the names of a fleet's actors there."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError, TransportError
from tacit.fleet.config import Fleet

PLACE = "ray.json"
"""The file in a fleet's folder that says where its Ray is."""
TOKEN = "ray.token"
"""The file in a fleet's folder with the token of a local cluster, without which nobody may run anything there."""


def library() -> Any:
    """Ray; raises `MisuseError` where it is not installed."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray will do by default; it warns else
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # it prints what it held back at the exit, to standard output
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MisuseError(f"a fleet needs {error.name}: pip install 'tacit[ray]'") from error
    return ray


def connect(fleet: Fleet) -> None:
    """Join the cluster of the fleet file's `address`, or start a local one that ends with this process.

    Raises `TransportError` where no cluster answers.
    """
    wanted = fleet.ray
    fleet.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if wanted.address is not None:
        join(wanted.address, wanted.namespace)
    else:
        keep_token(fleet.state / TOKEN)
        ray = library()
        shown, _, port = (wanted.dashboard or "").rpartition(":")
        ray.init(
            num_cpus=wanted.cpus,
            object_store_memory=wanted.object_store * 10**6,
            include_dashboard=wanted.dashboard is not None,
            namespace=wanted.namespace,
            log_to_driver=False,
            configure_logging=False,
            **({"dashboard_host": shown, "dashboard_port": int(port)} if wanted.dashboard else {}),
        )
    place = {"address": library().get_runtime_context().gcs_address, "namespace": wanted.namespace, "name": fleet.name}
    beside = fleet.state / f".{PLACE}.{os.getpid()}"
    beside.write_text(json.dumps(place), encoding="utf-8")
    beside.replace(fleet.state / PLACE)


def keep_token(file: Path) -> None:
    """Let Ray authenticate by the token in a file of the fleet, which is made where there is none.

    An environment that says how to authenticate is left as it is. Ray reads it once, before it is used first.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return
    if not file.exists():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write(secrets.token_hex(32))
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}


def join(address: str, namespace: str) -> None:
    """Join a cluster; raises `TransportError` where none answers."""
    ray = library()
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0]
        raise TransportError(f"no Ray cluster answers at {address}: {why}") from error


def find(fleet: Fleet) -> Any:
    """The head of a running fleet, from another process; raises `MisuseError` where it does not run."""
    place = fleet.state / PLACE
    missing = MisuseError(f"the fleet `{fleet.name}` does not run: start it with `tacit fleet up {shown(fleet.path)}`")
    if not place.exists():
        raise missing
    told = json.loads(place.read_text(encoding="utf-8"))
    if fleet.ray.address is None and (fleet.state / TOKEN).exists():
        keep_token(fleet.state / TOKEN)
    try:
        join(told["address"], told["namespace"])
        return library().get_actor(name(fleet, "head"), namespace=told["namespace"])
    except (TransportError, ValueError) as error:
        raise missing from error


def shown(path: Path) -> Path:
    """A path as people write it."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def name(fleet: Fleet, what: str) -> str:
    """The name of one of the fleet's actors."""
    return f"tacit-{fleet.name}-{what}"


def servers(fleet: Fleet) -> dict[str, Any]:
    """The actors of servers that are there already, by their identifiers."""
    ray, begin = library(), name(fleet, "server-")
    found = ray.util.list_named_actors(all_namespaces=False)
    return {each.removeprefix(begin): ray.get_actor(each) for each in found if each.startswith(begin)}


def here() -> Any:
    """A placement on this process's node, where the door's key and ledger are."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(library().get_runtime_context().get_node_id(), soft=False)
