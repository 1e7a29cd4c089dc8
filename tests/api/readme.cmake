# SPDX-License-Identifier: Apache-2.0
# readme.cmake - compiles and runs the C examples of the documents, as they stand there: the README's, against the
# library, and the one of kernels made ahead of time, with the commands before it.  Links between documents lead to
# files.
#   cmake -DREADME=<file> -DINCLUDE=<folder> -DLIBRARY=<libopjit> -DPROGRAM=<opjit> -DWORK=<folder> -DCOMPILER=<cc>
#         -P readme.cmake
cmake_minimum_required(VERSION 3.25)
cmake_path(GET README PARENT_PATH source)

# Sets <out> to what stands between the first line <fence> of <document> and the next fence.
function(read_block document fence out)
    file(READ ${source}/${document} text)
    string(FIND "${text}" "${fence}\n" begin)
    if(begin EQUAL -1)
        message(FATAL_ERROR "${document} has no ${fence}")
    endif()
    string(LENGTH "${fence}\n" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "```" end)
    string(SUBSTRING "${text}" 0 ${end} text)
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${ARGN} gave ${result}")
    endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
read_block(README.md "```c" text)
file(WRITE ${WORK}/example.c "${text}")
cmake_path(GET LIBRARY PARENT_PATH folder)
run(${COMPILER} -std=c11 -Wall -Wextra -Wpedantic -Werror -I${INCLUDE} example.c -o example ${LIBRARY} -lm
    -Wl,-rpath,${folder})
execute_process(COMMAND ${WORK}/example OUTPUT_VARIABLE output RESULT_VARIABLE result)
read_block(README.md "```\n\n```" expected) # what stands behind the program
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
    message(FATAL_ERROR "README.md's example gave ${result} and printed\n${output}not\n${expected}")
endif()

# The commands name the models from the top of the tree, and the program by its name.
read_block(docs/ahead-of-time.md "```sh" commands)
read_block(docs/ahead-of-time.md "```c" text)
file(WRITE ${WORK}/app.c "${text}")
file(CREATE_LINK ${source}/tests ${WORK}/tests SYMBOLIC)
cmake_path(GET PROGRAM PARENT_PATH folder)
set(ENV{PATH} "${folder}:$ENV{PATH}")
run(sh -ec "${commands}")

# --- links ---
file(GLOB_RECURSE documents RELATIVE ${source} ${source}/*.md)
list(FILTER documents EXCLUDE REGEX "^(build|shared)/")
foreach(document IN LISTS documents)
    file(READ ${source}/${document} text)
    string(REPLACE "](" "@(" text "${text}")
    string(REGEX REPLACE "[][;]" "" text "${text}") # they mean something in CMake's lists
    string(REGEX MATCHALL "@[(][^)# \n]+" links "${text}")
    cmake_path(GET document PARENT_PATH folder)
    foreach(link IN LISTS links)
        string(SUBSTRING ${link} 2 -1 link)
        if(NOT link MATCHES "^[a-z]+:" AND NOT EXISTS "${source}/${folder}/${link}")
            message(SEND_ERROR "${document} links to ${link}, which is not there")
        endif()
    endforeach()
endforeach()
