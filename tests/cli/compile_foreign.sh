#!/bin/sh
# compile_foreign.sh - `opjit compile` for other machines: objects, static and shared libraries that their compilers link
# and that run under qemu-user, and the headers' check on CPUs with and without what the code needs.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: no compiled kernels here'; exit 0 ;; esac
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

# on MACHINE TARGET "CPU..." "CPU...": runs on each of the first CPUs, and says of the others that it can't
on() {
    machine=$1 target=$2
    if ! command -v "$machine-linux-gnu-gcc" >/dev/null 2>&1 || ! command -v "qemu-$machine" >/dev/null 2>&1; then
        echo "skipped: $target: no compiler or emulator for $machine"
        return
    fi
    run compile "$models/position_ids.json" "$models/causal_mask.json" --target "cpu:$target" --emit lib,header -o "$work/$target"
    expect_status "$target" 0
    for library in libkernels.a libkernels.so; do
        "$machine-linux-gnu-gcc" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$work/$target" "$work/main.c" \
            "$work/$target/$library" -Wl,-rpath,"$work/$target" -o "$work/program" || fail "$target: $library"
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
run compile "$models/eye.json" --target cpu:aarch64 --target cpu:neoverse-v1 -o "$work/x"
expect_error 'versions' 1 'opjit: options.targets: cpu:aarch64 beside others, but only x86-64 has several versions of one kernel'
finish
