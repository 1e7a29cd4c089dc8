# SPDX-License-Identifier: Apache-2.0
# headers.cmake - compiles each public header alone, twice in one file, as strict C11 or C++17 and as what newer
# compilers take by default, C23 and C++20: it needs no other header before it, has an include guard and no extension.
# dml_layout.c is compiled likewise, with both spellings of types.
#   cmake -DINCLUDE=<include folder> -DLANGUAGE=C|CXX -DCOMPILER=<compiler> -P headers.cmake
cmake_minimum_required(VERSION 3.25)

set(flags -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror -I${INCLUDE})
if(LANGUAGE STREQUAL "C")
    list(APPEND flags -x c -Wstrict-prototypes)
    set(standards c11 c2x)
else()
    list(APPEND flags -x c++)
    set(standards c++17 c++20)
endif()

function(compile what)
    foreach(standard IN LISTS standards)
        execute_process(COMMAND ${COMPILER} ${flags} -std=${standard} ${ARGN} RESULT_VARIABLE result
                        ERROR_VARIABLE text)
        if(NOT result EQUAL 0)
            message(SEND_ERROR "${what} does not compile as ${standard}:\n${text}")
        endif()
    endforeach()
endfunction()

file(GLOB headers RELATIVE ${INCLUDE} ${INCLUDE}/opjit/*.h)
if(NOT headers)
    message(SEND_ERROR "no header in ${INCLUDE}/opjit")
endif()
foreach(header IN LISTS headers)
    compile(${header} -include ${header} ${INCLUDE}/${header})
endforeach()

set(layout ${CMAKE_CURRENT_LIST_DIR}/dml_layout.c)
compile(dml_layout.c ${layout})
compile("dml_layout.c with Win32 types" -DOPJIT_DML_WIN32_TYPES ${layout})
