#!/usr/bin/env bash
# Runs the tests with the ctest label `gpu` on a machine with a GPU, from a build that may have been made elsewhere, the
# examples, and the tests of the Python package that need PyTorch and a GPU:
#   tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize | --python | --cpp [NAME...]]
# --sanitize runs the kernels at small sizes under compute-sanitizer as well: every variant of every family with memcheck,
# racecheck, synccheck and initcheck, and the operators' small cases with the first three.
# --python runs the tests of the Python package alone, --cpp those in C++, of all files or of those with a NAME in their path.
# PYTHON names another interpreter than python3, SECONDS_A_FILE another time limit than 300 for a file in Python or a case in C++.
# Exit code: 0 when every program passed.
set -u
build=$(realpath "${1:?usage: tests/run_gpu_tests.sh BUILD_FOLDER [--sanitize | --python | --cpp [NAME...]]}")
option=${2:-}
wanted=("${@:3}")
cd "$(dirname "$0")/.." || exit 2
failed=0

run() {
    echo "== $*"
    "$@" || { echo "FAILED with $?: $*"; failed=1; }
}

# Several commands at once, since most of their time is compiling: `start NAME COMMAND...` for each, then `finish`, which shows
# what they said, in the order of their start; progress goes to stderr. As many as there are cores, and as the GPU has memory for, 1.5 GB each with its
# context.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
free_mib=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | head -n 1)
places=$((${free_mib:-24576} / 1500 + 1))
cores=$(nproc)
((places <= cores)) || places=$cores
names=()
start() {
    local number=${#names[@]} limit=${SECONDS_A_FILE:-300}
    while (($(jobs -rp | wc -l) >= places)); do wait -n || true; done
    names+=("$1")
    shift
    (
        began=$SECONDS
        timeout --foreground "$limit" "$@" >"$scratch/$number.txt" 2>&1  # so that Ctrl-C ends it, too
        status=$?
        echo "$status $((SECONDS - began))" >"$scratch/$number.status"
        echo "$((SECONDS - began)) s, $status: ${names[$number]}" >&2
    ) &
}
finish() {
    local number status seconds
    wait
    for number in "${!names[@]}"; do
        read -r status seconds <"$scratch/$number.status"
        echo "== ${names[$number]} ($seconds s)"
        cat "$scratch/$number.txt"
        [ "$status" -eq 0 ] || { echo "FAILED with $status: ${names[$number]}"; failed=1; }
    done
    names=()
}

is_wanted() {
    local name
    [ ${#wanted[@]} -eq 0 ] && return
    for name in "${wanted[@]}"; do [[ $1 == *"$name"* ]] && return; done
    return 1
}

# Every case in a process of its own.
cpp_tests() {
    local file binary name
    while read -r file; do
        is_wanted "$file" || continue
        binary=$build/tests/hone_$(echo "$file" | cut -d/ -f2)_tests
        while read -r name; do
            start "$file: $name" "$binary" "--source-file=*/$file" "--test-case=${name//,/\\,}"
        done < <("$binary" "--source-file=*/$file" --list-test-cases --no-colors | grep -v -e '^\[doctest\]' -e '^===')
    done < <(find tests -name '*_gpu_test.cpp' | sort)
    finish
}

# What programs on the public interface compute is checked by themselves; the built one needs no arguments.
examples() {
    local file
    mkdir -m 700 "$scratch/examples"
    for file in examples/*.cpp examples/*.c; do
        file=$(basename "${file%.*}")
        start "examples/$file" env HONE_CACHE="$scratch/examples/cache.db" "$build/examples/$file"
    done
    finish
}

# All files, with one cache that starts empty.
python_tests() {
    export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} HONE_LIBRARY=$build/libhone.so.0 HONE_PROGRAM=$build/hone
    local file
    mkdir -m 700 "$scratch/cache"
    export HONE_CACHE=$scratch/cache/cache.db
    for file in tests/python/gpu/*_test.py; do
        start "$file" "${PYTHON:-python3}" -B -m unittest discover -s tests/python/gpu -p "$(basename "$file")"
    done
    finish
}

# The cases that are small enough for compute-sanitizer, by their names: a new one is "small ..." or "rows with a stride ...".
small='small *,rows with a stride*,gradients of rows with a stride*,tokens of rows with a stride*,*any head dimension*'
small+=',residual and quantized*,resident groups*'
sanitize() {
    run compute-sanitizer --tool "$1" --error-exitcode 9 --target-processes "$2" "${@:3}"
}
# Every variant of every family, then the operators as programs call them. racecheck does not see that a warp's reads are over
# when its first lane arrives at an mbarrier behind __syncwarp(), which is how variant ring gives its stages back, and two_widths,
# whose ring comes round at any size (docs/compute-sanitizer.md): it runs without them, and without the operators that may choose ring.
sanitized_tests() {
    local tool file
    export HONE_TEST_CACHE=$scratch/images/cache.db
    mkdir -m 700 "$scratch/images"
    for tool in memcheck synccheck initcheck racecheck; do
        [ "$tool" = racecheck ] && export HONE_TEST_WITHOUT=quantized_linear/ring/kernel.cu,quantized_linear/two_widths/kernel.cu
        sanitize "$tool" application-only "$build/tests/hone_tuner_tests" "--source-file=*/variants_gpu_test.cpp"
        [ "$tool" = initcheck ] && continue
        for file in tests/runtime/*_gpu_test.cpp; do
            [ "$tool/${file##*/}" = racecheck/quantized_linear_gpu_test.cpp ] && continue
            sanitize "$tool" all "$build/tests/hone_runtime_tests" "--source-file=*/${file##*/}" "--test-case=$small"
        done
    done
}

[ "$option" = --python ] || cpp_tests
[ "$option" = --python ] || [ "$option" = --cpp ] || examples
[ "$option" = --cpp ] || python_tests
[ "$option" = --sanitize ] && sanitized_tests
[ "$failed" -eq 0 ] && echo "all GPU tests passed"
exit "$failed"
