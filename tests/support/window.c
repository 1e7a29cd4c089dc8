/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - see window.h. */
#include "tests/support/window.h"

static uint32_t below(test_random *r, uint32_t bound)
{
    return r == NULL ? bound - 1 : (uint32_t)test_random_below(r, bound);
}

static void draw_dimension(test_random *r, test_window *w, uint32_t d, bool dilated, uint32_t most)
{
    w->sizes[d] = 1 + below(r, most);
    w->strides[d] = 1 + below(r, 3);
    w->dilations[d] = dilated && (r == NULL || test_random_chance(r, 50)) ? 1 + below(r, 3) : 1;
    w->start[d] = r == NULL || test_random_chance(r, 50) ? below(r, 3) : below(r, 2 * most);
    w->end[d] = r == NULL || test_random_chance(r, 50) ? below(r, 3) : below(r, 2 * most);
}

void test_window_draw(test_random *r, test_window *w, uint32_t count, bool dilated, bool large, uint32_t *image,
                      uint32_t *pooled)
{
    large = large && r != NULL && count == 2 && test_random_chance(r, 2);
    w->count = count;
    for (uint32_t d = 0; d < count; d++) {
        draw_dimension(r, w, d, dilated && !large, large ? 3 : count > 2 ? 3 : 4);
        image[2 + d] = 1 + below(r, large ? 3 : count > 3 ? 3 : 9);
        if (large) {
            w->sizes[d] += 64;
            image[2 + d] += d == 0 ? 66 : 160; /* maxima of many windows are made in several passes */
        }
        const uint32_t extent = (w->sizes[d] - 1) * w->dilations[d] + 1;
        if (image[2 + d] + w->start[d] + w->end[d] < extent)
            w->end[d] = extent - image[2 + d] - w->start[d];
        pooled[2 + d] = (image[2 + d] + w->start[d] + w->end[d] - extent) / w->strides[d] + 1;
    }
    for (uint32_t d = 0; d < 2; d++)
        image[d] = pooled[d] = large ? 1 : 1 + below(r, 3);
}
