# SPDX-License-Identifier: Apache-2.0
# manual.cmake - the headers as a manual: the program on top of opjit.h compiles without warnings as it stands there,
# prints its matrix, and is refused where its header is of another version than the library; every function of all
# headers has a comment that ends with [threads, since], every callback's type too, every field of a structure one of
# its own.
#   cmake -DINCLUDE=<folder> -DLIBRARY=<libopjit> -DWORK=<folder> -DCOMPILER=<cc> -P manual.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
cmake_path(GET LIBRARY PARENT_PATH folder)

# --- the program ------------------------------------------------------------------------------------------------------
file(READ ${INCLUDE}/opjit/opjit.h text)
string(FIND "${text}" " *     #include <opjit/opjit.h>\n" begin)
string(SUBSTRING "${text}" ${begin} -1 program)
string(FIND "${program}" "\n *     }\n *\n" end)
math(EXPR end "${end} + 9")
string(SUBSTRING "${program}" 0 ${end} program)
string(REGEX REPLACE "(^|\n) \\*( +)?" "\\1" program "${program}") # indentation is not C's business
file(WRITE ${WORK}/example.c "${program}\n")

function(build include out)
    execute_process(COMMAND ${COMPILER} -std=c11 -Wall -Wextra -Wpedantic -Werror -I${include}
                            example.c -o ${out} ${LIBRARY} -Wl,-rpath,${folder}
                    WORKING_DIRECTORY ${WORK} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

build(${INCLUDE} example)
execute_process(COMMAND ${WORK}/example OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed STREQUAL "1 0 0 0 0\n0 1 0 0 0\n0 0 1 0 0\n0 0 0 1 0\n")
    message(SEND_ERROR "the example printed\n${printed}")
endif()

# --- another header ---------------------------------------------------------------------------------------------------
file(COPY ${INCLUDE}/opjit DESTINATION ${WORK}/other)
string(REGEX REPLACE "(define OPJIT_VERSION_MINOR) [0-9]+" "\\1 77" other "${text}")
file(WRITE ${WORK}/other/opjit/opjit.h "${other}")
build(${WORK}/other example_other)
execute_process(COMMAND ${WORK}/example_other RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE printed)
if(NOT result EQUAL 1 OR NOT printed MATCHES "UNSUPPORTED: .*0\\.77\\.[0-9]+.*[0-9]+\\.[0-9]+\\.[0-9]+")
    message(SEND_ERROR "with the header of another version the example gave ${result} and\n${printed}")
endif()

# --- comments ---------------------------------------------------------------------------------------------------------
set(functions 0)
set(fields 0)
file(GLOB headers ${INCLUDE}/opjit/*.h)
list(FILTER headers EXCLUDE REGEX "/dml[.]h$") # DirectML's own names, which its documentation describes
foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(REPLACE "[" "<" text "${text}") # brackets and semicolons mean something in lists
    string(REPLACE "]" ">" text "${text}")
    string(REPLACE ";" "@" text "${text}")
    string(REPLACE "\n" ";" lines "${text}")
    set(before "")
    set(inside FALSE)
    foreach(line IN LISTS lines)
        if(line MATCHES "^(OPJIT_API|OPJIT_NODISCARD static)")
            math(EXPR functions "${functions} + 1")
            if(NOT before MATCHES "(<[a-z ]+, [0-9]+\\.[0-9]+> \\*/|@)$")
                message(SEND_ERROR "${header}: the comment before this has to end with [threads, since]: ${line}")
            endif()
        endif()
        if(line MATCHES "^typedef [a-z_]+ [*]?[(][*]" AND NOT line MATCHES "<[a-z ]+, [0-9]+[.][0-9]+> [*]/$" AND
           NOT before MATCHES "<[a-z ]+, [0-9]+[.][0-9]+> [*]/$")
            message(SEND_ERROR "${header}: the comment before this has to end with [threads, since]: ${line}")
        endif()
        if(line MATCHES "^typedef struct [a-z_0-9]+ {$")
            set(inside TRUE)
        elseif(line MATCHES "^}")
            set(inside FALSE)
        elseif(inside AND line MATCHES "^    [^ ].*@" AND NOT line MATCHES "^    /?\\*")
            math(EXPR fields "${fields} + 1")
            if(NOT line MATCHES "/\\*")
                message(SEND_ERROR "${header}: this field has no comment: ${line}")
            endif()
        endif()
        if(NOT line STREQUAL "")
            set(before "${line}")
        endif()
    endforeach()
endforeach()
if(functions LESS 120 OR fields LESS 200)
    message(SEND_ERROR "only ${functions} functions and ${fields} fields were found")
endif()
message(STATUS "${functions} functions, ${fields} fields")
