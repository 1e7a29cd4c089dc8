/* SPDX-License-Identifier: Apache-2.0 */
/* emulated.c - runs stages on other machines: starts the processes of tests/machines/runner.c under qemu-user and talks
 * to them through pipes, or, for x86-64 with AVX-512, in a PC of Bochs, through its serial port. */
#define _GNU_SOURCE
#include "tests/machines/emulated.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/machines/emulated_wire.h"

/* A machine that has what the target asks for and as little else as possible, so that code which uses more fails.  Code
 * for vectors of 16 bytes runs where the machine's are longer. */
typedef struct machine {
    rt_arch arch;
    uint64_t has, lacks;                 /* features of the target */
    const char *emulator, *cpu, *runner; /* runner: environment variable with the program's path */
    pid_t owner, child;                  /* owner: the process that started it; 0: not started */
    int to, from, errors;
    uint8_t *disk;           /* of a PC; NULL: pipes */
    uint64_t disk_bytes, at; /* at: the byte that is written or read next */
    bool asked;              /* what lies there is the answer */
} machine;

#define BIT(feature) (UINT64_C(1) << (feature))
#define ARM_MACHINE(with, without, name)                                                                 \
    {                                                                                                    \
        .arch = RT_ARCH_AARCH64, .has = with, .lacks = without, .emulator = "qemu-aarch64", .cpu = name, \
        .runner = "OPJIT_TEST_AARCH64"                                                                   \
    }
#define RISCV_MACHINE(with, without, name)                                                               \
    {                                                                                                    \
        .arch = RT_ARCH_RISCV64, .has = with, .lacks = without, .emulator = "qemu-riscv64", .cpu = name, \
        .runner = "OPJIT_TEST_RISCV64"                                                                   \
    }
#define PC_MACHINE(with, without, name)                                                              \
    {                                                                                                \
        .arch = RT_ARCH_X86_64, .has = with, .lacks = without, .emulator = "bochs-bin", .cpu = name, \
        .runner = "OPJIT_TEST_PC"                                                                    \
    }
#define PLAIN_RISCV "rv64,zba=false,zbb=false,zbc=false,zbs=false,"

static machine machines[] = {
    ARM_MACHINE(0, BIT(RT_ARM_SVE), "cortex-a72"),
    ARM_MACHINE(BIT(RT_ARM_SVE), BIT(RT_ARM_SVE_256), "max,sve-default-vector-length=64"),
    ARM_MACHINE(BIT(RT_ARM_SVE_256), BIT(RT_ARM_SVE_512), "max,sve-default-vector-length=32"),
    ARM_MACHINE(BIT(RT_ARM_SVE_512), 0, "max,sve-default-vector-length=64"),
    RISCV_MACHINE(0, BIT(RT_RISCV_V) | BIT(RT_RISCV_ZBB), PLAIN_RISCV "v=false"),
    RISCV_MACHINE(BIT(RT_RISCV_ZBB), BIT(RT_RISCV_V), "rv64,v=false"),
    RISCV_MACHINE(BIT(RT_RISCV_V), BIT(RT_RISCV_ZVL256B) | BIT(RT_RISCV_ZBB),
                  PLAIN_RISCV "v=true,vext_spec=v1.0,vlen=512"),
    RISCV_MACHINE(BIT(RT_RISCV_ZVL256B), BIT(RT_RISCV_ZVL512B), "rv64,v=true,vext_spec=v1.0,vlen=256"),
    RISCV_MACHINE(BIT(RT_RISCV_ZVL512B), 0, "rv64,v=true,vext_spec=v1.0,vlen=512"),
    PC_MACHINE(BIT(RT_X86_AVX512BW) | BIT(RT_X86_AVX512VL),
               BIT(RT_X86_AVX512VNNI) | BIT(RT_X86_AVX512VBMI) | BIT(RT_X86_AVX512FP16), "corei7_skylake_x"),
    PC_MACHINE(BIT(RT_X86_AVX512BW) | BIT(RT_X86_AVX512VL), BIT(RT_X86_AVX512FP16), "corei7_icelake_u"),
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static machine *machine_of(const rt_target *t)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        machine *m = &machines[i];
        if (m->arch == t->arch && (t->features & m->has) == m->has && (t->features & m->lacks) == 0)
            return m;
    }
    return NULL;
}

bool test_is_foreign(const rt_target *target)
{
    rt_target host;
    opjit_rt_target_host(&host);
    if (target->arch != host.arch)
        return true;
    const machine *m = opjit_rt_target_runs_here(target, NULL) == OPJIT_OK ? NULL : machine_of(target);
    return m != NULL && getenv(m->runner) != NULL;
}

