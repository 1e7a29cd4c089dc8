/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - loads, stores and their addresses.  Nothing outside of a tensor is touched: a load that is in bounds
 * only for some lanes is masked where the target does that, else the lanes that are off read element 0 instead. */
#include "codegen/emit/access.h"
#include "codegen/stores/plan.h"

enum { LINE = 64 };

cg_access opjit_cg_access_of(const cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_tensor *t = &f->ir->tensors[n->ref];
    return (cg_access){ .tensor = n->ref,
                        .rank = t->rank,
                        .first = n->op == IR_STORE,
                        .node = node,
                        .bits = 8 * opjit_ir_type_size(t->type) };
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef load_slot(cg_func *f, LLVMValueRef array, LLVMTypeRef type, uint64_t slot)
{
    LLVMValueRef index = opjit_cg_number(f, 64, 1, slot);
    return LLVMBuildLoad2(f->entry, type, slot ? LLVMBuildGEP2(f->entry, type, array, &index, 1, "") : array, "");
}

/* Address of element 0, made in the entry block. */
LLVMValueRef opjit_cg_base_pointer(cg_func *f, uint32_t tensor)
{
    const ir_tensor *t = &f->ir->tensors[tensor];
    if (f->bases[tensor])
        return f->bases[tensor];
    LLVMValueRef p, offset = NULL;
    if (t->role == IR_VIEW) {
        p = opjit_cg_base_pointer(f, t->of);
        offset = opjit_cg_number(f, 64, 1, (uint64_t)t->offset * opjit_ir_type_size(t->type));
    } else if (f->cpu->grid) {
        p = opjit_cg_grid_base(f, tensor);
    } else if (t->role == IR_TEMP || t->role == IR_SCRATCH) {
        p = LLVMGetParam(f->fn, t->role == IR_TEMP ? 2 : 3);
        offset = opjit_cg_number(f, 64, 1, (uint64_t)t->offset);
    } else {
        p = load_slot(f, LLVMGetParam(f->fn, 0), f->type.ptr, t->slot);
    }
    if (offset && !LLVMIsNull(offset))
        p = LLVMBuildGEP2(f->entry, f->type.i8, p, &offset, 1, "");
    return f->bases[tensor] = p;
}

/* Elements from one value of the variable to the next; false: not affine. */
bool opjit_cg_growth(const cg_func *f, const cg_access *a, ir_ref var, int64_t *out)
{
    *out = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        int64_t factor, part;
        if (cg_stride(f, a, d) == 0)
            continue;
        if (!opjit_cg_affine(f, cg_coordinate(f, a, d), var, &factor) ||
            !checked_muli(factor, cg_stride(f, a, d), &part) || !checked_addi(*out, part, out))
            return false;
    }
    return true;
}

LLVMValueRef opjit_cg_plus(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return !a || !b ? (a ? a : b) : opjit_cg_add(f, a, b);
}

LLVMValueRef opjit_cg_times(cg_func *f, LLVMValueRef a, int64_t k)
{
    if (!a || k == 1)
        return a;
    return k == 0 ? NULL
                  : LLVMBuildMul(f->b, a, opjit_cg_number(f, opjit_cg_bits(a), opjit_cg_lanes(a), (uint64_t)k), "");
}

LLVMValueRef opjit_cg_at(cg_func *f, ir_ref node, ir_ref var, LLVMValueRef quotient)
{
    const ir_node *n = ir_at(f->ir, node);
    if (node == var || (n->op == IR_CONST && n->imm == 0))
        return NULL;
    if (!(f->info[node].vary & f->info[var].vary))
        return opjit_cg_varies(f, node) ? opjit_cg_base(f, node) : opjit_cg_emit(f, node);
    if (n->op == IR_IDIV || n->op == IR_IMOD)
        return n->op == IR_IDIV ? quotient : NULL;
    if (n->op == IR_GET)
        return opjit_cg_at(f, ir_operand(f->ir, n->ref, 0), var, quotient);
    LLVMValueRef a = opjit_cg_at(f, ir_operand(f->ir, node, 0), var, quotient);
    if (n->op == IR_IMUL)
        return opjit_cg_times(f, a, ir_index_value(f->ir, ir_operand(f->ir, node, 1)));
    LLVMValueRef b = opjit_cg_at(f, ir_operand(f->ir, node, 1), var, quotient);
    if (n->op == IR_ISUB)
        b = b ? LLVMBuildNeg(f->b, b, "") : NULL;
    return opjit_cg_plus(f, a, b);
}

