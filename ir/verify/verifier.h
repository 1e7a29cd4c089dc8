/* SPDX-License-Identifier: Apache-2.0 */
/* verifier.h - shared by the files of the verifier.  They work on a copy of the function, to which proofs may append
 * nodes; node numbers, and thus messages, are the original's. */
#ifndef OPJIT_IR_VERIFY_VERIFIER_H
#define OPJIT_IR_VERIFY_VERIFIER_H

#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

typedef struct verifier {
    ir_func *f; /* the copy */
    const ir_func *original;
    uint32_t node_count; /* of the original */
    opjit_error *error;
    uint32_t *unproven; /* counts proofs that fail; NULL: the first one is an error */
    bool loops;        /* loop form */
    uint8_t *in_scope; /* by node: a VAR, LET or ACC that may be read now */
    uint8_t *defined;  /* by tensor, in value form: its def came before */
    uint8_t *used;     /* by node and by tensor, for V14 */
    uint8_t *used_tensor;
    uint32_t *stamp, now; /* by node: visited in this walk */
    uint32_t *walked, walk;    /* by node: number of the last walk over reads that came there */
    uint8_t *loads;            /* by node: it is a load or reads one */
    /* The stores of a tensor, one per stage: by tensor the first and the last, by store the next one and its stage. */
    ir_ref *first_store, *last_store, *next_store, *stage_of;
    ir_ref open[300];     /* the enclosing loops, stage first */
    uint32_t open_count;
    uint32_t for_stage;
} verifier;

/* Fails with "V<rule> <node>: <message>", status INTERNAL; LIMIT for rules that need a proof. */
opjit_status opjit_ir_verify_fail(const verifier *v, uint32_t rule, ir_ref node, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Passes on the status of a rule that needs a proof; counts LIMIT if failed proofs are counted. */
opjit_status opjit_ir_verify_proof(const verifier *v, opjit_status status);

/* Types by the letters of ops.def. */
static inline bool verify_is_number(ir_type type)
{
    return ir_is_element(type) || type == IR_INDEX;
}

/* expr.c: V1, V2, V4, V5, V10 and V11 for an expression that user reads, and for a statement's operands from `first`
 * on. */
opjit_status opjit_ir_verify_expr(verifier *v, ir_ref user, ir_ref expr);
opjit_status opjit_ir_verify_operands(verifier *v, ir_ref s, uint32_t first);
/* V17: lanes and blocks of an accumulator or of a definition that reduces. */
opjit_status opjit_ir_verify_order(const verifier *v, ir_ref s);
/* scatter.c: V1, V2, V3 and V8 for a SCATTER. */
opjit_status opjit_ir_verify_scatter(verifier *v, ir_ref s);
/* bounds.c: V8 for every load below an expression of the statement, under its select guards, and for the coordinates
 * of a store. */
opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement);
/* vector.c: V12, V13 and V20 for a loop with attributes in the stage. */
opjit_status opjit_ir_verify_vector(verifier *v, ir_ref loop, ir_ref stage);
/* recurrence.c: V21, in value form. */
opjit_status opjit_ir_verify_recurrences(const verifier *v);
/* once.c: V22, in loop form. */
opjit_status opjit_ir_verify_once(verifier *v);
/* V6 and V7 for the whole function, once it has passed the other rules: cover.c for stores, reads.c in loop form for
 * loads; yields.c for an output in value form, whose yields are listed first, as stores are in loop form. */
opjit_status opjit_ir_verify_cover(verifier *v);
opjit_status opjit_ir_verify_reads(verifier *v);
void opjit_ir_list_yields(verifier *v);
opjit_status opjit_ir_verify_yields(verifier *v, uint32_t tensor);

#endif
