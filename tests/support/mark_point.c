/* SPDX-License-Identifier: Apache-2.0 */
/* mark_point.c - what an assertion of Check does that holds: it writes its place to a file, of which a crash's report
 * names the last one.  Check moves 8 KiB for each when it reads the file, byte by byte under the address sanitizer,
 * which took most of the time of tests with assertions in loops.  Linked with --wrap=_mark_point. */
#include <check.h>
#include <stdatomic.h>

enum { ALL_OF = 256, THEN_EVERY = 64 };

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    static atomic_uint passed;
    const unsigned n = atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed);
    if (n < ALL_OF || n % THEN_EVERY == 0)
        __real__mark_point(file, line);
}
