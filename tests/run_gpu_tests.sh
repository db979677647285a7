#!/usr/bin/env bash
# Runs the tests with the ctest label `gpu` on a machine with a GPU, from a build that may have been made elsewhere:
#   tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize]
# --sanitize runs the kernels at small sizes under compute-sanitizer as well (memcheck, racecheck, synccheck).
# Exit code: 0 when every program passed.
set -u
build=$(realpath "${1:?usage: tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize]}")
sanitize=${2:-}
cd "$(dirname "$0")/.." || exit 2
failed=0

run() {
    echo "== $*"
    "$@" || { echo "FAILED with $?: $*"; failed=1; }
}

for file in $(find tests -name '*_gpu_test.cpp' | sort); do
    folder=$(echo "$file" | cut -d/ -f2)
    run "$build/tests/hone_${folder}_tests" "--source-file=*/$file"
done
if [ "$sanitize" = --sanitize ]; then
    for tool in memcheck racecheck synccheck; do
        run compute-sanitizer --tool "$tool" --error-exitcode 9 --target-processes all "$build/tests/hone_runtime_tests" \
            "--source-file=*/norm_gpu_test.cpp" "--test-case=residual and quantised*,rows with a stride*,resident groups*"
    done
fi
[ "$failed" -eq 0 ] && echo "all GPU tests passed"
exit "$failed"
