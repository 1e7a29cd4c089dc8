/* SPDX-License-Identifier: Apache-2.0 */
/* header.c - the C header of a kernel that is compiled ahead of time: prototypes, and in comments everything that a
 * caller must know.  It needs C11 or C++17 and <stdint.h>; where it has to ask the system for CPU features, also
 * <sys/auxv.h> and <sys/prctl.h>. */
#include "frontend/aot/artifact.h"

#include <inttypes.h>
#include <opjit/opjit.h>
#include <string.h>

/* The C type of an element. */
static const char *c_type(uint32_t dtype)
{
    switch ((DML_TENSOR_DATA_TYPE)dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT64: return "double";
    case DML_TENSOR_DATA_TYPE_FLOAT32: return "float";
    case DML_TENSOR_DATA_TYPE_INT64: return "int64_t";
    case DML_TENSOR_DATA_TYPE_INT32: return "int32_t";
    case DML_TENSOR_DATA_TYPE_INT16: return "int16_t";
    case DML_TENSOR_DATA_TYPE_INT8: return "int8_t";
    case DML_TENSOR_DATA_TYPE_UINT64: return "uint64_t";
    case DML_TENSOR_DATA_TYPE_UINT32: return "uint32_t";
    case DML_TENSOR_DATA_TYPE_UINT4:
    case DML_TENSOR_DATA_TYPE_INT4: /* two in each */
    case DML_TENSOR_DATA_TYPE_UINT8: return "uint8_t";
    default: return "uint16_t"; /* UINT16, and FLOAT16 as its bits */
    }
}

/* Names come from models, so none may end a comment. */
static void put_comment(rt_bytes *out, const char *text)
{
    for (; *text != '\0'; text++)
        opjit_rt_bytes_u8(out, *text >= 0x20 && *text < 0x7f && *text != '*' && *text != '\\' ? (uint8_t)*text : '?');
}

static void put_numbers(rt_bytes *out, const char *what, const uint64_t *numbers, uint32_t count)
{
    opjit_rt_bytes_printf(out, "%s ", what);
    put_list(out, numbers, count);
}

/* " *   x": the argument, and its name in the model where that differs. */
static void put_argument(const fe_shipped *k, uint32_t index, const char *name, rt_bytes *out)
{
    opjit_rt_bytes_printf(out, " *   %s", k->arguments[index].text);
    if (strcmp(k->arguments[index].text, name) != 0) {
        opjit_rt_bytes_printf(out, "  ");
        put_comment(out, name);
    }
}

static const opjit_size_form *forms_of(const opjit_kernel_meta *m, uint32_t buffer)
{
    const opjit_size_form *forms = (const opjit_size_form *)(const void *)((const char *)m + m->forms);
    return m->dims == 0 ? NULL : forms + buffer * OPJIT_BUFFER_FORMS;
}

/* The name that the number of a dimension has in the prototype. */
static const char *dim_name(const fe_shipped *k, uint32_t d)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    return k->arguments[m->inputs + m->outputs + m->params - m->dims + d].text;
}

/* What forms have powers of: dimension d, or, behind these, a quotient of one. */
static void put_size(const fe_shipped *k, uint32_t d, bool in_macro, rt_bytes *out)
{
    const rt_space space = rt_meta_space(shipped_meta(k, 0));

    if (d < space.dims) {
        opjit_rt_bytes_printf(out, in_macro ? "(int64_t)(%s)" : "%s", dim_name(k, d));
        return;
    }
    const opjit_quotient *const q = &space.quotients[d - space.dims];
    if (q->plus == 0 && !in_macro)
        opjit_rt_bytes_printf(out, "(%s / %" PRId64 ")", dim_name(k, q->dim), q->by);
    else
        opjit_rt_bytes_printf(out, in_macro ? "(((int64_t)(%s) + INT64_C(%" PRId64 ")) / %" PRId64 ")"
                                            : "((%s + %" PRId64 ") / %" PRId64 ")",
                              dim_name(k, q->dim), q->plus, q->by);
}

