/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - writes and checks images.  A checked image can be read without further care: every offset, count, string
 * and entry point has been shown to lie inside.  The check can't vouch for what the machine code does: a checksum is
 * not a signature. */
#include "runtime/image/image.h"

#include <string.h>

#include "runtime/image/image_layout.h"
#include "runtime/target/target.h"

/* AArch64 code addresses its constants by distances in pages. */
static size_t code_alignment(rt_arch arch)
{
    return arch == RT_ARCH_AARCH64 ? 4096 : 64;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Appends text with its NUL; returns its offset from base, 0 for NULL. */
static uint32_t put_string(rt_bytes *out, size_t base, const char *text)
{
    const size_t at = out->size - base;

    if (text == NULL)
        return 0;
    opjit_rt_bytes_append(out, text, strlen(text) + 1);
    return (uint32_t)at;
}

static uint32_t put_array(rt_bytes *out, size_t base, const void *data, size_t count, size_t size)
{
    size_t at;

    opjit_rt_bytes_align(out, 8);
    at = out->size - base;
    opjit_rt_bytes_append(out, data, count * size);
    return (uint32_t)at;
}

/* Appends a string after the arrays and stores its offset in the copy of the struct that it belongs to. */
static void put_name(rt_bytes *out, size_t base, const char *text, size_t field)
{
    const uint32_t name = put_string(out, base, text);

    if (!out->failed)
        memcpy(out->data + base + field, &name, sizeof name);
}

/* Appends the description of each step that is a launch. */
static void put_launches(const rt_meta_source *s, rt_bytes *out, size_t base, uint32_t steps)
{
    const uint32_t launches = put_array(out, base, s->launches, s->steps, sizeof *s->launches);

    for (uint32_t i = 0; i < s->steps; i++) {
        const uint32_t entry = launches + i * (uint32_t)sizeof *s->launches;
        if (!out->failed)
            memcpy(out->data + base + steps + i * sizeof(opjit_step_info) + offsetof(opjit_step_info, entry), &entry,
                   sizeof entry);
        put_name(out, base, s->launch_names[i], entry + offsetof(opjit_launch_info, name));
    }
}

/* Arrays first, then strings: each name's offset is patched into the copied struct once it is known. */
static void put_meta(const rt_meta_source *s, rt_bytes *out)
{
    const size_t base = out->size;
    const uint32_t buffers = s->inputs + s->outputs + s->constants;
    opjit_kernel_meta meta;

    memset(&meta, 0, sizeof meta);
    meta.abi = OPJIT_KERNEL_ABI;
    memcpy(meta.key, s->key, sizeof meta.key);
    meta.numerics = OPJIT_NUMERICS;
    meta.level = s->level;
    memcpy(meta.features, s->features, sizeof meta.features);
    meta.inputs = s->inputs;
    meta.outputs = s->outputs;
    meta.constants = s->constants;
    meta.params = s->params;
    meta.steps = s->steps;
    meta.variants = s->variants;
    meta.shared_size = align_up(s->shared_size, OPJIT_WORKSPACE_ALIGNMENT);
    meta.scratch_size = align_up(s->scratch_size, OPJIT_WORKSPACE_ALIGNMENT);
    meta.flops = s->flops;
    meta.bytes_read = s->bytes_read;
    meta.bytes_written = s->bytes_written;
    meta.unproven_bounds = s->unproven_bounds;
    opjit_rt_bytes_append(out, &meta, sizeof meta);
    meta.buffer_info = put_array(out, base, s->buffers, buffers, sizeof *s->buffers);
    meta.param_info = put_array(out, base, s->param_infos, s->params, sizeof *s->param_infos);
    meta.step_info = put_array(out, base, s->step_infos, s->steps, sizeof *s->step_infos);
    meta.variant_info = put_array(out, base, s->variant_infos, s->variants, sizeof *s->variant_infos);
    meta.name = put_string(out, base, s->name == NULL ? "" : s->name);
    meta.target = put_string(out, base, s->target == NULL ? "" : s->target);
    for (uint32_t i = 0; i < buffers; i++)
        put_name(out, base, s->buffer_names == NULL ? NULL : s->buffer_names[i],
                 meta.buffer_info + i * sizeof(opjit_buffer_info) + offsetof(opjit_buffer_info, name));
    for (uint32_t i = 0; i < s->params; i++)
        put_name(out, base, s->param_names == NULL ? NULL : s->param_names[i],
                 meta.param_info + i * sizeof(opjit_param_info) + offsetof(opjit_param_info, name));
    if (s->launches != NULL)
        put_launches(s, out, base, meta.step_info);
    opjit_rt_bytes_align(out, 8);
    meta.size = (uint32_t)(out->size - base);
    if (!out->failed)
        memcpy(out->data + base, &meta, sizeof meta);
}

static opjit_status check_counts(const rt_meta_source *source, size_t code_size, opjit_error *error)
{
    if (source->inputs > MOST_ITEMS || source->outputs > MOST_ITEMS || source->constants > MOST_ITEMS ||
        source->params > MOST_ITEMS || source->steps > MOST_ITEMS || source->variants > MOST_ITEMS ||
        code_size > MOST_CODE)
        return opjit_rt_error_set(
            error, OPJIT_LIMIT,
            "kernel: more than %u buffers, parameters, steps or variants, or more than %u bytes of code", MOST_ITEMS,
            MOST_CODE);
    if (source->shared_size > MOST_WORKSPACE || source->scratch_size > MOST_WORKSPACE)
        return opjit_rt_error_set(error, OPJIT_LIMIT,
                                  "kernel: workspace of %llu shared and %llu scratch bytes, at most %llu each",
                                  (unsigned long long)source->shared_size, (unsigned long long)source->scratch_size,
                                  (unsigned long long)MOST_WORKSPACE);
    return OPJIT_OK;
}

opjit_status opjit_rt_meta_build(const rt_meta_source *source, rt_bytes *out, opjit_error *error)
{
    TRY(check_counts(source, 0, error));
    put_meta(source, out);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_rt_image_build(const rt_meta_source *source, const void *code, size_t code_size, rt_bytes *out,
                                  opjit_error *error)
{
    image_header header;
    const opjit_kernel_meta *meta;
    const uint8_t *checked_code;
    rt_hash hash;

    TRY(check_counts(source, code_size, error));
    memset(&header, 0, sizeof header);
    opjit_rt_bytes_append(out, &header, sizeof header);
    put_meta(source, out);
    memcpy(header.magic, IMAGE_MAGIC, sizeof header.magic);
    header.format = IMAGE_FORMAT;
    header.abi = OPJIT_KERNEL_ABI;
    header.meta_size = out->size - sizeof header;
    header.code_size = code_size;
    opjit_rt_bytes_align(out, code_alignment(opjit_rt_target_arch(source->features[0])));
    header.code_offset = out->size;
    opjit_rt_bytes_append(out, code, code_size);
    if (out->failed)
        return opjit_rt_no_memory(error);
    memcpy(out->data, &header, sizeof header);
    hash = opjit_rt_hash(out->data + HASHED_FROM, out->size - HASHED_FROM);
    header.hash_lo = hash.lo;
    header.hash_hi = hash.hi;
    memcpy(out->data, &header, sizeof header);
    if (opjit_rt_image_check(out->data, out->size, &meta, &checked_code, &code_size, error) != OPJIT_OK) {
        opjit_rt_error_prefix(error, "image built wrong");
        if (error != NULL)
            error->status = OPJIT_INTERNAL;
        return OPJIT_INTERNAL;
    }
    return OPJIT_OK;
}

/* --- checking ----------------------------------------------------------------------------------------------------- */

#define CORRUPT(...) opjit_rt_error_set(error, OPJIT_CORRUPT, "image: " __VA_ARGS__)

/* The size of the first version, without the fields added later. */
#define META_LEAST offsetof(opjit_kernel_meta, unproven_bounds)

/* Whether the array of count elements at offset is aligned and lies in the metadata. */
static bool array_inside(const opjit_kernel_meta *meta, uint32_t offset, uint64_t count, uint64_t size)
{
    return offset % 8 == 0 && offset >= META_LEAST && offset <= meta->size && count * size <= meta->size - offset;
}

/* The metadata ends with a NUL, so every text inside it ends, too. */
static bool string_inside(const opjit_kernel_meta *meta, uint32_t offset)
{
    return offset >= META_LEAST && offset < meta->size;
}

static bool dtype_known(uint32_t dtype)
{
    return dtype <= DML_TENSOR_DATA_TYPE_INT4 && opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)dtype) != 0;
}

