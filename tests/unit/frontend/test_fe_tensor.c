/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_tensor.c - the rules for one tensor descriptor, one per row, with the exact message or the exact result; and
 * the overlap test against an enumeration of all coordinates. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/random.h"

#define F16 DML_TENSOR_DATA_TYPE_FLOAT16
#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define F64 DML_TENSOR_DATA_TYPE_FLOAT64
#define U8 DML_TENSOR_DATA_TYPE_UINT8
#define I16 DML_TENSOR_DATA_TYPE_INT16
#define M UINT32_MAX

enum { IN = 0, OUT = 1, PACKED = 2, NO_SIZES = 4, NO_DESC = 8, NO_TENSOR = 16 }; /* how */

/* want: the message after "OP Tensor", or "bytes/span/elements/align strides". */
typedef struct row {
    const char *name;
    unsigned how;
    uint32_t dtype, flags, rank;
    uint32_t sizes[9], strides[9];
    uint64_t total;
    uint32_t align, type; /* type: DML_TENSOR_TYPE - 1 */
    opjit_status status;
    const char *want;
} row;

#define GOOD .status = OPJIT_OK, .want =
#define BAD .status = OPJIT_INVALID_ARGUMENT, .want =
#define LIMIT .status = OPJIT_LIMIT, .want =
#define NOT_YET .status = OPJIT_UNSUPPORTED, .want =
#define AT(...)     \
    {               \
        __VA_ARGS__ \
    }

