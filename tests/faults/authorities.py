"""Certificates for tests, made by the `openssl` program."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Certified(NamedTuple):
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path

    def served(self) -> tuple[object, ...]:
        return ("--certificate", self.certificate, "--key", self.key)


class Authority:
    """A certificate authority in a folder of its own."""

    def __init__(self, folder: Path, name: str):
        if shutil.which("openssl") is None:
            pytest.skip("the openssl program, which makes the certificates, is absent")
        self.folder = folder
        self.name = name
        self.ca = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        self.run("req", "-x509", *self.fresh(self.key), "-out", self.ca, "-subj", f"/CN={name}", "-days", 2)

    def run(self, *arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], cwd=self.folder, check=True, capture_output=True)

    def fresh(self, key: Path) -> tuple[object, ...]:
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key)

    def issue(self, name: str, subject: str, days: tuple[str, str] = ("", "")) -> Certified:
        """A certificate for `subject` (a subjectAltName), valid now or between two dates (YYYYMMDDHHMMSSZ)."""
        made = Certified(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={subject}\nbasicConstraints=CA:FALSE\n")
        self.run("req", *self.fresh(made.key), "-out", request, "-subj", f"/CN={name}")
        if days[0]:
            self.issue_dated(request, made.certificate, extensions, days)
        else:
            signer = ("-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", 2)
            self.run("x509", "-req", "-in", request, *signer, "-extfile", extensions, "-out", made.certificate)
        return made

    def revoked(self, name: str, *certificates: Certified, days: tuple[str, str] = ("", "")) -> Path:
        """The list `name` of revoked certificates, in force for two days or between two dates."""
        made = self.folder / f"{name}.crl"
        (self.folder / "revoked.txt").write_text("")
        (self.folder / "revoked.number").write_text("01\n")
        settings = self.folder / "revoked.cnf"
        settings.write_text(
            f"[ca]\ndefault_ca=ours\n[ours]\ndatabase={self.folder}/revoked.txt\ndefault_md=sha256\n"
            f"crlnumber={self.folder}/revoked.number\ncrl_extensions=crl\n[crl]\nauthorityKeyIdentifier=keyid\n"
        )
        signer = ("-config", settings, "-cert", self.ca, "-keyfile", self.key)
        for one in certificates:
            self.run("ca", *signer, "-revoke", one.certificate)
        dates = ("-crl_lastupdate", days[0], "-crl_nextupdate", days[1]) if days[0] else ("-crldays", 2)
        self.run("ca", *signer, "-gencrl", *dates, "-out", made)
        return made

    def issue_dated(self, request: Path, certificate: Path, extensions: Path, days: tuple[str, str]) -> None:
        """`openssl x509` takes no dates; `openssl ca` does, with a little database."""
        (self.folder / "index.txt").write_text("")
        settings = self.folder / "ca.cnf"
        settings.write_text(
            f"[ca]\ndefault_ca=ours\n[ours]\nnew_certs_dir={self.folder}\ndatabase={self.folder}/index.txt\n"
            "rand_serial=yes\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
        )
        signer = ("-config", settings, "-cert", self.ca, "-keyfile", self.key, "-batch", "-notext")
        dates = ("-startdate", days[0], "-enddate", days[1])
        self.run("ca", *signer, *dates, "-extfile", extensions, "-in", request, "-out", certificate)


def self_signed(folder: Path, constraint: str, subject: str) -> Certified:
    """A certificate as people make one for a server, with a basic constraint and a subjectAltName."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program, which makes the certificates, is absent")
    made = Certified(folder / "cert.pem", folder / "key.pem")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", made.key)
    extensions = ("-addext", f"basicConstraints=critical,{constraint}", "-addext", f"subjectAltName={subject}")
    command = ("openssl", "req", "-x509", *key, "-out", made.certificate, "-subj", "/CN=server", "-days", 2)
    subprocess.run([*map(str, (*command, *extensions))], cwd=folder, check=True, capture_output=True)
    return made
