/* SPDX-License-Identifier: Apache-2.0 */
/* ir_graphs.h - random functions in value form with many definitions: read several times, shifted, under guards,
 * broadcast, through views; outputs whole or in boxes.  For tests of passes, not of operators. */
#ifndef OPJIT_TESTS_SUPPORT_IR_GRAPHS_H
#define OPJIT_TESTS_SUPPORT_IR_GRAPHS_H

#include "ir/ir.h"
#include "tests/support/random.h"

/* Draws a function into *out; inputs come first in slots, then outputs.  Every definition is read. */
opjit_status ir_graph_random(test_random *r, const opjit_allocator *allocator, ir_func *out, opjit_error *error);

#endif
