/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the program's commands and what they are given.  Options are read in options.c. */
#ifndef OPJIT_CLI_CLI_H
#define OPJIT_CLI_CLI_H

#include <time.h>

#include "frontend/cli/model/model.h"

/* Exit status; a contract. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct cli_options {
    const char *const *arguments; /* what is no option, the command's name apart */
    uint32_t argument_count;
    const char *executor;     /* "cpu", "interp", "cuda" or "hip" */
    const char *dispatchable; /* NULL: all */
    const char *target;       /* the only one; NULL: this CPU */
    const char *const *targets; /* compile: all that were given */
    uint32_t target_count;
    const char *cache_dir;    /* NULL: none */
    bool cache_named;         /* by an option or a variable */
    uint32_t threads;
    uint32_t feature_level; /* DML_FEATURE_LEVEL; 0: none */
    opjit_level level;
    bool masks_absorb, no_cache, out_of_process, quiet;
    bool allow_outside; /* a model may name files outside of its folder */
    bool json, quick; /* lists as JSON; bench: fewer cases */
    bool onnx;     /* ops: ONNX's operators */
    bool markdown; /* ops: the page docs/OPERATORS.md */
    bool help, version, man;
    const char *completion;  /* help: a shell's name */
    const char *const *late; /* explain, compile: fields that are given at each call */
    uint32_t late_count;
    uint32_t emit;       /* compile: bits 1 << opjit_artifact_kind */
    const char *output;  /* compile: the folder */
    const char *library; /* compile: the libraries' name */
    const char *weights; /* compile: the file of the constants; NULL: they are in the object */
    const char *symbol;  /* compile: the one kernel's name in C; NULL: what it is called */
    bool prefix_model;   /* compile: symbols begin with the model's name */
    const char *const *inputs, *const *dims, *const *shapes; /* of an .onnx model: "NAME=..." */
    uint32_t input_count, dim_count, shape_count;
    const char *output_dir; /* run: the folder for an .onnx model's outputs; NULL: they are printed */
    const char *trace;   /* run, compile: the file for a trace; NULL: none */
    struct cli_trace *recorder; /* that is on its way; NULL: none */
} cli_options;

typedef int (*cli_command_fn)(const cli_options *options); /* gives the exit status */
int opjit_cli_run(const cli_options *options);             /* command/run.c */
int opjit_cli_explain(const cli_options *options);         /* command/explain.c */
int opjit_cli_bench(const cli_options *options);           /* command/bench.c */
int opjit_cli_compile_ahead(const cli_options *options);   /* command/compile.c */
int opjit_cli_cache(const cli_options *options);           /* command/cache.c */
int opjit_cli_ops(const cli_options *options);             /* command/ops.c */
int opjit_cli_targets(const cli_options *options);         /* command/list.c */
int opjit_cli_version(const cli_options *options);
int opjit_cli_show_help(const cli_options *options);       /* usage.c */

/* What one of --emit's choices stands for: bits 1 << opjit_artifact_kind (command/compile.c). */
uint32_t opjit_cli_emit_kinds(const char *name, size_t length);

/* --- common.c ----------------------------------------------------------------------------------------------------- */
/* Prints "file: place: message" as one line on standard error; file and place may be NULL.  Returns EXIT_FAILED. */
int opjit_cli_complain(const char *file, const char *place, const opjit_error *error);
bool opjit_cli_on_device(const cli_options *options); /* whether the executor is a GPU's */
bool opjit_cli_has_codegen(void);                     /* whether this build makes code */
/* Prints "file: place: note: text" on standard error, except with --quiet. */
void opjit_cli_note(const cli_options *options, const char *file, const char *place, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* The context that the options ask for; the caller destroys it. */
opjit_status opjit_cli_context(const cli_options *options, opjit_context **out, opjit_error *error);
opjit_compile_options opjit_cli_compile_options(const cli_options *options);
/* Calls `use` with an empty model at the command's first argument, and complains where it fails.  Returns the program's
 * exit status. */
int opjit_cli_with_model(const cli_options *options, opjit_status (*use)(cli_model *m, const cli_options *options));
/* Writes text to standard output and drops it from the buffer; false where that failed. */
bool opjit_cli_put(rt_bytes *text);
/* The error of standard output, with the reason in errno. */
opjit_status opjit_cli_no_output(opjit_error *error);

/* A line on a terminal about what is compiled, once it takes longer than a second. */
typedef struct cli_progress {
    bool on, shown;
    struct timespec start;
} cli_progress;
void opjit_cli_progress_begin(cli_progress *p, const cli_options *options);
void opjit_cli_progress_show(void *progress, uint32_t done, uint32_t total, const char *name); /* a cli_progress_fn */
void opjit_cli_progress_end(const cli_progress *p);

/* The pool that --threads asks for, which the caller destroys; NULL for one thread. */
opjit_status opjit_cli_pool(const cli_options *options, opjit_pool **out, opjit_error *error);

/* --- picture.c ---------------------------------------------------------------------------------------------------- */
/* Appends what a generator writes: the filled ranges, and a matrix as characters.  Other operators have no picture. */
void opjit_cli_picture(rt_bytes *out, const cli_dispatchable *d);

#endif
