/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - what an EPContext node carries, as bytes: a group's model, weights included, and kernels of it for the
 * sizes that were known, little-endian.  Nothing of it is looked at before its checksum is right; that is no protection
 * from who makes one on purpose, and an image is code. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

enum { FORMAT = 1, PLACE = 64, BLOCK = 254 };

/* The head; then a context_place for each kernel, their shapes, the types of inputs and outputs, the inputs' names, the
 * model and the images, each of these two at a multiple of 64. */
typedef struct context_head {
    char magic[8];
    uint32_t format, level;
    uint64_t bytes; /* of all */
    uint64_t sum;   /* of all, while this is 0 */
    uint64_t model_at, model_bytes;
    uint32_t input_count, output_count, kernel_count, reserved;
    uint64_t name_bytes;
    char version[24], build[96], target[OPJIT_TARGET_TEXT];
} context_head;

typedef struct context_place {
    uint64_t at, bytes; /* of an image */
} context_place;

static const char magic[] = "opjitctx";
_Static_assert(sizeof(context_head) % PLACE == 0 && sizeof(shape) == 8 + 8 * ORT_RANK, "a layout in files");

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void copy_text(char *out, size_t size, const char *text)
{
    const size_t length = strlen(text);
    memcpy(out, text, length < size ? length : size - 1); /* the head is zeros */
}

static size_t round_up(size_t size)
{
    return (size + PLACE - 1) / PLACE * PLACE;
}

static void put_place(bytes *b, size_t used)
{
    opjit_ort_put(b, (const char[PLACE]){ 0 }, round_up(used) - used);
}

static size_t size_of_names(const carried *c)
{
    size_t size = 0;
    for (uint32_t i = 0; i < c->input_count; i++)
        size += strlen(c->names[i]) + 1;
    return size;
}

/* Bytes of what stands between the head and the names. */
static uint64_t size_of_index(const context_head *head)
{
    return head->kernel_count * (sizeof(context_place) + (uint64_t)head->input_count * sizeof(shape)) +
           ((uint64_t)head->input_count + head->output_count) * sizeof(int32_t);
}

static void put_index(bytes *b, const carried *c, size_t image_at)
{
    for (uint32_t i = 0; i < c->kernel_count; i++) {
        const context_place place = { image_at, c->kernels[i].bytes };
        opjit_ort_put(b, &place, sizeof place);
        image_at += round_up((size_t)c->kernels[i].bytes);
    }
    for (uint32_t i = 0; i < c->kernel_count; i++)
        for (uint32_t k = 0; k < c->input_count; k++) {
            shape s;
            memset(&s, 0, sizeof s); /* the bytes between its fields, too */
            s.rank = c->kernels[i].shapes[k].rank;
            memcpy(s.sizes, c->kernels[i].shapes[k].sizes, s.rank * sizeof *s.sizes);
            opjit_ort_put(b, &s, sizeof s);
        }
    opjit_ort_put(b, c->types, ((size_t)c->input_count + c->output_count) * sizeof *c->types);
    for (uint32_t i = 0; i < c->input_count; i++)
        opjit_ort_put(b, c->names[i], strlen(c->names[i]) + 1);
}

bool opjit_ort_pack(const carried *c, bytes *out, uint64_t *out_sum)
{
    context_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, magic, sizeof head.magic);
    head.format = FORMAT;
    head.level = (uint32_t)c->level;
    head.input_count = c->input_count;
    head.output_count = c->output_count;
    head.kernel_count = c->kernel_count;
    head.name_bytes = size_of_names(c);
    copy_text(head.version, sizeof head.version, c->version);
    copy_text(head.build, sizeof head.build, c->build);
    copy_text(head.target, sizeof head.target, c->target);
    const size_t index = (size_t)(size_of_index(&head) + head.name_bytes);
    head.model_at = sizeof head + round_up(index);
    head.model_bytes = c->model_bytes;
    const size_t image_at = (size_t)head.model_at + round_up((size_t)c->model_bytes);
    head.bytes = image_at;
    for (uint32_t i = 0; i < c->kernel_count; i++)
        head.bytes += round_up((size_t)c->kernels[i].bytes);
    *out = (bytes){ NULL, 0, 0, false };
    opjit_ort_reserve(out, (size_t)head.bytes);
    opjit_ort_put(out, &head, sizeof head);
    put_index(out, c, image_at);
    put_place(out, index);
    opjit_ort_put(out, c->model, (size_t)c->model_bytes);
    put_place(out, (size_t)c->model_bytes);
    for (uint32_t i = 0; i < c->kernel_count; i++) {
        opjit_ort_put(out, c->kernels[i].image, (size_t)c->kernels[i].bytes);
        put_place(out, (size_t)c->kernels[i].bytes);
    }
    if (out->failed)
        return false;
    *out_sum = head.sum = opjit_ort_hash(0, out->data, out->size);
    memcpy(out->data, &head, sizeof head);
    return true;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool is_inside(const stored *s, uint64_t at, uint64_t size)
{
    return at <= s->size && size <= s->size - at && at % 8 == 0;
}

static uint64_t find_sum(const stored *s, context_head head)
{
    const size_t rest = s->size - sizeof head;
    head.sum = 0;
    return opjit_ort_hash(opjit_ort_hash(0, &head, sizeof head), s->data + sizeof head, rest);
}