/* Whether rank, sizes and strides are valid and every element they reach lies in info->bytes, which is at most the
 * tensor limit. */
static bool layout_sane(const opjit_buffer_info *info)
{
    uint64_t last = 0, bytes;

    if (info->rank < 1 || info->rank > OPJIT_MAX_RANK || info->bytes > RT_TENSOR_BYTES_MAX)
        return false;
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++) {
        uint64_t step;
        if (info->sizes[d] == 0 || (d >= info->rank && (info->sizes[d] != 1 || info->strides[d] != 0)))
            return false;
        if (!checked_mul(info->sizes[d] - 1, info->strides[d], &step) || !checked_add(last, step, &last))
            return false;
    }
    return checked_add(last, 1, &last) &&
           checked_mul(last, opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)info->dtype), &bytes) && bytes <= info->bytes;
}

static opjit_status check_buffers(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_buffer_info *infos = (const opjit_buffer_info *)((const char *)meta + meta->buffer_info);
    const uint64_t count = (uint64_t)meta->inputs + meta->outputs + meta->constants;

    for (uint32_t i = 0; i < count; i++) {
        const opjit_buffer_info *info = &infos[i];
        const uint32_t role = i < meta->inputs                   ? OPJIT_BUFFER_INPUT
                              : i < meta->inputs + meta->outputs ? OPJIT_BUFFER_OUTPUT
                                                                 : OPJIT_BUFFER_CONSTANT;
        const uint32_t aliases = role != OPJIT_BUFFER_OUTPUT ? 0
                                 : meta->inputs >= 32        ? UINT32_MAX
                                                             : (1u << meta->inputs) - 1;

        if (info->role != role)
            return CORRUPT("buffer %u has role %u, its place says %u", i, info->role, role);
        if (!dtype_known(info->dtype))
            return CORRUPT("buffer %u has element type %u", i, info->dtype);
        if (!is_power_of_two(info->align)) /* any power of two; creation and calls check the pointers */
            return CORRUPT("buffer %u has alignment %u", i, info->align);
        if (!layout_sane(info))
            return CORRUPT("buffer %u: rank, sizes and strides do not fit its %llu bytes", i,
                           (unsigned long long)info->bytes);
        if ((info->alias_inputs & ~aliases) != 0)
            return CORRUPT("buffer %u may alias buffers that are no inputs (mask %#x)", i, info->alias_inputs);
        if (info->name != 0 && !string_inside(meta, info->name))
            return CORRUPT("buffer %u has its name outside of the metadata", i);
    }
    return OPJIT_OK;
}

