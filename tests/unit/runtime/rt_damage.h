/* SPDX-License-Identifier: Apache-2.0 */
/* rt_damage.h - shared by tests of damaged metadata, which the hash of an image would refuse first. */
#ifndef OPJIT_TESTS_UNIT_RT_DAMAGE_H
#define OPJIT_TESTS_UNIT_RT_DAMAGE_H

#include <string.h>

#include <opjit/opjit.h>

#include "runtime/image/image.h"
#include "runtime/image/image_layout.h"

/* The check of an image whose bytes were changed, with the hash of what they are now. */
static inline opjit_status sample_check(const rt_bytes *of, opjit_error *e)
{
    const rt_hash hash = opjit_rt_hash(of->data + HASHED_FROM, of->size - HASHED_FROM);
    const opjit_kernel_meta *meta;
    const uint8_t *placed;
    size_t size;
    memcpy(of->data + offsetof(image_header, hash_lo), &hash.lo, 8);
    memcpy(of->data + offsetof(image_header, hash_hi), &hash.hi, 8);
    return opjit_rt_image_check(of->data, of->size, &meta, &placed, &size, e);
}

#endif