/* Address where var is 0.  Rows that loops next to each other share are made once. */
static LLVMValueRef row_pointer(cg_func *f, const cg_access *a, ir_ref var)
{
    cg_row row = { .tensor = a->tensor };
    bool plain = true;
    for (uint32_t d = 0; d < a->rank; d++) {
        const ir_ref c = cg_coordinate(f, a, d);
        row.at[d] = c == var || cg_stride(f, a, d) == 0 ? 0 : c;
        plain = plain && (row.at[d] == 0 || !(f->info[c].vary & f->info[var].vary)) && !opjit_cg_varies(f, c);
    }
    for (uint32_t i = 0; plain && i < CG_MAX_ROWS; i++)
        if (f->rows[i].tensor == row.tensor && memcmp(f->rows[i].at, row.at, sizeof(row.at)) == 0 &&
            opjit_cg_live(f, &f->rows[i].entry))
            return f->rows[i].entry.value;
    LLVMValueRef offset = NULL, p = opjit_cg_base_pointer(f, a->tensor);
    for (uint32_t d = 0; d < a->rank; d++)
        if (cg_stride(f, a, d) != 0)
            offset = opjit_cg_plus(
                f, offset, opjit_cg_times(f, opjit_cg_at(f, cg_coordinate(f, a, d), var, NULL), cg_stride(f, a, d)));
    if (offset)
        p = opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), p, offset);
    row.entry = opjit_cg_entry(f, f->copy_scope, p);
    if (plain)
        f->rows[f->row_count++ % CG_MAX_ROWS] = row;
    return p;
}

void opjit_cg_hoist_pointer(cg_func *f, ir_ref node, uint32_t loop)
{
    const cg_access a = opjit_cg_access_of(f, node);
    const ir_ref var = f->loops[loop].var;
    int64_t unused;
    f->cache[CG_POINTER][node].value = NULL;
    if (!opjit_cg_growth(f, &a, var, &unused) ||
        (f->lanes > 1 && !opjit_cg_growth(f, &a, f->loops[f->vec].var, &unused)) ||
        (f->turn.on && !opjit_cg_growth(f, &a, f->loops[f->turn.loop].var, &unused)))
        return;
    bool early = f->lanes == 1 && !f->turn.on;
    for (uint32_t d = 0; d < a.rank; d++) {
        const cg_info *info = &f->info[cg_coordinate(f, &a, d)];
        if (cg_stride(f, &a, d) == 0)
            continue;
        early = early && !info->loads && (info->inside & ~f->info[var].vary) >> 1 == 0;
        if (info->fresh || (info->inside & ~f->info[var].vary) >> loop)
            return;
        /* A let inside of the loop is looked through only where the expression varies with the loop. */
        if ((info->inside & ~info->vary) >> loop & 1)
            return;
    }
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, early);
    LLVMValueRef p = row_pointer(f, &a, var);
    opjit_cg_early_end(f, here);
    opjit_cg_remember(f, CG_POINTER, node, f->scope_count - 1, p);
}