/* clang-format off */
static const row rows[] = {
    /* pointers, type, data type, flags */
    { "no tensor", NO_TENSOR, F32, 0, 1, AT(1), AT(0), BAD ": NULL, must be a tensor" },
    { "no desc", NO_DESC, F32, 0, 1, AT(1), AT(0), BAD ".Desc: NULL, must be a DML_BUFFER_TENSOR_DESC" },
    { "type 0", PACKED, F32, 0, 1, AT(1), AT(0), .type = UINT32_MAX, BAD ".Type: 0, must be 1 (BUFFER)" },
    { "type 2", PACKED, F32, 0, 1, AT(1), AT(0), .type = 1, BAD ".Type: 2, must be 1 (BUFFER)" },
    { "zero descriptor", NO_SIZES | PACKED, 0, 0, 0, AT(0), AT(0),
      BAD ".DataType: 0, must be a DML_TENSOR_DATA_TYPE (1 to 13)" },
    { "dtype 14", PACKED, 14, 0, 1, AT(1), AT(0), BAD ".DataType: 14, must be a DML_TENSOR_DATA_TYPE (1 to 13)" },
    { "dtype huge", PACKED, M, 0, 1, AT(1), AT(0),
      BAD ".DataType: 4294967295, must be a DML_TENSOR_DATA_TYPE (1 to 13)" },
    { "uint4", PACKED, 12, 0, 1, AT(9), AT(0), GOOD "8/9/9/1 1" },
    { "int4", PACKED | OUT, 13, 0, 2, AT(3, 3), AT(0), GOOD "8/9/9/1 3,1" },
    { "int4, too few bytes", PACKED, 13, 0, 2, AT(3, 3), AT(0), .total = 4,
      BAD ".TotalTensorSizeInBytes: 4, must be 0 or a multiple of 4 that is at least 8" },
    { "owned input", PACKED, F32, 1, 1, AT(1), AT(0), GOOD "4/1/1/4 0" },
    { "owned output", PACKED | OUT, F32, 1, 1, AT(1), AT(0),
      BAD ".Flags: 0x1 (OWNED_BY_DML), must be 0: an output can't be a constant" },
    { "flag 2 in", PACKED, F32, 2, 1, AT(1), AT(0), BAD ".Flags: 0x2, must be 0 or 0x1 (OWNED_BY_DML)" },
    { "flag 3 in", PACKED, F32, 3, 1, AT(1), AT(0), BAD ".Flags: 0x3, must be 0 or 0x1 (OWNED_BY_DML)" },
    { "flag 2 out", PACKED | OUT, F32, 2, 1, AT(1), AT(0), BAD ".Flags: 0x2, must be 0" },
    { "flag high out", PACKED | OUT, F32, 0x80000001, 1, AT(1), AT(0), BAD ".Flags: 0x80000001, must be 0" },
    /* rank and sizes */
    { "rank 0", PACKED, F32, 0, 0, AT(1), AT(0), BAD ".DimensionCount: 0, must be 1 to 8" },
    { "rank 9", PACKED, F32, 0, 9, AT(1, 1, 1, 1, 1, 1, 1, 1, 1), AT(0), BAD ".DimensionCount: 9, must be 1 to 8" },
    { "rank huge", PACKED, F32, 0, M, AT(1), AT(0), BAD ".DimensionCount: 4294967295, must be 1 to 8" },
    { "no sizes", NO_SIZES | PACKED, F32, 0, 2, AT(0), AT(0), BAD ".Sizes: NULL, must be an array of 2" },
    { "size 0", PACKED, F32, 0, 1, AT(0), AT(0), BAD ".Sizes[0]: 0, must be at least 1" },
    { "size 0 last", PACKED | OUT, F32, 0, 3, AT(2, 3, 0), AT(0), BAD ".Sizes[2]: 0, must be at least 1" },
    { "size 0 before too many", PACKED, F32, 0, 3, AT(0, M, M), AT(0), BAD ".Sizes[0]: 0, must be at least 1" },
    { "most elements", PACKED, U8, 0, 1, AT(M), AT(0), GOOD "4294967296/4294967295/4294967295/1 1" },
    { "most elements f64", PACKED | OUT, F64, 0, 1, AT(M), AT(0), GOOD "34359738360/4294967295/4294967295/8 1" },
    { "2^32 elements", PACKED, U8, 0, 2, AT(65536, 65536), AT(0),
      BAD ".Sizes: {65536,65536} is more than 4294967295 elements, the most that are allowed" },
    { "2^64 elements", PACKED, U8, 0, 2, AT(M, M), AT(0),
      BAD ".Sizes: {4294967295,4294967295} is more than 4294967295 elements, the most that are allowed" },
    { "2^256 elements", PACKED, F64, 0, 8, AT(M, M, M, M, M, M, M, M), AT(0),
      BAD ".Sizes: {4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295} is more "
          "than 4294967295 elements, the most that are allowed" },
    { "2^32 elements of one", PACKED, U8, 0, 3, AT(65536, 65536, 1), AT(0),
      BAD ".Sizes: {65536,65536,1} is more than 4294967295 elements, the most that are allowed" },
    { "broadcast to 2^32", IN, U8, 0, 2, AT(65536, 65536), AT(0, 0),
      BAD ".Sizes: {65536,65536} is more than 4294967295 elements, the most that are allowed" },
    { "65535 squared", PACKED, U8, 0, 2, AT(65535, 65535), AT(0), GOOD "4294836228/4294836225/4294836225/1 65535,1" },
    { "rank 8", PACKED | OUT, F32, 0, 8, AT(2, 1, 2, 1, 2, 1, 2, 3), AT(0), GOOD "192/48/48/4 24,0,12,0,6,0,3,1" },
    /* strides */
    { "packed is null", PACKED | OUT, F32, 0, 2, AT(2, 3), AT(0), GOOD "24/6/6/4 3,1" },
    { "packed is given", OUT, F32, 0, 2, AT(2, 3), AT(3, 1), GOOD "24/6/6/4 3,1" },
    { "column major", OUT, F32, 0, 2, AT(2, 3), AT(1, 2), GOOD "24/6/6/4 1,2" },
    { "interleaved 3,2", OUT, F32, 0, 2, AT(2, 3), AT(3, 2), GOOD "32/8/6/4 3,2" },
    { "padded rows", OUT, F32, 0, 2, AT(2, 3), AT(8, 1), GOOD "44/11/6/4 8,1" },
    { "padded elements", OUT, F32, 0, 1, AT(3), AT(5), GOOD "44/11/3/4 5" },
    { "size 1 any stride", OUT, F32, 0, 2, AT(1, 3), AT(M, 1), GOOD "12/3/3/4 0,1" },
    { "size 1 stride 0", OUT, F32, 0, 2, AT(1, 3), AT(0, 1), GOOD "12/3/3/4 0,1" },
    { "all of size 1", OUT, F32, 0, 3, AT(1, 1, 1), AT(M, 7, 0), GOOD "4/1/1/4 0,0,0" },
    { "stride 0 in", IN, F32, 0, 2, AT(2, 3), AT(0, 1), GOOD "12/3/6/4 0,1" },
    { "all 0 in", IN, F32, 0, 2, AT(2, 3), AT(0, 0), GOOD "4/1/6/4 0,0" },
    { "most broadcast", IN, F32, 0, 1, AT(M), AT(0), GOOD "4/1/4294967295/4 0" },
    { "shared in", IN, F32, 0, 2, AT(2, 3), AT(1, 1), GOOD "16/4/6/4 1,1" },
    { "stride 0 out", OUT, F32, 0, 2, AT(2, 3), AT(3, 0),
      BAD ".Strides[1]: 0, must be at least 1 in an output where the size (3) is above 1" },
    { "stride 0 out first", OUT, F32, 0, 2, AT(2, 3), AT(0, 1),
      BAD ".Strides[0]: 0, must be at least 1 in an output where the size (2) is above 1" },
    { "most span", IN, U8, 0, 1, AT(2), AT(M - 1), GOOD "4294967296/4294967295/2/1 4294967294" },
    { "span too large", IN, U8, 0, 1, AT(2), AT(M),
      BAD ".Strides: {4294967295} puts the last element behind index 4294967294, the last that is allowed" },
    { "span too large by sum", OUT, U8, 0, 2, AT(2, 2), AT(M - 1, 1),
      BAD ".Strides: {4294967294,1} puts the last element behind index 4294967294, the last that is allowed" },
    { "span of 2^64", IN, F64, 0, 2, AT(65535, 65535), AT(M, M),
      BAD ".Strides: {4294967295,4294967295} puts the last element behind index 4294967294, the last that is allowed" },
    { "span 65536", OUT, U8, 0, 2, AT(65536, 65535), AT(65537, 1),
      BAD ".Strides: {65537,1} puts the last element behind index 4294967294, the last that is allowed" },
    /* two coordinates of an output on one element */
    { "shared 1,1", OUT, F32, 0, 2, AT(2, 3), AT(1, 1),
      BAD ".Strides: {1,1} with Sizes {2,3}, two coordinates of an output may not share an element" },
    { "shared 2,1", OUT, F32, 0, 2, AT(2, 3), AT(2, 1),
      BAD ".Strides: {2,1} with Sizes {2,3}, two coordinates of an output may not share an element" },
    { "shared 2,2", OUT, F32, 0, 2, AT(2, 2), AT(2, 2),
      BAD ".Strides: {2,2} with Sizes {2,2}, two coordinates of an output may not share an element" },
    { "not shared 3,2", OUT, U8, 0, 2, AT(2, 3), AT(3, 2), GOOD "8/8/6/1 3,2" },
    { "shared 3,2 by 4", OUT, U8, 0, 2, AT(3, 4), AT(3, 2),
      BAD ".Strides: {3,2} with Sizes {3,4}, two coordinates of an output may not share an element" },
    { "not shared 4,6", OUT, U8, 0, 2, AT(3, 2), AT(4, 6), GOOD "16/15/6/1 4,6" },
    { "shared by three", OUT, U8, 0, 3, AT(2, 2, 2), AT(1, 2, 3),
      BAD ".Strides: {1,2,3} with Sizes {2,2,2}, two coordinates of an output may not share an element" },
    { "not shared by three", OUT, U8, 0, 3, AT(2, 2, 2), AT(3, 5, 6), GOOD "16/15/8/1 3,5,6" },
    { "not shared by four", OUT, U8, 0, 4, AT(2, 2, 2, 2), AT(3, 5, 6, 7), GOOD "24/22/16/1 3,5,6,7" },
    { "shared by four", OUT, U8, 0, 4, AT(2, 2, 2, 2), AT(3, 5, 6, 8),
      BAD ".Strides: {3,5,6,8} with Sizes {2,2,2,2}, two coordinates of an output may not share an element" },
    { "size 1 never shares", OUT, U8, 0, 3, AT(2, 1, 3), AT(3, 3, 1), GOOD "8/6/6/1 3,0,1" },
    { "large coprime", OUT, U8, 0, 2, AT(30000, 30001), AT(30001, 30000),
      GOOD "1800000000/1800000000/900030000/1 30001,30000" },
    { "large coprime shared", OUT, U8, 0, 2, AT(30001, 30002), AT(30001, 30000),
      BAD ".Strides: {30001,30000} with Sizes {30001,30002}, two coordinates of an output may not share an element" },
    { "window of rows", OUT, F32, 0, 3, AT(4, 4, 4), AT(16, 1, 4), GOOD "256/64/64/4 16,1,4" },
    { "not decided", OUT, U8, 0, 8, AT(13, 13, 13, 13, 13, 13, 13, 13),
      AT(19984101, 35054378, 19916058, 37665561, 8479713, 35289198, 17720077, 11257749), .status = OPJIT_LIMIT,
      .want = ".Strides: {19984101,35054378,19916058,37665561,8479713,35289198,17720077,11257749} with Sizes "
              "{13,13,13,13,13,13,13,13}, 1000000 steps don't decide whether coordinates share an element" },
    /* bytes */
    { "total 0", PACKED, I16, 0, 1, AT(3), AT(0), GOOD "8/3/3/2 1" },
    { "total implied", PACKED, I16, 0, 1, AT(3), AT(0), .total = 8, GOOD "8/3/3/2 1" },
    { "total unrounded", PACKED, I16, 0, 1, AT(3), AT(0), .total = 6,
      BAD ".TotalTensorSizeInBytes: 6, must be 0 or a multiple of 4 that is at least 8" },
    { "total short", PACKED, F32, 0, 1, AT(3), AT(0), .total = 8,
      BAD ".TotalTensorSizeInBytes: 8, must be 0 or a multiple of 4 that is at least 12" },
    { "total odd", PACKED, F32, 0, 1, AT(3), AT(0), .total = 13,
      BAD ".TotalTensorSizeInBytes: 13, must be 0 or a multiple of 4 that is at least 12" },
    { "total 2 more", PACKED, F32, 0, 1, AT(3), AT(0), .total = 14,
      BAD ".TotalTensorSizeInBytes: 14, must be 0 or a multiple of 4 that is at least 12" },
    { "total longer", PACKED, F32, 0, 1, AT(3), AT(0), .total = 64, GOOD "64/3/3/4 1" },
    { "total 1", PACKED, U8, 0, 1, AT(1), AT(0), .total = 1,
      BAD ".TotalTensorSizeInBytes: 1, must be 0 or a multiple of 4 that is at least 4" },
    { "total of a broadcast", IN, F32, 0, 2, AT(9, 9), AT(0, 0), .total = 4, GOOD "4/1/81/4 0,0" },
    { "total most", PACKED, F32, 0, 1, AT(3), AT(0), .total = UINT64_C(1) << 40, GOOD "1099511627776/3/3/4 1" },
    { "total above the most", PACKED, F32, 0, 1, AT(3), AT(0), .total = (UINT64_C(1) << 40) + 4,
      LIMIT ".TotalTensorSizeInBytes: 1099511627780, must be at most 1099511627776 (1 TiB)" },
    { "total 2^64 - 4", PACKED, F32, 0, 1, AT(3), AT(0), .total = UINT64_MAX - 3,
      LIMIT ".TotalTensorSizeInBytes: 18446744073709551612, must be at most 1099511627776 (1 TiB)" },
    { "total 2^64 - 1", PACKED, F32, 0, 1, AT(3), AT(0), .total = UINT64_MAX,
      BAD ".TotalTensorSizeInBytes: 18446744073709551615, must be 0 or a multiple of 4 that is at least 12" },
    { "total of 32 bits only", PACKED, F64, 0, 1, AT(M), AT(0), .total = 4294967288,
      BAD ".TotalTensorSizeInBytes: 4294967288, must be 0 or a multiple of 4 that is at least 34359738360" },
    /* alignment */
    { "align 4", PACKED, F32, 0, 1, AT(1), AT(0), .align = 4, GOOD "4/1/1/4 0" },
    { "align 256", PACKED, U8, 0, 1, AT(1), AT(0), .align = 256, GOOD "4/1/1/256 0" },
    { "align 1 of bytes", PACKED, U8, 0, 1, AT(1), AT(0), .align = 1, GOOD "4/1/1/1 0" },
    { "align below element", PACKED, F64, 0, 1, AT(1), AT(0), .align = 4,
      BAD ".GuaranteedBaseOffsetAlignment: 4, must be 0 or a power of two that is at least 8" },
    { "align 1 of halves", PACKED, F16, 0, 1, AT(1), AT(0), .align = 1,
      BAD ".GuaranteedBaseOffsetAlignment: 1, must be 0 or a power of two that is at least 2" },
    { "align 12", PACKED, F32, 0, 1, AT(1), AT(0), .align = 12,
      BAD ".GuaranteedBaseOffsetAlignment: 12, must be 0 or a power of two that is at least 4" },
    { "align 2^31", PACKED, F32, 0, 1, AT(1), AT(0), .align = 0x80000000, GOOD "4/1/1/2147483648 0" },
    { "align 2^32 - 1", PACKED, F32, 0, 1, AT(1), AT(0), .align = M,
      BAD ".GuaranteedBaseOffsetAlignment: 4294967295, must be 0 or a power of two that is at least 4" },
};
/* clang-format on */

