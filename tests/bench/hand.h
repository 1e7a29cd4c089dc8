/* SPDX-License-Identifier: Apache-2.0 */
/* hand.h - the yardstick: the generators as an expert writes them by hand for one machine, full lines and blended
 * boundaries, with ordinary and with non-temporal stores.  Benchmarks divide by the faster of the two.  No kernel uses
 * it.
 *
 * Everything starts at a 64-byte boundary and a row is a multiple of 64 bytes, which is more than a kernel may
 * assume. */
#ifndef OPJIT_TESTS_BENCH_HAND_H
#define OPJIT_TESTS_BENCH_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hand_mode { HAND_PLAIN = 0, HAND_NT = 1, HAND_MODES = 2 } hand_mode;

typedef struct hand_job {
    const void *in;
    void *out;
    uint64_t units;         /* rows; for fill and sequences blocks of HAND_BLOCK bytes */
    uint64_t matrix_rows;   /* rows of one matrix; a batch has several matrices */
    uint64_t columns;
    uint32_t element;       /* bytes: 1, 2, 4 or 8 */
    uint64_t value;         /* bits of the filled element */
    int64_t begin, end;     /* diagonals [begin, end), column - row; eye: begin alone */
    double start, delta;    /* sequences */
    hand_mode mode;
} hand_job;

#define HAND_BLOCK 256u

/* Does units [begin, end) of the job. */
typedef void (*hand_fn)(const hand_job *job, uint64_t begin, uint64_t end);

typedef struct hand {
    const char *name;       /* "avx2" */
    hand_fn fill;
    hand_fn eye;            /* value on diagonal begin, 0 elsewhere */
    hand_fn band;           /* value on [begin, end), in elsewhere */
    hand_fn band_in_place;  /* the same where in is out: writes the band only; plain stores in both modes */
    hand_fn sequence_f32, sequence_f16, sequence_u8, sequence_i64;
} hand;

/* The widest version that this machine runs; NULL: none, it has no AVX2. */
const hand *hand_get(void);

/* --- an external yardstick --------------------------------------------------------------------------------------- */
/* Functions of a shared library with these names.  The last two arguments are the mode, 0 plain, 1 non-temporal, 2 with
 * clzero, and the number of threads, 1 or 2. */
typedef struct hand_library {
    void (*eye_f32)(float *out, long batch, long n, long m, long offset, int mode, int threads);
    void (*eye_u8)(uint8_t *out, long batch, long n, long m, long offset, int mode, int threads);
    void (*diag1_f32)(const float *in, float *out, long batch, long n, long m, long begin, long end, float value,
                      int mode, int threads);
    void (*arange_f32)(float *out, long n, double start, double delta, int mode, int threads);
    void (*arange_u8)(uint8_t *out, long n, double start, double delta, int mode, int threads);
    void (*arange_i64)(int64_t *out, long n, double start, double delta, int mode, int threads);
    void (*fill_u32)(void *out, long bytes, unsigned pattern, int mode, int threads);
    int (*has_clzero)(void); /* whether this machine has it; without, no mode 2 */
} hand_library;
#define HAND_LIBRARY_MODES 3

/* Loads it; false and a reason (one line) where it can't be used: it is made for AVX-512. */
bool hand_library_load(const char *path, hand_library *out, char *reason, size_t size);

#endif
