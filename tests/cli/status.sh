#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# status.sh - options and exit status: 0 done, 1 the work failed, 2 a wrong option or no model.
. "$(dirname "$0")/common.inc"
usage=': see opjit --help'
print_model '{ "initialValuesDataType": "INT8", "initialValues": [1] }'
model=$work/m.json

run
expect_error 'nothing' 2 "opjit: no command was given$usage"
run walk
expect_error 'unknown command' 2 "opjit: unknown command walk$usage"
run run
expect_error 'no model' 2 "opjit: run: no model was given$usage"
run explain --quiet
expect_error 'no model to explain' 2 "opjit: explain: no model was given$usage"
run compile -o "$work"
expect_error 'no model to compile' 2 "opjit: compile: no model was given$usage"
run run "$model" "$model"
expect_error 'two models' 2 "opjit: too many arguments for run$usage"
run run "$model" --fast
expect_error 'unknown option' 2 "opjit: unknown option --fast$usage"
run run "$model" -q
expect_error 'unknown short option' 2 "opjit: unknown option -q$usage"
run run "$model" --thread 2
expect_error 'shortened option' 2 "opjit: unknown option --thread$usage; did you mean --threads?"
run run "$model" --threads
expect_error 'no value' 2 "opjit: --threads needs a value$usage"
run run "$model" --quiet=1
expect_error 'value for a flag' 2 "opjit: --quiet takes no value$usage"
run run "$model" --emit obj
expect_error 'option of another command' 2 "opjit: --emit is no option of this command$usage"
for threads in 0 257 -1 two 1x '' 99999999999999999999; do
    run run "$model" --threads "$threads"
    expect_error "threads $threads" 2 "opjit: --threads: $threads is not a number from 1 to 256"
done
run run "$model" --executor gpu
expect_error 'executor' 2 'opjit: --executor: gpu is none of cpu, interp, cuda, hip'
run run "$model" --level best
expect_error 'level' 2 'opjit: --level: best is neither quick nor peak'
for level in 5 5.3 7.0 0x5100 5.1.0; do
    run run "$model" --feature-level "$level"
    expect_error "feature level $level" 2 "opjit: --feature-level: $level is no feature level of DirectML: 1.0 to 6.4"
done
run run "$model" --target toaster
expect_status 'target' 2
run run "$model" --target cpu:foo
expect_error 'target of a CPU' 2 'opjit: --target: target cpu:foo is unknown; known: host, x86-64, x86-64-v1, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, rv64gc, rv64gcv and CPUs such as znver3'
for option in --input=x=a.npy --shape=x=2,3 "--output-dir=$work/out"; do
    run run "$model" "$option"
    expect_error "${option%%=*} of a JSON model" 2 "opjit: ${option%%=*} is for .onnx models$usage"
done
run explain "$work/m.onnx" --dispatchable d
expect_error 'dispatchable of an .onnx model' 2 "opjit: --dispatchable is for JSON models$usage"
run run ''
expect_error 'empty name' 2 "opjit: the name of a model is empty$usage"
run run "$model" --dim n=4
expect_error 'dimension of a model without any' 1 "$model: \$: --dim n=4: the model has no \"dims\""
run run "$model" --cache-dir ''
expect_error 'cache folder' 2 'opjit: --cache-dir: a folder has to be named'

OPJIT_CUDA_DRIVER=/nowhere/libcuda.so.1 run run "$model" --executor cuda
expect_error 'executor cuda' 1 "$model: CUDA driver: /nowhere/libcuda.so.1: cannot open shared object file: No such file or directory"
OPJIT_HIP_DRIVER=/nowhere/libamdhip64.so run run "$model" --executor hip
expect_error 'executor hip' 1 "$model: HIP driver: /nowhere/libamdhip64.so: cannot open shared object file: No such file or directory"
run run "$work/missing.json"
expect_error 'no such model' 1 "$work/missing.json: can't be opened: No such file or directory"
run run "$work"
expect_error 'folder' 1 "$work: not a regular file"
mkfifo "$work/pipe"
run run "$work/pipe"
expect_error 'pipe' 1 "$work/pipe: not a regular file"
truncate -s 65M "$work/long.json"
run run "$work/long.json"
expect_error 'too long' 1 "$work/long.json: longer than 64 MiB"
run run "$(printf '%s/a\nb\033.json' "$work")"
expect_error 'name of two lines' 1 "$work/a?b?.json: can't be opened: No such file or directory"

