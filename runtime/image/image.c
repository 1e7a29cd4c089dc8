/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - writes and checks images.  A checked image can be read without further care: every offset, count, string
 * and entry point has been shown to lie inside.  The check can't vouch for what the machine code does: a checksum is
 * not a signature. */
#include "runtime/image/image.h"

#include <string.h>

#include "runtime/image/check_forms.h"
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
    meta.once_first = s->once_first;
    meta.once_steps = s->once_steps;
    meta.kept_size = align_up(s->kept_size, OPJIT_WORKSPACE_ALIGNMENT);
    meta.kept_layout = s->kept_layout;
    meta.dims = s->dims;
    opjit_rt_bytes_append(out, &meta, sizeof meta);
    meta.buffer_info = put_array(out, base, s->buffers, buffers, sizeof *s->buffers);
    meta.param_info = put_array(out, base, s->param_infos, s->params, sizeof *s->param_infos);
    meta.step_info = put_array(out, base, s->step_infos, s->steps, sizeof *s->step_infos);
    meta.variant_info = put_array(out, base, s->variant_infos, s->variants, sizeof *s->variant_infos);
    if (s->dims != 0)
        meta.forms =
            put_array(out, base, s->forms, (size_t)rt_form_count(s->inputs, s->outputs, s->steps), sizeof *s->forms);
    if (s->dims != 0 && s->ranges != NULL)
        meta.ranges = put_array(out, base, s->ranges, s->variants, sizeof *s->ranges);
    meta.quotient_count = s->dims != 0 ? s->quotient_count : 0;
    if (meta.quotient_count != 0)
        meta.quotients = put_array(out, base, s->quotients, s->quotient_count, sizeof *s->quotients);
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
    const struct {
        const char *field;
        uint64_t value, most;
    } limits[] = {
        { "inputs", source->inputs, MOST_ITEMS },
        { "outputs", source->outputs, MOST_ITEMS },
        { "constants", source->constants, MOST_ITEMS },
        { "params", source->params, MOST_ITEMS },
        { "dims", source->dims, OPJIT_MAX_DIMS },
        { "quotient_count", source->quotient_count, OPJIT_MAX_POWERS },
        { "steps", source->steps, MOST_ITEMS },
        { "variants", source->variants, MOST_ITEMS },
        { "code_size", code_size, MOST_CODE },
        { "shared_size", source->shared_size, MOST_WORKSPACE },
        { "scratch_size", source->scratch_size, MOST_WORKSPACE },
        { "kept_size", source->kept_size, MOST_WORKSPACE },
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value > limits[i].most)
            return opjit_rt_refuse(error, OPJIT_LIMIT, "{kernel} {%s}: {%llu}, must be at most %llu", limits[i].field,
                                   (unsigned long long)limits[i].value, (unsigned long long)limits[i].most);
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

/* The metadata ends with a NUL, so every text inside it ends, too. */
static bool string_inside(const opjit_kernel_meta *meta, uint32_t offset)
{
    return offset >= META_LEAST && offset < meta->size;
}

static bool dtype_known(uint32_t dtype)
{
    return dtype <= DML_TENSOR_DATA_TYPE_INT4 && opjit_rt_dtype_bytes((DML_TENSOR_DATA_TYPE)dtype, 1) != 0;
}

/* Whether sizes and strides are valid and every element they reach lies in info->bytes, which is at most the tensor
 * limit. */
static bool layout_sane(const opjit_buffer_info *info)
{
    const DML_TENSOR_DATA_TYPE dtype = (DML_TENSOR_DATA_TYPE)info->dtype;
    uint64_t last = 0;

    if (info->bytes > RT_TENSOR_BYTES_MAX)
        return false;
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++) {
        uint64_t step;
        if (info->sizes[d] == 0 || (d >= info->rank && (info->sizes[d] != 1 || info->strides[d] != 0)))
            return false;
        if (!checked_mul(info->sizes[d] - 1, info->strides[d], &step) || !checked_add(last, step, &last))
            return false;
    }
    return last < 2 * RT_TENSOR_BYTES_MAX && opjit_rt_dtype_bytes(dtype, last + 1) <= info->bytes;
}