bool test_runs_here(const char *text)
{
    rt_target t;
    return opjit_rt_target_parse(text, &t, NULL) == OPJIT_OK && opjit_rt_target_runs_here(&t, NULL) == OPJIT_OK;
}

bool test_can_run(const char *text, bool say)
{
    rt_target t;
    opjit_error error = { 0 };
    const bool parses = opjit_rt_target_parse(text, &t, &error) == OPJIT_OK;
    if (parses && rt_target_team(&t) > 0) /* by the PTX interpreter */
        return true;
    if (parses && !test_is_foreign(&t)) {
        if (opjit_rt_target_runs_here(&t, &error) == OPJIT_OK)
            return true;
    } else if (error.status == OPJIT_OK) {
        const machine *m = machine_of(&t);
        if (m != NULL && getenv(m->runner) != NULL)
            return true;
        snprintf(error.message, sizeof error.message, "%s or the cross compiler was not found",
                 m != NULL ? m->emulator : "an emulator");
    }
    if (say)
        printf("skipped: code for %s is not run, because: %s\n", text, error.message);
    return false;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void become(const machine *m, const int to[2], const int from[2])
{
    dup2(to[0], 0);
    dup2(from[1], 1);
    dup2(m->errors, 2);
    close(to[0]), close(to[1]), close(from[0]), close(from[1]);
    execlp(m->emulator, m->emulator, "-cpu", m->cpu, getenv(m->runner), (char *)NULL);
    _exit(127);
}

static bool start_program(machine *m)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    m->child = fork();
    if (m->child == 0)
        become(m, to, from);
    close(to[0]), close(from[1]);
    m->to = to[1];
    m->from = from[0];
    return m->child > 0;
}

/* Bochs has a debugger, which is told to go on. The terminal is its own, so that it ends when the other side closes. */
static void become_pc(const machine *m, const char *terminal, const char *path)
{
    static const char go_on[] = "c\n";
    char rom[512], cpu[128], serial[128], disk[512];
    struct termios raw;
    const int line = (setsid(), open(terminal, O_RDWR)), commands = memfd_create("commands", 0);
    snprintf(rom, sizeof rom, "romimage: file=%s, address=0xffff0000", getenv(m->runner));
    snprintf(cpu, sizeof cpu, "cpu: model=%s, ips=1000000, reset_on_triple_fault=0", m->cpu);
    snprintf(serial, sizeof serial, "com1: enabled=1, mode=term, dev=%s", terminal);
    snprintf(disk, sizeof disk, "ata0-master: type=disk, path=%s, mode=flat, cylinders=130, heads=16, spt=63", path);
    if (tcgetattr(line, &raw) != 0 || write(commands, go_on, strlen(go_on)) < 0)
        _exit(127);
    cfmakeraw(&raw);
    tcsetattr(line, TCSANOW, &raw);
    lseek(commands, 0, SEEK_SET);
    dup2(commands, 0);
    dup2(m->errors, 1);
    dup2(m->errors, 2);
    execlp(m->emulator, m->emulator, "-q", "-f", "/dev/null", "config_interface: textconfig", "display_library: term",
           rom, cpu, "memory: guest=256, host=256", disk, serial, "log: /dev/null", "panic: action=fatal",
           "error: action=ignore", "info: action=ignore", "debug: action=ignore", (char *)NULL);
    _exit(127);
}

/* The PC says that it waits for a request. */
static bool is_ready(const machine *m)
{
    char ready = 0;
    return read(m->to, &ready, 1) == 1 && ready == WIRE_READY;
}