/* Whether [lo, hi] lies in the element type's range; a call then needs no second check of the extension to 8 bytes. */
static bool interval_sane(const opjit_param_info *info)
{
    switch ((DML_TENSOR_DATA_TYPE)info->dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_FLOAT64: return info->lo == 0 && info->hi == 0;
    case DML_TENSOR_DATA_TYPE_UINT8: return info->lo >= 0 && info->hi <= UINT8_MAX && info->lo <= info->hi;
    case DML_TENSOR_DATA_TYPE_UINT16: return info->lo >= 0 && info->hi <= UINT16_MAX && info->lo <= info->hi;
    case DML_TENSOR_DATA_TYPE_UINT32: return info->lo >= 0 && info->hi <= UINT32_MAX && info->lo <= info->hi;
    case DML_TENSOR_DATA_TYPE_INT8: return info->lo >= INT8_MIN && info->hi <= INT8_MAX && info->lo <= info->hi;
    case DML_TENSOR_DATA_TYPE_INT16: return info->lo >= INT16_MIN && info->hi <= INT16_MAX && info->lo <= info->hi;
    case DML_TENSOR_DATA_TYPE_INT32: return info->lo >= INT32_MIN && info->hi <= INT32_MAX && info->lo <= info->hi;
    default: return info->lo <= info->hi;
    }
}

