#!/usr/bin/env bash
# Builds the tests of some layers under one preset of sanitizers and runs them: tests/sanitized.sh [--out FILE] [PRESET LAYER...]
# Without a preset, all that there is: every layer with the preset asan, those whose tests start threads with tsan, of which it has
# the files with threads alone (CMakeLists.txt). FILE gets a line of JSON a preset, for tests/campaign.sh --sanitized.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=/dev/null
if [[ ${1-} == --out ]]; then
    out=$(realpath -m "$2")
    shift 2
    : >"$out"
fi

# Not the test that only keeps NVRTC busy.
sanitized() {
    local preset=$1 without_aslr=() tests count
    shift
    # GCC's thread sanitizer cannot map its shadow under the address randomization of newer kernels.
    setarch -R true 2>/dev/null && without_aslr=(setarch -R)
    cmake --preset "$preset"
    cmake --build "build/$preset" -j "$(nproc)" --target $(printf 'hone_%s_tests ' "$@")
    tests=(--test-dir "build/$preset" -LE gpu -R "^($(IFS='|'; echo "$*"))\\." -E variants_compile_test)
    "${without_aslr[@]}" ctest "${tests[@]}" --output-on-failure --no-tests=error -j "$(nproc)"
    count=$(ctest "${tests[@]}" -N | sed -n 's/^Total Tests: *//p')
    printf '{"preset": "%s", "layers": "%s", "tests": %d}\n' "$preset" "$*" "$count" >>"$out"
}

if (($#)); then
    sanitized "$@"
else
    sanitized asan architecture kernel_templates cache runtime checkpoints models decoder c_api tuner cli regressions fuzz fuzz_tuner
    sanitized tsan runtime decoder c_api tuner
fi
