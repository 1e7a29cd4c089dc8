/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_disk.c - the disk cache's files: what is read back, what is refused, what is evicted, and many processes at
 * once that are killed. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cache/disk_file.h"
#include "tests/support/checker.h"
#include "tests/unit/runtime/rt_sample.h"

static char folder[128];
static counting memory;
static opjit_context *context;
static rt_disk *disk;
static rt_bytes image;
static uint32_t warnings;
static rt_disk_kind kind; /* of the files that a test makes */

static void on_event(void *user, const opjit_event *event)
{
    (void)user;
    warnings += event->kind == OPJIT_EVENT_WARNING;
}

static void open_disk(uint64_t capacity)
{
    ck_assert_int_eq(opjit_rt_disk_create(context->core, folder, capacity, &disk, NULL), OPJIT_OK);
}

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    sample s;
    options.allocator = &a;
    options.event = on_event;
    warnings = 0;
    kind = RT_DISK_KERNEL;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    strcpy(folder, "/tmp/opjit-disk-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    open_disk(UINT64_MAX);
    sample_init(&s);
    opjit_rt_bytes_init(&image, &context->core->allocator);
    ck_assert_int_eq(sample_build(&s, &image, &context->core->allocator, NULL), OPJIT_OK);
}

static void remove_folder(void)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    rmdir(folder);
}

static void teardown(void)
{
    opjit_rt_bytes_free(&image);
    opjit_rt_disk_destroy(disk);
    opjit_context_destroy(context);
    remove_folder();
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static rt_disk_key disk_key(const void *key, size_t size)
{
    return (rt_disk_key){ key, size, opjit_rt_hash(key, size), kind };
}

/* The cache returns the image for a key, or nothing. */
static rt_disk_result load(const void *key, size_t key_size)
{
    const rt_disk_key whole = disk_key(key, key_size);
    rt_disk_result result;
    rt_bytes out;
    opjit_rt_bytes_init(&out, &context->core->allocator);
    result = opjit_rt_disk_load(disk, &whole, &out);
    ck_assert_uint_eq(out.size, result == RT_DISK_FOUND ? image.size : 0);
    ck_assert(out.size == 0 || memcmp(out.data, image.data, image.size) == 0);
    opjit_rt_bytes_free(&out);
    return result;
}

static bool store(const void *key, size_t key_size)
{
    const rt_disk_key whole = disk_key(key, key_size);
    return opjit_rt_disk_store(disk, &whole, image.data, image.size);
}

/* The one file of the folder. */
static void only_file(char path[static 512])
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    int count = 0;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && ++count == 1)
            snprintf(path, 512, "%s/%s", folder, entry->d_name);
    closedir(directory);
    ck_assert_int_eq(count, 1);
}