/* The form as an expression, for people or for a macro of C. */
static void put_form(const fe_shipped *k, const opjit_size_form *form, bool in_macro, rt_bytes *out)
{
    static const uint8_t none[OPJIT_MAX_POWERS];
    const bool scales = form->factors[1] == 0 && memcmp(form->powers[1], none, sizeof none) != 0;
    const bool divides = form->divisor != 1 || form->times != 1 || scales;
    const char *between = "";

    opjit_rt_bytes_printf(out, "%s", divides ? "(" : "");
    for (uint32_t i = 0; i < 2; i++) {
        if (form->factors[i] == 0)
            continue;
        opjit_rt_bytes_printf(out, "%s", between);
        if (form->factors[i] != 1 || in_macro)
            opjit_rt_bytes_printf(out, in_macro ? "INT64_C(%" PRId64 ") * " : "%" PRId64 " * ", form->factors[i]);
        between = "";
        for (uint32_t d = 0; d < OPJIT_MAX_POWERS; d++)
            for (uint32_t p = 0; p < form->powers[i][d]; p++, between = " * ") {
                opjit_rt_bytes_printf(out, "%s", between);
                put_size(k, d, in_macro, out);
            }
        between = " + ";
    }
    if (form->constant != 0 || between[0] == '\0')
        opjit_rt_bytes_printf(out, in_macro ? "%sINT64_C(%" PRId64 ")" : "%s%" PRId64, between, form->constant);
    if (divides)
        opjit_rt_bytes_printf(out, ") / %" PRId64 " * %" PRId64, form->divisor, form->times);
    for (uint32_t d = 0; d < OPJIT_MAX_POWERS && form->factors[1] == 0; d++)
        for (uint32_t p = 0; p < form->powers[1][d]; p++) {
            opjit_rt_bytes_printf(out, " * ");
            put_size(k, d, in_macro, out);
        }
}

static void put_sizes(const fe_shipped *k, const opjit_size_form *forms, const opjit_buffer_info *info, rt_bytes *out)
{
    opjit_rt_bytes_printf(out, " [");
    for (uint32_t d = 0; d < info->rank; d++) {
        opjit_rt_bytes_printf(out, "%s", d == 0 ? "" : ", ");
        put_form(k, &forms[1 + d], false, out);
    }
    opjit_rt_bytes_printf(out, "], dense, ");
    put_form(k, forms, false, out);
    opjit_rt_bytes_printf(out, " bytes, aligned to %" PRIu32, info->align);
}

static void put_buffer(const fe_shipped *k, const opjit_buffer_info *info, uint32_t index, rt_bytes *out)
{
    const char *between = "; may be the very memory of ";

    put_argument(k, index, meta_text(shipped_meta(k, 0), info->name), out);
    opjit_rt_bytes_printf(out, ": %s", opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype));
    if (shipped_meta(k, 0)->dims != 0) {
        put_sizes(k, forms_of(shipped_meta(k, 0), index), info, out);
    } else {
        put_numbers(out, "", info->sizes, info->rank);
        put_numbers(out, ", strides", info->strides, info->rank);
        opjit_rt_bytes_printf(out, ", %" PRIu64 " bytes, aligned to %" PRIu32, info->bytes, info->align);
    }
    for (uint32_t i = 0; i < 32; i++)
        if ((info->alias_inputs >> i & 1) != 0) {
            opjit_rt_bytes_printf(out, "%s%s", between, k->arguments[i].text);
            between = ", ";
        }
    opjit_rt_bytes_printf(out, "\n");
}

static void put_param(const fe_shipped *k, const opjit_param_info *info, uint32_t index, rt_bytes *out)
{
    put_argument(k, index, meta_text(shipped_meta(k, 0), info->name), out);
    opjit_rt_bytes_printf(out, ": %s", opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype));
    if (info->lo != info->hi && !(info->lo == INT64_MIN && info->hi == INT64_MAX))
        opjit_rt_bytes_printf(out, ", %" PRId64 " to %" PRId64, info->lo, info->hi);
    opjit_rt_bytes_printf(out, "\n");
}

static void put_title(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out)
{
    opjit_rt_bytes_printf(out, "/* %s.h - a kernel made by opjit %d.%d.%d ahead of time, for\n", k->name,
                          OPJIT_VERSION_MAJOR, OPJIT_VERSION_MINOR, OPJIT_VERSION_PATCH);
    for (uint32_t i = 0; i < a->target_count; i++)
        opjit_rt_bytes_printf(out, " *     %s\n", a->targets[i].text);
    if (a->target_count > 1)
        opjit_rt_bytes_printf(out,
                              " * The first of these that the machine can run is chosen when the program is loaded.\n");
    opjit_rt_bytes_printf(out, " * Link the object or a library that it is in; it needs nothing else.\n *\n");
}

