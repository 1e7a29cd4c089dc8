/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - starts, lends and ends worker processes.  They are found by nothing but this table; a child of fork
 * forgets its parent's and starts its own.  A worker that is not needed any more is killed: it has nothing to save. */
#define _GNU_SOURCE
#include "codegen/process/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/limits.h"
#include "runtime/base/lock.h"
#include "runtime/base/module.h"

#include "opjit_build_id.h"

enum {
    MOST_WORKERS = 8,      /* that compile at one time; further threads wait */
    MOST_SERVED = 10000,   /* requests, after which a worker is replaced */
    FIRST_DESCRIPTOR = 10, /* of what is moved to CP_SOCKET and CP_MEMORY in a worker */
    LOOK_NS = 2000000,
    ENDING_MS = 1000 /* in which a process that has closed its socket ends by itself */
};
#define MOST_MEMORY ((uint64_t)768 << 20) /* bytes of a worker between two requests, likewise */

enum { FREE = 0, IDLE, LENT };  /* states */
#define BY_HANDLE ((idtype_t)3) /* P_PIDFD, which older C libraries don't name */

static rt_process process;
static rt_lock lock; /* of what follows */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cp_worker workers[MOST_WORKERS];
static pid_t owner; /* of the workers */
static atomic_uint changes;

static void begin(void)
{
    opjit_rt_process_init(&process);
    opjit_rt_lock_init(&lock, &process);
}

/* --- ending ------------------------------------------------------------------------------------------------------- */

