/* SPDX-License-Identifier: Apache-2.0 */
/* kept_code.c - code of functions by what it depends on.  The latest functions are in a table of the process, found by
 * a hash.  Behind it is what the request names, which is given whole keys, and as bytes the code and its alignment. */
#include "codegen/driver/kept_code.h"

#include <pthread.h>
#include <string.h>

#include "codegen/hold/hold.h"

#include "opjit_build_id.h"

/* --- for the process ---------------------------------------------------------------------------------------------- */

enum { MOST_KEPT = 64, MOST_BYTES = 8192 /* larger ones are not kept here */ };

typedef struct kept {
    rt_hash hash;
    uint32_t size, align; /* size 0: none */
} kept;

/* Static memory, so nothing is left to free at the process's end; pages that no function has reached are not mapped:
 * what is searched has none of the code. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept table[MOST_KEPT];
static uint8_t codes[MOST_KEPT][MOST_BYTES];
static uint32_t next_kept; /* the oldest one's place */

/* The caller's allocator is not called under the lock. */
static bool recall_here(const rt_hash *hash, cg_flat *out)
{
    uint8_t code[MOST_BYTES];
    uint32_t i = 0, size = 0;
    pthread_mutex_lock(&lock);
    while (i < MOST_KEPT && (table[i].size == 0 || memcmp(&table[i].hash, hash, sizeof *hash) != 0))
        i++;
    if (i < MOST_KEPT) {
        size = table[i].size;
        memcpy(code, codes[i], size);
        out->align = table[i].align;
    }
    pthread_mutex_unlock(&lock);
    opjit_rt_bytes_append(&out->bytes, code, size);
    return size > 0;
}

static void keep_here(const rt_hash *hash, const cg_flat *code)
{
    if (code->bytes.size > MOST_BYTES)
        return;
    pthread_mutex_lock(&lock);
    table[next_kept] = (kept){ *hash, (uint32_t)code->bytes.size, code->align };
    memcpy(codes[next_kept], code->bytes.data, code->bytes.size);
    next_kept = (next_kept + 1) % MOST_KEPT;
    pthread_mutex_unlock(&lock);
}

/* --- for other processes ------------------------------------------------------------------------------------------ */

enum { KEY_ROOM = 8192 }; /* bytes of most keys */

/* Name, build, the LLVM that is loaded, target, record. */
static void put_key(const cg_made *made, rt_bytes *out)
{
    static const char build[] = OPJIT_BUILD_ID;
    unsigned llvm[3] = { 0 };
    const cg_kept_target target = opjit_cg_kept_target(made->target);
    LLVMGetVersion(&llvm[0], &llvm[1], &llvm[2]);
    opjit_rt_bytes_append(out, made->name, strlen(made->name) + 1);
    opjit_rt_bytes_append(out, build, sizeof build);
    for (uint32_t i = 0; i < 3; i++)
        opjit_rt_bytes_u32(out, llvm[i]);
    opjit_rt_bytes_append(out, &target, sizeof target);
    if (made->tile)
        opjit_cg_tile_bytes(made->tile, out);
    else
        opjit_rt_bytes_append(out, &made->math, sizeof made->math);
}

/* Takes the alignment from behind the code; false: there is none. */
static bool take_align(cg_flat *out)
{
    uint32_t align;
    if (out->bytes.size <= sizeof align)
        return false;
    out->bytes.size -= sizeof align;
    memcpy(&align, out->bytes.data + out->bytes.size, sizeof align);
    out->align = align;
    return align == CG_LINE || align == CG_PAGE;
}

/* Code that only LLVM may make is not for other requests, and none of theirs for it. */
static bool is_apart(const cg_made *made, const codegen_request *request)
{
    return request->llvm_only && !made->tile;
}

bool opjit_cg_code_recall(const cg_made *made, const codegen_request *request, cg_flat *out)
{
    uint8_t room[KEY_ROOM];
    rt_bytes key;
    if (is_apart(made, request))
        return false;
    if (recall_here(&made->hash, out))
        return true;
    if (!request->functions)
        return false;
    opjit_rt_bytes_init_in(&key, request->allocator, room, sizeof room);
    put_key(made, &key);
    if (!key.failed)
        request->functions->find(request->functions->user, key.data, key.size, &out->bytes);
    opjit_rt_bytes_free(&key);
    if (out->bytes.failed || !take_align(out)) {
        opjit_rt_bytes_free(&out->bytes);
        return false;
    }
    keep_here(&made->hash, out);
    return true;
}

void opjit_cg_code_keep(const cg_made *made, const codegen_request *request, const cg_flat *code)
{
    uint8_t room[KEY_ROOM];
    rt_bytes key, bytes;
    if (is_apart(made, request))
        return;
    keep_here(&made->hash, code);
    if (!request->functions)
        return;
    opjit_rt_bytes_init_in(&key, request->allocator, room, sizeof room);
    opjit_rt_bytes_init(&bytes, request->allocator);
    put_key(made, &key);
    opjit_rt_bytes_append(&bytes, code->bytes.data, code->bytes.size);
    opjit_rt_bytes_append(&bytes, &code->align, sizeof code->align);
    if (!key.failed && !bytes.failed)
        request->functions->keep(request->functions->user, key.data, key.size, bytes.data, bytes.size);
    opjit_rt_bytes_free(&bytes);
    opjit_rt_bytes_free(&key);
}
