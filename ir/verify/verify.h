/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - what the files of the verifier share.  They work on a copy of the function, to which proofs may append
 * nodes; numbers of nodes, and so messages, are those of the original. */
#ifndef OPJIT_IR_VERIFY_VERIFY_H
#define OPJIT_IR_VERIFY_VERIFY_H

#include "ir/core/internal.h"

typedef struct verifier {
    ir_func *f; /* the copy */
    const ir_func *original;
    uint32_t node_count; /* of the original */
    opjit_error *error;
    uint32_t *unproven; /* proofs that did not succeed; NULL: the first one is an error */
    bool loops;        /* loop form */
    uint8_t *in_scope; /* by node: VAR, LET or ACC that may be read now */
    uint8_t *defined;  /* by tensor: value form, its def is before */
    uint8_t *used;     /* by node and by tensor: V14 */
    uint8_t *used_tensor;
    uint32_t *stamp, now; /* by node: visited in this walk */
    uint32_t *walked, walk;    /* by node: number of the last walk over what is read that was there */
    uint8_t *loads;            /* by node: it is a load, or one is below it */
    /* Stores of a tensor, a stage each: by tensor the first and the last, by store the next one and its stage. */
    ir_ref *first_store, *last_store, *next_store, *stage_of;
    ir_ref open[300];     /* loops around the position, stage first */
    uint32_t open_count;
    uint32_t for_stage;
} verifier;

/* "V<rule> <node>: <message>", status INTERNAL; LIMIT for rules that are proofs. */
opjit_status opjit_ir_verify_fail(const verifier *v, uint32_t rule, ir_ref node, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* What a rule that is a proof says: LIMIT is counted, where that is asked for. */
opjit_status opjit_ir_verify_proof(const verifier *v, opjit_status status);

/* Letter c of the table of operations. */
static inline bool verify_is_number(ir_type type)
{
    return ir_is_element(type) || type == IR_INDEX;
}

/* V1, V2, V4, V5, V10 and V11 for an expression that user reads; for the operands of a statement from `first` on. */
opjit_status opjit_ir_verify_expr(verifier *v, ir_ref user, ir_ref expr);
opjit_status opjit_ir_verify_operands(verifier *v, ir_ref s, uint32_t first);
/* V8 for every load below expr of statement, under its select guards, and for the coordinates of a store. */
opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement);
/* V12 and V13 for a loop with attributes, inside the stage. */
opjit_status opjit_ir_verify_vector(verifier *v, ir_ref loop, ir_ref stage);
/* V6 and V7 for the whole function, which passed the other rules: of stores, and of the loads of loop form. */
opjit_status opjit_ir_verify_cover(verifier *v);
opjit_status opjit_ir_verify_reads(verifier *v);

#endif