static opjit_status check_params(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_param_info *infos = (const opjit_param_info *)((const char *)meta + meta->param_info);

    for (uint32_t i = 0; i < meta->params; i++) {
        if (!dtype_known(infos[i].dtype) || !interval_sane(&infos[i]))
            return CORRUPT("parameter %u of type %u has the interval %lld to %lld", i, infos[i].dtype,
                           (long long)infos[i].lo, (long long)infos[i].hi);
        if (infos[i].name != 0 && !string_inside(meta, infos[i].name))
            return CORRUPT("parameter %u has its name outside of the metadata", i);
    }
    return OPJIT_OK;
}

/* Whether drivers accept the grid, and the kernel has a name. */
static bool launch_sane(const opjit_kernel_meta *meta, uint32_t entry)
{
    const opjit_launch_info *l = (const opjit_launch_info *)(const void *)((const char *)meta + entry);
    uint64_t threads = 1;

    if (!array_inside(meta, entry, 1, sizeof *l) || !string_inside(meta, l->name))
        return false;
    for (uint32_t d = 0; d < 3; d++) {
        threads *= l->block[d] > MOST_THREADS ? MOST_THREADS + 1 : l->block[d];
        if (l->grid[d] == 0 || l->grid[d] > (d == 0 ? INT32_MAX : UINT16_MAX))
            return false;
    }
    return threads != 0 && threads <= MOST_THREADS && l->shared_bytes <= MOST_SHARED;
}

static opjit_status check_steps(const opjit_kernel_meta *meta, uint64_t code_size, opjit_error *error)
{
    const bool on_gpu = rt_arch_is_gpu(opjit_rt_target_arch(meta->features[0]));
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);
    const opjit_variant_info *variants = (const opjit_variant_info *)((const char *)meta + meta->variant_info);

    for (uint32_t i = 0; i < meta->steps; i++) {
        if (steps[i].kind > OPJIT_STEP_LAUNCH)
            return CORRUPT("step %u has kind %u", i, steps[i].kind);
        if ((steps[i].kind == OPJIT_STEP_LAUNCH) != on_gpu || (on_gpu && !launch_sane(meta, steps[i].entry)))
            return CORRUPT("step %u is %s", i,
                           on_gpu ? "no launch that a GPU could do" : "a launch, and the code for a CPU");
        if (steps[i].kind == OPJIT_STEP_STAGE && code_size != 0 && steps[i].entry >= code_size)
            return CORRUPT("step %u begins at %u, outside of %llu bytes of code", i, steps[i].entry,
                           (unsigned long long)code_size);
        if (steps[i].extent == 0 || steps[i].grain == 0)
            return CORRUPT("step %u has extent %llu and grain %llu", i, (unsigned long long)steps[i].extent,
                           (unsigned long long)steps[i].grain);
    }
    for (uint32_t i = 0; i < meta->variants; i++) {
        if (variants[i].first_step > meta->steps || variants[i].steps > meta->steps - variants[i].first_step)
            return CORRUPT("variant %u runs steps %u + %u of %u", i, variants[i].first_step, variants[i].steps,
                           meta->steps);
    }
    if (meta->variants == 0 || variants[meta->variants - 1].alias_mask != 0)
        return CORRUPT("no last variant for buffers without overlap");
    return OPJIT_OK;
}