static const char *check_head(const stored *s, context_head *head)
{
    if (s->size < sizeof *head)
        return "it is damaged: too short";
    memcpy(head, s->data, sizeof *head);
    if (memcmp(head->magic, magic, sizeof head->magic) != 0)
        return "it is none of opjit's";
    if (head->format != FORMAT)
        return "it is of another version of opjit, which the model has to be made with again";
    if (head->bytes != s->size)
        return "it is damaged: its size is wrong";
    if (head->sum != find_sum(s, *head))
        return "it is damaged: its checksum is wrong";
    if (head->kernel_count > ORT_ENTRIES || head->level > OPJIT_LEVEL_PEAK || head->input_count > s->size ||
        size_of_index(head) > s->size - sizeof *head ||
        head->name_bytes > s->size - sizeof *head - size_of_index(head) ||
        head->version[sizeof head->version - 1] != '\0' || head->build[sizeof head->build - 1] != '\0' ||
        head->target[sizeof head->target - 1] != '\0' || !is_inside(s, head->model_at, head->model_bytes) ||
        head->model_at % PLACE != 0)
        return "it is damaged: its head is wrong";
    return NULL;
}

/* The names from `at` on, up to `end`; false: there are fewer. */
static bool read_names(const char *at, const char *end, const char **out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *const zero = at == end ? NULL : memchr(at, '\0', (size_t)(end - at));
        if (zero == NULL)
            return false;
        out[i] = at;
        at = zero + 1;
    }
    return true;
}

static const char *read_kernel(const stored *s, const context_head *head, uint32_t i, carried_kernel *out)
{
    const context_place *const places = (const void *)(s->data + sizeof *head);
    const shape *const shapes =
        (const shape *)(const void *)(places + head->kernel_count) + (size_t)i * head->input_count;
    if (!is_inside(s, places[i].at, places[i].bytes))
        return "it is damaged: an image is outside of it";
    for (uint32_t k = 0; k < head->input_count; k++)
        if (shapes[k].rank > ORT_RANK)
            return "it is damaged: an input has too many dimensions";
    *out = (carried_kernel){ s->data + places[i].at, places[i].bytes, shapes };
    return NULL;
}

const char *opjit_ort_unpack(const stored *s, arena *memory, carried *out)
{
    context_head head;
    const char *reason = check_head(s, &head);
    if (reason != NULL)
        return reason;
    const uint64_t ports = (uint64_t)head.input_count + head.output_count;
    const char **const names = opjit_ort_allocate(memory, (size_t)head.input_count + 1, sizeof *names);
    if (names == NULL)
        return "there is no memory";
    const context_head *const at = (const void *)s->data;
    const char *const first = (const char *)s->data + sizeof head + size_of_index(&head);
    *out = (carried){ .sum = head.sum,
                      .model = s->data + head.model_at,
                      .model_bytes = head.model_bytes,
                      .names = names,
                      .types = (const void *)(first - ports * sizeof(int32_t)),
                      .input_count = head.input_count,
                      .output_count = head.output_count,
                      .kernel_count = head.kernel_count,
                      .level = (opjit_level)head.level,
                      .version = at->version,
                      .build = at->build,
                      .target = at->target };
    if (!read_names(first, first + head.name_bytes, names, head.input_count))
        return "it is damaged: a name is missing";
    for (uint32_t i = 0; i < head.kernel_count && reason == NULL; i++)
        reason = read_kernel(s, &head, i, &out->kernels[i]);
    return reason;
}

/* --- without zeros ------------------------------------------------------------------------------------------------ */
/* ONNX Runtime ends the text of an attribute at the first byte of 0.  So bytes that stand in one are written in runs
 * without any (consistent overhead byte stuffing): a run's length + 1, then the run.  Behind one of fewer than 254
 * bytes a zero is meant, except behind the last. */

bool opjit_ort_without_zeros(const bytes *from, bytes *out)
{
    *out = (bytes){ NULL, 0, 0, false };
    opjit_ort_reserve(out, from->size + from->size / BLOCK + 2);
    for (size_t at = 0; at <= from->size;) {
        const size_t rest = from->size - at, most = rest < BLOCK ? rest : BLOCK;
        const unsigned char *const zero = most == 0 ? NULL : memchr(from->data + at, 0, most);
        const size_t run = zero == NULL ? most : (size_t)(zero - (from->data + at));
        opjit_ort_put(out, &(const unsigned char){ (unsigned char)(run + 1) }, 1);
        opjit_ort_put(out, from->data + at, run);
        at += run + (run < BLOCK); /* behind the last run there is a zero that is none */
    }
    opjit_ort_put(out, "", 1);
    return !out->failed;
}

bool opjit_ort_with_zeros(const void *text, size_t size, bytes *out)
{
    const unsigned char *const from = text;
    *out = (bytes){ NULL, 0, 0, false };
    opjit_ort_reserve(out, size + 1);
    for (size_t at = 0; at < size && !out->failed;) {
        const size_t code = from[at], run = code - 1;
        if (code == 0 || run > size - at - 1) {
            out->failed = true;
            break;
        }
        opjit_ort_put(out, from + at + 1, run);
        at += code;
        if (run < BLOCK && at < size)
            opjit_ort_put(out, "", 1);
    }
    return !out->failed;
}
