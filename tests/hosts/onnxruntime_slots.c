/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime_slots.c - stands between onnxruntime and the execution provider, whose library OPJIT_TEST_PROVIDER names,
 * and counts which slots of OrtApi, OrtEpApi and OrtModelEditorApi the provider calls.  x86-64 alone: a slot's stub
 * counts and jumps. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/ort.h"

enum { SLOTS = 400, EP_SLOTS = 8, EDITOR_SLOTS = 8, STUBS = SLOTS + EP_SLOTS + EDITOR_SLOTS };
enum { GET_EDITOR_API = 291, GET_EP_API = 317 };

uint64_t opjit_slot_calls[STUBS];
ort_function opjit_slot_targets[STUBS];
extern const char opjit_slot_stubs[]; /* 32 bytes each */

__asm__(".text\n.balign 32\n.hidden opjit_slot_stubs\n.globl opjit_slot_stubs\nopjit_slot_stubs:\n"
        ".set index, 0\n.rept 416\n.balign 32\n"
        "movq opjit_slot_calls@GOTPCREL(%rip), %r11\nlock incq 8 * index(%r11)\n"
        "movq opjit_slot_targets@GOTPCREL(%rip), %r11\njmp *8 * index(%r11)\n"
        ".set index, index + 1\n.endr\n");

static ort_function table[SLOTS], ep_table[EP_SLOTS], editor_table[EDITOR_SLOTS];
static const ort_api_base *real;

static ort_function stub(size_t index)
{
    const char *const at = opjit_slot_stubs + 32 * index;
    ort_function out;
    memcpy(&out, &at, sizeof out);
    return out;
}

/* The table that slot `get` of OrtApi returns, its functions counted from `first` on. */
static const ort_function *between(size_t get, ort_function *out, size_t first, size_t count)
{
    const ort_function *const from = ((const ort_function *(*)(void))real->GetApi(ORT_VERSION)[get])();
    opjit_slot_calls[get]++;
    for (size_t i = 0; i < count; i++) {
        opjit_slot_targets[first + i] = from[i];
        out[i] = stub(first + i);
    }
    return out;
}

static const ort_function *get_ep_api(void)
{
    return between(GET_EP_API, ep_table, SLOTS, EP_SLOTS);
}

static const ort_function *get_editor_api(void)
{
    return between(GET_EDITOR_API, editor_table, SLOTS + EP_SLOTS, EDITOR_SLOTS);
}

static const ort_function *get_api(uint32_t version)
{
    const ort_function *const from = real->GetApi(version);
    for (size_t i = 0; i < 380 && from != NULL; i++) { /* what 1.23 has */
        opjit_slot_targets[i] = from[i];
        table[i] = stub(i);
    }
    table[GET_EP_API] = (ort_function)get_ep_api;
    table[GET_EDITOR_API] = (ort_function)get_editor_api;
    return from == NULL ? NULL : table;
}

static const char *get_version(void)
{
    return real->GetVersionString();
}

typedef ort_status *(*create_fn)(const char *, const ort_api_base *, const ort_logger *, ort_ep_factory **, size_t,
                                 size_t *);
typedef ort_status *(*release_fn)(ort_ep_factory *);

static ort_function find(const char *name)
{
    void *const library = dlopen(getenv("OPJIT_TEST_PROVIDER"), RTLD_NOW);
    void *const found = library == NULL ? NULL : dlsym(library, name);
    ort_function out;
    memcpy(&out, &found, sizeof out);
    return out;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                                     ort_ep_factory **out, size_t most, size_t *out_count);
EXPORT ort_status *ReleaseEpFactory(ort_ep_factory *f);
EXPORT uint64_t opjit_slot_count(uint32_t index); /* of OrtEpApi: from 400 on; of the editor: from 408 */

ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                              ort_ep_factory **out, size_t most, size_t *out_count)
{
    static const ort_api_base counting = { get_api, get_version };
    real = base;
    return ((create_fn)find("CreateEpFactories"))(name, &counting, logger, out, most, out_count);
}

ort_status *ReleaseEpFactory(ort_ep_factory *f)
{
    return ((release_fn)find("ReleaseEpFactory"))(f);
}

uint64_t opjit_slot_count(uint32_t index)
{
    return index < STUBS ? opjit_slot_calls[index] : 0;
}