static opjit_status check_meta(const opjit_kernel_meta *meta, uint64_t meta_size, uint64_t code_size,
                               opjit_error *error)
{
    const uint64_t buffers = (uint64_t)meta->inputs + meta->outputs + meta->constants;

    if (meta->abi != OPJIT_KERNEL_ABI || meta->numerics != OPJIT_NUMERICS || meta->size != meta_size)
        return CORRUPT("metadata of ABI %u, numerics %u, %u bytes; expected %u, %u, %llu", meta->abi, meta->numerics,
                       meta->size, OPJIT_KERNEL_ABI, OPJIT_NUMERICS, (unsigned long long)meta_size);
    if (meta->inputs > MOST_ITEMS || meta->outputs > MOST_ITEMS || meta->constants > MOST_ITEMS || meta->outputs == 0)
        return CORRUPT("%u inputs, %u outputs, %u constants", meta->inputs, meta->outputs, meta->constants);
    if (!array_inside(meta, meta->buffer_info, buffers, sizeof(opjit_buffer_info)) ||
        !array_inside(meta, meta->param_info, meta->params, sizeof(opjit_param_info)) ||
        !array_inside(meta, meta->step_info, meta->steps, sizeof(opjit_step_info)) ||
        !array_inside(meta, meta->variant_info, meta->variants, sizeof(opjit_variant_info)))
        return CORRUPT("an array lies outside of the metadata");
    if (((const char *)meta)[meta_size - 1] != '\0' || !string_inside(meta, meta->name) ||
        !string_inside(meta, meta->target))
        return CORRUPT("name or target lies outside of the metadata");
    if (meta->shared_size > MOST_WORKSPACE || meta->scratch_size > MOST_WORKSPACE ||
        meta->shared_size % OPJIT_WORKSPACE_ALIGNMENT != 0 || meta->scratch_size % OPJIT_WORKSPACE_ALIGNMENT != 0)
        return CORRUPT("workspace of %llu shared and %llu scratch bytes", (unsigned long long)meta->shared_size,
                       (unsigned long long)meta->scratch_size);
    TRY(check_buffers(meta, error));
    TRY(check_params(meta, error));
    return check_steps(meta, code_size, error);
}

opjit_status opjit_rt_meta_check(const void *meta, size_t size, uint64_t code_size, opjit_error *error)
{
    if ((uintptr_t)meta % 8 != 0 || size < META_LEAST)
        return CORRUPT("metadata of %zu bytes at %p", size, meta);
    if (code_size == 0) /* only interpreted images have no code */
        return CORRUPT("metadata without code");
    return check_meta(meta, size, code_size, error);
}

opjit_status opjit_rt_image_check(const void *image, size_t size, const opjit_kernel_meta **out_meta,
                                  const uint8_t **out_code, size_t *out_code_size, opjit_error *error)
{
    const uint8_t *bytes = image;
    const opjit_kernel_meta *meta;
    image_header header;
    rt_arch arch;
    rt_hash hash;

    *out_meta = NULL;
    *out_code = NULL;
    *out_code_size = 0;
    if ((uintptr_t)image % 8 != 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "image: at an address that is no multiple of 8");
    if (size < sizeof header + META_LEAST)
        return CORRUPT("%zu bytes, less than its header", size);
    memcpy(&header, image, sizeof header);
    meta = (const opjit_kernel_meta *)(bytes + sizeof header);
    if (memcmp(header.magic, IMAGE_MAGIC, sizeof header.magic) != 0)
        return CORRUPT("does not begin as an image does");
    if (header.format != IMAGE_FORMAT || header.abi != OPJIT_KERNEL_ABI || header.reserved != 0)
        return CORRUPT("format %u, ABI %u; this library reads %u, %u", header.format, header.abi, IMAGE_FORMAT,
                       OPJIT_KERNEL_ABI);
    arch = opjit_rt_target_arch(meta->features[0]);
    if (header.meta_size < META_LEAST || header.meta_size > size - sizeof header ||
        header.code_offset != align_up(sizeof header + header.meta_size, code_alignment(arch)) ||
        header.code_offset > size || header.code_size != size - header.code_offset || header.code_size > MOST_CODE)
        return CORRUPT("%llu bytes of metadata and %llu of code at %llu do not make %zu bytes",
                       (unsigned long long)header.meta_size, (unsigned long long)header.code_size,
                       (unsigned long long)header.code_offset, size);
    hash = opjit_rt_hash(bytes + HASHED_FROM, size - HASHED_FROM);
    if (hash.lo != header.hash_lo || hash.hi != header.hash_hi)
        return CORRUPT("checksum differs");
    TRY(check_meta(meta, header.meta_size, header.code_size, error));
    if (arch == RT_ARCH_NVPTX && bytes[size - 1] != '\0') /* the driver reads PTX up to its NUL */
        return CORRUPT("a text of code without an end");
    *out_meta = meta;
    *out_code = bytes + header.code_offset;
    *out_code_size = (size_t)header.code_size;
    return OPJIT_OK;
}