/* Element offset of lane 0, in i64; the vectorised variable's own offset included. */
static LLVMValueRef lane0_offset(cg_func *f, const cg_access *a, int64_t lane0)
{
    LLVMValueRef offset = NULL;
    for (uint32_t d = 0; d < a->rank; d++) {
        const ir_ref c = cg_coordinate(f, a, d);
        if (cg_stride(f, a, d) != 0)
            offset = opjit_cg_plus(f, offset,
                                   opjit_cg_times(f, opjit_cg_varies(f, c) ? opjit_cg_base(f, c) : opjit_cg_emit(f, c),
                                                  cg_stride(f, a, d)));
    }
    LLVMValueRef constant = opjit_cg_number(f, 64, 1, (uint64_t)lane0);
    return !offset ? constant : lane0 ? LLVMBuildAdd(f->b, offset, constant, "") : offset;
}

/* The loop that a pointer was made before: the innermost one, or one around it where the same load stands there too. */
static cg_loop *loop_of_pointer(cg_func *f, ir_ref node)
{
    uint32_t i = f->loop_count - 1;
    while (i > 0 && f->loops[i].scope != f->cache[CG_POINTER][node].scope)
        i--;
    return &f->loops[i];
}

/* Address of what is at p when the loop's variable is 0. */
static LLVMValueRef moved_pointer(cg_func *f, const cg_access *a, LLVMValueRef p, cg_loop *loop)
{
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    int64_t grow = 0;
    opjit_cg_growth(f, a, loop->var, &grow);
    if (!opjit_cg_recall(f, CG_PLACE, a->node)) {
        LLVMValueRef by = opjit_cg_times(f, opjit_cg_variable(f, loop), grow);
        opjit_cg_remember_address(f, CG_PLACE, a->node, f->place_scope, by ? opjit_cg_offset(f, element, p, by) : p);
    }
    p = opjit_cg_address(f, CG_PLACE, a->node, element, loop == &f->loops[f->loop_count - 1] ? grow : 0);
    if (!f->turn.on)
        return p;
    opjit_cg_growth(f, a, f->loops[f->turn.loop].var, &grow);
    return opjit_cg_offset(f, element, p, opjit_cg_number(f, 64, 1, (uint64_t)(grow * f->loops[f->turn.loop].offset)));
}

/* Address of lane 0.  With a pointer from outside of a loop: that, plus what the loop adds. */
LLVMValueRef opjit_cg_lane0(cg_func *f, const cg_access *a)
{
    LLVMValueRef p = opjit_cg_recall(f, CG_POINTER, a->node);
    const cg_loop *vec = &f->loops[f->vec];
    int64_t grow = 0;
    if (p)
        return moved_pointer(f, a, p, loop_of_pointer(f, a->node));
    if (f->lanes > 1)
        opjit_cg_growth(f, a, vec->var, &grow);
    return opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_base_pointer(f, a->tensor),
                           lane0_offset(f, a, grow * (f->lanes > 1 ? vec->offset : 0)));
}

/* Remainder modulo m, under the guess, of the element's place counted from the line's begin before HEAD. */
static bool place_after_head(const cg_residues *with, const cg_access *a, uint64_t m, uint64_t *out)
{
    const cg_func *f = with->f;
    uint64_t r = 0, sum = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        const uint64_t s = (uint64_t)cg_stride(f, a, d) % m;
        if (s != 0 && !opjit_cg_residue(with, cg_coordinate(f, a, d), m, &r))
            return false;
        sum += s * r;
    }
    if (!opjit_cg_residue(with, ir_operand(f->ir, f->head, 0), m, &r))
        return false;
    *out = (sum + m - r) % m;
    return true;
}

/* On GPUs whole vectors of the output that HEAD is about begin where those of others of its kind do. */
static bool starts_alike(const cg_func *f, const cg_access *a, uint64_t m)
{
    const ir_tensor *t = &f->ir->tensors[a->tensor], *out = &f->ir->tensors[ir_at(f->ir, f->head)->ref];
    const uint32_t size = a->bits / 8;
    return f->cpu->grid && m * size <= OPJIT_GPU_ALIGNMENT && size == opjit_ir_type_size(out->type) &&
           (t->role != IR_VIEW || (uint64_t)t->offset * size % OPJIT_GPU_ALIGNMENT == 0);
}