static void describe(const fe_tensor *t, char text[static 256])
{
    int used = snprintf(text, 256, "%llu/%llu/%llu/%u ", (unsigned long long)t->bytes, (unsigned long long)t->span,
                        (unsigned long long)t->elements, t->align);

    for (uint32_t i = 0; i < t->rank; i++)
        used +=
            snprintf(text + used, 256 - (size_t)used, "%s%llu", i == 0 ? "" : ",", (unsigned long long)t->strides[i]);
}

START_TEST(tensor_row)
{
    const row *r = &rows[_i];
    const DML_BUFFER_TENSOR_DESC buffer = {
        (DML_TENSOR_DATA_TYPE)r->dtype,
        (DML_TENSOR_FLAGS)r->flags,
        r->rank,
        (r->how & NO_SIZES) != 0 ? NULL : r->sizes,
        (r->how & PACKED) != 0 ? NULL : r->strides,
        r->total,
        r->align,
    };
    const DML_TENSOR_DESC desc = { (DML_TENSOR_TYPE)(r->type + 1), (r->how & NO_DESC) != 0 ? NULL : &buffer };
    const fe_tensor zero = { 0 };
    fe_tensor tensor;
    opjit_error error = { 0 };
    char text[256], where[] = "OP Tensor";
    opjit_status status;

    memset(&tensor, 0x5a, sizeof tensor);
    status = opjit_fe_tensor_resolve((r->how & NO_TENSOR) != 0 ? NULL : &desc, (r->how & OUT) != 0, "OP", "Tensor",
                                     &tensor, &error);
    ck_assert_msg(status == r->status, "%s: %s, %s", r->name, opjit_status_name(status), error.message);
    if (status == OPJIT_OK) {
        describe(&tensor, text);
        ck_assert_msg(strcmp(text, r->want) == 0, "%s: %s", r->name, text);
        for (uint32_t i = tensor.rank; i < 8; i++)
            ck_assert_msg(tensor.sizes[i] == 1 && tensor.strides[i] == 0, "%s: dimension %u", r->name, i);
        return;
    }
    ck_assert_msg(strncmp(error.message, where, strlen(where)) == 0 &&
                      strcmp(error.message + strlen(where), r->want) == 0,
                  "%s: %s", r->name, error.message);
    ck_assert_msg(memcmp(&tensor, &zero, sizeof zero) == 0, "%s: the result is not zero", r->name);
}
END_TEST

