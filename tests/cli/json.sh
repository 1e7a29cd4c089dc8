#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# json.sh - what the reader of models accepts beyond plain JSON, and bytes that no editor writes.
. "$(dirname "$0")/common.inc"

tail='"dispatchables": {}, "commands": [{ "type": "print", "resource": "R" }] }'
head='{ "resources": { "R": { "initialValuesDataType": "INT8", "initialValues": [1, 2] } },'

# accepts NAME FORMAT: printf makes the model
accepts() {
    printf "$2" >"$work/m.json"
    run run "$work/m.json"
    expect_out "$1" "Resource 'R': 1, 2"
}
refuses() {
    printf "$2" >"$work/m.json"
    run run "$work/m.json"
    expect_error "$1" 1 "$work/m.json: $3"
}

accepts 'plain' "$head $tail"
accepts 'text behind the brace' "$head $tail } nonsense \377\000 {"
accepts 'byte order mark' "\357\273\277$head $tail"
accepts 'line comments' "// one\n$head // two \303\251\n $tail // three"
accepts 'block comments' "/* * / ** */$head/**/$tail"
accepts 'trailing commas' '{ "resources": { "R": { "initialValuesDataType": "INT8", "initialValues": [1, 2,], }, },
    "dispatchables": {}, "commands": [{ "type": "print", "resource": "R", }, ], }'
accepts 'escaped keys' '{ "re\\u0073ources": { "\\u0052": { "initialValuesDataType": "INT\\u0038", "initialValues": [1, 2] } }, '"$tail"
accepts 'unknown keys' "{ \"\$schema\": [null, true, {\"a\": -1.5e+3}], \"\\\\ud83d\\\\ude00\": 1, ${head#\{} $tail"
accepts 'carriage returns' "$head\r\n\t$tail\r\n"
# 63 arrays in one object: as deep as is allowed
deep=$(printf '%63s' '' | tr ' ' '[')$(printf '%63s' '' | tr ' ' ']')
accepts '64 levels' "{ \"deep\": $deep, ${head#\{} $tail"

refuses 'Latin-1 in a string' '{ "a\351": 1 }' 'line 1, column 5: this is not UTF-8'
refuses 'Latin-1 in a comment' '{ // \351\n }' 'line 1, column 6: this is not UTF-8'
refuses 'overlong slash' '{ "\300\257": 1 }' 'line 1, column 4: this is not UTF-8'
refuses 'surrogate in UTF-8' '{ "\355\240\200": 1 }' 'line 1, column 4: this is not UTF-8'
refuses 'beyond Unicode' '{ "\364\220\200\200": 1 }' 'line 1, column 4: this is not UTF-8'
refuses 'cut UTF-8' '{ "\342\202": 1 }' 'line 1, column 4: this is not UTF-8'
refuses 'NUL between' '{ \000 }' "line 1, column 3: a key in double quotes, or '}', was expected"
refuses 'NUL in a string' '{ "\000": 1 }' 'line 1, column 4: a control character in a string has to be escaped'
refuses 'NUL in a number' '{ "a": 1\0002 }' "line 1, column 9: a ',' or '}' was expected"
refuses 'NUL first' '\000{}' "line 1, column 1: a model is a JSON object: '{' was expected"
refuses 'UTF-16' '\377\376{\000' "line 1, column 1: a model is a JSON object: '{' was expected"

# a model cut anywhere is refused with one line, never more
printf '%s %s' "$head" "$tail" >"$work/whole.json"
size=$(wc -c <"$work/whole.json")
at=0
while [ "$at" -lt "$size" ]; do
    head -c "$at" "$work/whole.json" >"$work/m.json"
    run run "$work/m.json"
    count=$((count + 1))
    if [ "$status" != 1 ] || [ -s "$work/out" ] || [ "$(wc -l <"$work/err")" != 1 ]; then
        fail "cut at $at: status $status"
    fi
    at=$((at + 1))
done
finish
