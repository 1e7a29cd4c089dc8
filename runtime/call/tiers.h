/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.h - kernels of one size beside a kernel with dynamic dimensions: which there are, which sizes are called often
 * enough for one, and calls of them.  Whoever makes them (frontend/compile/tiers.c) is asked by `want`. */
#ifndef OPJIT_RUNTIME_CALL_TIERS_H
#define OPJIT_RUNTIME_CALL_TIERS_H

#include "runtime/call/kernel.h"

enum { RT_TIERS_MOST = 64, RT_TIER_CALLS_MOST = 1 << 22 };

/* Shared by its kernel and by compiles under way, which may outlive it. */
typedef struct rt_tiers rt_tiers;
typedef struct rt_tiers_desc {
    uint32_t most;  /* kernels of one size at a time, 1 to RT_TIERS_MOST */
    uint32_t calls; /* with the same sizes, after which these are wanted, 1 to RT_TIER_CALLS_MOST */
    void *user;
    /* These sizes were called often enough: on the thread of a call, which waits for it.  False: not now. */
    bool (*want)(void *user, rt_tiers *tiers, const uint64_t *dims, uint32_t count);
    void (*close)(void *user);   /* the kernel goes; nothing is wanted from now on */
    void (*destroy)(void *user); /* nobody has the tiers any more */
} rt_tiers_desc;

/* Gives a kernel with dynamic dimensions tiers.  *kernel becomes one that nobody else has.  Where that fails, user
 * still belongs to the caller. */
opjit_status opjit_rt_kernel_set_tiers(opjit_kernel **kernel, const rt_tiers_desc *desc, opjit_error *error);
rt_tiers *opjit_rt_kernel_tiers(const opjit_kernel *kernel); /* NULL: none */
void *opjit_rt_tiers_user(const rt_tiers *tiers);

void opjit_rt_tiers_retain(rt_tiers *tiers);
void opjit_rt_tiers_release(rt_tiers *tiers);

/* Whether there is a kernel of these sizes. */
bool opjit_rt_tiers_have(rt_tiers *tiers, const uint64_t *dims);
/* Calls with these sizes run `fixed` from now on, for which the one used least recently may have to go.  Its reference
 * is taken over in any case.  UNAVAILABLE: calls are in all that could go, or the tiers' kernel went.  INTERNAL: it
 * has other buffers than the tiers' kernel. */
opjit_status opjit_rt_tiers_put(rt_tiers *tiers, const uint64_t *dims, opjit_kernel *fixed, opjit_error *error);
/* None of these sizes was made.  is_final: they are never wanted again. */
void opjit_rt_tiers_give_up(rt_tiers *tiers, const uint64_t *dims, bool is_final);

#endif
