/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - what an object has in addition to a kernel's stages, so that programs can call it and the runtime can find
 * it:
 *     NAME(in0, ..., out0, ..., params ..., [weights,] workspace)   typed, as the generated header declares it
 *     NAME_packed(buffers, params, workspace)             the same with arrays
 * Both return nothing; of a kernel with dynamic dimensions, whose sizes are parameters, 0, or 1 + the number of the
 * first dimension that is outside of its bounds.
 *     NAME_runs_here()                                    whether this machine has what the code needs (cpu_check.c)
 *     NAME_metadata, NAME_kernel                          opjit_kernel_meta, opjit_aot_kernel
 * and the constants that the kernel binds itself.  Everything is read-only and refers to itself by distances, so it
 * needs no relocation when it is loaded.  With several versions NAME and NAME_packed are indirect functions: the loader
 * asks once which version they are. */
#include "codegen/driver/entry.h"

/* The C type of a parameter; FLOAT16 as its bits. */
static LLVMTypeRef param_type(const cg_func *f, uint32_t dtype)
{
    if (dtype == DML_TENSOR_DATA_TYPE_FLOAT32)
        return f->type.f32;
    if (dtype == DML_TENSOR_DATA_TYPE_FLOAT64)
        return f->type.f64;
    return opjit_cg_int(f, 8 * opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)dtype), 1);
}

static bool is_signed(uint32_t dtype)
{
    return dtype == DML_TENSOR_DATA_TYPE_INT64 || dtype == DML_TENSOR_DATA_TYPE_INT32 ||
           dtype == DML_TENSOR_DATA_TYPE_INT16 || dtype == DML_TENSOR_DATA_TYPE_INT8;
}

static LLVMTypeRef result_type(const cg_func *f, const opjit_kernel_meta *m)
{
    return has_dims(m) ? f->type.i32 : f->type.none;
}

static LLVMTypeRef typed_type(const cg_func *f, const codegen_kernel *request)
{
    const opjit_kernel_meta *m = request->versions[0].meta;
    const uint32_t count = bindings(m) + m->params + has_weights(request) + has_workspace(request);
    LLVMTypeRef *types = ARENA_ARRAY(f->arena, LLVMTypeRef, count);
    if (!types)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        types[i] = i >= bindings(m) && i < bindings(m) + m->params ? param_type(f, param_at(m, i - bindings(m))->dtype)
                                                                   : f->type.ptr;
    return LLVMFunctionType(result_type(f, m), types, count, 0);
}

/* A parameter as its 8 bytes.  Callers need not have extended small ones. */
static LLVMValueRef param_bits(cg_func *f, const opjit_param_info *info, LLVMValueRef value)
{
    return opjit_cg_resize(f, opjit_cg_as_bits(f, value), 64, is_signed(info->dtype));
}

static LLVMValueRef emit_typed(cg_func *f, const cg_kernel *k, const codegen_version *version, LLVMValueRef callee)
{
    const opjit_kernel_meta *m = version->meta;
    const uint32_t count = bindings(m), weights = has_weights(k->request);
    LLVMValueRef fn = begin(f, version->name, ".typed", k->typed_type), none = LLVMConstNull(f->type.ptr);
    leave_plain(f, fn, count);
    LLVMValueRef buffers = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.ptr, count + weights), ""), params = none;
    for (uint32_t i = 0; i < count; i++)
        LLVMBuildStore(f->b, LLVMGetParam(fn, i), at(f, f->type.ptr, buffers, i));
    if (weights != 0)
        LLVMBuildStore(f->b, LLVMGetParam(fn, count + m->params), at(f, f->type.ptr, buffers, count));
    if (m->params != 0)
        params = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.i64, m->params), "");
    for (uint32_t i = 0; i < m->params; i++)
        LLVMBuildStore(f->b, param_bits(f, param_at(m, i), LLVMGetParam(fn, count + i)), at(f, f->type.i64, params, i));
    LLVMValueRef workspace = has_workspace(k->request) ? LLVMGetParam(fn, count + m->params + weights) : none;
    LLVMValueRef status =
        LLVMBuildCall2(f->b, k->packed_type, callee, (LLVMValueRef[]){ buffers, params, workspace }, 3, "");
    if (has_dims(m))
        LLVMBuildRet(f->b, status);
    else
        LLVMBuildRetVoid(f->b);
    return fn;
}

/* --- data --------------------------------------------------------------------------------------------------------- */
static LLVMValueRef add_data(const cg_func *f, const char *name, LLVMValueRef value, uint32_t align)
{
    LLVMValueRef global = LLVMAddGlobalInAddressSpace(f->module, LLVMTypeOf(value), name,
                                                      f->cpu->grid ? f->cpu->grid->constant : 0);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetAlignment(global, align);
    return global;
}

