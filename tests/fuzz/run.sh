#!/usr/bin/env bash
# Runs the fuzz targets of a build of the preset `fuzz`, all or those that are named, as many at once as there are cores;
# where there are more cores than targets, several processes a target, which share what they find.
#
#   tests/fuzz/run.sh BUILD_FOLDER SECONDS_PER_TARGET OUT_FOLDER [TARGET...]
#
# OUT_FOLDER/TARGET gets the inputs that found new ways (corpus/), those that ended the process (crash-*, timeout-*, oom-*)
# and the logs. A second run with the same folder goes on from there: executions add up, and an input whose fault is mended
# joins the corpus. A target that stops at a fault goes on with the rest of its time. Prints a line a target; exits with 1
# when there is any fault, with 2 when a target could not run. With 0 seconds it only says what there is.
set -euo pipefail

(($# >= 3)) || { sed -n '2,11p' "${BASH_SOURCE[0]}" >&2; exit 2; }
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd)
seconds=$2
mkdir -p "$3"
out=$(cd "$3" && pwd)
shift 3
# An input is small and is kept: without long stacks of allocations, a large quarantine and filled memory, up to half of
# the time is saved.
quick=malloc_context_size=1:quarantine_size_mb=8:max_malloc_fill_size=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:intercept_tls_get_addr=0:allocator_may_return_null=0:$quick}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

faults_of() { find "$1" -maxdepth 1 -type f \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \); }

# Faults of an earlier run that are mended are inputs like others.
readmit() {
    local target=$1 input
    faults_of "$out/$target" | while read -r input; do
        "$build/fuzz/hone_fuzz_$target" -timeout=10 -rss_limit_mb=2048 "$input" >/dev/null 2>&1 && mv "$input" "$out/$target/corpus/"
    done || true
}

# One run of libFuzzer; at most so many seconds.
fuzz_once() {
    local target=$1 folder=$2 budget=$3 log=$4 words=()
    [[ ! -e $sources/$target.dict ]] || words=("-dict=$sources/$target.dict")
    "$build/fuzz/hone_fuzz_$target" -max_total_time="$budget" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$folder/" "${words[@]}" \
        "$folder/corpus" "$sources/corpus/$target" >"$log" 2>&1
}

# The whole time of one process of a target, in several runs where faults end one.
fuzz() {
    local target=$1 folder=$out/$1 copy=$2 end=$((SECONDS + seconds)) round=0 before
    while ((SECONDS < end && round < 20)); do
        before=$(faults_of "$folder" | wc -l)
        fuzz_once "$target" "$folder" $((end - SECONDS)) "$folder/log-$run-$copy-$round" && break
        # A run that ends without a kept input did not fuzz at all: the message is in its log.
        (($(faults_of "$folder" | wc -l) > before)) || { echo "did not run" >"$folder/log-broken"; break; }
        round=$((round + 1))
    done
}

# Edges of the code's graph that the corpus of the tree reaches, and those at the end.
coverage() {
    find "$1" -name 'log-*' | sort | xargs -r sed -nE 's/^#[0-9]+\s+(INITED|NEW|REDUCE|pulse|RELOAD|DONE).* cov: ([0-9]+) .*/\1 \2/p'
}

executions() {
    find "$1" -name "$2" | xargs -r sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1/p' | awk '{n += $1} END {print n + 0}'
}

report() {
    local target=$1 folder=$out/$1 executions now first last faults
    executions=$(executions "$folder" 'log-*')
    now=$(executions "$folder" "log-$run-*")
    first=$(coverage "$folder" | awk '/^INITED/ && !n {n = $2} END {print n + 0}')
    last=$(coverage "$folder" | awk '$2 > n {n = $2} END {print n + 0}')
    faults=$(faults_of "$folder" | wc -l)
    printf '%-12s %10d executions  %7d/s  %5d edges (+%d)  %d faults\n' "$target" "$executions" \
        $((now / (seconds > 0 ? seconds : 1))) "$last" $((last - first)) "$faults"
    faults_of "$folder"
    [[ ! -e $folder/log-broken ]] || { echo "$target did not run: $folder" && return 2; }
    ((faults == 0))
}

targets=()
for target in "$@"; do
    [[ -e $sources/targets/$target.cpp ]] || { echo "no target $target: $(cd "$sources/targets" && ls | sed 's/\.cpp//' | tr '\n' ' ')" >&2; exit 2; }
done
for file in "$sources"/targets/*.cpp; do
    target=$(basename "$file" .cpp)
    (($# == 0)) || [[ " $* " == *" $target "* ]] || continue
    [[ -x $build/fuzz/hone_fuzz_$target ]] || { echo "$build/fuzz has no $target: cmake --build --preset fuzz" >&2; exit 2; }
    targets+=("$target")
done

run=$(date +%Y%m%dT%H%M%S)
jobs=$(nproc)
copies=$((jobs > ${#targets[@]} ? jobs / ${#targets[@]} : 1))
for target in "${targets[@]}"; do
    mkdir -p "$out/$target/corpus"
    rm -f "$out/$target/log-broken"
    readmit "$target"
    for ((copy = 0; copy < copies; ++copy)); do
        while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
        fuzz "$target" "$copy" &
    done
done
wait

code=0
for target in "${targets[@]}"; do
    status=0
    report "$target" || status=$?
    ((status <= code)) || code=$status
done
exit "$code"
