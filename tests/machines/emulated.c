/* SPDX-License-Identifier: Apache-2.0 */
/* emulated.c - runs stages under qemu-user: starts the processes of tests/machines/runner.c and talks to them through
 * pipes. */
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
    return target->arch != host.arch;
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

/* Starts the machine's process if necessary.  Check runs each test in a process of its own. */
static bool start(machine *m)
{
    int to[2], from[2];
    if (m->owner == getpid())
        return true;
    if (getenv(m->runner) == NULL || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    m->errors = memfd_create("errors", MFD_CLOEXEC);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        become(m, to, from);
    close(to[0]), close(from[1]);
    m->to = to[1];
    m->from = from[0];
    m->child = child;
    m->owner = child > 0 ? getpid() : 0;
    signal(SIGPIPE, SIG_IGN);
    return child > 0;
}

static bool put(const machine *m, const void *data, uint64_t size)
{
    for (const uint8_t *p = data; size > 0;) {
        const ssize_t n = write(m->to, p, size);
        if (n <= 0)
            return false;
        p += n;
        size -= (uint64_t)n;
    }
    return true;
}

static bool get(const machine *m, void *data, uint64_t size)
{
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

static bool talk(const machine *m, const emulated_stage *s, wire_answer *answer)
{
    wire_buffer wire[WIRE_BUFFERS];
    void *data[WIRE_BUFFERS];
    if (s->buffer_count + 2 > WIRE_BUFFERS || s->param_count > WIRE_PARAMS)
        return false;
    const uint32_t count = describe(s, wire, data);
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

/* After a failure: whether it was qemu 7.2's assertion, which fails where a vector is converted to integers before
 * anything else in the block uses the rounding mode (RISC-V: vfcvt.rtz).  Anything else that qemu printed is passed
 * on. */
static bool gave_up(machine *m)
{
    char said[1024];
    close(m->to), close(m->from); /* it ends now, if it hasn't yet */
    const ssize_t length = waitpid(m->child, NULL, 0) == m->child ? pread(m->errors, said, sizeof said - 1, 0) : 0;
    said[length > 0 ? length : 0] = '\0';
    close(m->errors);
    m->owner = 0;
    if (strstr(said, "decode_save_opc: Assertion") != NULL)
        return true;
    fputs(said, stderr);
    return false;
}

emulated_result test_emulated_run(const emulated_stage *stage, char *message, size_t message_size)
{
    machine *m = machine_of(stage->target);
    wire_answer answer = { 0 };
    bool started, talked = false, given_up = false;
    pthread_mutex_lock(&lock);
    started = m != NULL && start(m);
    if (started)
        talked = talk(m, stage, &answer);
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
