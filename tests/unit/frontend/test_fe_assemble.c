/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_assemble.c - running ptxas: scripts in its place that succeed, fail, crash, hang or write half a file, in
 * processes that wait for their children, ignore SIGCHLD, or have a thread that waits for all children. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/aot/artifact.h"
#include "tests/support/require.h"

/* The script's arguments are -arch=sm_90 -o CUBIN PTX; $good and $half are files. */
static const struct {
    const char *name, *script;
    opjit_status status;
    const char *message; /* NULL: success */
    const char *reaped;  /* where the exit status is lost; NULL: the same */
} rows[] = {
    { "good", "[ \"$1\" = -arch=sm_90 ] && [ \"$(cat \"$4\")\" = text ] && cp $good \"$3\"", OPJIT_OK, NULL, NULL },
    { "slow", "sleep 0.2; cp $good \"$3\"", OPJIT_OK, NULL, NULL },
    { "talks", "echo a note; cp $good \"$3\"", OPJIT_OK, NULL, NULL },
    { "refuses", "echo 'line 3: no such thing' >&2; echo more; exit 1", OPJIT_CODEGEN, "ptxas: line 3: no such thing",
      NULL },
    { "refuses without a word", "exit 7", OPJIT_CODEGEN, "ptxas: it gives no reason", "ptxas: it has written nothing" },
    { "fails behind its output", "cp $half \"$3\"; exit 1", OPJIT_CODEGEN, "ptxas: it gives no reason",
      "ptxas: what it has written is not whole" },
    { "crashes", "kill -SEGV $$", OPJIT_CODEGEN, "ptxas: it was ended by signal 11", "ptxas: it has written nothing" },
    { "crashes behind half of its output", "cp $half \"$3\"; kill -KILL $$", OPJIT_CODEGEN,
      "ptxas: it was ended by signal 9", "ptxas: what it has written is not whole" },
    { "writes nothing", "exit 0", OPJIT_CODEGEN, "ptxas: it has written nothing", NULL },
    { "writes half", "cp $half \"$3\"", OPJIT_CODEGEN, "ptxas: what it has written is not whole", NULL },
    { "writes text", "cp \"$4\" \"$3\"", OPJIT_CODEGEN, "ptxas: what it has written is not whole", NULL },
    { "hangs", "sleep 1000", OPJIT_CODEGEN, "ptxas was stopped: it took longer than 1 seconds", NULL },
    { "hangs and ignores signals", "trap '' TERM INT HUP; sleep 1000; sleep 1000", OPJIT_CODEGEN,
      "ptxas was stopped: it took longer than 1 seconds", NULL },
};
enum { ROWS = sizeof rows / sizeof *rows };

static char folder[64], path[128];

static void write_file(const char *name, const void *data, size_t size, mode_t mode)
{
    char at[128];
    snprintf(at, sizeof at, "%s/%s", folder, name);
    const int file = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, data, size), (ssize_t)size);
    close(file);
}

/* Writes the smallest file that counts as machine code for CUDA: a header, and one section of 16 bytes. */
static void write_elf(void)
{
    struct {
        Elf64_Ehdr header;
        uint8_t code[16];
        Elf64_Shdr section;
    } file = { .header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                           .e_machine = EM_CUDA,
                           .e_shnum = 1,
                           .e_shentsize = sizeof(Elf64_Shdr) },
               .section = { .sh_type = SHT_PROGBITS, .sh_offset = sizeof(Elf64_Ehdr), .sh_size = 16 } };
    file.header.e_shoff = (uint64_t)((char *)&file.section - (char *)&file);
    write_file("good", &file, sizeof file, 0600);
    write_file("half", &file, sizeof file - 1, 0600);
}

