/* SPDX-License-Identifier: Apache-2.0 */
/* cover.h - shared by cover.c and closing.c: the pieces of a tensor that stores reach. */
#ifndef OPJIT_IR_VERIFY_COVER_H
#define OPJIT_IR_VERIFY_COVER_H

#include "ir/verify/verifier.h"

enum { PIECES = 64 };

typedef struct extent {
    bool point; /* lo is the coordinate */
    ir_ref lo, hi;
} extent;

typedef struct piece {
    extent d[8];
    ir_ref store;
} piece;

typedef struct cover {
    verifier *v;
    ir_func *f;
    uint32_t tensor, rank, rule;
    bool gaps;
    bool base; /* stores in serial loops, which store again, are left out */
    ir_ref block; /* the block that contains the loop to be closed: its first statement */
    piece pieces[PIECES];
    uint32_t count;
} cover;

/* closing.c: whether both are always the same number; the sum. */
bool opjit_ir_cover_equal(const ir_func *f, ir_ref a, ir_ref b);
ir_ref opjit_ir_cover_plus(ir_func *f, ir_ref a, int64_t k);
/* expr as a constant if its terms cancel, so that it no longer seems to vary. */
ir_ref opjit_ir_cover_tidy(ir_func *f, ir_ref expr);
/* expr with `to` in place of var, also inside lets; 0 if it reads something that the loop may change. */
ir_ref opjit_ir_cover_substitute(ir_func *f, ir_ref expr, ir_ref var, ir_ref to);
extent opjit_ir_cover_interval(cover *c, const extent *e);
bool opjit_ir_cover_varies(const cover *c, const extent *e, ir_ref var);
bool opjit_ir_cover_at_most_once(const cover *c, ir_ref loop);
/* Whether the points and blocks of p that vary with the loop's variable are the digits of a number that counts to its
 * end; if so, replaces them by intervals. */
bool opjit_ir_cover_close_digits(cover *c, piece *p, ir_ref loop);
/* Closes the piece exactly; false if it has none of the shapes of cover.c. */
bool opjit_ir_cover_close(cover *c, piece *p, ir_ref loop);

#endif