static bool start_pc(machine *m)
{
    char terminal[64], path[] = "/tmp/opjit-pc-XXXXXX", lock_path[sizeof path + 8];
    const int file = mkostemp(path, O_CLOEXEC);
    m->disk_bytes = (uint64_t)WIRE_SECTORS * 512;
    m->disk = file >= 0 && ftruncate(file, (off_t)m->disk_bytes) == 0
                  ? mmap(NULL, m->disk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                  : MAP_FAILED;
    close(file);
    m->to = m->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const bool can = m->disk != MAP_FAILED && m->to >= 0 && grantpt(m->to) == 0 && unlockpt(m->to) == 0 &&
                     ptsname_r(m->to, terminal, sizeof terminal) == 0;
    m->child = can ? fork() : -1;
    if (m->child == 0)
        become_pc(m, terminal, path);
    m->at = 0;
    m->asked = false;
    const bool up = m->child > 0 && is_ready(m);
    snprintf(lock_path, sizeof lock_path, "%s.lock", path); /* Bochs' own */
    unlink(path);
    unlink(lock_path);
    return up;
}

/* Starts the machine's process if necessary.  Check runs each test in a process of its own. */
static bool start(machine *m)
{
    if (m->owner == getpid())
        return true;
    if (getenv(m->runner) == NULL)
        return false;
    m->errors = memfd_create("errors", MFD_CLOEXEC);
    fflush(NULL);
    const bool started = m->arch == RT_ARCH_X86_64 ? start_pc(m) : start_program(m);
    m->owner = started ? getpid() : 0;
    signal(SIGPIPE, SIG_IGN);
    return started;
}

static bool copy_to_disk(machine *m, const void *data, uint64_t size)
{
    if (size > m->disk_bytes - m->at)
        return false;
    memcpy(m->disk + m->at, data, size);
    m->at += size;
    return true;
}

static bool copy_from_disk(machine *m, void *data, uint64_t size)
{
    if (!m->asked) {
        m->at = 0;
        m->asked = write(m->to, &m->asked, 1) == 1 && is_ready(m);
    }
    if (!m->asked || size > m->disk_bytes - m->at)
        return false;
    memcpy(data, m->disk + m->at, size);
    m->at += size;
    return true;
}

static bool put(machine *m, const void *data, uint64_t size)
{
    if (m->disk != NULL)
        return copy_to_disk(m, data, size);
    for (const uint8_t *p = data; size > 0;) {
        const ssize_t n = write(m->to, p, size);
        if (n <= 0)
            return false;
        p += n;
        size -= (uint64_t)n;
    }
    return true;
}

static bool get(machine *m, void *data, uint64_t size)
{
    if (m->disk != NULL)
        return copy_from_disk(m, data, size);
    for (uint8_t *p = data; size > 0;) {
        const ssize_t n = read(m->from, p, size);
        if (n <= 0)
            return false;
        p += n;
        size -= (uint64_t)n;
    }
    return true;
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

static uint32_t describe(const emulated_stage *s, wire_buffer *wire, void **data)
{
    uint32_t n = 0;
    for (; n < s->buffer_count; n++) {
        data[n] = s->buffers[n];
        wire[n] = (wire_buffer){ s->sizes[n], (uint32_t)((uintptr_t)data[n] % WIRE_PAGE), s->sizes[n] == 0 ? -2 : -1 };
        for (uint32_t i = 0; i < n && wire[n].same_as == -1; i++)
            if (wire[i].same_as == -1 && data[i] == data[n])
                wire[n].same_as = (int32_t)i;
    }
    data[n] = s->shared;
    wire[n++] = (wire_buffer){ s->shared_size, 0, s->shared_size == 0 ? -2 : -1 };
    data[n] = s->scratch;
    wire[n++] = (wire_buffer){ s->scratch_size, 0, s->scratch_size == 0 ? -2 : -1 };
    return n;
}

static bool talk(machine *m, const emulated_stage *s, wire_answer *answer)
{
    wire_buffer wire[WIRE_BUFFERS];
    void *data[WIRE_BUFFERS];
    if (s->buffer_count + 2 > WIRE_BUFFERS || s->param_count > WIRE_PARAMS)
        return false;
    const uint32_t count = describe(s, wire, data);
    m->at = 0;
    m->asked = false;
    const wire_request request = { s->code_size, s->entry, s->begin, s->end, s->param_count, count };
    bool good = put(m, &request, sizeof request) && put(m, s->code, s->code_size) &&
                put(m, s->params, s->param_count * sizeof *s->params);
    for (uint32_t i = 0; i < count && good; i++)
        good = put(m, &wire[i], sizeof wire[i]) && (wire[i].same_as != -1 || put(m, data[i], wire[i].size));
    good = good && get(m, answer, sizeof *answer);
    for (uint32_t i = 0; i < count && good; i++)
        good = wire[i].same_as != -1 || get(m, data[i], wire[i].size);
    return good;
}

/* A PC that waits for its serial port takes all of a core, so it is stopped meanwhile. */
static void wait_for_request(const machine *m, bool waits)
{
    if (m->arch == RT_ARCH_X86_64)
        kill(m->child, waits ? SIGSTOP : SIGCONT);
}

/* After a failure: whether it was qemu 7.2's assertion, which fails where a vector is converted to integers before
 * anything else in the block uses the rounding mode (RISC-V: vfcvt.rtz).  Anything else that qemu printed is passed
 * on. */
static bool gave_up(machine *m)
{
    char said[1024];
    close(m->to), close(m->from); /* it ends now, if it hasn't yet */
    wait_for_request(m, false);
    const ssize_t length = waitpid(m->child, NULL, 0) == m->child ? pread(m->errors, said, sizeof said - 1, 0) : 0;
    said[length > 0 ? length : 0] = '\0';
    close(m->errors);
    m->owner = 0;
    if (m->disk != NULL)
        munmap(m->disk, m->disk_bytes);
    if (strstr(said, "decode_save_opc: Assertion") != NULL)
        return true;
    fputs(said, stderr);
    return false;
}

/* What Bochs 2.7 computes wrongly, by the bytes of VEX and EVEX instructions: code with one of them is not run. */
enum {
    WIDE = 1,
    EVEX = 2,
    HIGH_INDEX = 4,
    SHORT = 8,
    MEMORY = 16
}; /* with W; EVEX alone; that has such an index, or displacement; that reads memory */
static const struct fault {
    uint8_t map, prefix, first, last, with; /* first, last: opcodes */
} faults[] = {
    { 3, 1, 0x1d, 0x1d, 0 },                 /* VCVTPS2PH rounds what lies halfway up */
    { 2, 1, 0x96, 0xbf, WIDE },              /* FMA of FLOAT64 is 0 where few bits are left of a difference */
    { 2, 1, 0x90, 0x93, EVEX | HIGH_INDEX }, /* gathers ignore the fifth bit of the index's register */
    { 1, 3, 0x12, 0x12, EVEX | WIDE },       /* VMOVDDUP of eight bytes reads sixteen */
    { 3, 1, 0x20, 0x20, EVEX | SHORT },      /* VPINSRB takes its byte from twice as far away, */
    { 3, 1, 0x15, 0x15, EVEX | SHORT },      /* VPEXTRW stores at half the distance */
    { 2, 1, 0x88, 0x89, EVEX | MEMORY },     /* VEXPAND and VPEXPAND read more than what is expanded */
};

static bool has_fault(const machine *m, const emulated_stage *s)
{
    const uint8_t *const code = s->code;
    for (uint64_t i = 0; i + 5 < s->code_size && m->arch == RT_ARCH_X86_64; i++) {
        const uint8_t *const b = code + i;
        const bool evex = b[0] == 0x62;
        const uint8_t map = b[1] & (evex ? 7 : 31), opcode = b[evex ? 4 : 3];
        const uint32_t has = (b[2] >> 7 != 0 ? WIDE : 0) | (evex ? EVEX : 0) | ((b[3] & 8) == 0 ? HIGH_INDEX : 0) |
                             (b[5] >> 6 == 1 ? SHORT : 0) | (b[5] >> 6 != 3 ? MEMORY : 0);
        for (size_t k = 0; k < sizeof faults / sizeof *faults && (evex || b[0] == 0xc4); k++) {
            const struct fault *f = &faults[k];
            if (map == f->map && (b[2] & 3) == f->prefix && opcode >= f->first && opcode <= f->last &&
                (has & f->with) == f->with)
                return true;
        }
    }
    return false;
}

emulated_result test_emulated_run(const emulated_stage *stage, char *message, size_t message_size)
{
    machine *m = machine_of(stage->target);
    wire_answer answer = { 0 };
    bool started, talked = false, given_up = false;
    if (m != NULL && has_fault(m, stage)) {
        snprintf(message, message_size, "%s has a fault in one of its instructions", m->emulator);
        return EMULATED_GAVE_UP;
    }
    pthread_mutex_lock(&lock);
    started = m != NULL && start(m);
    if (started) {
        wait_for_request(m, false);
        talked = talk(m, stage, &answer);
        wait_for_request(m, true);
    }
    if (started && !talked)
        given_up = gave_up(m);
    pthread_mutex_unlock(&lock);
    if (!started)
        snprintf(message, message_size, "no machine for %s could be started", stage->target->text);
    else if (!talked)
        snprintf(message, message_size, "%s -cpu %s ended: %s", m->emulator, m->cpu,
                 given_up ? "an assertion of its own" : "a signal, or something not told");
    else if (answer.outside != 0)
        snprintf(message, message_size, "beside %u buffers something was written", answer.outside);
    if (given_up)
        printf("skipped: a case for %s, because: %s\n", stage->target->text, message);
    return given_up ? EMULATED_GAVE_UP : talked && answer.outside == 0 ? EMULATED_RAN : EMULATED_FAILED;
}
