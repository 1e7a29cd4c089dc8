/* SPDX-License-Identifier: Apache-2.0 */
/* random_generator.c - RANDOM_GENERATOR: Philox 4x32-10 (Salmon and others, 2011).  The state is a counter of 128 bits,
 * its lowest word first, and a key of two words.  Elements 4 b to 4 b + 3 of the output, row-major, are the words of
 * block `counter + b`; the output state has the counter of the first block that was not begun. */
#include <string.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

#define RANDOM DML_RANDOM_GENERATOR_OPERATOR_DESC

enum { NUMBERS, STATE }; /* outputs */
enum { COUNTER_WORDS = 4, STATE_WORDS = 6, ROUNDS = 10 };

/* clang-format off */
static const op_enum_name type_names[] = {
    { "DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10", DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 },
    { NULL, 0 },
};
static const op_enum types = { "DML_RANDOM_GENERATOR_TYPE_", type_names };

static const op_field fields[] = {
    OP_FIELD(RANDOM, InputStateTensor, OP_INPUT, 0),
    OP_FIELD(RANDOM, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(RANDOM, OutputStateTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD_ENUM(RANDOM, Type, &types),
};

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 4, OP_TYPES(UINT32) },
    { NULL, DML_FEATURE_LEVEL_4_0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT32) },
};
/* clang-format on */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *state = &op->inputs[0], *after = &op->outputs[STATE];

    for (uint32_t d = 0; d < state->rank; d++) {
        const bool last = d + 1 == state->rank;
        TRY(opjit_fe_check_size(op, op->input_names[0], state, d, last ? STATE_WORDS : 1,
                                last ? ", four words of counter and two of key" : "", error));
    }
    if (!after->present)
        return OPJIT_OK;
    TRY(opjit_fe_check_pair(op, STATE, error));
    return opjit_fe_same_sizes(op, 0, STATE, error);
}

/* How many numbers there are has to be said. */
static void infer(op_inference *s)
{
    infer_type(&s->outputs[NUMBERS], DML_TENSOR_DATA_TYPE_UINT32);
    if (s->output_count <= STATE)
        return;
    infer_type(&s->outputs[STATE], DML_TENSOR_DATA_TYPE_UINT32);
    infer_shape(&s->outputs[STATE], &s->inputs[0]);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

/* A word of the incoming state. */
static ir_ref state_word(op_lowering *l, ir_ref index)
{
    const uint32_t rank = l->op->inputs[0].rank;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < rank; d++)
        at[d] = d + 1 == rank ? index : opjit_ir_index(l->f, 0);
    return l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[0], at);
}

/* Two words of the counter, from `low` on. */
static ir_ref counter_half(op_lowering *l, int64_t low)
{
    ir_func *f = l->f;
    const ir_ref least = ir_expr1(f, IR_CAST, IR_U64, state_word(l, opjit_ir_index(f, low)));
    const ir_ref most = ir_expr1(f, IR_CAST, IR_U64, state_word(l, opjit_ir_index(f, low + 1)));

    return ir_expr2(f, IR_OR, IR_U64, least, ir_expr2(f, IR_SHL, IR_U64, most, opjit_ir_const(f, IR_U64, 32)));
}

/* A word, by an index below 4, of counter + steps; steps: a u64. */
static ir_ref counter_word(op_lowering *l, ir_ref word, ir_ref steps)
{
    ir_func *f = l->f;
    const ir_ref low = counter_half(l, 0), sum = ir_expr2(f, IR_ADD, IR_U64, low, steps);
    const ir_ref carry = ir_expr1(f, IR_CAST, IR_U64, ir_expr2(f, IR_LT, IR_BOOL, sum, low));
    const ir_ref high = ir_expr2(f, IR_ADD, IR_U64, counter_half(l, 2), carry);
    const ir_ref half =
        ir_expr3(f, IR_SELECT, IR_U64, ir_expr2(f, IR_LT, IR_BOOL, word, opjit_ir_index(f, 2)), sum, high);
    const ir_ref odd = ir_expr2(f, IR_IMOD, IR_INDEX, word, opjit_ir_index(f, 2));

    return ir_expr1(f, IR_CAST, IR_U32,
                    ir_expr2(f, IR_SHR, IR_U64, half, ir_expr1(f, IR_ELEM, IR_U64, moves_mul(f, odd, 32))));
}