static LLVMValueRef bytes(const cg_func *f, const void *data, size_t size)
{
    return LLVMConstStringInContext2(f->llvm, data, size, 1);
}

/* to - from as 32 bits: a number, or a distance that the linker fills in. */
static LLVMValueRef distance(const cg_func *f, LLVMValueRef to, LLVMValueRef from)
{
    LLVMValueRef a = LLVMConstPtrToInt(to, f->type.i64), b = LLVMConstPtrToInt(from, f->type.i64);
    return LLVMConstTrunc(LLVMConstSub(a, b), f->type.i32);
}

/* The metadata with the offsets of its stages, relative to the code. */
static LLVMValueRef emit_metadata(cg_func *f, const codegen_version *version, const LLVMValueRef *stages,
                                  LLVMValueRef code)
{
    const opjit_kernel_meta *m = version->meta;
    LLVMValueRef *parts = ARENA_ARRAY(f->arena, LLVMValueRef, 2 * (size_t)m->steps + 1);
    char name[NAME_SIZE];
    size_t done = 0;
    if (!parts)
        return NULL;
    for (uint32_t i = 0; i < m->steps; i++) {
        const size_t entry = (size_t)((const char *)&step_at(m, i)->entry - (const char *)m);
        parts[2 * i] = bytes(f, (const char *)m + done, entry - done);
        parts[2 * i + 1] = distance(f, stages[i], code);
        done = entry + sizeof(uint32_t);
    }
    parts[2 * m->steps] = bytes(f, (const char *)m + done, m->size - done);
    snprintf(name, sizeof(name), "%s.metadata", version->name);
    return add_data(f, name, LLVMConstStructInContext(f->llvm, parts, 2 * m->steps + 1, 1), 64);
}

/* opjit_aot_kernel, which tells the runtime where everything is. */
static opjit_status emit_record(cg_func *f, const cg_kernel *k, const codegen_version *version, const cg_entries *e,
                                LLVMValueRef metadata, LLVMValueRef code)
{
    const uint32_t count = has_weights(k->request) ? 0 : version->meta->constants,
                   fields = sizeof(opjit_aot_kernel) / sizeof(uint32_t);
    LLVMValueRef *parts = ARENA_ARRAY(f->arena, LLVMValueRef, fields + count);
    char name[NAME_SIZE];
    if (!parts)
        return opjit_rt_no_memory(f->error);
    LLVMTypeRef type = LLVMArrayType2(f->type.i32, fields + count);
    snprintf(name, sizeof(name), "%s_kernel", version->name);
    LLVMValueRef record = LLVMAddGlobal(f->module, type, name);
    const uint32_t size = (uint32_t)sizeof(opjit_aot_kernel) + count * (uint32_t)sizeof(int32_t);
    LLVMValueRef values[] = {
        opjit_cg_number(f, 32, 1, OPJIT_AOT_ABI),
        opjit_cg_number(f, 32, 1, size),
        distance(f, metadata, record),
        opjit_cg_number(f, 32, 1, version->meta->size),
        distance(f, code, record),
        distance(f, e->packed, code),
        distance(f, e->packed, record),
        distance(f, e->typed, record),
        e->runs ? distance(f, e->runs, record) : opjit_cg_number(f, 32, 1, 0),
        opjit_cg_number(f, 32, 1, count),
    };
    _Static_assert(sizeof(values) / sizeof(*values) == sizeof(opjit_aot_kernel) / sizeof(uint32_t), "every field");
    memcpy(parts, values, sizeof(values));
    for (uint32_t i = 0; i < count; i++)
        parts[fields + i] = distance(f, k->constants[i], record);
    LLVMSetInitializer(record, LLVMConstArray2(f->type.i32, parts, fields + count));
    LLVMSetGlobalConstant(record, 1);
    LLVMSetVisibility(record,
                      LLVMHiddenVisibility); /* a registry in the same program or library refers to it */
    LLVMSetAlignment(record, 64);
    return OPJIT_OK;
}

