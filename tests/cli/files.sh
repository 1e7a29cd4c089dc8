#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# files.sh - reading and writing files: .npy of every type, damaged ones, raw bytes; that files are complete or absent,
# and that they are inside the model's folder.
. "$(dirname "$0")/common.inc"

# --- round trips: an .npy file that is read and written again is the same, byte by byte -----------------------------
# npy DESCR SHAPE BYTES: writes a.npy, version 1.0, header of 128 bytes as NumPy does
npy() {
    text="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
    { printf '\223NUMPY\001\000v\000'; printf '%-117s\n' "$text"; printf "$3"; } >"$work/a.npy"
}
copy_model() {
    printf '{ "resources": { "A": { "initialValues": { "sourcePath": "a.npy" } } }, "dispatchables": {}, "commands": [
        { "type": "writeFile", "resource": "A", "targetPath": "b.npy"%s },
        { "type": "writeFile", "resource": "A", "targetPath": "b.raw" }, { "type": "print", "resource": "A" }] }' "$1" \
        >"$work/m.json"
}
# trip DESCR BYTES PRINTED: three elements
trip() {
    npy "$1" '(3,)' "$2"
    copy_model ''
    run run "$work/m.json"
    expect_out "$1" "Resource 'A': $3"
    # NumPy pads to 64 bytes, and some versions to more: compare what the header says, and the data
    count=$((count + 1))
    head -c 10 "$work/b.npy" | od -An -tx1 | grep -q '93 4e 55 4d 50 59 01 00 76 00' || fail "$1: beginning of b.npy"
    cmp -s "$work/a.npy" "$work/b.npy" || fail "$1: b.npy differs from a.npy"
}
trip '<f2' '\000\074\000\300\001\174' '1, -2, nan'
trip '<f4' '\000\000\200\077\000\000\000\200\001\000\200\177' '1, -0, nan'
trip '<f8' '\000\000\000\000\000\000\360\077\000\000\000\000\000\000\360\377\001\000\000\000\000\000\000\000' '1, -inf, 4.94066e-324'
trip '|i1' '\001\200\177' '1, -128, 127'
trip '<i2' '\001\000\000\200\377\177' '1, -32768, 32767'
trip '<i4' '\001\000\000\000\000\000\000\200\377\377\377\177' '1, -2147483648, 2147483647'
trip '<i8' '\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\200\377\377\377\377\377\377\377\177' '1, -9223372036854775808, 9223372036854775807'
trip '|u1' '\001\200\377' '1, 128, 255'
trip '<u2' '\001\000\000\200\377\377' '1, 32768, 65535'
trip '<u4' '\001\000\000\000\000\000\000\200\377\377\377\377' '1, 2147483648, 4294967295'
trip '<u8' '\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\200\377\377\377\377\377\377\377\377' '1, 9223372036854775808, 18446744073709551615'

npy '<i2' '(2, 3)' '\001\000\002\000\003\000\004\000\005\000\006\000'
copy_model ', "dimensions": [2, 3]'
run run "$work/m.json"
expect_out 'two dimensions' "Resource 'A': 1, 2, 3, 4, 5, 6"
cmp -s "$work/a.npy" "$work/b.npy" || fail 'two dimensions: b.npy differs from a.npy'
[ "$(od -An -tx1 "$work/b.raw" | tr -d ' \n')" = 010002000300040005000600 ] || fail 'b.raw'

# --- other spellings ------------------------------------------------------------------------------------------------
# reads NAME HEADER-FORMAT PRINTED, or refused NAME HEADER-FORMAT MESSAGE: the whole file by printf
reads() {
    printf "$2" >"$work/a.npy"
    run run "$work/m.json"
    expect_out "$1" "Resource 'A': $3"
}
refused() {
    printf "$2" >"$work/a.npy"
    run run "$work/m.json"
    expect_error "$1" 1 "$work/m.json: \$.resources.A.initialValues.sourcePath: $3"
}
copy_model ''
reads 'version 2' '\223NUMPY\002\000\072\000\000\000{"descr":"<i2","fortran_order":False,"shape":(2,)}       \n\001\000\002\000' '1, 2'
reads 'version 3' "\223NUMPY\003\000\072\000\000\000{'shape':(2,),'fortran_order':False,'descr':'<i2',}      \n\001\000\002\000" '1, 2'
reads 'one element' "\223NUMPY\001\000\066\000{'descr':'<i2','fortran_order':False,'shape':()}     \n\007\000" '7'
reads 'bool' "\223NUMPY\001\000\070\000{'descr':'|b1','fortran_order':False,'shape':(2,)}     \n\001\000" '1, 0'
reads 'long integers' "\223NUMPY\001\000\071\000{'descr':'<i2','fortran_order':False,'shape':(2L,)}     \n\001\000\002\000" '1, 2'
reads 'column-major vector' "\223NUMPY\001\000\071\000{'descr':'<i2','fortran_order':True,'shape':(1,2,)}     \n\001\000\002\000" '1, 2'
reads 'column-major' "\223NUMPY\001\000\070\000{'descr':'|i1','fortran_order':True,'shape':(2,3)}     \n\001\004\002\005\003\006" \
    '1, 2, 3, 4, 5, 6'
