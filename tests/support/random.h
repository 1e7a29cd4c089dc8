/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - random numbers for property tests, reproducible from one seed on every machine.  OPJIT_SEED sets the seed
 * (decimal or 0x hexadecimal), OPJIT_CASES the number of cases of a property (50: that many; 50%: half of what it asks
 * for), OPJIT_CASE runs a single case.  Each case has a generator of its own, made from seed, stream and number, so
 * that it can run again without those before it. */
#ifndef OPJIT_TESTS_SUPPORT_RANDOM_H
#define OPJIT_TESTS_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test_random {
    uint64_t state[4];               /* xoshiro256** */
} test_random;

void test_random_init(test_random *r, uint64_t seed, uint64_t stream, uint64_t number);
uint64_t test_random_u64(test_random *r);
/* In [0, bound); bound is at least 1.  Not perfectly uniform, which no test needs. */
uint64_t test_random_below(test_random *r, uint64_t bound);
/* In [lo, hi], both included. */
int64_t test_random_between(test_random *r, int64_t lo, int64_t hi);
/* True in percent of 100 cases. */
bool test_random_chance(test_random *r, unsigned percent);
void test_random_fill(test_random *r, void *memory, size_t bytes);

/* --- the loop over cases ------------------------------------------------------------------------------------------ */
typedef struct test_cases {
    uint64_t seed;
    uint64_t first, end;             /* numbers of the cases to run */
} test_cases;

/* Reads the environment and prints the seed under the name `property`, so that a failure can be run again. */
test_cases test_cases_init(const char *property, uint64_t count);

/* Whether a walk over combinations takes one, whose numbers add up to `number`: all are, or with OPJIT_CASES=30% that
 * share of them, evenly, so that each choice of one thing meets other choices of the rest. */
bool test_takes(uint64_t number);

#endif
