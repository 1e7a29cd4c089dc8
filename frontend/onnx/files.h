/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - files that are mapped: the model's, and those that it names for its weights. */
#ifndef OPJIT_FRONTEND_ONNX_FILES_H
#define OPJIT_FRONTEND_ONNX_FILES_H

#include "frontend/onnx/call.h"
#include "frontend/onnx/stamp.h"
#include "runtime/base/mapped.h"

/* The model's folder and the files of it that are mapped. */
struct onnx_files {
    rt_arena *arena;
    const char *folder; /* NULL: no files may be named */
    const char *path;   /* of the model, whose folder that is; NULL: the folder was given */
    struct onnx_file *first;
    rt_mapped_files *mapped; /* the context's */
    wire_bytes model; /* the model's own, if it is mapped; else data NULL */
};

/* Maps a file read-only; an empty one has data NULL.  out_stamp: the file's from before that; NULL: nobody asks. */
opjit_status opjit_onnx_map(const char *path, wire_bytes *out, onnx_stamp *out_stamp, opjit_error *error);
void opjit_onnx_unmap(wire_bytes file);
/* The folder that path lies in, "." where it has none; from the arena. NULL: no memory. */
const char *opjit_onnx_folder(rt_arena *arena, const char *path);
/* Elements of the model's file that were copied need not stay in memory: the file has them. */
void opjit_onnx_copied(const onnx_files *files, wire_bytes elements);
void opjit_onnx_files_close(onnx_files *files);

#endif