reads 'column-major, three dimensions' \
    "\223NUMPY\001\000\072\000{'descr':'|i1','fortran_order':True,'shape':(2,1,3)}     \n\001\004\002\005\003\006" '1, 2, 3, 4, 5, 6'
reads 'big endian' "\223NUMPY\001\000\070\000{'descr':'>i2','fortran_order':False,'shape':(2,)}     \n\001\000\002\003" '256, 515'
reads 'big endian, float64' "\223NUMPY\001\000\070\000{'descr':'>f8','fortran_order':False,'shape':(1,)}     \n\077\360\000\000\000\000\000\000" '1'
reads 'big endian, column-major' \
    "\223NUMPY\001\000\071\000{'descr':'>u4','fortran_order':True,'shape':(2,2)}      \n\000\000\000\001\000\000\000\003\000\000\000\002\000\000\000\004" \
    '1, 2, 3, 4'
refused 'unknown byte order' "\223NUMPY\001\000\070\000{'descr':'!i2','fortran_order':False,'shape':(2,)}     \n\001\000\002\003" \
    'the .npy element type !i2 is not supported'
refused 'complex' "\223NUMPY\001\000\070\000{'descr':'<c8','fortran_order':False,'shape':(1,)}     \n12345678" \
    'the .npy element type <c8 is not supported'
refused 'structured' "\223NUMPY\001\000\005\000{'descr':[('a','<i2')],'fortran_order':False}" 'damaged .npy header: a string has no end or is too long'
refused 'records' "\223NUMPY\001\000\054\000{'descr':[('a','<i2')],'fortran_order':False}" 'structured .npy element types are not supported'
refused 'no magic' 'NUMPY' 'this is no .npy file'
refused 'empty' '' 'this is no .npy file'
refused 'version 4' '\223NUMPY\004\000\001\000\000\000 ' '.npy version 4.0 is not known'
refused 'header past the end' '\223NUMPY\001\000\377\377{' 'damaged .npy header: the file ends in it'
refused 'short length' '\223NUMPY\002\000\001\000' 'damaged .npy header: the file ends in it'
refused 'no dict' '\223NUMPY\001\000\001\000 ' 'damaged .npy header: a dict was expected'
refused 'key missing' "\223NUMPY\001\000\017\000{'descr':'<i2'}" 'damaged .npy header: descr, fortran_order or shape is missing'
refused 'unknown key' "\223NUMPY\001\000\007\000{'a':1}" 'damaged .npy header: a key is unknown or stands twice'
refused 'key twice' "\223NUMPY\001\000\035\000{'descr':'<i2','descr':'<i2'}" 'damaged .npy header: a key is unknown or stands twice'
refused 'negative size' "\223NUMPY\001\000\070\000{'descr':'|i1','fortran_order':False,'shape':(-1,)}    \n" \
    'damaged .npy header: shape holds something else than whole numbers'
refused 'huge shape' "\223NUMPY\001\000\142\000{'descr':'<f8','fortran_order':False,'shape':(18446744073709551615,18446744073709551615)}        \n" \
    'damaged .npy header: shape has more than 2^64 elements'
refused 'data too short' "\223NUMPY\001\000\070\000{'descr':'|i1','fortran_order':False,'shape':(3,)}     \n12" \
    'the .npy file holds 2 bytes of data, its shape needs 3 elements of 1 bytes'
refused 'data too long' "\223NUMPY\001\000\070\000{'descr':'|i1','fortran_order':False,'shape':(1,)}     \n12" \
    'the .npy file holds 2 bytes of data, its shape needs 1 elements of 1 bytes'

