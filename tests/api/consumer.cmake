# SPDX-License-Identifier: Apache-2.0
# consumer.cmake - builds and runs the project in consumer/ against opjit, as somebody else would.
# WAY says how it gets at opjit:
#   installed          this build, installed into an empty prefix, by find_package
#   pkgconfig          the same by pkg-config and the compiler alone
#   installed_static   a static build with code generation linked in, installed, by find_package: the package must name
#                      what a static library needs
#   subdirectory       add_subdirectory
#   cmake -DWAY=.. -DSOURCE=.. -DBUILD=.. -DWORK=.. -DC_COMPILER=.. -DCXX_COMPILER=.. -DGENERATOR=.. -DPKG_CONFIG=..
#         -DLLVM_DIR=.. -P consumer.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\ngave ${result}\n${text}")
    endif()
endfunction()

function(configure_and_build source build)
    run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${source} -B ${build} -DCMAKE_BUILD_TYPE=Debug
        -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DLLVM_DIR=${LLVM_DIR} ${ARGN})
    run(${CMAKE_COMMAND} --build ${build})
endfunction()

# The library finds its code generator and that for devices by itself, or this test is not about the installed one.
unset(ENV{OPJIT_CODEGEN})
unset(ENV{OPJIT_DEVICE})
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(prefix ${WORK}/prefix)
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)

if(WAY STREQUAL "subdirectory")
    configure_and_build(${consumer} ${WORK}/build -DOPJIT_SOURCE=${SOURCE})
else()
    if(WAY STREQUAL "installed_static")
        configure_and_build(${SOURCE} ${WORK}/opjit -DBUILD_SHARED_LIBS=OFF -DOPJIT_CODEGEN=static -DOPJIT_BUILD_TESTS=OFF)
        set(BUILD ${WORK}/opjit)
    endif()
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
    # An installed tree may be moved.
    file(RENAME ${prefix} ${WORK}/moved)
    set(prefix ${WORK}/moved)
endif()

if(WAY STREQUAL "pkgconfig")
    file(GLOB_RECURSE pc ${prefix}/opjit.pc)
    cmake_path(GET pc PARENT_PATH pc_dir)
    set(ENV{PKG_CONFIG_PATH} ${pc_dir})
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs opjit OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    execute_process(COMMAND ${PKG_CONFIG} --variable=libdir opjit OUTPUT_VARIABLE libdir
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    run(${C_COMPILER} -std=c11 -Wall -Wextra -Wpedantic -Werror ${consumer}/main.c -o eye_c ${flags} -Wl,-rpath,${libdir})
    run(${WORK}/eye_c)
    return()
endif()

if(NOT WAY STREQUAL "subdirectory")
    configure_and_build(${consumer} ${WORK}/build -DCMAKE_PREFIX_PATH=${prefix})
    run(${prefix}/bin/opjit version)
endif()
run(${WORK}/build/eye_c)
run(${WORK}/build/eye_cxx)
run(${WORK}/build/kernels_c)
run(${WORK}/build/runtime_c)
