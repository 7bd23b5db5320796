"""The bill of materials: all crates of Cargo.lock and Python packages of requirements/*.lock, as CycloneDX 1.6 JSON.

`make sbom` writes build/sbom/tacit.cdx.json and checks it against the schema of the standard. A component is `required`
where the wheel for Linux x86-64 depends on it, and `excluded` where it only builds, tests, or serves other systems.
Crates come with licences and dependencies, as `cargo metadata` gives them; locks of Python packages have neither, and
the composition says so. The same sources give the same bytes: the time is SOURCE_DATE_EPOCH, where that is set, and the
serial number is a hash of the contents. Standard library only, but for `--validate`.
"""

import argparse
import json
import os
import re
import subprocess
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = "tacit-python"
"""The crate that the wheel holds."""
PLATFORM = "x86_64-unknown-linux-gnu"
ENTRY = re.compile(r"^([\w.-]+)==(\S+)((?:\s*\\\n\s*--hash=sha256:[0-9a-f]{64})+)", re.M)

Json = dict[str, Any]


def metadata(*options: str) -> Json:
    """What cargo says about the workspace and all packages that it is built from."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: Json = json.loads(done.stdout)
    return found


def crate_purl(package: Json) -> str:
    """The package URL of a crate; one of our own is told from a crate of that name in the registry by its folder."""
    own = "" if package["source"] else f"?download_url=file://{Path(package['manifest_path']).parent.relative_to(ROOT)}"
    return f"pkg:cargo/{package['name']}@{package['version']}{own}"


def edges(nodes: list[Json], kinds: set[str | None]) -> dict[str, set[str]]:
    """The packages that each package depends on in one of some ways: None is at run time."""
    return {
        node["id"]: {each["pkg"] for each in node["deps"] if kinds & {kind["kind"] for kind in each["dep_kinds"]}}
        for node in nodes
    }


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    """A package and all that it depends on."""
    found, waiting = {start}, [start]
    while waiting:
        for name in graph[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def crates() -> tuple[list[Json], dict[str, list[str]]]:
    """The components that are crates, and the references of those that each depends on."""
    everything, linked = metadata(), metadata("--filter-platform", PLATFORM)
    packages = {package["id"]: package for package in everything["packages"]}
    product = next(name for name, package in packages.items() if package["name"] == PRODUCT)
    required = reached(product, edges(linked["resolve"]["nodes"], {None}))
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    checksums = {(each["name"], each["version"]): each.get("checksum") for each in locked}
    purls = {name: crate_purl(package) for name, package in packages.items()}
    components = []
    for name, package in packages.items():
        checksum = checksums[package["name"], package["version"]]
        scope = "required" if name in required else "excluded"
        component = part(purls[name], package["name"], package["version"], scope, [checksum] if checksum else [])
        if package["license"]:
            # Before SPDX expressions crates wrote a slash for OR.
            component["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
        components.append(component)
    graph = edges(everything["resolve"]["nodes"], {None, "build"})
    return components, {purls[name]: sorted(purls[each] for each in uses) for name, uses in graph.items()}


def part(purl: str, name: str, version: str, scope: str, digests: list[str]) -> Json:
    """A component: a library with the SHA-256 of each file that it may come as."""
    hashes = [{"alg": "SHA-256", "content": digest} for digest in digests]
    about: Json = {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": scope, "purl": purl}
    return {**about, "hashes": hashes} if hashes else about


def entries(lock: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and SHA-256 of each wheel, for all packages of a lock."""
    for found in ENTRY.finditer(lock.read_text(encoding="utf-8")):
        yield found[1], found[2], re.findall(r"sha256:([0-9a-f]{64})", found[3])


def wheels() -> list[Json]:
    """The components that are Python packages, with the locks that name them."""
    components: dict[str, Json] = {}
    for lock in sorted((ROOT / "requirements").glob("*.lock")):
        for name, version, digests in entries(lock):
            purl = f"pkg:pypi/{name}@{version}"
            component = components.setdefault(purl, part(purl, name, version, "excluded", digests))
            component.setdefault("properties", []).append({"name": "tacit:lock", "value": lock.stem})
            if lock.stem == "run":
                component["scope"] = "required"
    return list(components.values())


def bill() -> Json:
    """The whole document."""
    rust, graph = crates()
    python = wheels()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = next(each for each in rust if each["name"] == PRODUCT)
    purl = f"pkg:pypi/{project['name']}@{core['version']}"
    own = {"type": "application", "bom-ref": purl, "name": project["name"], "version": core["version"], "purl": purl}
    own["licenses"] = [{"expression": project["license"]}]
    asked = sorted(f"pkg:pypi/{pin.replace('==', '@')}" for pin in project["dependencies"])
    graph[purl] = [core["bom-ref"], *asked]
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    time = {"timestamp": datetime.fromtimestamp(int(epoch), UTC).isoformat()} if epoch else {}
    body: Json = {
        "metadata": {**time, "component": own},
        "components": sorted([*rust, *python], key=lambda component: component["purl"]),
        "dependencies": [{"ref": ref, "dependsOn": graph[ref]} for ref in sorted(graph)],
        "compositions": [
            {"aggregate": "complete", "dependencies": sorted(each["bom-ref"] for each in rust)},
            {"aggregate": "unknown", "dependencies": sorted(each["bom-ref"] for each in python)},
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


def validate(text: str) -> None:
    """Raises ValueError where the schema of the standard refuses the document; needs requirements/tools.lock."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise ValueError(f"not CycloneDX 1.6: {error}")


def main() -> None:
    """Writes the document."""
    parser = argparse.ArgumentParser(description="Write the bill of materials.")
    parser.add_argument("out", type=Path, help="file, whose folder is made")
    parser.add_argument("--validate", action="store_true", help="check it against the schema")
    arguments = parser.parse_args()
    document = bill()
    text = json.dumps(document, indent=2) + "\n"
    if arguments.validate:
        validate(text)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out}: {len(document['components'])} components")


if __name__ == "__main__":
    main()