/* offset 0: there is no text. */
static opjit_status check_name(const opjit_kernel_meta *meta, const char *array, uint32_t index, uint32_t offset,
                               opjit_error *error)
{
    return offset == 0 || string_inside(meta, offset)
               ? OPJIT_OK
               : CORRUPT("{%s[%u].name}: {%u}, must lie in the metadata", array, index, offset);
}

static opjit_status check_buffer(const opjit_kernel_meta *meta, uint32_t i, opjit_error *error)
{
    const opjit_buffer_info *info = (const opjit_buffer_info *)((const char *)meta + meta->buffer_info) + i;
    const uint32_t role = i < meta->inputs                   ? OPJIT_BUFFER_INPUT
                          : i < meta->inputs + meta->outputs ? OPJIT_BUFFER_OUTPUT
                                                             : OPJIT_BUFFER_CONSTANT;
    const uint32_t aliases = role != OPJIT_BUFFER_OUTPUT ? 0
                             : meta->inputs >= 32        ? UINT32_MAX
                                                         : (1u << meta->inputs) - 1;

    if (info->role != role)
        return CORRUPT("{buffer_info[%u].role}: {%u}, must be %u by its place", i, info->role, role);
    if (!dtype_known(info->dtype))
        return CORRUPT("{buffer_info[%u].dtype}: {%u}, must be a type of 8 bits or more", i, info->dtype);
    if (!is_power_of_two(info->align)) /* any power of two; creation and calls check the pointers */
        return CORRUPT("{buffer_info[%u].align}: {%u}, must be a power of two", i, info->align);
    if (info->rank < 1 || info->rank > OPJIT_MAX_RANK)
        return CORRUPT("{buffer_info[%u].rank}: {%u}, must be 1 to %u", i, info->rank, OPJIT_MAX_RANK);
    if (!layout_sane(info))
        return CORRUPT("{buffer_info[%u].bytes}: {%llu}, which sizes and strides do not fit", i,
                       (unsigned long long)info->bytes);
    if ((info->alias_inputs & ~aliases) != 0)
        return CORRUPT("{buffer_info[%u].alias_inputs}: {0x%x}, must be of inputs (0x%x)", i, info->alias_inputs,
                       aliases);
    return check_name(meta, "buffer_info", i, info->name, error);
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

static opjit_status check_param(const opjit_kernel_meta *meta, uint32_t i, opjit_error *error)
{
    const opjit_param_info *info = (const opjit_param_info *)((const char *)meta + meta->param_info) + i;

    if (!dtype_known(info->dtype))
        return CORRUPT("{param_info[%u].dtype}: {%u}, must be a type of 8 bits or more", i, info->dtype);
    if (!interval_sane(info))
        return CORRUPT("{param_info[%u].lo}: {%lld}, to %lld no interval of type %s", i, (long long)info->lo,
                       (long long)info->hi, opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype));
    return check_name(meta, "param_info", i, info->name, error);
}

/* Whether drivers accept the grid, and the kernel has a name. */
static bool launch_sane(const opjit_kernel_meta *meta, uint32_t entry)
{
    const opjit_launch_info *l = (const opjit_launch_info *)(const void *)((const char *)meta + entry);
    uint64_t threads = 1;

    if (!rt_array_inside(meta, entry, 1, sizeof *l) || !string_inside(meta, l->name))
        return false;
    for (uint32_t d = 0; d < 3; d++) {
        threads *= l->block[d] > MOST_THREADS ? MOST_THREADS + 1 : l->block[d];
        if (l->grid[d] == 0 || l->grid[d] > (d == 0 ? INT32_MAX : UINT16_MAX))
            return false;
    }
    return threads != 0 && threads <= MOST_THREADS && l->shared_bytes <= MOST_SHARED;
}