opjit_status opjit_cg_kernel_constants(cg_func *f, const codegen_kernel *request, const char *name, LLVMValueRef **out)
{
    const uint32_t count = request->weights_apart ? 0 : request->versions[0].meta->constants;
    *out = ARENA_ARRAY(f->arena, LLVMValueRef, count + 1);
    if (!*out)
        return opjit_rt_no_memory(f->error);
    for (uint32_t i = 0; i < count; i++) {
        const codegen_data *data = &request->constants[i];
        char constant[NAME_SIZE];
        snprintf(constant, sizeof(constant), f->cpu->grid ? "%s_constant%u" : "%s.constant%u", name, i);
        (*out)[i] = add_data(f, constant, bytes(f, data->data, (size_t)data->bytes), 64);
    }
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */
opjit_status opjit_cg_kernel_begin(cg_func *f, const codegen_kernel *request, const char *name, cg_kernel *out)
{
    *out = (cg_kernel){ .request = request,
                        .name = name,
                        .versions = ARENA_ARRAY(f->arena, cg_entries, request->version_count),
                        .packed_type = LLVMFunctionType(result_type(f, request->versions[0].meta),
                                                        (LLVMTypeRef[]){ f->type.ptr, f->type.ptr, f->type.ptr }, 3, 0),
                        .typed_type = typed_type(f, request),
                        .runs_type = LLVMFunctionType(f->type.i32, NULL, 0, 0) };
    if (!out->versions || !out->typed_type)
        return opjit_rt_no_memory(f->error);
    return opjit_cg_kernel_constants(f, request, name, &out->constants);
}

/* The functions of this version's stages, by step. */
static LLVMValueRef *find_stages(cg_func *f, const codegen_version *version)
{
    LLVMValueRef *stages = ARENA_ARRAY(f->arena, LLVMValueRef, version->meta->steps);
    for (uint32_t v = 0; stages && v < version->meta->variants; v++) {
        const opjit_variant_info *variant = variant_at(version->meta, v);
        for (uint32_t i = 0; i < variant->steps; i++) {
            char name[NAME_SIZE];
            snprintf(name, sizeof(name), "%s_v%u_s%u", version->name, v, i);
            LLVMValueRef fn = LLVMGetNamedFunction(f->module, name);
            LLVMSetLinkage(fn, LLVMInternalLinkage);
            stages[variant->first_step + i] = fn;
        }
    }
    return stages;
}

void opjit_cg_base_features(rt_target *t)
{
    opjit_rt_target_set_features(t, t->arch == RT_ARCH_X86_64 ? 0 : opjit_rt_level_features(t->arch, 1));
}

opjit_status opjit_cg_kernel_version(cg_func *f, cg_kernel *k, uint32_t index)
{
    const codegen_version *version = &k->request->versions[index];
    cg_entries *e = &k->versions[index];
    rt_target first = *version->target;
    char name[NAME_SIZE];
    LLVMValueRef *stages = find_stages(f, version);
    if (!stages)
        return opjit_rt_no_memory(f->error);
    opjit_cg_soft_close(f, version->name);
    opjit_cg_base_features(&first);
    f->target = &first;
    snprintf(name, sizeof(name), "%s.runs_here", version->name);
    if (first.arch == RT_ARCH_X86_64 || k->request->version_count > 1)
        e->runs = opjit_cg_runs_here(f, version->target, name);
    f->target = version->target;
    e->packed = opjit_cg_emit_packed(f, k, version, stages);
    e->typed = emit_typed(f, k, version, e->packed);
    LLVMValueRef code = version->meta->steps != 0 ? stages[0] : e->packed;
    LLVMValueRef metadata = emit_metadata(f, version, stages, code);
    if (!metadata)
        return opjit_rt_no_memory(f->error);
    if (k->request->version_count == 1) {
        snprintf(name, sizeof(name), "%s_metadata", k->name);
        LLVMAddAlias2(f->module, LLVMGlobalGetValueType(metadata), 0, metadata, name);
    }
    return emit_record(f, k, version, e, metadata, code);
}

/* NAME_runs_here: whether any version runs. */
static void emit_runs_here(cg_func *f, const cg_kernel *k)
{
    LLVMValueRef any = NULL;
    LLVMValueRef fn = begin(f, k->name, "_runs_here", k->runs_type);
    LLVMSetLinkage(fn, LLVMExternalLinkage);
    for (uint32_t i = 0; i < k->request->version_count; i++) {
        LLVMValueRef one = LLVMBuildCall2(f->b, k->runs_type, k->versions[i].runs, NULL, 0, "");
        any = any ? LLVMBuildOr(f->b, any, one, "") : one;
    }
    LLVMBuildRet(f->b, any);
}

/* A function that the loader calls once to learn which version NAME is; the last one if none runs. */
static LLVMValueRef emit_resolver(cg_func *f, const cg_kernel *k, const char *suffix, bool is_typed)
{
    LLVMTypeRef types[2] = { f->type.i64, f->type.ptr }; /* what AArch64's loaders pass: AT_HWCAP and more */
    const unsigned count = f->target->arch == RT_ARCH_AARCH64 ? 2 : 0;
    LLVMValueRef fn = begin(f, k->name, suffix, LLVMFunctionType(f->type.ptr, types, count, 0)), args[2];
    LLVMTypeRef runs_type = LLVMFunctionType(f->type.i32, types, count, 0);
    if (count != 0)
        LLVMGetParams(fn, args);
    for (uint32_t i = 0;; i++) {
        const cg_entries *e = &k->versions[i];
        LLVMValueRef entry = is_typed ? e->typed : e->packed;
        LLVMBasicBlockRef taken, next;
        if (i + 1 == k->request->version_count) {
            LLVMBuildRet(f->b, entry);
            return fn;
        }
        LLVMValueRef runs = LLVMBuildCall2(f->b, runs_type, e->runs, args, count, "");
        taken = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
        next = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
        LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntNE, runs, opjit_cg_number(f, 32, 1, 0), ""), taken, next);
        LLVMPositionBuilderAtEnd(f->b, taken);
        LLVMBuildRet(f->b, entry);
        LLVMPositionBuilderAtEnd(f->b, next);
    }
}