static void setup(void)
{
    strcpy(folder, "/tmp/opjit-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_elf();
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", folder);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static uint32_t count_descriptors(void)
{
    DIR *const directory = opendir("/proc/self/fd");
    uint32_t count = 0;
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* Runs the row's script as ptxas. */
static void check(int row, const char *message)
{
    char script[512];
    opjit_error error = { .message = "" };
    rt_target target;
    rt_bytes ptx, out;
    const uint32_t files = count_descriptors();
    snprintf(script, sizeof script, "#!/bin/sh\ngood=%s/good half=%s/half\n%s\n", folder, folder, rows[row].script);
    write_file("ptxas", script, strlen(script), 0700);
    ck_assert_int_eq(opjit_rt_target_parse("nvptx:sm_90", &target, NULL), OPJIT_OK);
    opjit_rt_bytes_init(&ptx, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&ptx, "text", 4);
    const opjit_status status =
        opjit_fe_assemble(&target, &ptx, strncmp(rows[row].name, "hangs", 5) == 0 ? 1 : 100, &out, &error);
    ck_assert_msg(status == rows[row].status, "%s: %s", rows[row].name, error.message);
    ck_assert_msg(message == NULL ||
                      (strncmp(error.message, "cubin: ", 7) == 0 && strcmp(error.message + 7, message) == 0),
                  "%s: %s, expected %s", rows[row].name, error.message, message);
    if (status != OPJIT_OK && status != OPJIT_OUT_OF_MEMORY)
        test_require_place(&error);
    ck_assert_uint_eq(count_descriptors(), files);
    if (status == OPJIT_OK)
        ck_assert_uint_eq(out.size, sizeof(Elf64_Ehdr) + 16 + sizeof(Elf64_Shdr));
    opjit_rt_bytes_free(&ptx);
    opjit_rt_bytes_free(&out);
}

START_TEST(waits)
{
    check(_i, rows[_i].message);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD); /* no child is left */
}
END_TEST

START_TEST(ignores_children)
{
    signal(SIGCHLD, SIG_IGN);
    check(_i, rows[_i].reaped != NULL ? rows[_i].reaped : rows[_i].message);
    signal(SIGCHLD, SIG_DFL);
}
END_TEST

static atomic_bool done;
static void *reap(void *unused)
{
    (void)unused;
    while (!atomic_load(&done))
        if (waitpid(-1, NULL, 0) < 0) /* there is no child yet */
            usleep(50);
    return NULL;
}

/* Which thread gets the exit status is a race; the kind of the error isn't. */
START_TEST(reaps_all)
{
    pthread_t thread;
    atomic_store(&done, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, reap, NULL), 0);
    check(_i, NULL);
    atomic_store(&done, true);
    pthread_join(thread, NULL);
}
END_TEST

/* The program inherits none of our descriptors and has default signals, none blocked; its folder is removed
 * afterwards. */
START_TEST(surroundings)
{
    sigset_t set;
    char where[128], script[1024];
    opjit_error error = { .message = "" };
    rt_target target;
    rt_bytes ptx, out;
    for (int file = 3; file < 1024; file++) /* Check's descriptors, and those it inherited */
        fcntl(file, F_SETFD, FD_CLOEXEC);
    snprintf(script, sizeof script,
             "#!/bin/sh\n[ \"$(ls /proc/self/fd | wc -l)\" = 4 ] || { ls -l /proc/self/fd; exit 1; }\n"
             "grep -E '^Sig(Blk|Ign)' /proc/self/status | grep -v '0000000$' && exit 1\n"
             "ln -s \"$(dirname \"$3\")\" %s/where; cp %s/good \"$3\"\n",
             folder, folder);
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    write_file("ptxas", script, strlen(script), 0700);
    ck_assert_int_eq(opjit_rt_target_parse("nvptx:sm_90", &target, NULL), OPJIT_OK);
    opjit_rt_bytes_init(&ptx, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&ptx, "text", 4);
    ck_assert_msg(opjit_fe_assemble(&target, &ptx, 100, &out, &error) == OPJIT_OK, "%s", error.message);
    snprintf(where, sizeof where, "%s/where", folder);
    ck_assert(access(where, F_OK) != 0 && errno == ENOENT); /* a link that leads nowhere */
    ck_assert_int_eq(unlink(where), 0);
    opjit_rt_bytes_free(&ptx);
    opjit_rt_bytes_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.assemble");
    TCase *t = tcase_create("assemble");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, waits, 0, ROWS);
    tcase_add_loop_test(t, ignores_children, 0, ROWS);
    tcase_add_loop_test(t, reaps_all, 0, ROWS);
    tcase_add_test(t, surroundings);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