/* Whether lane 0 is a number of whole lines from where HEAD ends, of elements that m make a line of. */
static bool is_at_line(const cg_residues *known, const cg_access *a, uint64_t m)
{
    const cg_func *f = known->f;
    cg_residues with = *known;
    bool at_line = f->head != 0 && (ir_at(f->ir, f->head)->ref == a->tensor || starts_alike(f, a, m));
    for (uint32_t i = 0; i < CG_GUESSES && at_line; i++) {
        uint64_t place;
        with.guess = opjit_cg_guesses[i];
        at_line = place_after_head(&with, a, m, &place) && place == with.guess.head % m;
    }
    return at_line;
}

/* Of element 0: what is declared, and what whoever calls kernels on a GPU has to see to. */
static uint32_t base_alignment(const cg_func *f, const ir_tensor *t)
{
    const uint32_t least = f->cpu->grid && t->role != IR_VIEW ? OPJIT_GPU_ALIGNMENT : 0;
    return t->align > least ? t->align : least;
}

/* Known alignment in bytes of lane 0 of `lanes`, at most a cache line. */
static uint32_t alignment_with(const cg_residues *with, const cg_access *a, uint32_t lanes)
{
    const cg_func *f = with->f;
    const ir_tensor *t = &f->ir->tensors[a->tensor];
    const uint32_t size = a->bits / 8;
    uint32_t base = base_alignment(f, t) ? base_alignment(f, t) : size;
    if (is_at_line(with, a, LINE / size))
        return LINE;
    if (lanes > 1 && is_at_line(with, a, lanes))
        return lanes * size;
    if (t->role == IR_VIEW) {
        const ir_tensor *of = &f->ir->tensors[opjit_ir_root(f->ir, a->tensor)];
        base = f->cpu->grid ? base_alignment(f, of) : of->align < base && of->align ? of->align : base;
        while (base > size && (uint64_t)t->offset * size % base != 0)
            base /= 2;
    }
    for (uint32_t bytes = base < LINE ? base : LINE; bytes > size; bytes /= 2) {
        const uint64_t m = bytes / size;
        uint64_t sum = 0;
        bool known = true;
        for (uint32_t d = 0; known && d < a->rank; d++) {
            const uint64_t s = (uint64_t)cg_stride(f, a, d) % m;
            uint64_t r = 0;
            known = s == 0 || opjit_cg_residue(with, cg_coordinate(f, a, d), m, &r);
            sum += s * r;
        }
        if (known && sum % m == 0)
            return bytes;
    }
    return size;
}

static uint32_t alignment(const cg_func *f, const cg_access *a)
{
    const cg_residues with = opjit_cg_residues(f);
    return alignment_with(&with, a, f->lanes);
}

bool opjit_cg_is_aligned(const cg_func *f, ir_ref store, ir_ref var, uint32_t lanes)
{
    const cg_access a = opjit_cg_access_of(f, store);
    const cg_residues with = { .f = f, .moving = var, .lanes = lanes };
    return alignment_with(&with, &a, lanes) >= lanes * a.bits / 8;
}

LLVMValueRef opjit_cg_next_vector(cg_func *f, ir_ref store, uint32_t lanes, LLVMValueRef from)
{
    const cg_access a = opjit_cg_access_of(f, store);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint32_t copy_scope = f->copy_scope, loop_scope = f->loop_scope, place_scope = f->place_scope;
    opjit_cg_scope_push(f);
    f->copy_scope = f->loop_scope = f->place_scope = f->scope_count - 1;
    loop->iv = from;
    LLVMValueRef at = LLVMBuildPtrToInt(f->b, opjit_cg_lane0(f, &a), f->type.i64, "");
    opjit_cg_scope_pop(f);
    f->copy_scope = copy_scope;
    f->loop_scope = loop_scope;
    f->place_scope = place_scope;
    at = LLVMBuildAnd(f->b, LLVMBuildNeg(f->b, at, ""), opjit_cg_number(f, 64, 1, lanes * a.bits / 8 - 1), "");
    at = LLVMBuildLShr(f->b, at, opjit_cg_number(f, 64, 1, (uint64_t)__builtin_ctz(a.bits / 8)), "");
    return LLVMBuildAdd(f->b, from, at, "");
}