static void add_indirect(cg_func *f, const char *name, LLVMTypeRef type, LLVMValueRef resolver)
{
    LLVMAddGlobalIFunc(f->module, name, strlen(name), type, 0, resolver);
}

opjit_status opjit_cg_kernel_end(cg_func *f, cg_kernel *k)
{
    rt_target first = *k->request->versions[0].target;
    char packed_name[NAME_SIZE];
    opjit_cg_base_features(&first);
    f->target = &first;
    snprintf(packed_name, sizeof(packed_name), "%s_packed", k->name);
    if (first.arch == RT_ARCH_X86_64)
        emit_runs_here(f, k);
    if (k->request->version_count == 1) {
        LLVMAddAlias2(f->module, k->typed_type, 0, k->versions[0].typed, k->name);
        LLVMAddAlias2(f->module, k->packed_type, 0, k->versions[0].packed, packed_name);
        return OPJIT_OK;
    }
    add_indirect(f, k->name, k->typed_type, emit_resolver(f, k, ".choose", true));
    add_indirect(f, packed_name, k->packed_type, emit_resolver(f, k, ".choose_packed", false));
    return OPJIT_OK;
}

/* --- libraries ---------------------------------------------------------------------------------------------------- */
opjit_status opjit_cg_registry(cg_func *f, const char *name, const rt_bytes *registry, const char *const *kernels,
                               uint32_t count)
{
    LLVMValueRef *parts = ARENA_ARRAY(f->arena, LLVMValueRef, 2 * (size_t)count + 1);
    LLVMTypeRef *types = ARENA_ARRAY(f->arena, LLVMTypeRef, 2 * (size_t)count + 1);
    char symbol[NAME_SIZE];
    size_t done = 0;
    if (!parts || !types)
        return opjit_rt_no_memory(f->error);
    for (uint32_t i = 0; i <= count; i++) { /* the type comes first, because the data refers to itself */
        const size_t entry = sizeof(opjit_aot_registry) + i * sizeof(opjit_aot_entry);
        const size_t end = i < count ? entry + offsetof(opjit_aot_entry, kernel) : registry->size;
        parts[2 * i] = bytes(f, registry->data + done, end - done);
        types[2 * i] = LLVMTypeOf(parts[2 * i]);
        if (i < count)
            types[2 * i + 1] = f->type.i32;
        done = end + sizeof(int32_t);
    }
    snprintf(symbol, sizeof(symbol), "%s.registry", name);
    LLVMTypeRef type = LLVMStructTypeInContext(f->llvm, types, 2 * count + 1, 1);
    LLVMValueRef global = LLVMAddGlobal(f->module, type, symbol);
    for (uint32_t i = 0; i < count; i++) {
        LLVMValueRef kernel = LLVMAddGlobal(f->module, f->type.i32, kernels[i]);
        LLVMSetVisibility(kernel, LLVMHiddenVisibility);
        LLVMValueRef entry = opjit_cg_number(f, 64, 1, sizeof(opjit_aot_registry) + i * sizeof(opjit_aot_entry));
        parts[2 * i + 1] = distance(f, kernel, LLVMConstInBoundsGEP2(f->type.i8, global, &entry, 1));
    }
    LLVMSetInitializer(global, LLVMConstStructInContext(f->llvm, parts, 2 * count + 1, 1));
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetAlignment(global, 64);
    snprintf(symbol, sizeof(symbol), "%s_registry", name);
    LLVMAddAlias2(f->module, type, 0, global, symbol);
    return OPJIT_OK;
}
