/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - OPJIT_DUMP=graph,ir,ir-all,llvm,asm,obj: writes what a compile went through into OPJIT_DUMP_DIR (else the
 * current directory), as KERNEL.NN-STAGE.EXT.  For people at work on opjit: failures are warnings, one per context, and
 * each of llvm, asm and obj costs a code generation. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "runtime/base/limits.h"

static const struct {
    const char *name;
    uint32_t kind;
 } kinds[] = {
     { "graph", FE_DUMP_GRAPH }, { "ir", FE_DUMP_IR },   { "ir-all", FE_DUMP_IR_ALL },
     { "llvm", FE_DUMP_LLVM },   { "asm", FE_DUMP_ASM }, { "obj", FE_DUMP_OBJ },
 };

static const struct {
    uint32_t kind;
    codegen_emit emit;
    const char *stage, *extension;
} emits[] = {
    { FE_DUMP_LLVM, CODEGEN_LLVM, "llvm", "ll" },
    { FE_DUMP_ASM, CODEGEN_ASM, "asm", "s" },
    { FE_DUMP_OBJ, CODEGEN_OBJECT, "obj", "o" },
};

/* Warns that a setting is ignored: once for each per context. */
static void ignore_kind(const fe_unit *unit, const char *word, size_t length)
{
    if (!atomic_exchange(&unit->core->dump_kind_warned, 1))
        opjit_rt_event(unit->core, RT_WARNING(OPJIT_EVENT_OTHER, "OPJIT_DUMP", "none of graph ir ir-all llvm asm obj"),
                       "warning,OPJIT_DUMP,%.*s,none of graph ir ir-all llvm asm obj", (int)length, word);
}

static void ignore_folder(const fe_unit *unit, const char *folder, int reason)
{
    if (!atomic_exchange(&unit->core->dump_folder_warned, 1))
        opjit_rt_event(unit->core, RT_WARNING(OPJIT_EVENT_OTHER, "OPJIT_DUMP_DIR", strerror(reason)),
                       "warning,OPJIT_DUMP_DIR,%s,%s", folder, strerror(reason));
}

static uint32_t parse_kinds(const fe_unit *unit, const char *text)
{
    uint32_t set = 0;

    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        uint32_t kind = 0;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0)
                kind = kinds[i].kind;
        if (kind == 0 && length != 0)
            ignore_kind(unit, text, length < 60 ? length : 60);
        set |= kind;
        text += length + (text[length] == ',');
    }
    return set;
}

/* Writes a new file, which then gets the name of the old one, whatever that is; so that no link is followed.  false
 * with errno. */
static bool replace_file(int folder, const char *name, const void *data, size_t size)
{
    char temporary[NAME_MAX + 1];
    int reason;

    snprintf(temporary, sizeof temporary, ".opjit-%ld-%" PRIxPTR, (long)getpid(), (uintptr_t)data);
    const int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *const file = fd < 0 ? NULL : fdopen(fd, "wb");
    bool written = file != NULL && rt_file_may_have(size) && fwrite(data, 1, size, file) == size;
    if (file == NULL && fd >= 0)
        close(fd);
    if (file != NULL)
        written = fclose(file) == 0 && written;
    written = written && renameat(folder, temporary, folder, name) == 0;
    reason = errno;
    if (!written && fd >= 0)
        unlinkat(folder, temporary, 0);
    errno = reason;
    return written;
}

static void write_file(fe_dump *dump, const char *stage, const char *extension, const void *data, size_t size)
{
    const char *named = dump->unit->core->dump_dir, *directory = named == NULL ? "." : named;
    const int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];

    if (folder < 0) {
        ignore_folder(dump->unit, directory, errno);
        return;
    }
    if (snprintf(name, sizeof name, "%s.%02u-%s.%s", dump->unit->name, dump->number++, stage, extension) >=
        (int)sizeof name)
        ignore_folder(dump->unit, directory, ENAMETOOLONG);
    else if (!replace_file(folder, name, data, size))
        ignore_folder(dump->unit, directory, errno);
    close(folder);
}

static void write_ir(fe_dump *dump, const char *stage, const ir_func *f)
{
    rt_bytes text;

    opjit_rt_bytes_init(&text, f->allocator);
    opjit_ir_print(f, &text);
    if (!text.failed)
        write_file(dump, stage, "ir", text.data, text.size);
    opjit_rt_bytes_free(&text);
}

void opjit_fe_dump_begin(fe_dump *dump, const fe_unit *unit)
{
    char text[512];
    int length;

    *dump = (fe_dump){ .unit = unit, .kinds = parse_kinds(unit, unit->core->dump) };
    if ((dump->kinds & FE_DUMP_GRAPH) == 0)
        return;
    length = snprintf(text, sizeof text, "%s\n%s\n%s\n",
                      opjit_fe_label(unit->graph.label, opjit_fe_graph_shape(&unit->graph), unit->options.target).text,
                      unit->graph.is_operator ? unit->graph.nodes[0].op->def->formula : "", unit->options.target->text);
    if (length > 0 && length < (int)sizeof text)
        write_file(dump, "graph", "txt", text, (size_t)length);
}

void opjit_fe_dump_pass(void *user, const char *pass, const ir_func *f)
{
    fe_dump *dump = user;

    if ((dump->kinds & FE_DUMP_IR_ALL) != 0)
        write_ir(dump, pass, f);
}

static void dump_functions(fe_dump *dump, const ir_func *const *functions)
{
    const fe_unit *unit = dump->unit;
    const fe_program *program = &unit->program;

    for (uint32_t i = 0; (dump->kinds & FE_DUMP_IR) != 0 && i < program->count; i++) {
        const bool alias = unit->graph.parts == NULL && program->masks[i] != 0;
        write_ir(dump, alias ? "ir-alias" : "ir", functions[i]);
    }
    for (size_t i = 0; i < sizeof emits / sizeof *emits; i++) {
        const codegen_request request = {
            .variants = functions,
            .variant_count = program->count,
            .target = unit->options.target,
            .level = unit->options.level,
            .emit = emits[i].emit,
            .name = unit->name,
            .allocator = &unit->core->allocator,
        };
        codegen_result result;
        if ((dump->kinds & emits[i].kind) == 0 || program->count == 0)
            continue;
        memset(&result, 0, sizeof result);
        opjit_rt_bytes_init(&result.bytes, request.allocator);
        if (unit->codegen->compile(&request, &result, NULL) == OPJIT_OK)
            write_file(dump, emits[i].stage, emits[i].extension, result.bytes.data, result.bytes.size);
        opjit_rt_bytes_free(&result.bytes);
        opjit_rt_release(request.allocator, result.entries, result.entry_count * sizeof *result.entries);
    }
}

void opjit_fe_dump_end(fe_dump *dump)
{
    const ir_func **functions;
    rt_arena arena;

    if (dump->kinds == 0)
        return;
    opjit_rt_arena_init(&arena, &dump->unit->core->allocator);
    functions = opjit_fe_program_list(&dump->unit->program, &arena);
    if (functions != NULL)
        dump_functions(dump, functions);
    opjit_rt_arena_free(&arena);
}
