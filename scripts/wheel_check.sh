#!/usr/bin/env bash
# Builds the wheels of HEAD twice, from two clones in folders of different names, and compares them byte by byte.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for clone in "$scratch/one" "$scratch/another/and/deeper"; do
    git clone --quiet . "$clone"
    make --no-print-directory -C "$clone" wheel
done
cd "$scratch"
sha256sum one/build/wheels/*.whl another/and/deeper/build/wheels/*.whl
test "$(ls one/build/wheels)" = "$(ls another/and/deeper/build/wheels)"
for wheel in one/build/wheels/*.whl; do
    cmp "$wheel" "another/and/deeper/build/wheels/${wheel##*/}"
done
echo "the same wheels"