# --- raw files ------------------------------------------------------------------------------------------------------
printf '\001\000\002\000' >"$work/a.dat"
raw_model() {
    printf '{ "resources": { "A": { %s "initialValues": { "sourcePath": "a.dat" } } }, "dispatchables": {},
        "commands": [%s] }' "$1" "$2" >"$work/m.json"
}
raw_model '"initialValuesDataType": "INT16",' '{ "type": "print", "resource": "A" }'
run run "$work/m.json"
expect_out 'raw' "Resource 'A': 1, 2"
raw_model '' '{ "type": "print", "resource": "A" }'
run run "$work/m.json"
expect_error 'raw without a type' 1 "$work/m.json: \$.commands[0].resource: the resource can't be printed: without \"initialValuesDataType\" it has no elements"
raw_model '' '{ "type": "writeFile", "resource": "A", "targetPath": "b.npy" }'
run run "$work/m.json"
expect_error '.npy without a type' 1 "$work/m.json: \$.commands[0].resource: an .npy file needs to know its elements: \"initialValuesDataType\" is missing"
raw_model '"initialValuesDataType": "INT64",' ''
run run "$work/m.json"
expect_error 'half an element' 1 "$work/m.json: \$.resources.A.initialValues.sourcePath: the file's 4 bytes are no whole number of INT64 elements"
raw_model '"sizeInBytes": 7, "initialValuesOffsetInBytes": 2,' '{ "type": "writeFile", "resource": "A", "targetPath": "b.raw" }'
run run "$work/m.json"
expect_status 'raw with room' 0
[ "$(od -An -tx1 "$work/b.raw" | tr -d ' \n')" = 00000100020000 ] || fail 'raw with room'

# --- complete or absent ---------------------------------------------------------------------------------------------
printf '{ "resources": { "A": { "initialValuesDataType": "FLOAT64", "initialValues": { "valueCount": 100000, "value": 1 } } },
    "dispatchables": {}, "commands": [{ "type": "writeFile", "resource": "A", "targetPath": "big.npy" }] }' >"$work/m.json"