static opjit_status check_step(const opjit_kernel_meta *meta, uint32_t i, uint64_t code_size, opjit_error *error)
{
    const bool on_gpu = rt_arch_is_gpu(opjit_rt_target_arch(meta->features[0]));
    const opjit_step_info *step = (const opjit_step_info *)((const char *)meta + meta->step_info) + i;

    if (step->kind > OPJIT_STEP_LAUNCH || (step->kind == OPJIT_STEP_LAUNCH) != on_gpu)
        return CORRUPT("{step_info[%u].kind}: {%u}, must be %s on this target", i, step->kind,
                       on_gpu ? "2 (a launch)" : "0 or 1");
    if (on_gpu && !launch_sane(meta, step->entry))
        return CORRUPT("{step_info[%u].entry}: {%u}, must be a launch that a GPU can do", i, step->entry);
    if (step->kind == OPJIT_STEP_STAGE && code_size != 0 && step->entry >= code_size)
        return CORRUPT("{step_info[%u].entry}: {%u}, must be below %llu, the bytes of code", i, step->entry,
                       (unsigned long long)code_size);
    if (step->extent == 0 || step->grain == 0)
        return CORRUPT("{step_info[%u].%s}: {0}, must be at least 1", i, step->extent == 0 ? "extent" : "grain");
    return OPJIT_OK;
}

static opjit_status check_variants(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_variant_info *variants = (const opjit_variant_info *)((const char *)meta + meta->variant_info);

    for (uint32_t i = 0; i < meta->variants; i++) {
        if (variants[i].first_step > meta->steps)
            return CORRUPT("{variant_info[%u].first_step}: {%u}, must be at most %u", i, variants[i].first_step,
                           meta->steps);
        if (variants[i].steps > meta->steps - variants[i].first_step)
            return CORRUPT("{variant_info[%u].steps}: {%u}, must be at most %u", i, variants[i].steps,
                           meta->steps - variants[i].first_step);
    }
    if (variants[meta->variants - 1].alias_mask != 0)
        return CORRUPT("{variant_info[%u].alias_mask}: {0x%llx}, must be 0 in the last one", meta->variants - 1,
                       (unsigned long long)variants[meta->variants - 1].alias_mask);
    return OPJIT_OK;
}

/* Counts, and the arrays that they are of. */
static opjit_status check_arrays(const opjit_kernel_meta *meta, opjit_error *error)
{
    const uint64_t buffers = (uint64_t)meta->inputs + meta->outputs + meta->constants;
    const struct {
        const char *field;
        uint32_t offset;
        uint64_t count, size;
    } arrays[] = {
        { "buffer_info", meta->buffer_info, buffers, sizeof(opjit_buffer_info) },
        { "param_info", meta->param_info, meta->params, sizeof(opjit_param_info) },
        { "step_info", meta->step_info, meta->steps, sizeof(opjit_step_info) },
        { "variant_info", meta->variant_info, meta->variants, sizeof(opjit_variant_info) },
    };

    TRY(opjit_rt_check_range("inputs", meta->inputs, 0, MOST_ITEMS, error));
    TRY(opjit_rt_check_range("outputs", meta->outputs, 1, MOST_ITEMS, error));
    TRY(opjit_rt_check_range("constants", meta->constants, 0, MOST_ITEMS, error));
    TRY(opjit_rt_check_range("variants", meta->variants, 1, UINT32_MAX, error));
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!rt_array_inside(meta, arrays[i].offset, arrays[i].count, arrays[i].size))
            return CORRUPT("{%s}: {%u}, where %llu entries do not lie in the metadata", arrays[i].field,
                           arrays[i].offset, (unsigned long long)arrays[i].count);
    return OPJIT_OK;
}

static opjit_status check_workspace(const char *field, uint64_t bytes, opjit_error *error)
{
    return bytes % OPJIT_WORKSPACE_ALIGNMENT != 0 ? CORRUPT("{%s}: {%llu}, must be a multiple of %u", field,
                                                            (unsigned long long)bytes, OPJIT_WORKSPACE_ALIGNMENT)
                                                  : opjit_rt_check_range(field, bytes, 0, MOST_WORKSPACE, error);
}

/* What runs once fills kept memory, on a CPU.  After the steps have been checked. */
static opjit_status check_once(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);

    if (!rt_meta_has(meta, kept_layout))
        return OPJIT_OK;
    TRY(check_workspace("kept_size", meta->kept_size, error));
    TRY(opjit_rt_check_range("once_first", meta->once_first, 0, meta->steps, error));
    TRY(opjit_rt_check_range("once_steps", meta->once_steps, meta->kept_size != 0, meta->steps - meta->once_first,
                             error));
    for (uint32_t i = 0; i < meta->once_steps; i++)
        if (steps[meta->once_first + i].kind != OPJIT_STEP_STAGE)
            return CORRUPT("{step_info[%u].kind}: {%u}, must be 0 (a stage) where it runs once", meta->once_first + i,
                           steps[meta->once_first + i].kind);
    return OPJIT_OK;
}

