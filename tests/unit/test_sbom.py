"""The bill of materials names everything that is locked, once, with its version and hashes."""

import json
import re
import tomllib
from datetime import datetime

import pytest
import sbom
from conftest import ROOT

LOCKED = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]


@pytest.fixture(scope="module")
def written():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1800000000")
        return sbom.bill()


@pytest.fixture(scope="module")
def components(written):
    return {component["bom-ref"]: component for component in written["components"]}


def digests(component):
    return {each["content"] for each in component.get("hashes", []) if each["alg"] == "SHA-256"}


def named(components, prefix):
    return {(each["name"], each["version"]): each for each in components.values() if each["purl"].startswith(prefix)}


def test_the_document_says_what_it_is_of(written):
    assert (written["bomFormat"], written["specVersion"], written["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", written["serialNumber"])
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    about = written["metadata"]["component"]
    assert (about["name"], about["version"], about["purl"]) == ("tacit", version, f"pkg:pypi/tacit@{version}")
    assert datetime.fromisoformat(written["metadata"]["timestamp"]).timestamp() == 1800000000


def test_every_component_has_a_url_of_its_own(written, components):
    assert len(components) == len(written["components"])
    for ref, component in components.items():
        assert ref == component["purl"]
        assert component["purl"].partition("?")[0].endswith(f"/{component['name']}@{component['version']}")
        assert component["scope"] in ("required", "excluded")


def test_every_crate_that_is_locked_is_there_with_its_checksum_and_licence(components):
    found = named(components, "pkg:cargo/")
    assert found.keys() == {(each["name"], each["version"]) for each in LOCKED}
    for each in LOCKED:
        component = found[each["name"], each["version"]]
        assert digests(component) == ({each["checksum"]} if "checksum" in each else set())
        ((_, licence),) = component["licenses"][0].items()
        assert licence and "/" not in licence
        # Our own crates are in no registry, and a URL must not name one of somebody else's there.
        assert ("?download_url=file://crates/" in component["purl"]) == ("source" not in each)


def test_every_python_package_that_is_locked_is_there_with_its_hashes(components):
    found = named(components, "pkg:pypi/")
    locks = {lock.stem: lock.read_text(encoding="utf-8") for lock in (ROOT / "requirements").glob("*.lock")}
    pins = {(pin, name) for name, text in locks.items() for pin in re.findall(r"^[a-z0-9.-]+==[\w.]+", text, re.M)}
    assert found.keys() == {tuple(pin.split("==")) for pin, _ in pins}
    for (name, version), component in found.items():
        named_by = {each["value"] for each in component["properties"]}
        assert named_by == {lock for pin, lock in pins if pin == f"{name}=={version}"}
        assert (component["scope"] == "required") == ("run" in named_by)
        assert digests(component)
    every = set(re.findall(r"sha256:([0-9a-f]{64})", "".join(locks.values())))
    assert set().union(*map(digests, found.values())) == every


def test_dependencies_lead_from_the_product_to_all_that_it_requires(written, components):
    graph = {each["ref"]: set(each["dependsOn"]) for each in written["dependencies"]}
    about = written["metadata"]["component"]["bom-ref"]
    assert set().union(*graph.values()) <= components.keys()
    assert graph.keys() <= {about, *components}
    leaves = {ref: set() for ref in components}
    reached = {ref.partition("?")[0] for ref in sbom.reached(about, leaves | graph)}
    required = {each["purl"].partition("?")[0] for each in components.values() if each["scope"] == "required"}
    assert {purl for purl in required if purl.startswith("pkg:cargo/")} <= reached
    names = {purl.rpartition("/")[2].partition("@")[0] for purl in required}
    assert {"aes", "curve25519-dalek", "rustls", "tacit-mpc", "tacit-python", "numpy", "onnxruntime"} <= names
    assert names & {"criterion", "fhe", "proptest", "pytest", "torch", "mkdocs", "windows-sys"} == set()


def test_what_is_not_known_is_not_called_complete(written, components):
    declared = {each["aggregate"]: set(each["dependencies"]) for each in written["compositions"]}
    assert declared.keys() == {"complete", "unknown"}
    assert declared["complete"] == {ref for ref in components if ref.startswith("pkg:cargo/")}
    assert declared["complete"] | declared["unknown"] == components.keys()


def test_the_same_sources_give_the_same_bytes(written, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    assert json.dumps(sbom.bill()) == json.dumps(written)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    other = sbom.bill()
    assert "timestamp" not in other["metadata"]
    assert other["components"] == written["components"]
    assert other["serialNumber"] != written["serialNumber"]