static void put_manual(const fe_shipped *k, rt_bytes *out)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const opjit_buffer_info *buffers = (const opjit_buffer_info *)(const void *)((const char *)m + m->buffer_info);
    const opjit_param_info *params = (const opjit_param_info *)(const void *)((const char *)m + m->param_info);

    opjit_rt_bytes_printf(out, " * Sizes and strides are in elements; FLOAT16 is uint16_t, its bits.\n");
    for (uint32_t i = 0; i < m->inputs + m->outputs; i++)
        put_buffer(k, &buffers[i], i, out);
    for (uint32_t i = 0; i < m->params; i++)
        put_param(k, &params[i], m->inputs + m->outputs + i, out);
    if (shipped_weights(k) != 0)
        opjit_rt_bytes_printf(out, " *   weights: the %s_WEIGHTS_BYTES bytes of its weights' file, aligned to %u\n",
                              k->name, OPJIT_WORKSPACE_ALIGNMENT);
    if (k->workspace != 0)
        opjit_rt_bytes_printf(
            out, " *   workspace: %s_WORKSPACE_BYTES of any content, aligned to %u, for one call at a time\n", k->name,
            OPJIT_WORKSPACE_ALIGNMENT);
    opjit_rt_bytes_printf(
        out,
        " *\n"
        " * All memory is the caller's. Inputs are only read; of an output exactly its elements are written. %s\n"
        " * checked: pointers have the bytes and the alignment given above, an output shares memory with nothing else\n"
        " * but as said above%s. A call %s, allocates nothing and keeps nothing;\n"
        " * any number of threads may call at a time, with outputs and workspaces of their own. It ends in an illegal\n"
        " * instruction where %s_runs_here() is 0. */\n",
        m->dims != 0 ? "Nothing else is" : "Nothing is", m->dims != 0 ? "" : ", parameters are in their range",
        m->dims == 0 ? "can't fail"
                     : "returns 0, or 1 + the\n"
                       " * number of the first dimension that is outside of its bounds, and then does nothing",
        k->name);
}

static void put_prototype(const fe_shipped *k, rt_bytes *out)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const opjit_buffer_info *buffers = (const opjit_buffer_info *)(const void *)((const char *)m + m->buffer_info);
    const opjit_param_info *params = (const opjit_param_info *)(const void *)((const char *)m + m->param_info);
    const char *between = "";

    opjit_rt_bytes_printf(out, "%s %s(", m->dims != 0 ? "int" : "void", k->name);
    for (uint32_t i = 0; i < m->inputs + m->outputs; i++, between = ", ")
        opjit_rt_bytes_printf(out, "%s%s%s *%s", between, i < m->inputs ? "const " : "", c_type(buffers[i].dtype),
                              k->arguments[i].text);
    for (uint32_t i = 0; i < m->params; i++)
        opjit_rt_bytes_printf(out, ", %s %s", c_type(params[i].dtype), k->arguments[m->inputs + m->outputs + i].text);
    opjit_rt_bytes_printf(out, "%s%s);\n", shipped_weights(k) != 0 ? ", const void *weights" : "",
                          k->workspace != 0 ? ", void *workspace" : "");
}

/* "(n, m) ((uint64_t)(...))" */
static void put_bytes(const fe_shipped *k, const opjit_size_form *form, rt_bytes *out)
{
    for (uint32_t d = 0; d < shipped_meta(k, 0)->dims; d++)
        opjit_rt_bytes_printf(out, "%s%s", d == 0 ? "(" : ", ", dim_name(k, d));
    opjit_rt_bytes_printf(out, ") ((uint64_t)(");
    put_form(k, form, true, out);
    opjit_rt_bytes_printf(out, "))");
}

