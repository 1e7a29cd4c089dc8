/* SPDX-License-Identifier: Apache-2.0 */
/* debug.c - names for machine code: perf's map file and GDB's JIT interface.  Failures are warnings: a kernel runs as
 * well without a name. */
#define _GNU_SOURCE
#include "runtime/debug/debug.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/limits.h"

enum { SYMBOL_SIZE = 128 };

/* A stage's code and its name in tools. */
typedef struct symbol {
    char name[SYMBOL_SIZE];
    uint32_t offset, size;
} symbol;

typedef struct symbol_list {
    const uint8_t *code;
    size_t code_size;
    uint32_t count;
    symbol symbols[]; /* one per step */
} symbol_list;

/* --- GDB's interface ------------------------------------------------------------------------------------------------
 * GDB finds the descriptor and the function by these names in the symbol table of every object that it loads, puts a
 * breakpoint into the function and reads the descriptor when the breakpoint is hit.  Ours are static because libLLVM
 * exports the same names: with a shared name, one of the two lists would be invisible.
 * The interface requires the list to be process-wide, and hence its mutex, too; nothing else in the library is. */
typedef struct jit_code_entry {
    struct jit_code_entry *next, *prev;
    const char *file;
    uint64_t size;
} jit_code_entry;

static struct {
    uint32_t version;
    uint32_t action; /* 0 none, 1 register, 2 unregister */
    jit_code_entry *relevant, *first;
} __jit_debug_descriptor __attribute__((used)) = { 1, 0, NULL, NULL };

static pthread_mutex_t jit_mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, used)) static void __jit_debug_register_code(void)
{
    __asm__ volatile("" : : "r"(&__jit_debug_descriptor) : "memory"); /* keeps the call and the stores before it */
}

struct rt_debug_entry {
    jit_code_entry gdb;
    size_t file_size;
    alignas(8) uint8_t file[]; /* an ELF file without contents: a symbol table with addresses */
};

/* --- symbols ------------------------------------------------------------------------------------------------------ */

/* Shell's sort: the stages are already in order, except for those that variants share. */
static void sort_offsets(symbol *symbols, uint32_t count)
{
    for (uint32_t gap = count / 2; gap != 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            const uint32_t offset = symbols[i].offset;
            uint32_t at = i;
            for (; at >= gap && symbols[at - gap].offset > offset; at -= gap)
                symbols[at].offset = symbols[at - gap].offset;
            symbols[at].offset = offset;
        }
}

/* Collects one symbol per stage, in the order of their addresses: NAME, NAME_1, NAME_2 ... */
static void collect_symbols(const opjit_kernel_meta *meta, const void *code, size_t code_size, symbol_list *out)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);

    out->code = code;
    out->code_size = code_size;
    out->count = 0;
    for (uint32_t i = 0; i < meta->steps; i++)
        if (steps[i].kind == OPJIT_STEP_STAGE)
            out->symbols[out->count++].offset = steps[i].entry;
    sort_offsets(out->symbols, out->count);
    const uint32_t all = out->count;
    out->count = 0;
    for (uint32_t i = 0; i < all; i++) /* variants share stages */
        if (i == 0 || out->symbols[i].offset != out->symbols[out->count - 1].offset)
            out->symbols[out->count++].offset = out->symbols[i].offset;
    for (uint32_t i = 0; i < out->count; i++) {
        symbol *s = &out->symbols[i];
        const uint64_t end = i + 1 < out->count ? out->symbols[i + 1].offset : code_size;
        int n = snprintf(s->name, sizeof s->name, "%.100s", (const char *)meta + meta->name);
        if (i != 0 && n >= 0)
            n = snprintf(s->name + strlen(s->name), sizeof s->name - strlen(s->name), "_%u", i);
        if (n < 0)
            s->name[0] = '\0';
        for (char *c = s->name; *c != '\0'; c++) /* both readers split names at blanks, GDB at more characters */
            if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')))
                *c = '_';
        s->size = (uint32_t)(end - s->offset);
    }
}

/* --- perf --------------------------------------------------------------------------------------------------------- */

/* Opens the map file of this process: a plain file of ours, not a link that someone else left in /tmp. */
static int open_perf_map(const char *path)
{
    struct stat info;
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);

    if (file < 0)
        return -1;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_nlink != 1) {
        close(file);
        errno = EPERM;
        return -1;
    }
    return file;
}

