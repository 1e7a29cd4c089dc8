/* SPDX-License-Identifier: Apache-2.0 */
/* tvm_ffi_layout.c - holds what opjit takes for granted of TVM FFI against the headers that the package apache-tvm-ffi
 * ships: frontend/hosts/tvmffi/abi.h, frontend/hosts/check.h and the numbers of codegen/driver/tvm_ffi.c.  host.tvm_ffi
 * compiles it. */
#include <stdbool.h>

#include <tvm/ffi/c_api.h>

#include "frontend/hosts/check.h"
#include "frontend/hosts/tvmffi/abi.h"

#define SAME(ours, our_field, theirs, their_field)                                           \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&             \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), \
                   #ours "." #our_field)
#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(tvm_any, type, TVMFFIAny, type_index);
SAME(tvm_any, length, TVMFFIAny, small_str_len);
SAME(tvm_any, value.number, TVMFFIAny, v_int64);
SAME(tvm_any, value.pointer, TVMFFIAny, v_ptr);
SAME(tvm_any, value.text, TVMFFIAny, v_c_str);
SAME(tvm_any, value.small, TVMFFIAny, v_bytes);
_Static_assert(sizeof(tvm_any) == sizeof(TVMFFIAny) && sizeof(TVMFFIAny) == 16, "any");
SAME(tvm_bytes, data, TVMFFIByteArray, data);
SAME(tvm_bytes, size, TVMFFIByteArray, size);
EQUAL(TVM_NONE, kTVMFFINone);
EQUAL(TVM_DLTENSOR, kTVMFFIDLTensorPtr);
EQUAL(TVM_RAW_TEXT, kTVMFFIRawStr);
EQUAL(TVM_BYTES_POINTER, kTVMFFIByteArrayPtr);
EQUAL(TVM_SMALL_TEXT, kTVMFFISmallStr);
EQUAL(TVM_SMALL_BYTES, kTVMFFISmallBytes);
EQUAL(TVM_TEXT, kTVMFFIStr);
EQUAL(TVM_BYTES, kTVMFFIBytes);
EQUAL(TVM_FUNCTION, kTVMFFIFunction);
EQUAL(TVM_TENSOR, kTVMFFITensor);
EQUAL(TVM_OBJECT_HEADER, sizeof(TVMFFIObject));

SAME(host_tensor, data, DLTensor, data);
SAME(host_tensor, device, DLTensor, device.device_type);
SAME(host_tensor, device_id, DLTensor, device.device_id);
SAME(host_tensor, rank, DLTensor, ndim);
SAME(host_tensor, code, DLTensor, dtype.code);
SAME(host_tensor, bits, DLTensor, dtype.bits);
SAME(host_tensor, lanes, DLTensor, dtype.lanes);
SAME(host_tensor, sizes, DLTensor, shape);
SAME(host_tensor, strides, DLTensor, strides);
SAME(host_tensor, offset, DLTensor, byte_offset);
_Static_assert(sizeof(host_tensor) == sizeof(DLTensor), "tensor");
EQUAL(8, offsetof(DLTensor, device));
EQUAL(16, offsetof(DLTensor, ndim));
EQUAL(20, offsetof(DLTensor, dtype));
EQUAL(24, offsetof(DLTensor, shape));
EQUAL(32, offsetof(DLTensor, strides));
EQUAL(40, offsetof(DLTensor, byte_offset));
EQUAL(HOST_DEVICE_CPU, kDLCPU);
EQUAL(HOST_DEVICE_PINNED, kDLCUDAHost);
EQUAL(HOST_CODE_INT, kDLInt);
EQUAL(HOST_CODE_UINT, kDLUInt);
EQUAL(HOST_CODE_FLOAT, kDLFloat);
EQUAL(HOST_CODE_BOOL, kDLBool);

/* The functions' types. */
int same_functions(void);
int same_functions(void)
{
    void (*const raise)(const char *, const char *) = TVMFFIErrorSetRaisedFromCStr;
    int (*const make)(void *, TVMFFISafeCallType, void (*)(void *), TVMFFIObjectHandle *) = TVMFFIFunctionCreate;
    return raise != NULL && make != NULL;
}
