/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - draws of sliding windows, for tests of operators that have them. */
#ifndef OPJIT_TESTS_SUPPORT_WINDOW_H
#define OPJIT_TESTS_SUPPORT_WINDOW_H

#include "tests/support/cases.h"

/* By spatial dimension, of which there may be 6. */
typedef struct test_window {
    uint32_t count, sizes[6], strides[6], start[6], end[6], dilations[6];
} test_window;

/* Draws a window over the last `count` dimensions of an image, and sets the image's sizes and those that the pooled
 * tensor has; the layouts are left to the caller.  The window may lie in the padding as a whole.  r NULL: the same one
 * each time.  dilated: dilations may be more than 1; large: now and then there are so many taps that their sum has
 * several blocks. */
void test_window_draw(test_random *r, test_window *w, uint32_t count, bool dilated, bool large, uint32_t *image,
                      uint32_t *pooled);

#endif
