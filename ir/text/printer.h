/* SPDX-License-Identifier: Apache-2.0 */
/* printer.h - what print.c and print_expr.c share. */
#ifndef OPJIT_IR_TEXT_PRINTER_H
#define OPJIT_IR_TEXT_PRINTER_H

#include "ir/core/internal.h"

enum { LINE_WIDTH = 120, INDENT = 4 };

typedef struct printer {
    const ir_func *f;
    ir_numbers n;
    rt_bytes *out;
    size_t line; /* start of the current line in out */
} printer;

static inline uint32_t number_at(const uint32_t *numbers, uint32_t count, uint32_t i)
{
    return i < count ? numbers[i] : 0;
}

void opjit_ir_put_line(printer *p, uint32_t indent); /* begins a line */
void opjit_ir_put_id(printer *p, uint32_t number);   /* %N; number 0: "%?" */
void opjit_ir_put_tensor_id(printer *p, uint32_t tensor);
void opjit_ir_put_node_id(printer *p, ir_ref node);
/* reserve: columns to keep free for what follows on the line. */
void opjit_ir_put_expr(printer *p, ir_ref expr, uint32_t indent, size_t reserve);

#endif