/* Elements to the end of the line. */
LLVMValueRef opjit_cg_head(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t size = opjit_ir_type_size(f->ir->tensors[n->ref].type);
    LLVMValueRef p = opjit_cg_offset(f, opjit_cg_int(f, 8 * size, 1), opjit_cg_base_pointer(f, n->ref),
                                     opjit_cg_emit(f, ir_operand(f->ir, node, 0)));
    LLVMValueRef at = LLVMBuildPtrToInt(f->b, p, f->type.i64, "");
    at = LLVMBuildAnd(f->b, at, opjit_cg_number(f, 64, 1, LINE - 1), "");
    LLVMValueRef rest = LLVMBuildSub(f->b, opjit_cg_number(f, 64, 1, LINE), at, "");
    return LLVMBuildLShr(f->b, rest, opjit_cg_number(f, 64, 1, (uint64_t)__builtin_ctz(size)), "");
}

/* --- lanes one by one --------------------------------------------------------------------------------------------- */

/* Lanes that are evaluated, as a scalar for an access that all of them share. */
static LLVMValueRef any_lane(cg_func *f)
{
    if (opjit_cg_lanes(f->mask) == 1)
        return f->mask;
    if (f->cpu->grid)
        return opjit_cg_fold_lanes(f, false, f->mask);
    LLVMTypeRef wide = LLVMIntTypeInContext(f->llvm, opjit_cg_lanes(f->mask));
    return LLVMBuildICmp(f->b, LLVMIntNE, LLVMBuildBitCast(f->b, f->mask, wide, ""), LLVMConstNull(wide), "");
}

LLVMValueRef opjit_cg_load_element(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t lanes, uint32_t align)
{
    LLVMTypeRef type = opjit_cg_int(f, a->bits, lanes);
    const uint32_t words = a->bits * lanes / 32;
    const bool as_words =
        f->cpu->grid && words > 1 && align >= 4 * words; /* one instruction, whatever the elements are */
    LLVMValueRef v = LLVMBuildLoad2(f->b, as_words ? opjit_cg_int(f, 32, words) : type, pointer, "");
    LLVMSetAlignment(v, align);
    return as_words ? LLVMBuildBitCast(f->b, v, type, "") : v;
}

/* Element offsets of all lanes, with those of lanes that are off made 0. */
static LLVMValueRef lane_offsets(cg_func *f, const cg_access *a, bool affine, int64_t grow, bool masked)
{
    const cg_loop *vec = &f->loops[f->vec];
    LLVMValueRef offsets = NULL;
    if (affine) {
        offsets = opjit_cg_splat(f, lane0_offset(f, a, grow * vec->offset), f->lanes);
        offsets = LLVMBuildAdd(f->b, offsets, opjit_cg_iota(f, 64, f->lanes, 0, grow * vec->step), "");
    }
    for (uint32_t d = 0; !affine && d < a->rank; d++)
        if (cg_stride(f, a, d) != 0)
            offsets = opjit_cg_plus(
                f, offsets,
                opjit_cg_times(f, opjit_cg_index_lanes(f, cg_coordinate(f, a, d), 64, f->lanes), cg_stride(f, a, d)));
    if (!offsets)
        offsets = opjit_cg_number(f, 64, f->lanes, 0);
    return masked ? LLVMBuildSelect(f->b, f->mask, offsets, opjit_cg_number(f, 64, f->lanes, 0), "") : offsets;
}

