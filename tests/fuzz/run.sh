#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [SECONDS [TARGET...]] - fuzzes with libFuzzer, two targets at a time, so many seconds each (default 60; 86400
# is a day): all targets, or those named.  With `fixed` instead of SECONDS each target runs its own number of inputs
# from a fixed seed, the same ones each time: what CI runs.  Builds what it needs in build/fuzz; needs clang-22 and its
# compiler-rt. New inputs go to build/fuzz/found/<entry>, an input that breaks something to build/fuzz/broken-<entry>-*:
# mend it, and keep the input in corpus/<entry>.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seconds=${1:-60}
[ $# -eq 0 ] || shift
cd "$root"
CC=${CC:-clang-22} cmake -B build/fuzz -G Ninja -DOPJIT_FUZZ=ON -DOPJIT_SANITIZE=address,undefined -DOPJIT_LLVM=shared \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g" >build/fuzz-configure.log 2>&1 || { cat build/fuzz-configure.log; exit 1; }
cmake --build build/fuzz --target fuzzers
targets=${*:-$(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//' | grep -v '^driver$')}

export OPJIT_CODEGEN="$root/build/fuzz/libopjit-codegen.so" OPJIT="$root/build/fuzz/opjit"
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export OPJIT_FUZZ_MS=10000
sh "$here/seeds.sh" "$root/build/fuzz/seeds"

# How many inputs of a fixed run: about 20 seconds of one core each.  It finds what a change breaks on the way of these
# inputs; a search takes SECONDS.
fixed_runs() # ENTRY
{
    case $1 in
    call | operator) echo 7500 ;;
    build | graph) echo 12500 ;;
    stored) echo 50000 ;;
    descriptor) echo 30000 ;;
    custom | json_model | onnx) echo 75000 ;;
    npy) echo 500000 ;;
    disk) echo 1000000 ;;
    *) echo 200000 ;;
    esac
}

fuzz_one() # ENTRY
{
    if [ "$seconds" = fixed ]; then
        bound="-seed=1 -runs=$(fixed_runs "$1")"
        rm -rf "build/fuzz/found/$1"
    else
        bound="-max_total_time=$seconds"
    fi
    mkdir -p "build/fuzz/found/$1" "build/fuzz/seeds/$1" "$here/corpus/$1"
    if "build/fuzz/tests/fuzz_$1" $bound -timeout=30 -rss_limit_mb=3000 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/broken-$1-" "build/fuzz/found/$1" "$here/corpus/$1" "build/fuzz/seeds/$1" \
        >"build/fuzz/$1.log" 2>&1
    then
        echo "fuzz $1: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$1.log") executions, nothing broken"
    else
        echo "fuzz $1: BROKEN"
        tail -n 60 "build/fuzz/$1.log"
        return 1
    fi
}

failed=0
while [ -n "$targets" ]; do
    first=${targets%%[!a-z0-9_]*}
    targets=${targets#"$first"}
    targets=$(echo $targets)
    second=${targets%%[!a-z0-9_]*}
    targets=${targets#"$second"}
    targets=$(echo $targets)
    fuzz_one "$first" & one=$!
    if [ -n "$second" ]; then
        fuzz_one "$second" || failed=1
    fi
    wait "$one" || failed=1
done
exit $failed
