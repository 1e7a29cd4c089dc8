# SPDX-License-Identifier: Apache-2.0
# readme.cmake - compiles and runs the C examples of the README, as they stand there: the first one, against the library,
# and the one of kernels made ahead of time, with the commands before it.
#   cmake -DREADME=<file> -DINCLUDE=<folder> -DLIBRARY=<libopjit> -DPROGRAM=<opjit> -DWORK=<folder> -DCOMPILER=<cc>
#         -P readme.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${README} readme)

# Sets <out> to what stands between the first line <fence> after <start> and the next fence.
function(read_block start fence out)
    string(FIND "${readme}" "${start}" begin)
    string(SUBSTRING "${readme}" ${begin} -1 text)
    string(FIND "${text}" "${fence}\n" begin)
    if(begin EQUAL -1)
        message(FATAL_ERROR "${README} has no ${fence} after ${start}")
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
read_block("## In a program" "```c" text)
file(WRITE ${WORK}/example.c "${text}")
cmake_path(GET LIBRARY PARENT_PATH folder)
run(${COMPILER} -std=c11 -Wall -Wextra -Wpedantic -Werror -I${INCLUDE} example.c -o example ${LIBRARY} -Wl,-rpath,${folder})
run(${WORK}/example)

# The commands name the models from the top of the tree, and the program by its name.
read_block("## Ahead of time" "```sh" commands)
read_block("## Ahead of time" "```c" text)
file(WRITE ${WORK}/app.c "${text}")
cmake_path(GET README PARENT_PATH source)
file(CREATE_LINK ${source}/tests ${WORK}/tests SYMBOLIC)
cmake_path(GET PROGRAM PARENT_PATH folder)
set(ENV{PATH} "${folder}:$ENV{PATH}")
run(sh -ec "${commands}")