mkdir "$work/folder"
mv "$work/m.json" "$work/folder/m.json"
status=0
(ulimit -f 8; exec "$OPJIT" run "$work/folder/m.json" >/dev/null 2>&1) || status=$?
expect_status 'file too large' 1
[ "$(ls "$work/folder")" = m.json ] || fail "left behind: $(ls "$work/folder")"
printf old >"$work/folder/big.npy"
(ulimit -f 8; exec "$OPJIT" run "$work/folder/m.json" >/dev/null 2>&1) || true
[ "$(cat "$work/folder/big.npy")" = old ] || fail 'the old file is gone'
rm "$work/folder/big.npy"
(umask 027; "$OPJIT" run "$work/folder/m.json")
[ "$(ls "$work/folder")" = "$(printf 'big.npy\nm.json')" ] || fail "left behind: $(ls "$work/folder")"
[ "$(wc -c <"$work/folder/big.npy")" = 800128 ] || fail 'size of big.npy'
[ "$(ls -l "$work/folder/big.npy" | cut -c 1-10)" = -rw-r----- ] || fail 'rights of big.npy'
# --- inside of the model's folder -------------------------------------------------------------------------------------
# copy FROM TO [OPTION...]: a model in the folder that reads one file and writes another
copy() {
    printf '{ "resources": { "A": { "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "%s" } } }, "dispatchables": {},
        "commands": [{ "type": "writeFile", "resource": "A", "targetPath": "%s" }] }' "$1" "$2" >"$inside/m.json"
    shift 2
    rm -f "$outside/new" "$inside/new" "$inside/sub/new"
    run run "$@" "$inside/m.json"
}
# stays NAME FROM TO FILE: it works, and FILE is what is written
stays() {
    copy "$2" "$3"
    [ "$status" = 0 ] && cmp -s "$inside/data" "$4" || fail "$1: $3"
    count=$((count + 1))
}
# leaves NAME FROM TO WHICH: refused because of WHICH, unless it is allowed
leaves() {
    copy "$2" "$3"
    expect_status "$1" 1
    grep -q "$4: .*: outside of the model's folder, which only --allow-outside permits\$" "$work/err" || fail "$1"
    [ ! -e "$outside/new" ] || fail "$1: written"
    copy "$2" "$3" --allow-outside
    [ "$status" = 0 ] || fail "$1: --allow-outside"
}
inside=$work/model outside=$work/other
mkdir "$inside" "$inside/sub" "$outside"
printf 1234 >"$inside/data"
printf 1234 >"$outside/data"
source='$.resources.A.initialValues.sourcePath' target='$.commands\[0\].targetPath'
stays 'plain' data new "$inside/new"
stays 'folder' sub/../data ./sub//new "$inside/sub/new"
stays 'absolute' "$inside/data" "$inside/sub/../new" "$inside/new"
leaves 'up' ../other/data new "$source"
leaves 'up to write' data ../other/new "$target"
stays 'up and back' "../model/data" "sub/../../model/new" "$inside/new"
leaves 'absolute elsewhere' "$outside/data" new "$source"
leaves 'absolute elsewhere, to write' data "$outside/new" "$target"
ln -s "$outside" "$inside/away"
ln -s "$outside/data" "$inside/data_away"
ln -s "$outside/new" "$inside/new_away"
ln -s sub "$inside/down"
ln -s "$inside/sub" "$inside/down_absolute"
ln -s ../down/../new "$inside/sub/up"
leaves 'linked folder' away/data new "$source"
leaves 'linked folder, to write' data away/new "$target"
leaves 'linked file' data_away new "$source"
leaves 'linked file, to write' data new_away "$target"
leaves 'out of a linked folder' data down/../../other/new "$target"
stays 'link within' data down/new "$inside/sub/new"
stays 'absolute link within' data down_absolute/new "$inside/sub/new"
stays 'links within' data down/up "$inside/new"
[ -L "$inside/sub/up" ] || fail 'links within: the link is gone'
ln -s loop "$inside/loop"
copy loop new
expect_error 'loop' 1 "$inside/m.json: $source: $inside/loop: can't be reached: Too many levels of symbolic links"
copy data data/new
expect_error 'file as a folder' 1 "$inside/m.json: \$.commands[0].targetPath: $inside/data/new: can't be reached: Not a directory"
copy data new/
expect_error 'no name' 1 "$inside/m.json: \$.commands[0].targetPath: $inside/new/: can't be reached: No such file or directory"
mkdir "$inside/deep"
deep=$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "d/" }')
mkdir -p "$inside/deep/$deep"
copy data "deep/${deep}new"
expect_status 'deep' 1
grep -q 'more than 128 folders deep$' "$work/err" || fail 'deep'
# The model's own path may be a link, and its folder is that of the link.
ln -s "$inside/m.json" "$outside/m.json"
copy data new
rm "$inside/new"
run run "$outside/m.json"
[ "$status" = 0 ] && [ -e "$outside/new" ] && [ ! -e "$inside/new" ] || fail 'model behind a link'

# --- what may be written ----------------------------------------------------------------------------------------------
mkfifo "$inside/fifo"
copy data fifo
expect_error 'fifo' 1 "$inside/m.json: \$.commands[0].targetPath: $inside/fifo: not a regular file"
copy fifo new
expect_error 'fifo to read' 1 "$inside/m.json: $source: $inside/fifo: not a regular file"
copy data sub
expect_error 'folder' 1 "$inside/m.json: \$.commands[0].targetPath: $inside/sub: not a regular file"
copy data /dev/null --allow-outside
expect_error 'device' 1 "$inside/m.json: \$.commands[0].targetPath: /dev/null: not a regular file"
[ -c /dev/null ] || fail 'the device is gone'
copy /dev/zero new --allow-outside
expect_error 'device to read' 1 "$inside/m.json: $source: /dev/zero: not a regular file"
for mode in 600 640 664 755; do
    printf old >"$inside/kept"
    chmod $mode "$inside/kept"
    copy data kept
    [ "$status" = 0 ] && [ "$(stat -c %a "$inside/kept")" = $mode ] && cmp -s "$inside/data" "$inside/kept" || fail "rights $mode"
done
if [ "$(id -u)" != 0 ]; then
    chmod 444 "$inside/kept"
    copy data kept
    expect_error 'read-only' 1 "$inside/m.json: \$.commands[0].targetPath: $inside/kept: can't be written: Permission denied"
fi
[ -z "$(ls -A "$inside" | grep '^\.opjit')" ] || fail 'temporaries are left'
finish