/* --- overlap ------------------------------------------------------------------------------------------------------ */

#define SPAN_MAX 4096

/* Marks every element that a coordinate reaches; true if one is marked twice. */
static bool shares(uint32_t rank, const uint64_t *sizes, const uint64_t *strides)
{
    static unsigned char seen[SPAN_MAX];
    uint64_t at[8] = { 0 };

    memset(seen, 0, sizeof seen);
    for (;;) {
        uint64_t offset = 0;
        uint32_t i = rank;
        for (uint32_t d = 0; d < rank; d++)
            offset += at[d] * strides[d];
        if (seen[offset]++ != 0)
            return true;
        while (i-- > 0) {
            if (++at[i] < sizes[i])
                break;
            at[i] = 0;
        }
        if (i == UINT32_MAX)
            return false;
    }
}

static uint64_t span_of(uint32_t rank, const uint64_t *sizes, const uint64_t *strides)
{
    uint64_t span = 1;

    for (uint32_t d = 0; d < rank; d++)
        span += (sizes[d] - 1) * strides[d];
    return span;
}

START_TEST(overlap_is_exact)
{
    test_random random;
    uint32_t shared = 0, disjoint = 0;

    test_random_init(&random, (uint64_t)_i, 0, 0);
    while (shared + disjoint < 20000) {
        const uint32_t rank = 1 + (uint32_t)test_random_below(&random, 5),
                       most = 1 + (uint32_t)test_random_below(&random, 6);
        const uint32_t reach = 1 + (uint32_t)test_random_below(&random, 40);
        uint64_t sizes[8], strides[8];
        bool truth;
        for (uint32_t d = 0; d < rank; d++) {
            sizes[d] = 1 + test_random_below(&random, most);
            strides[d] = 1 + test_random_below(&random, reach);
        }
        if (span_of(rank, sizes, strides) > SPAN_MAX)
            continue;
        truth = shares(rank, sizes, strides);
        if (opjit_fe_layout_overlap(rank, sizes, strides) != (truth ? FE_SHARED : FE_DISJOINT)) {
            for (uint32_t d = 0; d < rank; d++)
                fprintf(stderr, "size %u stride %u\n", (unsigned)sizes[d], (unsigned)strides[d]);
            ck_abort_msg("seed %d: the enumeration says %s", _i, truth ? "shared" : "disjoint");
        }
        shared += truth;
        disjoint += !truth;
    }
    ck_assert_msg(shared > 1000 && disjoint > 1000, "one-sided: %u shared, %u disjoint", shared, disjoint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.tensor");
    TCase *tcase = tcase_create("tensor");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, tensor_row, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(tcase, overlap_is_exact, 0, 3);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