START_TEST(a_stored_image_comes_back)
{
    char key[300];
    for (size_t size = 0; size < sizeof key; size += 37) {
        memset(key, (int)size, sizeof key);
        ck_assert_int_eq(load(key, size), RT_DISK_ABSENT);
        ck_assert(store(key, size) && store(key, size));
        ck_assert_int_eq(load(key, size), RT_DISK_FOUND);
    }
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* Whatever is done to a file, the cache returns the right image or none; the same holds for a function's code. */
START_TEST(no_mutation_is_served)
{
    kind = (rt_disk_kind)_i;
    uint32_t rejected = 0, state = 12345;
    uint8_t bytes[16384];
    char path[512];
    ssize_t size;
    int file;
    ck_assert(store("key", 4));
    only_file(path);
    file = open(path, O_RDONLY);
    size = read(file, bytes, sizeof bytes);
    ck_assert(size > (ssize_t)image.size && size < (ssize_t)sizeof bytes);
    close(file);
    for (int round = 0; round < 10000; round++) {
        uint8_t copy[sizeof bytes];
        ssize_t length = size;
        memcpy(copy, bytes, sizeof bytes);
        state = state * 1664525 + 1013904223;
        for (uint32_t i = 0; i <= (state >> 24) % 4; i++) {
            const uint32_t at = (state >> 8) * (i + 1) % (uint32_t)(i % 2 == 0 ? size : 200);
            copy[at] ^= (uint8_t)(1u << (state >> 29));
        }
        if (state % 5 == 0)
            length = (ssize_t)((state >> 7) % (uint32_t)(size + 100));
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ck_assert_int_eq(write(file, copy, (size_t)length), length);
        close(file);
        if (load("key", 4) == RT_DISK_REJECTED) {
            ck_assert_int_ne(access(path, F_OK), 0);
            rejected++;
        } else {
            ck_assert(length == size && memcmp(copy, bytes, (size_t)size) == 0);
        }
    }
    ck_assert_uint_gt(rejected, 9000);
    ck_assert_uint_eq(warnings, rejected);
}
END_TEST

/* A file named after one key that holds another key's kernel. */
START_TEST(the_whole_key_counts)
{
    kind = (rt_disk_kind)_i;
    char first[512], second[512];
    ck_assert(store("one", 4));
    only_file(first);
    ck_assert(rename(first, strcpy(second, "/tmp/opjit-disk-file")) == 0);
    ck_assert(store("two", 4));
    only_file(first);
    ck_assert(rename(second, first) == 0);
    ck_assert_int_eq(load("two", 4), RT_DISK_REJECTED);
    ck_assert_int_eq(load("two", 4), RT_DISK_ABSENT);
}
END_TEST

static bool age(void *user, const rt_disk_entry *entry)
{
    char path[512], name[DISK_FILE_NAME_SIZE];
    const struct timespec times[2] = { { 1000 + *(int *)user, 0 }, { 1000 + *(int *)user, 0 } };
    ck_assert_ptr_null(entry->damaged);
    ck_assert_str_eq(entry->name, "sample");
    opjit_rt_disk_file_name(entry->key, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ++*(int *)user;
    return true;
}

static bool count_files(void *user, const rt_disk_entry *entry)
{
    (void)entry;
    ++*(uint32_t *)user;
    return true;
}

START_TEST(the_least_recently_used_go)
{
    uint32_t files = 0;
    int seconds = 0;
    for (uint32_t key = 0; key < 8; key++)
        ck_assert(store(&key, sizeof key));
    ck_assert_int_eq(opjit_rt_disk_visit(disk, NULL, age, &seconds, NULL), OPJIT_OK);
    ck_assert_int_eq(seconds, 8);
    for (uint32_t key = 0; key < 4; key++)
        ck_assert_int_eq(load(&key, sizeof key), RT_DISK_FOUND); /* used now */
    opjit_rt_disk_destroy(disk);
    open_disk(8 * (image.size + 200)); /* eight fit, nine do not */
    for (uint32_t key = 8; key < 10; key++)
        ck_assert(store(&key, sizeof key));
    ck_assert_int_eq(opjit_rt_disk_visit(disk, NULL, count_files, &files, NULL), OPJIT_OK);
    ck_assert_uint_le(files, 8);
    ck_assert_uint_ge(files, 6);
    for (uint32_t key = 0; key < 4; key++)
        ck_assert_int_eq(load(&key, sizeof key), RT_DISK_FOUND);
}
END_TEST

START_TEST(nothing_can_be_written)
{
    const struct rlimit none = { 100, RLIM_INFINITY };
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &none); /* without a handler of the signal: the host has none */
    const bool stored = store("key", 3) || store("other", 5);
    setrlimit(RLIMIT_FSIZE, &old); /* Check writes files, too */
    ck_assert(!stored);
    ck_assert_uint_eq(warnings, 1); /* one per context, not per kernel */
    ck_assert_int_eq(load("key", 3), RT_DISK_ABSENT);
    ck_assert(store("key", 3));
}
END_TEST

START_TEST(without_memory)
{
    const rt_disk_key whole = disk_key("key", 3);
    ck_assert(store("key", 3));
    for (int fail_at = 1; fail_at < 8; fail_at++) {
        rt_bytes out;
        rt_disk_result result;
        opjit_rt_bytes_init(&out, &context->core->allocator);
        memory.calls = 0;
        memory.fail_at = fail_at;
        result = opjit_rt_disk_load(disk, &whole, &out);
        memory.fail_at = 0;
        ck_assert(result == RT_DISK_ABSENT || (result == RT_DISK_FOUND && out.size == image.size));
        opjit_rt_bytes_free(&out);
    }
    ck_assert_int_eq(load("key", 3), RT_DISK_FOUND); /* lack of memory did not remove it */
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* --- processes ---------------------------------------------------------------------------------------------------- */
enum { PROCESSES = 8, KEYS = 1000 };

/* Loads or stores every key, starting at `first`, until it is killed or done. */
static void work(uint32_t first)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        const uint32_t key = (first + i) % KEYS;
        rt_bytes out;
        rt_disk_result result;
        const rt_disk_key whole = disk_key(&key, sizeof key);
        opjit_rt_bytes_init(&out, &context->core->allocator);
        result = opjit_rt_disk_load(disk, &whole, &out);
        if (result == RT_DISK_REJECTED || (result == RT_DISK_FOUND && memcmp(out.data, image.data, image.size) != 0))
            _exit(1);
        if (result == RT_DISK_ABSENT && !store(&key, sizeof key))
            _exit(2);
        opjit_rt_bytes_free(&out);
    }
    _exit(0);
}