static void write_perf_map(rt_core *core, const symbol_list *list)
{
    char path[64];
    rt_bytes lines;
    int file;
    bool good;

    opjit_rt_bytes_init(&lines, &core->allocator);
    for (uint32_t i = 0; i < list->count; i++)
        opjit_rt_bytes_printf(&lines, "%llx %x %s\n",
                              (unsigned long long)(uintptr_t)(list->code + list->symbols[i].offset),
                              list->symbols[i].size, list->symbols[i].name);
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    file = open_perf_map(path);
    /* One append, so that lines of several threads and processes do not mix. */
    good = file >= 0 && !lines.failed && rt_file_may_have((uint64_t)lseek(file, 0, SEEK_END) + lines.size) &&
           write(file, lines.data, lines.size) == (ssize_t)lines.size;
    if (!good)
        opjit_rt_event(core, RT_WARNING(OPJIT_EVENT_DEBUG, path, strerror(errno)),
                       "warning,perf map %s is not written (errno %d)", path, errno);
    if (file >= 0)
        close(file);
    opjit_rt_bytes_free(&lines);
}

/* --- GDB ---------------------------------------------------------------------------------------------------------- */

enum { SECTION_NULL, SECTION_TEXT, SECTION_SYMBOLS, SECTION_STRINGS, SECTION_COUNT };
static const char section_names[] = "\0.text\0.symtab\0.strtab"; /* the symbols' names follow */
enum { NAME_TEXT = 1, NAME_SYMBOLS = 7, NAME_STRINGS = 15 };

typedef struct elf_head {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[SECTION_COUNT];
} elf_head;

static void fill_elf_head(elf_head *head, const symbol_list *list, size_t symbols_size, size_t strings_size)
{
    const uint64_t address = (uintptr_t)list->code;

    memset(head, 0, sizeof *head);
    memcpy(head->header.e_ident, ELFMAG, SELFMAG);
    head->header.e_ident[EI_CLASS] = ELFCLASS64;
    head->header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    head->header.e_ident[EI_VERSION] = EV_CURRENT;
    head->header.e_type = ET_EXEC; /* addresses are final */
#if defined(__aarch64__)
    head->header.e_machine = EM_AARCH64;
#elif defined(__riscv)
    head->header.e_machine = EM_RISCV;
#else
    head->header.e_machine = EM_X86_64;
#endif
    head->header.e_version = EV_CURRENT;
    head->header.e_phoff = offsetof(elf_head, segment);
    head->header.e_shoff = offsetof(elf_head, sections);
    head->header.e_ehsize = sizeof head->header;
    head->header.e_phentsize = sizeof head->segment;
    head->header.e_phnum = 1;
    head->header.e_shentsize = sizeof head->sections[0];
    head->header.e_shnum = SECTION_COUNT;
    head->header.e_shstrndx = SECTION_STRINGS;
    head->segment = (Elf64_Phdr){ .p_type = PT_LOAD,
                                  .p_flags = PF_R | PF_X,
                                  .p_vaddr = address,
                                  .p_paddr = address,
                                  .p_memsz = list->code_size,
                                  .p_align = 64 };
    head->sections[SECTION_TEXT] = (Elf64_Shdr){ .sh_name = NAME_TEXT,
                                                 .sh_type = SHT_NOBITS,
                                                 .sh_size = list->code_size,
                                                 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                                 .sh_addr = address,
                                                 .sh_addralign = 64 };
    head->sections[SECTION_SYMBOLS] = (Elf64_Shdr){ .sh_name = NAME_SYMBOLS,
                                                    .sh_type = SHT_SYMTAB,
                                                    .sh_offset = sizeof *head,
                                                    .sh_size = symbols_size,
                                                    .sh_link = SECTION_STRINGS,
                                                    .sh_info = 1,
                                                    .sh_addralign = 8,
                                                    .sh_entsize = sizeof(Elf64_Sym) };
    head->sections[SECTION_STRINGS] = (Elf64_Shdr){ .sh_name = NAME_STRINGS,
                                                    .sh_type = SHT_STRTAB,
                                                    .sh_offset = sizeof *head + symbols_size,
                                                    .sh_size = strings_size,
                                                    .sh_addralign = 1 };
}

