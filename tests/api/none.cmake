# SPDX-License-Identifier: Apache-2.0
# none.cmake - opjit without LLVM, which must not be looked for: it is installed, its program runs the example models in
# the interpreter and says so, and programs with kernels that another opjit made are built against it.
# With TOOLCHAIN all of that is a cross build, whose programs EMULATOR runs.  The native one asks for a unity build too.
#   cmake -DSOURCE=.. -DWORK=.. -DPROGRAM=<opjit that makes code> -DC_COMPILER=.. -DCXX_COMPILER=.. -DGENERATOR=..
#         [-DTOOLCHAIN=.. -DEMULATOR=<qemu> -DLOADER=<ld-linux of that machine>] -P none.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE text
                    ERROR_VARIABLE text)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\ngave ${result}\n${text}")
    endif()
endfunction()

# What must end with status and say this on standard error; standard output into ${printed}.
function(expect status said)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE text
                    ERROR_VARIABLE errors)
    string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
    if(NOT result EQUAL status OR NOT errors MATCHES "${said}")
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\ngave ${result} and ${errors}\n${status} and ${said} were to be")
    endif()
    set(printed "${text}" PARENT_SCOPE)
endfunction()

# The code generator of the build that this test belongs to may not be found.
unset(ENV{OPJIT_CODEGEN})
unset(ENV{OPJIT_DEVICE})
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(options -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0)
if(TOOLCHAIN)
    list(APPEND options --toolchain ${TOOLCHAIN})
else()
    list(APPEND options -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_UNITY_BUILD=ON)
endif()
run(${CMAKE_COMMAND} ${options} -S ${SOURCE} -B ${WORK}/opjit -DOPJIT_CODEGEN=none -DOPJIT_FFI=OFF
    -DOPJIT_BUILD_TESTS=OFF
    -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON -DOPJIT_WERROR=ON)
run(${CMAKE_COMMAND} --build ${WORK}/opjit)
run(${CMAKE_COMMAND} --install ${WORK}/opjit --prefix ${WORK}/prefix)
if(EMULATOR) # by the loader, as qemu's -L would put another folder in the place of /
    cmake_path(GET LOADER PARENT_PATH libraries)
    list(APPEND EMULATOR ${LOADER} --library-path ${libraries})
endif()
set(opjit ${EMULATOR} ${WORK}/prefix/bin/opjit)

# Models write files beside themselves.
file(COPY ${SOURCE}/tests/examples/models DESTINATION ${WORK})
file(GLOB models ${WORK}/models/*.json)
foreach(model IN LISTS models)
    string(REGEX REPLACE "json$" "out" known ${model})
    if(EXISTS ${known})
        expect(0 "built without code generation .*: the interpreter runs the model" ${opjit} run --no-cache ${model})
        file(READ ${known} text)
        if(NOT printed STREQUAL text)
            message(SEND_ERROR "${model} printed\n${printed}instead of\n${text}")
        endif()
    endif()
endforeach()
expect(1 "built without code generation" ${opjit} compile --no-cache ${WORK}/models/eye.json -o ${WORK}/kernels)
expect(0 "^$" ${opjit} version)
if(NOT printed MATCHES "\nLLVM none ")
    message(SEND_ERROR "opjit version printed ${printed}")
endif()

# Kernels for a program come from an opjit that makes code, or the project stops.
set(consumer ${CMAKE_COMMAND} ${options} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build
    -Dopjit_DIR=${WORK}/prefix/lib/cmake/opjit -DONLY_KERNELS=ON)
set(ENV{PATH} /usr/bin:/bin)
expect(1 "OPJIT_PROGRAM has to name an opjit" ${consumer} -DCMAKE_SYSTEM_PROGRAM_PATH=/nowhere)
run(${consumer} -DOPJIT_PROGRAM=${PROGRAM})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${EMULATOR} ${WORK}/build/kernels_c)
run(${EMULATOR} ${WORK}/build/runtime_c)