static LLVMValueRef gather(cg_func *f, const cg_access *a, bool affine, int64_t grow, bool masked)
{
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef out = LLVMGetPoison(opjit_cg_int(f, a->bits, f->lanes)), base = opjit_cg_base_pointer(f, a->tensor),
                 p0 = NULL, offsets = NULL;
    if (affine && !masked)
        p0 = opjit_cg_lane0(f, a);
    else
        offsets = lane_offsets(f, a, affine, grow, masked);
    for (uint32_t i = 0; i < f->lanes; i++) {
        const int64_t constant = (int64_t)i * grow * f->loops[f->vec].step;
        LLVMValueRef p = p0 ? opjit_cg_offset(f, element, p0, opjit_cg_number(f, 64, 1, (uint64_t)constant))
                            : opjit_cg_offset(f, element, base, opjit_cg_lane(f, offsets, i));
        out = opjit_cg_insert(f, out, opjit_cg_load_element(f, a, p, 1, a->bits / 8), i);
    }
    return out;
}

static void scatter(cg_func *f, const cg_access *a, bool affine, int64_t grow, LLVMValueRef value)
{
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef base = opjit_cg_base_pointer(f, a->tensor), p0 = affine ? opjit_cg_lane0(f, a) : NULL;
    LLVMValueRef offsets = affine ? NULL : lane_offsets(f, a, false, 0, false);
    for (uint32_t i = 0; i < f->lanes; i++) {
        const int64_t constant = (int64_t)i * grow * f->loops[f->vec].step;
        LLVMValueRef p = p0 ? opjit_cg_offset(f, element, p0, opjit_cg_number(f, 64, 1, (uint64_t)constant))
                            : opjit_cg_offset(f, element, base, opjit_cg_lane(f, offsets, i));
        LLVMSetAlignment(LLVMBuildStore(f->b, opjit_cg_lane(f, value, i), p), a->bits / 8);
    }
}

static LLVMValueRef reverse(cg_func *f, LLVMValueRef v)
{
    const uint32_t lanes = opjit_cg_lanes(v);
    return LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(LLVMTypeOf(v)), opjit_cg_iota(f, 32, lanes, lanes - 1, -1),
                                  "");
}

/* Address of the last lane, where the tensor is walked backwards. */
static LLVMValueRef last_pointer(cg_func *f, const cg_access *a)
{
    return opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_lane0(f, a),
                           opjit_cg_number(f, 64, 1, 1 - (uint64_t)f->lanes));
}

/* --- masked ------------------------------------------------------------------------------------------------------- */

static void align_pointer(cg_func *f, LLVMValueRef call, uint32_t argument, uint32_t align)
{
    LLVMAddCallSiteAttribute(call, argument + 1, compat_attribute(f->llvm, "align", align));
}

static LLVMValueRef masked_load(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t align)
{
    LLVMTypeRef type = opjit_cg_int(f, a->bits, f->lanes), types[2] = { type, f->type.ptr }, fn_type;
    LLVMValueRef fn = compat_intrinsic(f->module, f->llvm, "llvm.masked.load", types, 2, &fn_type);
    LLVMValueRef call =
        LLVMBuildCall2(f->b, fn_type, fn, (LLVMValueRef[]){ pointer, f->mask, LLVMConstNull(type) }, 3, "");
    align_pointer(f, call, 0, align);
    return call;
}

static void masked_store(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align)
{
    LLVMTypeRef types[2] = { LLVMTypeOf(value), f->type.ptr }, fn_type;
    LLVMValueRef fn = compat_intrinsic(f->module, f->llvm, "llvm.masked.store", types, 2, &fn_type);
    LLVMValueRef call = LLVMBuildCall2(f->b, fn_type, fn, (LLVMValueRef[]){ value, pointer, f->mask }, 3, "");
    align_pointer(f, call, 1, align);
}

bool opjit_cg_contiguous(const cg_func *f, ir_ref node, ir_ref var, int64_t step)
{
    const cg_access a = opjit_cg_access_of(f, node);
    int64_t grow;
    return opjit_cg_growth(f, &a, var, &grow) && step == 1 && grow == 1;
}

