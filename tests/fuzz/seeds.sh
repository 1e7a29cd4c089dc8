#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh FOLDER - writes the inputs that fuzz targets of binary formats start from, FOLDER/<entry>/*, with the program
# in $OPJIT: files of this build's own formats, which a corpus in the tree could not keep up with.  The first byte of an
# input tells its target to make checksums right.
set -eu

folder=$1
here=$(cd "$(dirname "$0")" && pwd)
models=$here/../examples/models
rm -rf "$folder"
mkdir -p "$folder/image" "$folder/library" "$folder/disk" "$folder/stored" "$folder/made"

seed() # ENTRY NAME FILE [OFFSET]
{
    { printf '\001'; tail -c +"$((${4:-0} + 1))" "$3"; } >"$folder/$1/$2"
}

for model in eye causal_mask band_inplace causal_softmax; do # the last one has functions, too
    "$OPJIT" run "$models/$model.json" --quiet --cache-dir "$folder/made/cache" >/dev/null
    "$OPJIT" compile "$models/$model.json" --quiet --emit lib -o "$folder/made/$model" >/dev/null
    for library in "$folder/made/$model"/*.so; do
        seed library "$model" "$library"
    done
done

for model in conv gemm; do
    "$OPJIT" bench "$here/corpus/onnx/$model.onnx" --dim n=2 --quick --quiet --cache-dir "$folder/made/cache" >/dev/null
done

# header of 40 bytes, the key, zeros up to a multiple of 64, then the content
content_of() # FILE
{
    key=$(od -An -tu4 -j12 -N4 "$1" | tr -d ' ')
    echo $(((40 + key + 63) / 64 * 64))
}

n=0
for file in "$folder/made/cache"/*.opjit; do
    n=$((n + 1))
    if [ "$(head -c 7 "$file")" = opjitfn ]; then
        seed disk "function$n" "$file"
        continue
    fi
    if [ "$(head -c 7 "$file")" = opjitmd ]; then
        seed disk "model$n" "$file"
        seed stored "model$n" "$file" "$(content_of "$file")"
        continue
    fi
    seed disk "kernel$n" "$file"
    seed image "kernel$n" "$file" "$(content_of "$file")"
done
[ "$n" -gt 0 ] || { echo "no kernel was cached" >&2; exit 1; }
rm -rf "$folder/made"