run --help
expect_status 'help' 0
grep -q '^usage: opjit ' "$work/out" || fail 'help'
cp "$work/out" "$work/help"
for command in -h help; do
    run $command
    expect_status "$command" 0
    cmp -s "$work/help" "$work/out" || fail "$command is not --help"
done
! grep -q '.\{101\}' "$work/help" || fail 'help: a line of more than 100 characters'
! grep -q ' $' "$work/help" || fail 'help: blanks at the end of a line'
# each command's help names its options and no other's, and gives an example
for command in run explain compile bench ops targets cache version help; do
    run help $command
    expect_status "help $command" 0
    cp "$work/out" "$work/help"
    run $command -h
    cmp -s "$work/help" "$work/out" || fail "$command -h is not help $command"
    grep -q "^usage: opjit $command" "$work/out" || fail "help $command: usage"
    grep -q "^  opjit $command" "$work/out" || fail "help $command: example"
    for option in --executor:run --threads:run,bench --emit:compile --late:explain,compile \
        --level:run,explain,compile,bench --json:bench,ops,targets,cache,version --help:$command; do
        count=$((count + 1))
        case ",${option#*:}," in *,$command,*) wanted=yes ;; *) wanted=no ;; esac
        if grep -q "^  .*${option%%:*}\b" "$work/out"; then shown=yes; else shown=no; fi
        [ $shown = $wanted ] || fail "help $command: ${option%%:*} is shown: $shown"
    done
done
run help copmile
expect_error 'help of no command' 2 "opjit: unknown command copmile$usage; did you mean compile?"
run rnu
expect_error 'a command misspelt' 2 "opjit: unknown command rnu$usage; did you mean run?"
run run "$model" --target cpu:znver33
expect_status 'a target misspelt' 2
grep -q '; did you mean cpu:znver3?$' "$work/err" || fail 'a target misspelt'
run version
cp "$work/out" "$work/version"
run --version
cmp -s "$work/version" "$work/out" || fail '--version is not version'

# a model from standard input
status=0
"$OPJIT" run - <"$model" >"$work/out" 2>"$work/err" || status=$?
expect_out 'a model from standard input' "Resource 'R': 1"
status=0
echo '{' | "$OPJIT" run - >"$work/out" 2>"$work/err" || status=$?
expect_status 'a bad model from standard input' 1
grep -q '^-: line 2, column 1: ' "$work/err" || fail 'a bad model from standard input'
# All options are accepted everywhere from the first version on.
run run --feature-level 5.1 --level=peak --target cpu --masks-absorb --no-cache --cache-dir "$work/cache" --quiet \
    --threads 2 --executor=interp -- "$model"
expect_out 'all options' "Resource 'R': 1"
if [ -c /dev/full ]; then
    status=0
    "$OPJIT" run "$model" >/dev/full 2>"$work/err" || status=$?
    : >"$work/out"
    expect_error 'full output' 1 "$model: standard output can't be written: No space left on device"
    status=0
    "$OPJIT" version >/dev/full 2>"$work/err" || status=$?
    expect_error 'full output of a list' 1 "opjit: standard output can't be written: No space left on device"
    status=0
    "$OPJIT" bench "$model" --quick >/dev/full 2>"$work/err" || status=$?
    expect_error 'full output of a table' 1 "opjit: standard output can't be written: No space left on device"
fi
finish
