#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# manual.sh - the man page and the shells' completions: that they contain every command and option that help shows, and
# that the shells accept them.
. "$(dirname "$0")/common.inc"
run help
commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$work/out" | sort -u)
options=$(grep -o '^  \(-h, \)\{0,1\}-[-a-z]*' "$work/out" | sed 's/.* //')
[ "$(echo $commands)" = 'bench cache compile explain help ops run targets version' ] || fail "commands: $commands"
[ "$(echo "$options" | wc -l)" -gt 15 ] || fail "options: $options"

run help --man
expect_status 'man page' 0
cp "$work/out" "$work/opjit.1"
sed 's/\\-/-/g; s/\\f[BIR]//g' "$work/opjit.1" >"$work/plain"
for command in $commands; do
    count=$((count + 1))
    grep -q "^\.B $command" "$work/plain" || fail "man page: no $command"
done
for option in $options; do
    count=$((count + 1))
    grep -q "^\.B .*$option" "$work/plain" || fail "man page: no $option"
done
if command -v groff >/dev/null 2>&1 && [ -z "$(printf '.TH A 1\n' | groff -man -Tascii -ww -z 2>&1)" ]; then
    count=$((count + 1))
    [ -z "$(groff -man -Tascii -ww -z "$work/opjit.1" 2>&1)" ] || fail "man page: $(groff -man -Tascii -ww -z "$work/opjit.1" 2>&1)"
else
    echo 'skipped: no groff to read the man page'
fi

for shell in bash zsh fish; do
    run help --completion $shell
    expect_status "$shell" 0
    cp "$work/out" "$work/opjit.$shell"
    for word in $commands --executor --late; do
        count=$((count + 1))
        grep -q -- "${word#--}" "$work/out" || fail "$shell: no $word"
    done
    if command -v $shell >/dev/null 2>&1; then
        count=$((count + 1))
        $shell -n "$work/opjit.$shell" || fail "$shell does not take its completion"
    else
        echo "skipped: no $shell"
    fi
done
run help --completion csh
expect_error 'another shell' 2 'opjit: --completion: csh is none of bash, zsh, fish'

# completed WORDS EXPECTED: what bash offers for the last word
completed() {
    count=$((count + 1))
    got=$(cd "$work" && PATH=$(dirname "$OPJIT"):$PATH bash -c '. ./opjit.bash; COMP_WORDS=($1); [ "${1% }" = "$1" ] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _opjit; echo "${COMPREPLY[*]}"' - "$1")
    [ "$got" = "$2" ] || fail "bash, $1: $got, expected $2"
}
if command -v bash >/dev/null 2>&1; then
    completed 'opjit co' 'compile'
    completed 'opjit run m.json --exec' '--executor'
    completed 'opjit run m.json --em' ''
    completed 'opjit run --executor ' 'cpu interp cuda hip'
    completed 'opjit cache ' 'list verify clear'
    completed 'opjit compile --level pe' 'peak'
    completed 'opjit compile --target cpu:x86-64-v' 'cpu:x86-64-v1 cpu:x86-64-v2 cpu:x86-64-v3 cpu:x86-64-v4'
    mkdir "$work/only"
    touch "$work/model.json"
    completed 'opjit run mod' 'model.json'
    completed 'opjit compile -o on' 'only'
    touch "$work/two words.json" # one word to bash
    completed 'opjit run two' 'two words.json'
    got=$(cd "$work" && bash -c '. ./opjit.bash; COMP_WORDS=(opjit run two) COMP_CWORD=2; _opjit; echo ${#COMPREPLY[@]}')
    [ "$got" = 1 ] || fail "bash: a name of two words is $got"
fi
finish
