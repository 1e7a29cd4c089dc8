/* SPDX-License-Identifier: Apache-2.0 */
/* xla_layout.c - holds the declarations of frontend/hosts/python/xla.h against those of the header that jaxlib ships.
 * host.jax compiles it. */
#include <xla/ffi/api/c_api.h>

#include "frontend/hosts/python/xla.h"

#define SAME(ours, our_field, theirs, their_field)                                           \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&             \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), \
                   #ours "." #our_field)

SAME(xla_extension, struct_size, XLA_FFI_Extension_Base, struct_size);
SAME(xla_extension, type, XLA_FFI_Extension_Base, type);
SAME(xla_extension, next, XLA_FFI_Extension_Base, next);
SAME(xla_version, major, XLA_FFI_Api_Version, major_version);
SAME(xla_version, minor, XLA_FFI_Api_Version, minor_version);
SAME(xla_metadata, version, XLA_FFI_Metadata, api_version);
SAME(xla_metadata, traits, XLA_FFI_Metadata, traits);
SAME(xla_metadata_extension, base, XLA_FFI_Metadata_Extension, extension_base);
SAME(xla_metadata_extension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME(xla_error_args, message, XLA_FFI_Error_Create_Args, message);
SAME(xla_error_args, code, XLA_FFI_Error_Create_Args, errc);
_Static_assert(sizeof(xla_error_args) == sizeof(XLA_FFI_Error_Create_Args), "error");
SAME(xla_api, version, XLA_FFI_Api, api_version);
SAME(xla_api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(xla_buffer, type, XLA_FFI_Buffer, dtype);
SAME(xla_buffer, data, XLA_FFI_Buffer, data);
SAME(xla_buffer, rank, XLA_FFI_Buffer, rank);
SAME(xla_buffer, sizes, XLA_FFI_Buffer, dims);
SAME(xla_buffers, count, XLA_FFI_Args, size);
SAME(xla_buffers, kinds, XLA_FFI_Args, types);
SAME(xla_buffers, items, XLA_FFI_Args, args);
SAME(xla_buffers, items, XLA_FFI_Rets, rets);
_Static_assert(sizeof(xla_buffers) == sizeof(XLA_FFI_Args) && sizeof(xla_buffers) == sizeof(XLA_FFI_Rets), "buffers");
SAME(xla_text, text, XLA_FFI_ByteSpan, ptr);
SAME(xla_text, length, XLA_FFI_ByteSpan, len);
SAME(xla_scalar, type, XLA_FFI_Scalar, dtype);
SAME(xla_scalar, value, XLA_FFI_Scalar, value);
SAME(xla_attributes, count, XLA_FFI_Attrs, size);
SAME(xla_attributes, kinds, XLA_FFI_Attrs, types);
SAME(xla_attributes, names, XLA_FFI_Attrs, names);
SAME(xla_attributes, values, XLA_FFI_Attrs, attrs);
SAME(xla_frame, api, XLA_FFI_CallFrame, api);
SAME(xla_frame, context, XLA_FFI_CallFrame, ctx);
SAME(xla_frame, stage, XLA_FFI_CallFrame, stage);
SAME(xla_frame, inputs, XLA_FFI_CallFrame, args);
SAME(xla_frame, outputs, XLA_FFI_CallFrame, rets);
SAME(xla_frame, attributes, XLA_FFI_CallFrame, attrs);

#define EQUAL(ours, theirs) _Static_assert((int)ours == (int)theirs, #ours)

EQUAL(XLA_VERSION_MAJOR, XLA_FFI_API_MAJOR);
EQUAL(XLA_EXTENSION_METADATA, XLA_FFI_Extension_Metadata);
EQUAL(XLA_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT);
EQUAL(XLA_RESOURCE_EXHAUSTED, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
EQUAL(XLA_INTERNAL, XLA_FFI_Error_Code_INTERNAL);
EQUAL(XLA_KIND_SCALAR, XLA_FFI_AttrType_SCALAR);
EQUAL(XLA_STAGE_EXECUTE, XLA_FFI_ExecutionStage_EXECUTE);
EQUAL(XLA_PRED, XLA_FFI_DataType_PRED);
EQUAL(XLA_S8, XLA_FFI_DataType_S8);
EQUAL(XLA_S8 + 1, XLA_FFI_DataType_S16);
EQUAL(XLA_S8 + 2, XLA_FFI_DataType_S32);
EQUAL(XLA_S8 + 3, XLA_FFI_DataType_S64);
EQUAL(XLA_U8, XLA_FFI_DataType_U8);
EQUAL(XLA_U8 + 1, XLA_FFI_DataType_U16);
EQUAL(XLA_U8 + 2, XLA_FFI_DataType_U32);
EQUAL(XLA_U8 + 3, XLA_FFI_DataType_U64);
EQUAL(XLA_F16, XLA_FFI_DataType_F16);
EQUAL(XLA_F32, XLA_FFI_DataType_F32);
EQUAL(XLA_F64, XLA_FFI_DataType_F64);
