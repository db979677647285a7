#!/usr/bin/env bash
# Which share of the lines of cache/ and runtime/ the tests of some layers run: tests/coverage.sh [--out FILE] [LAYER...]
# Builds the preset `coverage` and runs the tests of cache, runtime and c_api, or of the layers that are named.
# FILE gets the shares as JSON, for tests/campaign.sh --coverage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=()
if [[ ${1-} == --out ]]; then
    out=(--out "$2")
    shift 2
fi
layers=("$@")
((${#layers[@]})) || layers=(cache runtime c_api)
build=build/coverage

cmake --preset coverage >/dev/null
cmake --build "$build" -j "$(nproc)" --target $(printf 'hone_%s_tests ' "${layers[@]}")
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error -LE gpu \
    -R "^($(IFS='|'; echo "${layers[*]}"))\\." -E variants_compile_test
python3 -B tests/coverage.py "$build" "${out[@]}" cache runtime
