#!/usr/bin/env bash
# Builds the wheels of tacit and tacit-lab into a folder: `scripts/wheels.sh PYTHON OUT`, where PYTHON belongs to an
# environment with requirements/wheel.lock. A commit gives the same bytes wherever its checkout, cargo's folder and the
# toolchain are: their paths are replaced in what compilers write, and times are those of the commit.
set -euo pipefail
umask 022
python=$(realpath --no-symlinks "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."

home=${CARGO_HOME:-$HOME/.cargo}
sources=$(rustc --print sysroot)/lib/rustlib/src/rust
commit=$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
remapped=("--remap-path-prefix=$home=/cargo" "--remap-path-prefix=$sources=/rustc/$commit" "--remap-path-prefix=$PWD=/tacit")

unset RUSTFLAGS
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${remapped[*]}")
CFLAGS="-ffile-prefix-map=$home=/cargo -ffile-prefix-map=$PWD=/tacit"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CARGO_ENCODED_RUSTFLAGS CFLAGS SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$PWD/build/wheel" LC_ALL=C TZ=UTC

rm -f "$out"/tacit-*.whl "$out"/tacit_lab-*.whl
"$python" scripts/sbom.py build/sbom/tacit.cdx.json
"$(dirname "$python")/maturin" build --release --locked --out "$out" --sbom-include build/sbom/tacit.cdx.json
"$python" -m pip --disable-pip-version-check --quiet wheel --no-deps --no-index --no-build-isolation --wheel-dir "$out" python/tacit_lab