static void write_elf(const symbol_list *list, rt_bytes *out)
{
    const size_t symbols_size = (list->count + 1) * sizeof(Elf64_Sym);
    size_t name = sizeof section_names;
    Elf64_Sym sym;
    elf_head head;

    for (uint32_t i = 0; i < list->count; i++)
        name += strlen(list->symbols[i].name) + 1;
    fill_elf_head(&head, list, symbols_size, name);
    opjit_rt_bytes_append(out, &head, sizeof head);
    memset(&sym, 0, sizeof sym);
    opjit_rt_bytes_append(out, &sym, sizeof sym);
    name = sizeof section_names;
    for (uint32_t i = 0; i < list->count; i++) {
        sym = (Elf64_Sym){ .st_name = (Elf64_Word)name,
                           .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                           .st_shndx = SECTION_TEXT,
                           .st_size = list->symbols[i].size,
                           .st_value = (uintptr_t)list->code + list->symbols[i].offset };
        opjit_rt_bytes_append(out, &sym, sizeof sym);
        name += strlen(list->symbols[i].name) + 1;
    }
    opjit_rt_bytes_append(out, section_names, sizeof section_names);
    for (uint32_t i = 0; i < list->count; i++)
        opjit_rt_bytes_append(out, list->symbols[i].name, strlen(list->symbols[i].name) + 1);
}

/* Links or unlinks the entry and calls GDB's function; the mutex is held. */
static void tell_gdb(uint32_t action, jit_code_entry *entry)
{
    __jit_debug_descriptor.action = action;
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = 0;
    __jit_debug_descriptor.relevant = NULL;
}

static rt_debug_entry *register_with_gdb(rt_core *core, const symbol_list *list)
{
    rt_debug_entry *entry = NULL;
    rt_bytes elf;

    opjit_rt_bytes_init(&elf, &core->allocator);
    write_elf(list, &elf);
    if (!elf.failed)
        entry = opjit_rt_allocate(&core->allocator, sizeof *entry + elf.size, alignof(rt_debug_entry));
    if (entry == NULL) {
        opjit_rt_event(core, RT_WARNING(OPJIT_EVENT_DEBUG, "GDB", "no memory"),
                       "warning,no memory to register code with GDB");
    } else {
        memset(entry, 0, sizeof *entry);
        entry->file_size = elf.size;
        memcpy(entry->file, elf.data, elf.size);
        entry->gdb.file = (const char *)entry->file;
        entry->gdb.size = elf.size;
        pthread_mutex_lock(&jit_mutex);
        entry->gdb.next = __jit_debug_descriptor.first;
        if (entry->gdb.next != NULL)
            entry->gdb.next->prev = &entry->gdb;
        __jit_debug_descriptor.first = &entry->gdb;
        tell_gdb(1, &entry->gdb);
        pthread_mutex_unlock(&jit_mutex);
    }
    opjit_rt_bytes_free(&elf);
    return entry;
}

/* --- interface ---------------------------------------------------------------------------------------------------- */

rt_debug_entry *opjit_rt_debug_register(rt_core *core, const opjit_kernel_meta *meta, const void *code,
                                        size_t code_size)
{
    rt_debug_entry *entry = NULL;
    symbol_list *list;

    if ((core->flags & (OPJIT_CONTEXT_PERF_MAP | OPJIT_CONTEXT_GDB)) == 0)
        return NULL;
    const size_t size = sizeof *list + meta->steps * sizeof(symbol);
    list = opjit_rt_allocate(&core->allocator, size, alignof(symbol_list));
    if (list == NULL) {
        opjit_rt_event(core, RT_WARNING(OPJIT_EVENT_DEBUG, "symbols", "no memory"),
                       "warning,no memory to name code for debuggers");
        return NULL;
    }
    collect_symbols(meta, code, code_size, list);
    if ((core->flags & OPJIT_CONTEXT_PERF_MAP) != 0)
        write_perf_map(core, list);
    if ((core->flags & OPJIT_CONTEXT_GDB) != 0)
        entry = register_with_gdb(core, list);
    opjit_rt_release(&core->allocator, list, size);
    return entry;
}

void opjit_rt_debug_unregister(rt_core *core, rt_debug_entry *entry)
{
    if (entry == NULL)
        return;
    pthread_mutex_lock(&jit_mutex);
    if (entry->gdb.prev != NULL)
        entry->gdb.prev->next = entry->gdb.next;
    else
        __jit_debug_descriptor.first = entry->gdb.next;
    if (entry->gdb.next != NULL)
        entry->gdb.next->prev = entry->gdb.prev;
    tell_gdb(2, &entry->gdb);
    pthread_mutex_unlock(&jit_mutex);
    opjit_rt_release(&core->allocator, entry, sizeof *entry + entry->file_size);
}