/* From now on this process and its children can't create files without a name. */
static void forbid_unnamed_files(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof code / sizeof *code, code };
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    ck_assert_int_lt(open(folder, O_TMPFILE | O_WRONLY, 0600), 0);
}

static bool is_there(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static bool count_whole(void *user, const rt_disk_entry *entry)
{
    ck_assert_ptr_null(entry->damaged);
    return count_files(user, entry);
}

/* Kills processes at random, with a generator that is the same each time; OPJIT_CASES sets the rounds.  Afterwards
 * every file is whole, and the next process that opens the folder removes what dead writers left. */
START_TEST(processes_that_are_killed_leave_whole_files)
{
    const test_cases cases = test_cases_init(_i == 0 ? "killed" : "killed, named files", 6);
    pid_t children[PROCESSES];
    uint32_t files = 0, killed = 0;
    test_random r;
    test_random_init(&r, cases.seed, (uint64_t)_i, 0);
    if (_i == 1)
        forbid_unnamed_files();
    for (uint64_t round = cases.first; round < cases.end; round++) {
        uint32_t whole = 0, gone = 0;
        if (round % 2 == 0) { /* half of the rounds begin with what the last one left */
            ck_assert_int_eq(opjit_rt_disk_visit(disk, NULL, count_whole, &whole, NULL), OPJIT_OK);
            ck_assert_int_eq(opjit_rt_disk_drop(disk, NULL, &gone, NULL), OPJIT_OK);
            ck_assert_uint_eq(gone, whole);
        }
        for (uint32_t i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            ck_assert_int_ge(children[i], 0);
            if (children[i] == 0)
                work(i * (KEYS / PROCESSES) / 2);
        }
        for (uint32_t i = 0; i < PROCESSES; i++) {
            int status;
            if (round + 1 < cases.end) {
                usleep((useconds_t)test_random_below(&r, 6000));
                kill(children[i], SIGKILL);
            }
            ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
            ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "child: %d", WEXITSTATUS(status));
            killed += WIFSIGNALED(status);
        }
    }
    opjit_rt_disk_destroy(disk);
    open_disk(UINT64_MAX);
    ck_assert(!is_there(DISK_UNFINISHED));
    ck_assert_int_eq(opjit_rt_disk_visit(disk, NULL, count_files, &files, NULL), OPJIT_OK);
    ck_assert_uint_eq(files, KEYS);
    for (uint32_t key = 0; key < KEYS; key++)
        ck_assert_int_eq(load(&key, sizeof key), RT_DISK_FOUND);
    printf("%u processes killed\n", killed);
}
END_TEST

/* A file that is removed while it is being read is not foreign; one with two names is. */
START_TEST(names_of_a_file)
{
    struct stat info = { .st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_size = 1000, .st_nlink = 1 };
    ck_assert_ptr_null(opjit_rt_disk_stranger(&info, geteuid()));
    info.st_nlink = 0;
    ck_assert_ptr_null(opjit_rt_disk_stranger(&info, geteuid()));
    info.st_nlink = 2;
    ck_assert_str_eq(opjit_rt_disk_stranger(&info, geteuid()), "it has another name elsewhere");
}
END_TEST

