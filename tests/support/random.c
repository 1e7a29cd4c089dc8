/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - xoshiro256** (Blackman and Vigna), seeded through splitmix64. */
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SEED 0x6f706a6974u

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void test_random_init(test_random *r, uint64_t seed, uint64_t stream, uint64_t number)
{
    uint64_t mix = seed;
    mix = splitmix(&mix) ^ stream;
    mix = splitmix(&mix) ^ number;
    for (int i = 0; i < 4; i++)
        r->state[i] = splitmix(&mix);
}

static uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

uint64_t test_random_u64(test_random *r)
{
    uint64_t *s = r->state;
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t test_random_below(test_random *r, uint64_t bound) { return test_random_u64(r) % bound; }

int64_t test_random_between(test_random *r, int64_t lo, int64_t hi)
{
    const uint64_t range = (uint64_t)hi - (uint64_t)lo + 1;
    return (int64_t)((uint64_t)lo + (range != 0 ? test_random_below(r, range) : test_random_u64(r)));
}

bool test_random_chance(test_random *r, unsigned percent) { return test_random_below(r, 100) < percent; }

void test_random_fill(test_random *r, void *memory, size_t bytes)
{
    uint8_t *at = memory;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        const uint64_t word = test_random_u64(r);
        memcpy(at, &word, 8);
    }
    const uint64_t word = test_random_u64(r);
    memcpy(at, &word, bytes);
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

/* How many cases run where a property asks for count: 100 means 100, 30% means 30 % of count, at least one. */
static uint64_t case_count(uint64_t count)
{
    const char *text = getenv("OPJIT_CASES");
    if (text == NULL || strchr(text, '%') == NULL)
        return number_from("OPJIT_CASES", count);
    const uint64_t part = count * strtoull(text, NULL, 10) / 100;
    return part != 0 ? part : 1;
}

bool test_takes(uint64_t number)
{
    const char *text = getenv("OPJIT_CASES");
    const uint64_t percent = text == NULL || strchr(text, '%') == NULL ? 100 : strtoull(text, NULL, 10);
    return percent >= 100 || number * percent % 100 < percent;
}

test_cases test_cases_init(const char *property, uint64_t count)
{
    test_cases cases = { number_from("OPJIT_SEED", DEFAULT_SEED), 0, case_count(count) };
    const uint64_t one = number_from("OPJIT_CASE", UINT64_MAX);
    if (one != UINT64_MAX) {
        cases.first = one;
        cases.end = one + 1;
    }
    printf("%s: OPJIT_SEED=0x%" PRIx64 ", cases %" PRIu64 " to %" PRIu64 "\n", property, cases.seed, cases.first,
           cases.end - 1);
    fflush(stdout);
    return cases;
}
