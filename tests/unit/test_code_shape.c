/* SPDX-License-Identifier: Apache-2.0 */
/* test_code_shape.c - reads the library's own files: how long they, their lines and their functions are, and which of a
 * folder's files, and which of a layer's folders, depend on each other in a circle, by what they include and by the
 * functions and tables of others that they name.  Circles of folders that there are today stand in a list, which may
 * only get smaller. */
#define _GNU_SOURCE
#include <check.h>
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden.h"

enum { MOST_LINES = 500, MOST_COLUMNS = 120, MOST_FUNCTION = 60, MOST_CIRCLE = 3 };
enum { MAX_FILES = 96, MAX_LAYER_FILES = 640, MAX_NAMES = 4096 };

static const char *const layers[] = { "codegen", "frontend", "ir", "runtime" };
enum { LAYERS = sizeof layers / sizeof *layers };

/* Folders that use one which uses them, directly or by way of others.  Without these uses no layer has a circle of
 * folders. */
static const struct use {
    const char *layer, *from, *to;
} circular_uses[] = {
    { "codegen", "emit", "gpu" },      { "codegen", "emit", "reduce" },    { "codegen", "emit", "softops" },
    { "codegen", "reduce", "gpu" },    { "codegen", "targets", "emit" },   { "codegen", "targets", "hold" },
    { "frontend", "compile", "aot" },  { "frontend", "desc", "compile" },  { "frontend", "desc", "ops" },
    { "frontend", "graph", "compile" },
    { "ir", "core", "eval" },          { "runtime", "base", "cache" },     { "runtime", "base", "device" },
    { "runtime", "base", "image" },    { "runtime", "base", "target" },    { "runtime", "call", "cache" },
    { "runtime", "device", "call" },   { "runtime", "drivers", "device" }, { "runtime", "image", "cache" },
    { "runtime", "image", "call" },
};
enum { USES = sizeof circular_uses / sizeof *circular_uses };

/* --- text --------------------------------------------------------------------------------------------------------- */

typedef struct source {
    char path[256], stem[64]; /* path: from the root */
    char *text;               /* comments and the insides of strings are blanks */
    bool header;
} source;

static const char *root(void)
{
    const char *data = getenv("OPJIT_TEST_DATA");
    return data != NULL ? data : "tests";
}

/* Lines stay as they are. */
static void blank_comments(char *text)
{
    char quote = 0;
    bool comment = false, include = false;
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n') {
            include = strncmp(c + 1, "#include", 8) == 0;
        } else if (comment) {
            comment = !(c[0] == '*' && c[1] == '/');
            if (!comment)
                c[1] = ' ';
            *c = ' ';
        } else if (quote != 0) {
            if (*c == '\\' && c[1] != '\0')
                c[1] = ' ';
            quote = *c == quote ? 0 : quote;
            *c = quote == 0 ? *c : ' ';
        } else if (c[0] == '/' && c[1] == '*') {
            comment = true;
            *c = ' ';
        } else if (!include && (*c == '"' || *c == '\'')) {
            quote = *c;
        }
    }
}

/* By characters: bytes that go on with one of UTF-8 are not counted. */
static void check_columns(const char *path, const char *text)
{
    int line = 1, columns = 0;
    for (; *text != '\0'; text++) {
        columns = *text == '\n' ? 0 : columns + ((*text & 0xc0) != 0x80);
        if (columns > MOST_COLUMNS)
            ck_abort_msg("%s:%d is longer than %d columns", path, line, MOST_COLUMNS);
        line += *text == '\n';
    }
}

/* The .c and .h files of a folder. */
static uint32_t read_folder(const char *folder, source *out)
{
    uint32_t count = 0;
    for (int header = 0; header < 2; header++) {
        char pattern[512];
        glob_t files;
        snprintf(pattern, sizeof pattern, "%s/../%s/*.%c", root(), folder, header ? 'h' : 'c');
        if (glob(pattern, 0, NULL, &files) != 0)
            continue;
        for (size_t i = 0; i < files.gl_pathc; i++) {
            const char *name = strrchr(files.gl_pathv[i], '/') + 1;
            ck_assert_uint_lt(count, MAX_FILES);
            source *s = &out[count++];
            snprintf(s->path, sizeof s->path, "%s/%s", folder, name);
            snprintf(s->stem, sizeof s->stem, "%.*s", (int)(strlen(name) - 2), name);
            s->header = header != 0;
            s->text = golden_read(files.gl_pathv[i]);
            check_columns(s->path, s->text);
            blank_comments(s->text);
        }
        globfree(&files);
    }
    return count;
}

static void free_folder(source *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(files[i].text);
}

/* --- lengths ------------------------------------------------------------------------------------------------------ */

static int count_lines(const char *from, const char *to)
{
    int lines = 0;
    for (; from < to; from++)
        lines += *from == '\n';
    return lines;
}