static void put_macros(const fe_shipped *k, rt_bytes *out)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const opjit_buffer_info *buffers = (const opjit_buffer_info *)(const void *)((const char *)m + m->buffer_info);

    for (uint32_t i = 0; i < m->inputs + m->outputs; i++) {
        opjit_rt_bytes_printf(out, "#define %s_%s%" PRIu32 "_BYTES", k->name, i < m->inputs ? "IN" : "OUT",
                              i < m->inputs ? i : i - m->inputs);
        if (m->dims != 0)
            put_bytes(k, forms_of(m, i), out);
        else
            opjit_rt_bytes_printf(out, " UINT64_C(%" PRIu64 ")", buffers[i].bytes);
        opjit_rt_bytes_printf(out, " /* %s */\n", k->arguments[i].text);
    }
    for (uint32_t d = 0; d < m->dims; d++) {
        const opjit_param_info *info =
            (const opjit_param_info *)(const void *)((const char *)m + m->param_info) + (m->params - m->dims + d);
        opjit_rt_bytes_printf(out, "#define %s_DIM%" PRIu32 "_LEAST %" PRId64 " /* %s */\n", k->name, d, info->lo,
                              dim_name(k, d));
        opjit_rt_bytes_printf(out, "#define %s_DIM%" PRIu32 "_MOST %" PRId64 "\n", k->name, d, info->hi);
    }
    if (shipped_weights(k) != 0)
        opjit_rt_bytes_printf(out, "#define %s_WEIGHTS_BYTES UINT64_C(%" PRIu64 ")\n", k->name, shipped_weights(k));
    opjit_rt_bytes_printf(out, "#define %s_WORKSPACE_BYTES UINT64_C(%" PRIu64 ")\n", k->name, k->workspace);
    opjit_rt_bytes_printf(out, "#define %s_WORKSPACE_ALIGNMENT %u\n", k->name, OPJIT_WORKSPACE_ALIGNMENT);
}

void opjit_fe_artifact_header(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);

    put_title(a, k, out);
    put_manual(k, out);
    opjit_rt_bytes_printf(out, "#ifndef OPJIT_KERNEL_%s_H\n#define OPJIT_KERNEL_%s_H\n\n#include <stdint.h>\n", k->name,
                          k->name);
    opjit_fe_artifact_check_includes(a, out);
    opjit_rt_bytes_u8(out, '\n');
    put_macros(k, out);
    opjit_rt_bytes_printf(out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                               "/* Not 0 if this machine has the instructions that the kernel is made of. */\n");
    opjit_fe_artifact_check(a, k->name, out);
    put_prototype(k, out);
    opjit_rt_bytes_printf(out, "\n/* The same: %" PRIu32 " input and %" PRIu32 " output pointers%s; ", m->inputs,
                          m->outputs, shipped_weights(k) != 0 ? ", and that of the weights" : "");
    if (m->params != 0)
        opjit_rt_bytes_printf(out, "%" PRIu32 " parameters of 8 bytes, integers extended, floats as their bits; ",
                              m->params);
    else
        opjit_rt_bytes_printf(out, "params is not looked at; ");
    opjit_rt_bytes_printf(out, "workspace %s. */\n", k->workspace != 0 ? "as above" : "is not looked at");
    opjit_rt_bytes_printf(out, "%s %s_packed(void *const *buffers, const uint64_t *params, void *workspace);\n",
                          m->dims != 0 ? "int" : "void", k->name);
    if (a->target_count == 1)
        opjit_rt_bytes_printf(
            out,
            "\n/* What <opjit/abi.h> describes: the ABI's version first, CPU features, buffers, steps. */\n"
            "struct opjit_kernel_meta;\nextern const struct opjit_kernel_meta %s_metadata;\n",
            k->name);
    opjit_rt_bytes_printf(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

bool opjit_fe_artifact_library_header(const opjit_artifact *a, rt_arena *arena, rt_bytes *out)
{
    const uint32_t *const order = opjit_rt_name_set_order(&a->names, arena);

    if (order == NULL)
        return false;
    opjit_rt_bytes_printf(
        out,
        "/* %s.h - the kernels of lib%s, made by opjit %d.%d.%d ahead of time; each header is the manual of its own. "
        "*/\n",
        a->name, a->name, OPJIT_VERSION_MAJOR, OPJIT_VERSION_MINOR, OPJIT_VERSION_PATCH);
    opjit_rt_bytes_printf(out, "#ifndef OPJIT_LIBRARY_%s_H\n#define OPJIT_LIBRARY_%s_H\n\n", a->name, a->name);
    for (uint32_t i = 0; i < a->kernel_count; i++)
        opjit_rt_bytes_printf(out, "#include \"%s.h\"\n", a->kernels[order[i]]->name);
    opjit_rt_bytes_printf(out,
                          "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                          "/* For opjit_library_of of <opjit/artifact.h>: these kernels by name. */\n"
                          "struct opjit_aot_registry;\nextern const struct opjit_aot_registry %s_registry;\n\n"
                          "#ifdef __cplusplus\n}\n#endif\n#endif\n",
                          a->name);
    return true;
}
