#!/usr/bin/env bash
# The Go package on the fake driver: go_test.sh SOURCE BUILD SCRATCH. Exit code 77 (skipped) without go or pkg-config.
set -euo pipefail
source=$1 build=$2 scratch=$3
command -v go >/dev/null && command -v pkg-config >/dev/null || exit 77
rm -rf "$scratch/installed" "$scratch/go"
cmake --install "$build" --prefix "$scratch/installed" >/dev/null
mkdir -p "$scratch"
cp -r "$source/bindings/go" "$scratch/go"
library=$(find "$scratch/installed" -name libhone.so.0)
export PKG_CONFIG_PATH=${library%/*}/pkgconfig LD_LIBRARY_PATH=${library%/*} GOPROXY=off GOFLAGS=-mod=mod
export GOCACHE=$scratch/go_cache GOPATH=$scratch/go_path
cd "$scratch/go"
go vet ./...
go test -count=1 ./...
unformatted=$(gofmt -l .)
[[ -z $unformatted ]] || { echo "gofmt would change $unformatted" && exit 1; }