/* A function is a line that begins a name and ends with a bracket or goes on, then "{" and "}" at a line's begin. */
static void check_functions(const source *s)
{
    for (const char *open = strstr(s->text, ")\n{\n"); open != NULL; open = strstr(open + 1, ")\n{\n")) {
        const char *begin = open;
        while (begin > s->text && !(begin[-1] == '\n' && (isalpha((unsigned char)*begin) || *begin == '_')))
            begin--;
        const char *end = strstr(open + 3, "\n}");
        if (end == NULL)
            break;
        const int lines = count_lines(begin, end) + 2;
        const char *bracket = memchr(begin, '(', (size_t)(open - begin)), *name = bracket;
        while (name != NULL && name > begin && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        char full[400];
        snprintf(full, sizeof full, "%s:%.*s", s->path, name == NULL ? 0 : (int)(bracket - name), name);
        const bool is_switch = memmem(open, (size_t)(end - open), "switch (", 8) != NULL;
        ck_assert_msg(is_switch || lines <= MOST_FUNCTION, "%s has %d lines", full, lines);
    }
}

static void check_lengths(const char *folder)
{
    static source files[MAX_FILES];
    const uint32_t count = read_folder(folder, files);
    for (uint32_t i = 0; i < count; i++) {
        const int lines = count_lines(files[i].text, files[i].text + strlen(files[i].text));
        ck_assert_msg(lines <= MOST_LINES, "%s has %d lines", files[i].path, lines);
        check_functions(&files[i]);
    }
    free_folder(files, count);
}

/* --- circles ------------------------------------------------------------------------------------------------------ */

typedef struct graph {
    char stems[MAX_FILES][64];
    bool edge[MAX_FILES][MAX_FILES];
    uint32_t count;
    struct {
        char name[80];
        uint32_t stem;
    } names[MAX_NAMES]; /* that the folder's files define */
    uint32_t name_count;
} graph;

static uint32_t stem_of(graph *g, const char *stem)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (strcmp(g->stems[i], stem) == 0)
            return i;
    snprintf(g->stems[g->count], sizeof g->stems[0], "%s", stem);
    return g->count++;
}

static size_t name_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

/* Whether the name at `at`, of `length`, is defined there: a function with a body, or data with a value. */
static bool is_definition(const char *text, const char *at, size_t length)
{
    const char *line = at, *after = at + length;
    while (line > text && line[-1] != '\n')
        line--;
    if (!isalpha((unsigned char)*line))
        return false;
    if (*after == '(') {
        after += strcspn(after, ";{");
        return *after == '{' && after[-1] == '\n' && strncmp(line, "return", 6) != 0;
    }
    after += strcspn(after, ";=\n");
    return *after == '=' && memchr(line, '(', (size_t)(at - line)) == NULL;
}

static void find_names(graph *g, const source *s)
{
    const uint32_t stem = stem_of(g, s->stem);
    for (const char *at = strstr(s->text, "opjit_"); at != NULL; at = strstr(at + 1, "opjit_")) {
        const size_t length = name_length(at);
        if (s->header || !is_definition(s->text, at, length))
            continue;
        ck_assert_uint_lt(g->name_count, MAX_NAMES);
        snprintf(g->names[g->name_count].name, sizeof g->names[0].name, "%.*s", (int)length, at);
        g->names[g->name_count++].stem = stem;
    }
}

/* Whether two libraries define it, so that its name tells nothing. */
static bool is_of_several(const graph *g, uint32_t name)
{
    for (uint32_t i = 0; i < g->name_count; i++)
        if (g->names[i].stem != g->names[name].stem && strcmp(g->names[i].name, g->names[name].name) == 0)
            return true;
    return false;
}

static void find_uses(graph *g, const source *s, const char *folder)
{
    const uint32_t from = stem_of(g, s->stem);
    char include[256];
    const int prefix = snprintf(include, sizeof include, "#include \"%s/", folder);
    for (const char *at = strstr(s->text, include); at != NULL; at = strstr(at + 1, include)) {
        char stem[64];
        snprintf(stem, sizeof stem, "%.*s", (int)strcspn(at + prefix, "/.\""), at + prefix);
        g->edge[from][stem_of(g, stem)] = true;
    }
    for (const char *at = strstr(s->text, "opjit_"); at != NULL && !s->header; at = strstr(at + 1, "opjit_")) {
        const size_t length = name_length(at);
        for (uint32_t i = 0; i < g->name_count; i++)
            if (strlen(g->names[i].name) == length && memcmp(g->names[i].name, at, length) == 0 && !is_of_several(g, i))
                g->edge[from][g->names[i].stem] = true;
    }
}

/* Who uses whom, by the stems of files. */
static void find_graph(graph *g, const source *files, uint32_t count, const char *folder)
{
    memset(g, 0, sizeof *g);
    for (uint32_t i = 0; i < count; i++)
        find_names(g, &files[i]);
    for (uint32_t i = 0; i < count; i++)
        find_uses(g, &files[i], folder);
}