/* Words 0 and 1 after a round are made of word 2 before it, words 2 and 3 of word 0: the product of that word and a
 * constant.  Its low half is the odd word; its high half, with the word behind and one of the key, the even one. */
static void round_of(op_lowering *l, ir_ref words[COUNTER_WORDS], uint32_t number)
{
    ir_func *f = l->f;
    ir_ref after[COUNTER_WORDS];

    for (uint32_t j = 0; j < COUNTER_WORDS; j += 2) {
        const ir_ref x = ir_expr1(f, IR_CAST, IR_U64, words[2 - j]);
        const ir_ref product =
            ir_expr2(f, IR_MUL, IR_U64, x, opjit_ir_const(f, IR_U64, j == 0 ? 0xcd9e8d57 : 0xd2511f53));
        const ir_ref high =
            ir_expr1(f, IR_CAST, IR_U32, ir_expr2(f, IR_SHR, IR_U64, product, opjit_ir_const(f, IR_U64, 32)));
        const ir_ref key = ir_expr2(f, IR_ADD, IR_U32, state_word(l, opjit_ir_index(f, COUNTER_WORDS + j / 2)),
                                    opjit_ir_const(f, IR_U32, number * (j == 0 ? 0x9e3779b9u : 0xbb67ae85u)));
        after[j] = ir_expr2(f, IR_XOR, IR_U32, ir_expr2(f, IR_XOR, IR_U32, high, words[j + 1]), key);
        after[j + 1] =
            ir_expr2(f, IR_MUL, IR_U32, words[2 - j], opjit_ir_const(f, IR_U32, j == 0 ? 0xcd9e8d57 : 0xd2511f53));
    }
    memcpy(words, after, sizeof after);
}

/* The words of a block after some rounds of what these definitions have. */
static void rounds_of(op_lowering *l, const ir_ref *before, ir_ref block, uint32_t first, uint32_t end,
                      ir_ref words[COUNTER_WORDS])
{
    ir_func *f = l->f;

    for (uint32_t j = 0; j < COUNTER_WORDS; j++)
        words[j] = f->failed ? 0 : opjit_ir_load(f, ir_at(f, before[j])->ref, &block);
    for (uint32_t r = first; r < end; r++)
        round_of(l, words, r);
}

/* The words of all blocks: a row for each of the four.  Written as trees, expressions of all rounds would be long:
 * after half of them each word is a definition. */
static ir_ref lower_blocks(op_lowering *l, uint64_t blocks)
{
    const fe_tensor line = { .rank = 1, .sizes = { blocks } }, rows = { .rank = 2, .sizes = { COUNTER_WORDS, blocks } };
    ir_func *f = l->f;
    ir_ref counters[COUNTER_WORDS], middle[COUNTER_WORDS], words[COUNTER_WORDS];

    for (uint32_t j = 0; j < COUNTER_WORDS; j++) {
        counters[j] = opjit_fe_def_to(l, IR_U32, &line);
        const ir_ref block = f->failed ? 0 : opjit_ir_coordinate(f, counters[j], 0);
        opjit_fe_set(l, counters[j], counter_word(l, opjit_ir_index(f, j), ir_expr1(f, IR_ELEM, IR_U64, block)));
    }
    for (uint32_t j = 0; j < COUNTER_WORDS; j++) {
        middle[j] = opjit_fe_def_to(l, IR_U32, &line);
        rounds_of(l, counters, f->failed ? 0 : opjit_ir_coordinate(f, middle[j], 0), 0, ROUNDS / 2, words);
        opjit_fe_set(l, middle[j], words[j]);
    }
    const ir_ref all = opjit_fe_def_to(l, IR_U32, &rows);
    if (f->failed)
        return 0;
    rounds_of(l, middle, opjit_ir_coordinate(f, all, 1), ROUNDS / 2, ROUNDS, words);
    ir_ref word = words[COUNTER_WORDS - 1];
    for (uint32_t j = COUNTER_WORDS - 1; j-- > 0;)
        word =
            ir_expr3(f, IR_SELECT, IR_U32,
                     ir_expr2(f, IR_EQ, IR_BOOL, opjit_ir_coordinate(f, all, 0), opjit_ir_index(f, j)), words[j], word);
    opjit_fe_set(l, all, word);
    return all;
}

