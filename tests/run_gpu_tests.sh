#!/usr/bin/env bash
# Runs the tests with the ctest label `gpu` on a machine with a GPU, from a build that may have been made elsewhere, and those
# of the Python package that need PyTorch and a GPU:
#   tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize | --python]
# --sanitize runs the kernels at small sizes under compute-sanitizer as well (memcheck, racecheck, synccheck).
# --python runs the tests of the Python package alone; PYTHON names another interpreter than python3, SECONDS_A_FILE another
# time limit than 300.
# Exit code: 0 when every program passed.
set -u
build=$(realpath "${1:?usage: tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize | --python]}")
option=${2:-}
cd "$(dirname "$0")/.." || exit 2
failed=0

run() {
    echo "== $*"
    "$@" || { echo "FAILED with $?: $*"; failed=1; }
}

cpp_tests() {
    for file in $(find tests -name '*_gpu_test.cpp' | sort); do
        folder=$(echo "$file" | cut -d/ -f2)
        run "$build/tests/hone_${folder}_tests" "--source-file=*/$file"
    done
}

# All files at once, with one cache that starts empty: most of their time is one thread's compiling.
python_tests() {
    export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} HONE_LIBRARY=$build/libhone.so.0 HONE_PROGRAM=$build/hone
    local names name folder status
    names=$(cd tests/python/gpu && ls ./*_test.py)
    folder=$(mktemp -d)
    export HONE_CACHE=$folder/cache.db
    for name in $names; do
        (timeout "${SECONDS_A_FILE:-300}" "${PYTHON:-python3}" -B -m unittest discover -s tests/python/gpu -p "${name#./}" >"$folder/$name.txt" 2>&1
         echo $? >"$folder/$name.status") &
    done
    wait
    for name in $names; do
        echo "== tests/python/gpu/${name#./}"
        cat "$folder/$name.txt"
        status=$(cat "$folder/$name.status")
        [ "$status" -eq 0 ] || { echo "FAILED with $status: ${name#./}"; failed=1; }
    done
    rm -rf "$folder"
}

sanitized_tests() {
    for tool in memcheck racecheck synccheck; do
        run compute-sanitizer --tool "$tool" --error-exitcode 9 --target-processes all "$build/tests/hone_runtime_tests" \
            "--source-file=*/norm_gpu_test.cpp" "--test-case=residual and quantised*,rows with a stride*,resident groups*"
        run compute-sanitizer --tool "$tool" --error-exitcode 9 --target-processes all "$build/tests/hone_runtime_tests" \
            "--source-file=*/rmsnorm_backward_gpu_test.cpp" "--test-case=gradients of rows with a stride*"
    done
}

[ "$option" = --python ] || cpp_tests
python_tests
[ "$option" = --sanitize ] && sanitized_tests
[ "$failed" -eq 0 ] && echo "all GPU tests passed"
exit "$failed"