/* The processor alone does not read ahead far enough where there is arithmetic between the loads, least of all beside
 * stores around the caches: the loop fetches lines for the rounds, and rows, to come. */
static void fetch_ahead(cg_func *f, const cg_access *a, LLVMValueRef pointer)
{
    const int64_t offset = f->loops[f->vec].offset * (int64_t)(a->bits / 8);
    if (!f->loops[f->loop_count - 1].plan->prefetch || offset % LINE != 0 || f->ir->tensors[opjit_ir_root(f->ir, a->tensor)].role != IR_IN ||
        f->ir->tensors[a->tensor].bytes < (f->streams ? CG_PREFETCH_STREAMED : CG_PREFETCH_REDUCED))
        return;
    LLVMValueRef ahead = opjit_cg_offset(f, f->type.i8, pointer, opjit_cg_number(f, 64, 1, CG_PREFETCH));
    LLVMValueRef args[] = { ahead, opjit_cg_number(f, 32, 1, 0), opjit_cg_number(f, 32, 1, 3),
                            opjit_cg_number(f, 32, 1, 1) };
    opjit_cg_call(f, "llvm.prefetch", 4, args);
}

/* --- loads and stores --------------------------------------------------------------------------------------------- */

/* All lanes read the same element. */
static LLVMValueRef load_one(cg_func *f, const cg_access *a, bool masked)
{
    if (!masked)
        return opjit_cg_load_element(f, a, opjit_cg_lane0(f, a), 1, alignment(f, a));
    LLVMValueRef offset = lane0_offset(f, a, 0);
    offset = LLVMBuildSelect(f->b, any_lane(f), offset, opjit_cg_number(f, 64, 1, 0), "");
    return opjit_cg_load_element(
        f, a, opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_base_pointer(f, a->tensor), offset), 1,
        a->bits / 8);
}

/* Floats as such: they are to be computed with, more often than not, and moves don't touch them. */
static LLVMValueRef load_vector(cg_func *f, ir_ref node, LLVMValueRef pointer, uint32_t align)
{
    const ir_type type = (ir_type)ir_at(f->ir, node)->type;
    LLVMTypeRef vector = type == IR_F32 || type == IR_F64 ? opjit_cg_float(f, type, f->lanes)
                                                          : opjit_cg_int(f, 8 * opjit_ir_type_size(type), f->lanes);
    LLVMValueRef v = LLVMBuildLoad2(f->b, vector, pointer, "");
    LLVMSetAlignment(v, align);
    return v;
}

LLVMValueRef opjit_cg_load(cg_func *f, ir_ref node)
{
    const cg_access a = opjit_cg_access_of(f, node);
    const bool varies = opjit_cg_varies(f, node), outside = f->info[node].outside;
    const bool masked = f->mask && (outside || (f->tail && varies));
    int64_t grow = 0;
    if (!varies)
        return load_one(f, &a, masked);
    const cg_loop *vec = &f->loops[f->vec];
    const bool affine = opjit_cg_growth(f, &a, vec->var, &grow);
    if (affine && grow == 0)
        return opjit_cg_splat(f, load_one(f, &a, masked && outside), f->lanes);
    const int64_t step = grow * vec->step;
    if (affine && step == 1 && !masked) {
        LLVMValueRef p = opjit_cg_lane0(f, &a);
        fetch_ahead(f, &a, p);
        return load_vector(f, node, p, alignment(f, &a));
    }
    if (affine && step == 1 && f->cpu->masked && f->cpu->masked(f->target, a.bits))
        return masked_load(f, &a, opjit_cg_lane0(f, &a), a.bits / 8);
    if (affine && step == -1 && !masked)
        return reverse(f, opjit_cg_load_element(f, &a, last_pointer(f, &a), f->lanes, a.bits / 8));
    if (affine && step > 1 && step <= CG_MOST_STEP && !masked)
        return opjit_cg_load_picked(f, &a, (uint32_t)step);
    LLVMValueRef zipped = affine || masked ? NULL : opjit_cg_load_zipped(f, &a);
    if (zipped)
        return zipped;
    return gather(f, &a, affine, grow, masked);
}

