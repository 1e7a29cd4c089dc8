/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - files that are mapped: the model's, and those that it names for its weights. */
#ifndef OPJIT_FRONTEND_ONNX_FILES_H
#define OPJIT_FRONTEND_ONNX_FILES_H

#include "frontend/onnx/call.h"
#include "frontend/onnx/stamp.h"
#include "runtime/base/mapped.h"

/* A file that has weights. */
typedef struct onnx_file {
    struct onnx_file *next;
    wire_bytes name; /* as the model has it */
    const char *path; /* without links */
    wire_bytes bytes;
    onnx_stamp stamp;
    rt_mapped mapped;
} onnx_file;

/* The model's folder and the files of it that are mapped. */
struct onnx_files {
    rt_arena *arena;
    const char *folder; /* NULL: no files may be named */
    const char *path;   /* of the model, whose folder that is; NULL: the folder was given */
    onnx_file *first; /* in the order in which they were first asked for */
    rt_mapped_files *mapped; /* the context's */
    wire_bytes model; /* the model's own, if it is mapped; else data NULL */
};

/* Maps a file read-only; an empty one has data NULL.  *out_stamp: the file's, from before that. */
opjit_status opjit_onnx_map(const char *path, wire_bytes *out, onnx_stamp *out_stamp, opjit_error *error);
void opjit_onnx_unmap(wire_bytes file);
/* Gives back the memory of what was read of a part of a mapped file, which has it as before. */
void opjit_onnx_drop(wire_bytes part);
/* The folder that path lies in, "." where it has none; from the arena. NULL: no memory. */
const char *opjit_onnx_folder(rt_arena *arena, const char *path);
/* Elements of the model's file that were copied need not stay in memory: the file has them. */
void opjit_onnx_copied(const onnx_files *files, wire_bytes elements);
/* Maps the file if it is not; the name stays where it is.  NULL: it can't be. */
const onnx_file *opjit_onnx_file(onnx_files *files, wire_bytes name, opjit_error *error);
wire_bytes opjit_onnx_file_bytes(const onnx_files *files, uint32_t number); /* of one that is mapped; or none */
void opjit_onnx_files_close(onnx_files *files);

#endif
