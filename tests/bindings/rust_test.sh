#!/usr/bin/env bash
# The Rust crates on the fake driver: rust_test.sh SOURCE BUILD SCRATCH. Exit code 77 (skipped) without cargo.
set -euo pipefail
source=$1 build=$2 scratch=$3
command -v cargo >/dev/null && cargo --version >/dev/null 2>&1 || exit 77
rm -rf "$scratch/rust"
mkdir -p "$scratch/rust/bindings" "$scratch/rust/runtime"
cp -r "$source/bindings/rust" "$scratch/rust/bindings/"
cp "$source/runtime/hone.h" "$scratch/rust/runtime/"
export HONE_LIB_DIR=$build LD_LIBRARY_PATH=$build CARGO_TARGET_DIR=$scratch/cargo
cd "$scratch/rust/bindings/rust"
cargo test --offline --quiet
! cargo fmt --version >/dev/null 2>&1 || cargo fmt --check