/* A file that its writer still holds stays; a dead writer's is removed. */
START_TEST(leftovers_go_at_the_next_open)
{
    char path[512];
    int held;
    forbid_unnamed_files();
    ck_assert(store("key", 3) && is_there(DISK_UNFINISHED));
    snprintf(path, sizeof path, "%s/" DISK_UNFINISHED "/dead", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/" DISK_UNFINISHED "/alive", folder);
    held = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert(held >= 0 && flock(held, LOCK_EX) == 0);
    opjit_rt_disk_destroy(disk);
    open_disk(UINT64_MAX);
    ck_assert(!is_there(DISK_UNFINISHED "/dead") && is_there(DISK_UNFINISHED "/alive"));
    close(held);
    opjit_rt_disk_destroy(disk);
    open_disk(UINT64_MAX);
    ck_assert(!is_there(DISK_UNFINISHED));
    ck_assert_int_eq(load("key", 3), RT_DISK_FOUND);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* A folder called "way" above the cache's, which exists or not. */
static const struct {
    const char *name;
    mode_t mode;
    uid_t owner;
    gid_t group;
    bool good;
} ways[] = {
    { "the user's alone", 0700, 0, 0, true },         { "others may read it", 0755, 0, 0, true },
    { "others may write to it", 0777, 0, 0, false },  { "others may add to it", 01777, 0, 0, true },
    { "its group may write to it", 0775, 0, 5, false }, { "root's group may write to it", 0775, 0, 0, true },
    { "another user's", 0755, 1, 0, false },
};

START_TEST(folders_above)
{
    char way[128], base[sizeof folder];
    const bool there = _i % 2 != 0;
    const int row = _i / 2;
    if (geteuid() != 0 && (ways[row].owner != 0 || ways[row].group != 0)) {
        printf("skipped: %s: only root can give folders away\n", ways[row].name);
        return;
    }
    strcpy(base, folder);
    snprintf(way, sizeof way, "%.60s/way", base);
    ck_assert_int_eq(mkdir(way, 0700), 0);
    snprintf(way, sizeof way, "%.60s/way/link", base);
    ck_assert_int_eq(symlink("../way", way), 0);
    snprintf(folder, sizeof folder, "%.60s/way/link/deep/c/", base);
    if (there) {
        opjit_rt_disk_destroy(disk);
        open_disk(UINT64_MAX);
        ck_assert(store("key", 3));
    }
    snprintf(way, sizeof way, "%.60s/way", base);
    ck_assert(geteuid() != 0 || chown(way, ways[row].owner, ways[row].group) == 0);
    ck_assert_int_eq(chmod(way, ways[row].mode), 0);
    opjit_rt_disk_destroy(disk);
    open_disk(UINT64_MAX);
    ck_assert_msg(store("key", 3) == ways[row].good, "%s", ways[row].name);
    ck_assert_int_eq(load("key", 3), ways[row].good ? RT_DISK_FOUND : RT_DISK_ABSENT);
    ck_assert_uint_eq(warnings, !ways[row].good);
    snprintf(way, sizeof way, "%.60s/way/deep", base);
    ck_assert_int_eq(access(way, F_OK) == 0, there || ways[row].good); /* nothing is created where others may write */
    snprintf(way, sizeof way, "rm -r %.60s/way", base);
    ck_assert_int_eq(system(way), 0);
    strcpy(folder, base);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("rt.disk");
    TCase *const tcase = tcase_create("disk");
    SRunner *const runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_stored_image_comes_back);
    tcase_add_loop_test(tcase, no_mutation_is_served, RT_DISK_KERNEL, RT_DISK_MODEL + 1);
    tcase_add_loop_test(tcase, the_whole_key_counts, RT_DISK_KERNEL, RT_DISK_MODEL + 1);
    tcase_add_test(tcase, the_least_recently_used_go);
    tcase_add_test(tcase, nothing_can_be_written);
    tcase_add_test(tcase, without_memory);
    tcase_add_loop_test(tcase, processes_that_are_killed_leave_whole_files, 0, 2);
    tcase_add_test(tcase, names_of_a_file);
    tcase_add_test(tcase, leftovers_go_at_the_next_open);
    tcase_add_loop_test(tcase, folders_above, 0, 2 * (int)(sizeof ways / sizeof *ways));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