static void lower_state(op_lowering *l, uint64_t blocks)
{
    const ir_ref out = opjit_fe_output(l, STATE);
    ir_func *f = l->f;

    if (f->failed)
        return;
    const ir_ref i = opjit_ir_coordinate(f, out, l->op->outputs[STATE].rank - 1);
    const ir_ref word = ir_expr2(f, IR_IMOD, IR_INDEX, i, opjit_ir_index(f, COUNTER_WORDS));
    const ir_ref counts = ir_expr2(f, IR_LT, IR_BOOL, i, opjit_ir_index(f, COUNTER_WORDS));
    opjit_ir_set_value(f, out,
                       ir_expr3(f, IR_SELECT, IR_U32, counts, counter_word(l, word, opjit_ir_const(f, IR_U64, blocks)),
                                state_word(l, i)));
}

/* The block that the output's element is in, and which of its words it is: quotient and remainder of its number. */
static ir_ref block_of(op_lowering *l, ir_ref out, ir_ref *out_word)
{
    const fe_tensor *numbers = &l->op->outputs[NUMBERS];
    const uint32_t last = numbers->rank - 1;
    const bool whole = numbers->sizes[last] % COUNTER_WORDS == 0; /* rows are whole blocks: divisions are in a row */
    ir_func *f = l->f;
    ir_ref before = opjit_ir_index(f, 0), number = opjit_ir_coordinate(f, out, last);

    for (uint32_t d = 0; d < last; d++) {
        const uint64_t below = numbers->sizes[d + 1] / (d + 1 == last && whole ? COUNTER_WORDS : 1);
        before = moves_mul(f, ir_expr2(f, IR_IADD, IR_INDEX, before, opjit_ir_coordinate(f, out, d)), (int64_t)below);
    }
    if (!whole)
        number = ir_expr2(f, IR_IADD, IR_INDEX, before, number);
    *out_word = ir_expr2(f, IR_IMOD, IR_INDEX, number, opjit_ir_index(f, COUNTER_WORDS));
    const ir_ref block = ir_expr2(f, IR_IDIV, IR_INDEX, number, opjit_ir_index(f, COUNTER_WORDS));
    return whole ? ir_expr2(f, IR_IADD, IR_INDEX, before, block) : block;
}

static void lower(op_lowering *l)
{
    const fe_tensor *numbers = &l->op->outputs[NUMBERS];
    const uint64_t blocks = (numbers->elements + COUNTER_WORDS - 1) / COUNTER_WORDS;
    ir_func *f = l->f;
    const ir_ref words = lower_blocks(l, blocks), out = opjit_fe_output(l, NUMBERS);

    if (f->failed)
        return;
    ir_tensor line = f->tensors[ir_at(f, words)->ref]; /* the rows one after the other, so in memory: each word is
                                                        * made once, and four rows are read in turn */
    line.role = IR_VIEW;
    line.of = ir_at(f, words)->ref;
    line.rank = 1;
    line.sizes[0] = COUNTER_WORDS * blocks;
    opjit_ir_dense_strides(&line);
    const uint32_t view = opjit_ir_tensor(f, &line);
    ir_ref word;
    const ir_ref block = block_of(l, out, &word);
    const ir_ref at = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, word, (int64_t)blocks), block);
    opjit_ir_set_value(f, out, f->failed ? 0 : opjit_ir_load(f, view, &at));
    if (l->op->outputs[STATE].present)
        lower_state(l, blocks);
}

const op_def opjit_fe_op_random_generator = {
    .type = DML_OPERATOR_RANDOM_GENERATOR,
    .name = "RANDOM_GENERATOR",
    .formula = "bits by Philox 4x32-10 of the state: a counter of four words, lowest first, and a key of two",
    .desc_size = sizeof(RANDOM),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