static void close_one(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void close_ends(cp_worker *w)
{
    close_one(&w->socket);
    close_one(&w->handle);
    if (w->page != NULL)
        munmap(w->page, sizeof *w->page);
    w->page = NULL;
}

/* Whether it has ended; then no zombie stays, and *out says how.  false with errno ECHILD: nobody can say, since the
 * host ignores its children, or has waited for all of them. */
static bool reap(const cp_worker *w, int options, siginfo_t *out)
{
    int failed;
    do {
        out->si_pid = 0;
        failed = w->handle >= 0 ? waitid(BY_HANDLE, (id_t)w->handle, out, WEXITED | options)
                                : waitid(P_PID, (id_t)w->pid, out, WEXITED | options);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0)
        errno = 0;
    return failed == 0 && out->si_pid != 0;
}

static void end(cp_worker *w)
{
    siginfo_t how;
    if (w->pid > 0) {
#ifdef SYS_pidfd_send_signal
        if (w->handle >= 0)
            syscall(SYS_pidfd_send_signal, w->handle, SIGKILL, NULL, 0);
#endif
        if (w->handle < 0)
            kill(w->pid, SIGKILL);
        reap(w, 0, &how);
    }
    w->pid = 0;
    close_ends(w);
}

/* Called with the lock, in a child of fork: its parent's workers serve its parent. */
static void forget_parents(void)
{
    if (owner == getpid())
        return;
    for (uint32_t i = 0; owner != 0 && i < MOST_WORKERS; i++)
        if (workers[i].state != FREE)
            close_ends(&workers[i]);
    memset(workers, 0, sizeof workers);
    owner = getpid();
}

static const char *name_of(int signal)
{
    switch (signal) {
    case SIGSEGV: return "segmentation fault";
    case SIGABRT: return "aborted";
    case SIGKILL: return "killed";
    case SIGBUS: return "bus error";
    case SIGILL: return "illegal instruction";
    case SIGFPE: return "arithmetic exception";
    case SIGTRAP: return "trap";
    case SIGTERM: return "terminated";
    default: return "see signal(7)";
    }
}

opjit_status opjit_cp_worker_report(cp_worker *w, const char *what, opjit_status status, opjit_error *error)
{
    const struct timespec moment = { 0, 1000000 };
    char how[64] = "ended", text[97];
    siginfo_t end_of_it;
    bool reaped = reap(w, WNOHANG, &end_of_it);
    for (uint32_t i = 0; i < ENDING_MS && !reaped && errno == 0; i++) {
        nanosleep(&moment, NULL);
        reaped = reap(w, WNOHANG, &end_of_it);
    }
    const bool killed = reaped && end_of_it.si_code != CLD_EXITED;
    if (reaped)
        w->pid = 0;
    if (killed)
        snprintf(how, sizeof how, "ended by signal %d (%s)", end_of_it.si_status, name_of(end_of_it.si_status));
    else if (reaped)
        snprintf(how, sizeof how, "ended with status %d", end_of_it.si_status);
    memcpy(text, w->page->text, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[strcspn(text, "\n")] = '\0';
    opjit_rt_refuse(error, status, "{kernel} {!name}{%.80s}: the worker process that compiled it %s%s%s", what, how,
                    text[0] != '\0' ? ": " : "", text);
    if (killed && end_of_it.si_status == SIGKILL)
        opjit_rt_later(error, status); /* somebody's decision, such as that of a system without memory */
    return status;
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

/* Descriptors of a worker that is being started. */
typedef struct ends {
    int pair[2], memory; /* the host's, then the worker's */
} ends;

/* To where no number is that the worker's ones get; the old one is closed. */
static int move_up(int descriptor)
{
    const int moved = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (descriptor >= 0)
        close(descriptor);
    return moved;
}

static bool open_ends(ends *e)
{
    *e = (ends){ { -1, -1 }, -1 };
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->pair) != 0)
        e->pair[0] = e->pair[1] = -1;
    e->pair[0] = move_up(e->pair[0]);
    e->pair[1] = move_up(e->pair[1]);
    e->memory = move_up(memfd_create("opjit-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    return e->pair[0] >= 0 && e->pair[1] >= 0 && e->memory >= 0 &&
           rt_file_may_have(sizeof(cp_page)) && ftruncate(e->memory, sizeof(cp_page)) == 0 &&
           fcntl(e->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

/* Signals and the terminal are the host's business: the worker has none blocked, ignored or handled, and a process
 * group of its own. */
static int spawn_with(const char *program, const char *library, const ends *e, pid_t *out)
{
    char host[16];
    char *arguments[] = { "opjit-worker", (char *)(uintptr_t)library, host, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        sigemptyset(&none);
        sigfillset(&all);
        snprintf(host, sizeof host, "%ld", (long)getpid());
        failed = posix_spawnattr_setflags(&attributes,
                                          POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        failed |= posix_spawnattr_setsigmask(&attributes, &none) | posix_spawnattr_setsigdefault(&attributes, &all);
        for (int i = 0; i < 3; i++)
            failed |= posix_spawn_file_actions_adddup2(&actions, e->memory, i);
        failed |= posix_spawn_file_actions_adddup2(&actions, e->pair[1], CP_SOCKET) |
                  posix_spawn_file_actions_adddup2(&actions, e->memory, CP_MEMORY);
        failed = failed != 0 ? ENOMEM : posix_spawn(out, program, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* The worker lies beside this library, or in a folder beside it, and loads the code generator that lies there. */
static opjit_status find_files(char program[static RT_MODULE_PATH], char library[static RT_MODULE_PATH],
                               opjit_error *error)
{
    static const rt_module generator = { "codegen", "libopjit-codegen.so", NULL, NULL,
                                         "libopjit-codegen-process.so needs it" };
    static const rt_module beside = { "codegen", "opjit-worker", NULL, NULL, "libopjit-codegen-process.so needs it" };
    static const rt_module below = { "codegen", "opjit/opjit-worker", NULL, NULL,
                                     "libopjit-codegen-process.so needs it" };
    TRY(opjit_rt_module_find(&generator, NULL, library, error));
    if (opjit_rt_module_find(&below, NULL, program, NULL) == OPJIT_OK)
        return OPJIT_OK;
    return opjit_rt_module_find(&beside, NULL, program, error);
}

static opjit_status greet(cp_worker *w, const char *what, const atomic_bool *cancel, const opjit_allocator *allocator,
                          opjit_error *error)
{
    cp_line line = { .socket = w->socket, .other = -1, .cancel = cancel };
    cp_kind kind = CP_KIND_END;
    rt_bytes bytes;
    opjit_status status;
    opjit_rt_bytes_init(&bytes, allocator);
    switch (opjit_cp_receive(&line, &kind, &bytes)) {
    case CP_DONE: status = opjit_cp_take_hello(&bytes, OPJIT_BUILD_ID, error); break;
    case CP_CANCELLED: status = opjit_rt_cancelled(error); break;
    case CP_NO_MEMORY: status = opjit_rt_no_memory(error); break;
    case CP_ENDED: status = opjit_cp_worker_report(w, what, OPJIT_UNAVAILABLE, error); break;
    default: status = opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{compile worker}: it is no worker of opjit's");
    }
    opjit_rt_bytes_free(&bytes);
    return status;
}

static opjit_status start(cp_worker *w, const char *what, const atomic_bool *cancel, const opjit_allocator *allocator,
                          opjit_error *error)
{
    char program[RT_MODULE_PATH], library[RT_MODULE_PATH];
    ends e;
    TRY(find_files(program, library, error));
    int failed = open_ends(&e) && lseek(e.memory, CP_PAGE, SEEK_SET) == CP_PAGE ? 0 : errno;
    if (failed == 0) {
        void *page = mmap(NULL, sizeof(cp_page), PROT_READ | PROT_WRITE, MAP_SHARED, e.memory, 0);
        w->page = page == MAP_FAILED ? NULL : page;
        failed = page == MAP_FAILED ? errno : spawn_with(program, library, &e, &w->pid);
    }
    if (failed != 0) {
        w->pid = 0;
        close_one(&e.pair[0]);
    }
    w->socket = e.pair[0];
    close_one(&e.pair[1]);
    close_one(&e.memory);
    if (failed != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{compile worker} {!path}{%.160s} can't be started: %s",
                               program,
                               failed == ENOENT   ? "no such file"
                               : failed == EACCES ? "it may not be executed"
                               : failed == ENOMEM ? "no memory"
                                                  : "the system refused");
#ifdef SYS_pidfd_open
    w->handle = (int)syscall(SYS_pidfd_open, w->pid, 0);
#endif
    return greet(w, what, cancel, allocator, error);
}

/* --- lending ------------------------------------------------------------------------------------------------------ */

/* It says nothing of its own accord, so what can be read is its end. */
static bool is_alive(const cp_worker *w)
{
    char byte;
    return recv(w->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Called with the lock.  The first ones first, so that those that only a crowd of threads needed stay idle. */
static cp_worker *choose(void)
{
    for (uint32_t i = 0; i < MOST_WORKERS; i++)
        if (workers[i].state == IDLE) {
            workers[i].state = LENT;
            return &workers[i];
        }
    for (uint32_t i = 0; i < MOST_WORKERS; i++)
        if (workers[i].state == FREE) {
            workers[i] = (cp_worker){ .handle = -1, .socket = -1, .state = LENT };
            return &workers[i];
        }
    return NULL;
}

opjit_status opjit_cp_worker_take(const char *what, const atomic_bool *cancel, const opjit_allocator *allocator,
                                  cp_worker **out, opjit_error *error)
{
    cp_worker *w;
    pthread_once(&once, begin);
    for (;;) {
        opjit_rt_lock(&lock);
        forget_parents();
        const uint32_t seen = atomic_load(&changes);
        w = choose();
        opjit_rt_unlock(&lock);
        if (w != NULL)
            break;
        if (cancel != NULL && atomic_load(cancel))
            return opjit_rt_cancelled(error);
        opjit_rt_await_until(&changes, seen, opjit_rt_nanoseconds() + LOOK_NS);
    }
    if (w->pid > 0 && !is_alive(w)) {
        end(w);
        w->served = 0;
    }
    const opjit_status status = w->pid > 0 ? OPJIT_OK : start(w, what, cancel, allocator, error);
    if (status != OPJIT_OK) {
        opjit_cp_worker_give(w, false, 0);
        return status;
    }
    w->served++;
    atomic_store(&w->page->cancel, false);
    atomic_store(&w->page->begun, false);
    *out = w;
    return OPJIT_OK;
}

void opjit_cp_worker_give(cp_worker *w, bool keep, uint64_t memory)
{
    keep = keep && memory <= MOST_MEMORY && w->served < MOST_SERVED;
    if (!keep)
        end(w);
    opjit_rt_lock(&lock);
    w->state = keep ? IDLE : FREE;
    opjit_rt_unlock(&lock);
    opjit_rt_wake_all(&changes);
}

/* At the host's end, workers would end by themselves, but as children of a process that may not wait for them. */
__attribute__((destructor)) static void end_all(void)
{
    if (owner == 0 || owner != getpid())
        return;
    opjit_rt_lock(&lock);
    for (uint32_t i = 0; i < MOST_WORKERS; i++)
        if (workers[i].state == IDLE) {
            workers[i].state = FREE;
            end(&workers[i]);
        }
    opjit_rt_unlock(&lock);
}
