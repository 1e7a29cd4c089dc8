#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# refusals.sh - models that must be refused: with status 1, one line, and exactly the line in the table.
# refusals/*.txt are the tables.  A case is
#     --- what is wrong
#     ! the line, without the file's name
#     $ options of the command, if any
#     the model, or what `expand` below makes one of: @resource, @dispatchable, @command and the part that is wrong
# OPJIT_UPDATE=1 rewrites the lines; read the difference before you keep it.
set -eu
tables=${OPJIT_TEST_DATA:-$(dirname "$0")/..}/cli/refusals
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/cases"

cases='
function model(r, d, c) {
    return "{ \"resources\": { \"r\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [1, 2, 3, 4] },\n" \
           "  \"long\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [1, 2, 3, 4, 5, 6, 7, 8] },\n" \
           "  \"short\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [1, 2, 3] },\n" \
           "  \"later\": { \"initialValues\": \"deferred\" }" r " },\n" \
           "  \"dispatchables\": { \"d\": " d " },\n  \"commands\": [" c "] }"
}
function good() {
    return "{ \"type\": \"DIAGONAL_MATRIX1\", \"desc\": { \"InputTensor\": { \"DataType\": \"INT32\", \"Sizes\": [2, 2] }," \
           " \"OutputTensor\": { \"DataType\": \"INT32\", \"Sizes\": [2, 2] }, \"ValueDataType\": \"INT32\", \"Value\": 1," \
           " \"DiagonalFillBegin\": 0, \"DiagonalFillEnd\": 1 } }"
}
function expand(line) {
    if (sub(/^@resource /, "", line)) return model(", \"bad\": " line, good(), "")
    if (sub(/^@dispatchable /, "", line)) return model("", line, "")
    if (sub(/^@command /, "", line)) return model("", good(), line)
    return line
}
/^--- / { n++; file = sprintf("%s/%s_%03d", out, group, n); print substr($0, 5) > (file ".title"); printf "" > (file ".json"); next }
/^\$ / { print substr($0, 3) > (file ".options"); next }
/^! / { print substr($0, 3) > (file ".line"); next }
/^#/ && n == 0 { next }
{ print expand($0) > (file ".json") }
'
for table in "$tables"/*.txt; do
    awk -v out="$work/cases" -v group="$(basename "$table" .txt)" "$cases" "$table"
done

failed=0
count=0
for title in "$work"/cases/*.title; do
    case=${title%.title}
    count=$((count + 1))
    status=0
    options=
    [ ! -f "$case.options" ] || options=$(cat "$case.options")
    "$OPJIT" run --executor interp --no-cache $options "$case.json" >"$case.out" 2>"$case.err" || status=$?
    sed "s|^$case.json: ||" "$case.err" >"$case.got"
    if [ "$status" != 1 ] || [ -s "$case.out" ] || [ "$(wc -l <"$case.err")" != 1 ] || ! grep -q "^$case.json: " "$case.err"; then
        echo "$(basename "$case") ($(cat "$title")): status $status, printed:"
        cat "$case.out" "$case.err"
        failed=1
    elif ! sed "s|@DIR|$work/cases|" "$case.line" | cmp -s - "$case.got"; then
        echo "$(basename "$case") ($(cat "$title")):"
        echo "  expected: $(cat "$case.line")"
        echo "  got:      $(cat "$case.got")"
        failed=1
    fi
done
if [ -n "${OPJIT_UPDATE:-}" ]; then
    for table in "$tables"/*.txt; do
        awk -v out="$work/cases" -v group="$(basename "$table" .txt)" '
            /^--- / { n++; print; file = sprintf("%s/%s_%03d.got", out, group, n); getline line < file
                      gsub(out, "@DIR", line); print "! " line; next }
            /^! / { next }
            { print }' "$table" >"$work/table"
        cp "$work/table" "$table"
    done
fi
echo "$count refusals"
[ "$count" -ge 120 ] || { echo "the tables were not read"; failed=1; }
exit $failed