void opjit_cg_store_vector(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align, bool nontemporal)
{
    const uint32_t bytes = opjit_cg_lanes(value) * opjit_cg_bits(value) / 8;
    if (f->cpu->grid && bytes > 4 && align >= bytes)
        value = LLVMBuildBitCast(f->b, value, opjit_cg_int(f, 32, bytes / 4), "");
    LLVMValueRef store = LLVMBuildStore(f->b, value, pointer);
    LLVMSetAlignment(store, align);
    if (!nontemporal || !f->cpu->fence || bytes < 16 || align < bytes)
        return;
    LLVMMetadataRef one = LLVMValueAsMetadata(opjit_cg_number(f, 32, 1, 1));
    LLVMValueRef node = LLVMMetadataAsValue(f->llvm, LLVMMDNodeInContext2(f->llvm, &one, 1));
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(f->llvm, "nontemporal", 11), node);
    f->fence = true;
}

/* As it is stored at quick: a constant that an integer register holds is an integer, since fast selection knows no
 * vectors so short, nor bit casts of constants. */
static LLVMValueRef in_register(cg_func *f, LLVMValueRef value)
{
    const uint32_t size = opjit_cg_bits(value), lanes = opjit_cg_lanes(value);
    uint64_t all = 0;
    if (f->peak || f->cpu->grid || !LLVMIsConstant(value) || lanes * size > 64)
        return opjit_cg_kept(f, value);
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef one = lanes > 1 ? LLVMGetAggregateElement(value, i) : value;
        if (!one || !LLVMIsAConstantInt(one))
            return LLVMConstBitCast(value, LLVMIntTypeInContext(f->llvm, lanes * size));
        all |= LLVMConstIntGetZExtValue(one) << (i * size);
    }
    return LLVMConstInt(LLVMIntTypeInContext(f->llvm, lanes * size), all, 0);
}

void opjit_cg_store(cg_func *f, ir_ref statement)
{
    const cg_access a = opjit_cg_access_of(f, statement);
    const cg_plan *plan = f->loops[f->loop_count - 1].plan;
    int64_t grow = 0;
    LLVMValueRef value =
        plan && plan->table ? opjit_cg_table_read(f, a.bits) : opjit_cg_emit_lanes(f, ir_operand(f->ir, statement, 0), f->lanes);
    if (f->lanes == 1) {
        LLVMValueRef pointer = opjit_cg_lane0(f, &a);
        LLVMBasicBlockRef after = opjit_cg_one_begin(f);
        LLVMSetAlignment(LLVMBuildStore(f->b, value, pointer), alignment(f, &a));
        opjit_cg_one_end(f, after);
        return;
    }
    const cg_loop *vec = &f->loops[f->vec];
    const bool affine = opjit_cg_growth(f, &a, vec->var, &grow);
    const int64_t step = grow * vec->step;
    if (f->edge) {
        f->edge->pointer = f->edge->pointer ? f->edge->pointer : opjit_cg_lane0(f, &a);
        f->edge->values[f->edge->count++] = opjit_cg_kept(f, value);
        return;
    }
    if (affine && step == 1 && f->tail) {
        masked_store(f, value, opjit_cg_lane0(f, &a), a.bits / 8);
    } else if (affine && step == 1) {
        LLVMValueRef pointer = opjit_cg_lane0(f, &a);
        opjit_cg_store_vector(f, in_register(f, value), pointer, f->aligned ? f->lanes * a.bits / 8 : alignment(f, &a),
                              plan->is.nontemporal);
        opjit_cg_read_ahead(f, &a, pointer);
    } else if (affine && step == -1) {
        LLVMSetAlignment(LLVMBuildStore(f->b, reverse(f, value), last_pointer(f, &a)), a.bits / 8);
    } else {
        scatter(f, &a, affine, grow, value);
    }
}
