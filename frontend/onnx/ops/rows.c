/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - the table of operators. */
#include "frontend/onnx/ops/ops.h"

const onnx_row opjit_onnx_rows[] = {
#define ROW(domain, name, make, arg, text) { domain, name, opjit_onnx_##make, (int32_t)(arg), text },
#define REFUSED(domain, name, why) { domain, name, NULL, 0, why },
#include "frontend/onnx/ops/ops.def"
#undef ROW
#undef REFUSED
};
const uint32_t opjit_onnx_row_count = sizeof opjit_onnx_rows / sizeof *opjit_onnx_rows;

/* Of the names, so that most rows are told from a node without a look at them. */
static const uint8_t sizes[] = {
#define ROW(domain, name, make, arg, text) sizeof name - 1,
#define REFUSED(domain, name, why) sizeof name - 1,
#include "frontend/onnx/ops/ops.def"
#undef ROW
#undef REFUSED
};

const onnx_row *opjit_onnx_find_row(const onnx_node *n)
{
    for (uint32_t i = 0; i < opjit_onnx_row_count; i++)
        if (n->op.size == sizes[i] && wire_is(n->op, opjit_onnx_rows[i].name) &&
            wire_is(n->domain, opjit_onnx_rows[i].domain))
            return &opjit_onnx_rows[i];
    return NULL;
}
