#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# files.sh - files in and out: .npy of every type, damaged ones, raw bytes, and that files are whole or not there.
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
refused 'column-major' "\223NUMPY\001\000\070\000{'descr':'|i1','fortran_order':True,'shape':(2,2)}     \n1234" \
    'the .npy array is column-major (fortran_order): save it row-major'
refused 'big endian' "\223NUMPY\001\000\070\000{'descr':'>i2','fortran_order':False,'shape':(2,)}     \n\001\000\002\000" \
    'the .npy elements are big endian (>i2), only little endian is supported'
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

# --- whole or not there ---------------------------------------------------------------------------------------------
printf '{ "resources": { "A": { "initialValuesDataType": "FLOAT64", "initialValues": { "valueCount": 100000, "value": 1 } } },
    "dispatchables": {}, "commands": [{ "type": "writeFile", "resource": "A", "targetPath": "big.npy" }] }' >"$work/m.json"
mkdir "$work/folder"
mv "$work/m.json" "$work/folder/m.json"
status=0
(trap '' XFSZ; ulimit -f 8; exec "$OPJIT" run "$work/folder/m.json" >/dev/null 2>&1) || status=$?
expect_status 'file too large' 1
[ "$(ls "$work/folder")" = m.json ] || fail "left behind: $(ls "$work/folder")"
printf old >"$work/folder/big.npy"
(trap '' XFSZ; ulimit -f 8; exec "$OPJIT" run "$work/folder/m.json" >/dev/null 2>&1) || true
[ "$(cat "$work/folder/big.npy")" = old ] || fail 'the old file is gone'
(umask 027; "$OPJIT" run "$work/folder/m.json")
[ "$(ls "$work/folder")" = "$(printf 'big.npy\nm.json')" ] || fail "left behind: $(ls "$work/folder")"
[ "$(wc -c <"$work/folder/big.npy")" = 800128 ] || fail 'size of big.npy'
[ "$(ls -l "$work/folder/big.npy" | cut -c 1-10)" = -rw-r----- ] || fail 'rights of big.npy'
finish