static void check_graph(graph *g, const char *folder, const char *what, int most)
{
    for (uint32_t k = 0; k < g->count; k++)
        for (uint32_t i = 0; i < g->count; i++)
            for (uint32_t j = 0; j < g->count && g->edge[i][k]; j++)
                g->edge[i][j] = g->edge[i][j] || g->edge[k][j];
    for (uint32_t i = 0; i < g->count; i++) {
        int size = 1;
        char members[2048];
        int n = snprintf(members, sizeof members, "%s", g->stems[i]);
        for (uint32_t j = 0; j < g->count; j++) {
            if (j == i || !g->edge[i][j] || !g->edge[j][i])
                continue;
            size++;
            n += snprintf(members + n, sizeof members - (size_t)n, " %s", g->stems[j]);
        }
        ck_assert_msg(size <= most, "%s has a circle of %d %s: %s", folder, size, what, members);
    }
}

static void check_circles(const char *folder)
{
    static source files[MAX_FILES];
    static graph g;
    const uint32_t count = read_folder(folder, files);
    find_graph(&g, files, count, folder);
    free_folder(files, count);
    check_graph(&g, folder, "files", MOST_CIRCLE);
}

/* --- all folders -------------------------------------------------------------------------------------------------- */

/* deep: those in a folder of a layer, too, which are the hosts'. */
static void for_each_folder(void (*check)(const char *folder), bool deep)
{
    for (uint32_t i = 0; i < LAYERS; i++) {
        char pattern[512];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/../%s/*/", root(), layers[i]);
        ck_assert_msg(glob(pattern, GLOB_ONLYDIR, NULL, &found) == 0, "no folder matches %s", pattern);
        snprintf(pattern, sizeof pattern, "%s/../%s/*/*/", root(), layers[i]);
        if (deep)
            glob(pattern, GLOB_ONLYDIR | GLOB_APPEND, NULL, &found);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            const char *path = found.gl_pathv[k] + strlen(root()) + strlen("/../");
            char folder[256];
            snprintf(folder, sizeof folder, "%.*s", (int)(strlen(path) - 1), path);
            check(folder);
        }
        globfree(&found);
        check(layers[i]);
    }
}

/* The files of all folders of a layer and of the rooms in these; their stems are the folders' names. */
static uint32_t read_layer(const char *layer, source *out)
{
    char pattern[512];
    glob_t found;
    uint32_t count = 0;
    snprintf(pattern, sizeof pattern, "%s/../%s/*/", root(), layer);
    ck_assert_msg(glob(pattern, GLOB_ONLYDIR, NULL, &found) == 0, "no folder matches %s", pattern);
    snprintf(pattern, sizeof pattern, "%s/../%s/*/*/", root(), layer);
    glob(pattern, GLOB_ONLYDIR | GLOB_APPEND, NULL, &found);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        const char *path = found.gl_pathv[k] + strlen(root()) + strlen("/../");
        char folder[256];
        snprintf(folder, sizeof folder, "%.*s", (int)(strlen(path) - 1), path);
        ck_assert_uint_le(count + MAX_FILES, MAX_LAYER_FILES);
        const uint32_t more = read_folder(folder, out + count);
        for (uint32_t i = count; i < count + more; i++)
            snprintf(out[i].stem, sizeof out[i].stem, "%.*s", (int)strcspn(folder + strlen(layer) + 1, "/"),
                     folder + strlen(layer) + 1);
        count += more;
    }
    globfree(&found);
    return count;
}

START_TEST(circles_of_folders)
{
    static source files[MAX_LAYER_FILES];
    static graph g;
    const char *const layer = layers[_i];
    const uint32_t count = read_layer(layer, files);
    find_graph(&g, files, count, layer);
    free_folder(files, count);
    for (uint32_t i = 0; i < USES; i++) {
        if (strcmp(circular_uses[i].layer, layer) != 0)
            continue;
        bool *const edge = &g.edge[stem_of(&g, circular_uses[i].from)][stem_of(&g, circular_uses[i].to)];
        ck_assert_msg(*edge, "%s/%s uses %s no longer: take it off the list", layer, circular_uses[i].from,
                      circular_uses[i].to);
        *edge = false;
    }
    check_graph(&g, layer, "folders", 1);
}
END_TEST

START_TEST(lengths)
{
    for_each_folder(check_lengths, true);
}
END_TEST

/* Of the public headers lines alone are bounded: they have all of DirectML's structures. */
START_TEST(columns_of_headers)
{
    static source headers[MAX_FILES];
    const uint32_t count = read_folder("include/opjit", headers);
    ck_assert_uint_gt(count, 0);
    free_folder(headers, count);
}
END_TEST

START_TEST(circles_of_files)
{
    for_each_folder(check_circles, false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code.shape");
    TCase *tcase = tcase_create("files");
    tcase_add_test(tcase, lengths);
    tcase_add_test(tcase, columns_of_headers);
    tcase_add_test(tcase, circles_of_files);
    tcase_add_loop_test(tcase, circles_of_folders, 0, LAYERS);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