static opjit_status check_meta(const opjit_kernel_meta *meta, uint64_t meta_size, uint64_t code_size,
                               opjit_error *error)
{
    TRY(opjit_rt_check_range("abi", meta->abi, OPJIT_KERNEL_ABI, OPJIT_KERNEL_ABI, error));
    TRY(opjit_rt_check_range("numerics", meta->numerics, OPJIT_NUMERICS, OPJIT_NUMERICS, error));
    TRY(opjit_rt_check_range("size", meta->size, meta_size, meta_size, error));
    TRY(check_arrays(meta, error));
    if (((const char *)meta)[meta_size - 1] != '\0' || !string_inside(meta, meta->name))
        return CORRUPT("{name}: {%u}, must be a text in the metadata", meta->name);
    if (!string_inside(meta, meta->target))
        return CORRUPT("{target}: {%u}, must be a text in the metadata", meta->target);
    TRY(check_workspace("shared_size", meta->shared_size, error));
    TRY(check_workspace("scratch_size", meta->scratch_size, error));
    for (uint32_t i = 0; i < meta->inputs + meta->outputs + meta->constants; i++)
        TRY(check_buffer(meta, i, error));
    for (uint32_t i = 0; i < meta->params; i++)
        TRY(check_param(meta, i, error));
    for (uint32_t i = 0; i < meta->steps; i++)
        TRY(check_step(meta, i, code_size, error));
    TRY(check_once(meta, error));
    TRY(check_variants(meta, error));
    return opjit_rt_check_forms(meta, error);
}

opjit_status opjit_rt_meta_check(const void *meta, size_t size, uint64_t code_size, opjit_error *error)
{
    if ((uintptr_t)meta % 8 != 0)
        return CORRUPT("{meta}: at {%p}, must be a multiple of 8", meta);
    TRY(opjit_rt_check_range("meta_size", size, META_LEAST, UINT32_MAX, error));
    TRY(opjit_rt_check_range("code_size", code_size, 1, UINT32_MAX, error)); /* only interpreted images have no code */
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
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{image}: at {%p}, must be a multiple of 8",
                               image);
    TRY(opjit_rt_check_range("bytes", size, sizeof header + META_LEAST, RT_IMAGE_MOST, error));
    memcpy(&header, image, sizeof header);
    meta = (const opjit_kernel_meta *)(bytes + sizeof header);
    if (memcmp(header.magic, IMAGE_MAGIC, sizeof header.magic) != 0)
        return CORRUPT("{magic}: does not begin as an image does");
    TRY(opjit_rt_check_range("format", header.format, IMAGE_FORMAT, IMAGE_FORMAT, error));
    TRY(opjit_rt_check_range("abi", header.abi, OPJIT_KERNEL_ABI, OPJIT_KERNEL_ABI, error));
    TRY(opjit_rt_check_range("reserved", header.reserved, 0, 0, error));
    arch = opjit_rt_target_arch(meta->features[0]);
    if (header.meta_size < META_LEAST || header.meta_size > size - sizeof header ||
        header.code_offset != align_up(sizeof header + header.meta_size, code_alignment(arch)) ||
        header.code_offset > size || header.code_size != size - header.code_offset || header.code_size > MOST_CODE)
        return CORRUPT("{!bytes}{!%zu}%llu bytes of metadata and %llu of code at %llu do not make %zu bytes", size,
                       (unsigned long long)header.meta_size, (unsigned long long)header.code_size,
                       (unsigned long long)header.code_offset, size);
    hash = opjit_rt_hash(bytes + HASHED_FROM, size - HASHED_FROM);
    if (hash.lo != header.hash_lo || hash.hi != header.hash_hi)
        return CORRUPT("{hash_lo}: the checksum differs");
    TRY(check_meta(meta, header.meta_size, header.code_size, error));
    if (arch == RT_ARCH_NVPTX && bytes[size - 1] != '\0') /* the driver reads PTX up to its NUL */
        return CORRUPT("{code}: a text without its end");
    *out_meta = meta;
    *out_code = bytes + header.code_offset;
    *out_code_size = (size_t)header.code_size;
    return OPJIT_OK;
}
