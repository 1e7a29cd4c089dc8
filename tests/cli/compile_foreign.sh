#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_foreign.sh - `opjit compile` for other machines: objects, static and shared libraries that their compilers
# link and that run under qemu-user; and the headers' check on CPUs with and without the features that the code needs.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
models=$tests/examples/models
cat >"$work/main.c" <<'END'
#include "kernels.h"
int main(void)
{
    int64_t row[8];
    uint16_t mask_rows[24];
    if (!ids_runs_here() || !mask_runs_here())
        return 3;
    ids(row);
    mask(mask_rows);
    return !(row[1] == 101 && row[7] == 107 && mask_rows[1] == 0 && mask_rows[2] == 0xfc00);
}
END

# on MACHINE TARGET "CPU..." "CPU...": runs on each of the first CPUs, and reports that it can't on the others
on() {
    machine=$1 target=$2 place=$work/$(echo "$2" | tr ,: __)
    if ! command -v "$machine-linux-gnu-gcc" >/dev/null 2>&1 || ! command -v "qemu-$machine" >/dev/null 2>&1; then
        echo "skipped: $target: no compiler or emulator for $machine"
        return
    fi
    run compile "$models/position_ids.json" "$models/causal_mask.json" --target "cpu:$target" --emit lib,header -o "$place"
    expect_status "$target" 0
    for library in libkernels.a libkernels.so; do
        "$machine-linux-gnu-gcc" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$place" "$work/main.c" \
            "$place/$library" -Wl,-rpath,"$place" -o "$work/program" || fail "$target: $library"
        for cpu in $3 - $4; do
            if [ "$cpu" = - ]; then
                want=3
                continue
            fi
            count=$((count + 1))
            status=0
            "qemu-$machine" -L "/usr/$machine-linux-gnu" -cpu "$cpu" "$work/program" || status=$?
            [ "$status" = "${want:-0}" ] || fail "$target: $library on $cpu: status $status"
        done
        want=0
    done
}
on aarch64 aarch64 'cortex-a72 max' ''
on aarch64 neoverse-v1 'max' 'cortex-a72 max,sve128=on,sve256=off,sve512=off,sve1024=off,sve2048=off'
on riscv64 rv64gc 'rv64 rv64,v=true,vlen=128,vext_spec=v1.0' ''
on riscv64 rv64gcv+zvl256b 'rv64,v=true,vlen=256,vext_spec=v1.0' 'rv64 rv64,v=true,vlen=128,vext_spec=v1.0'
# several versions of one name, chosen when the program is loaded: the NEON one runs where the others can't
versions=aarch64,cpu:neoverse-v1,cpu:aarch64+sve512
on aarch64 "$versions" \
    'cortex-a72 max max,sve128=on,sve256=off,sve512=off,sve1024=off,sve2048=off max,sve256=on,sve512=off,sve1024=off,sve2048=off' ''
versions_at=$place
on aarch64 'neoverse-v1,cpu:neoverse-n2' \
    'max max,sve128=on,sve256=off,sve512=off,sve1024=off,sve2048=off' 'cortex-a72'
# which one: each of these CPUs has its own, at an address of its own
if command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 && command -v qemu-aarch64 >/dev/null 2>&1; then
    printf '%s\n' '#include "kernels.h"' '#include <stdio.h>' 'int main(void)' '{' '    void (*volatile chosen)(int64_t *) = ids;' \
        '    return printf("%lx\n", (unsigned long)chosen) < 0;' '}' >"$work/chosen.c"
    aarch64-linux-gnu-gcc -static -no-pie -I"$versions_at" "$work/chosen.c" "$versions_at/libkernels.a" -o "$work/program" ||
        fail 'versions: link'
    for cpu in max max,sve256=on,sve512=off,sve1024=off,sve2048=off cortex-a72; do
        qemu-aarch64 -cpu "$cpu" "$work/program" >>"$work/chosen" || fail "versions: $cpu"
    done
    count=$((count + 1))
    [ "$(sort -u "$work/chosen" | wc -l)" = 3 ] || fail "versions: $(cat "$work/chosen")"
fi
run compile "$models/eye.json" --target cpu:rv64gc --target cpu:rv64gcv -o "$work/x"
expect_error 'versions' 1 'opjit: options.targets: cpu:rv64gc beside others, but only x86-64 and AArch64 have several versions of one kernel'
run compile "$models/eye.json" --target cpu:aarch64 --target cpu:x86-64-v3 -o "$work/x"
expect_error 'machines' 1 'opjit: options.targets: cpu:aarch64 and cpu:x86-64-v3 are different machines, which have an object each'
finish
