# SPDX-License-Identifier: Apache-2.0
# places.cmake - a refusal says its place: outside of runtime/base, errors of the library are set by opjit_rt_refuse,
# which fills op, field and value in; opjit_rt_error_set is for broken invariants (OPJIT_INTERNAL), which have none.
#   cmake -DROOT=<source folder> -P places.cmake
cmake_minimum_required(VERSION 3.25)
set(refusals 0)
file(GLOB_RECURSE sources ${ROOT}/runtime/*.c ${ROOT}/ir/*.c ${ROOT}/codegen/*.c ${ROOT}/frontend/*.c)
list(FILTER sources EXCLUDE REGEX "/runtime/base/error[.]c$|/frontend/cli/") # the program has places of its own
foreach(source IN LISTS sources)
    file(READ ${source} text)
    string(REGEX MATCHALL "opjit_rt_error_set[(][^,;]*,[ \n]*[^,;]*," calls "${text}")
    foreach(call IN LISTS calls)
        if(NOT call MATCHES "OPJIT_INTERNAL,$")
            message(SEND_ERROR "${source}: this refusal has no place: ${call}")
        endif()
    endforeach()
    string(REGEX MATCHALL "opjit_rt_refuse[(]" calls "${text}")
    list(LENGTH calls count)
    math(EXPR refusals "${refusals} + ${count}")
endforeach()
if(refusals LESS 200)
    message(SEND_ERROR "only ${refusals} refusals were found")
endif()
message(STATUS "${refusals} refusals")
