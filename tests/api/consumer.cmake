# SPDX-License-Identifier: Apache-2.0
# consumer.cmake - builds and runs the project in consumer/ against opjit, as somebody else would.
# WAY says how it gets at opjit:
#   installed          this build, installed into an empty prefix, by find_package
#   pkgconfig          this build, installed with DESTDIR, by pkg-config and the compiler alone
#   packed             this build's archives of cpack, unpacked into one folder, by find_package
#   installed_static   a static build with code generation linked in, installed, by find_package: the package must name
#                      what a static library needs
#   subdirectory       add_subdirectory
# Installed trees are moved before they are used.
#   cmake -DWAY=.. -DSOURCE=.. -DBUILD=.. -DWORK=.. -DC_COMPILER=.. -DCXX_COMPILER=.. -DGENERATOR=.. -DPKG_CONFIG=..
#         -DLLVM_DIR=.. -P consumer.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE text
                    ERROR_VARIABLE text)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\ngave ${result}\n${text}")
    endif()
endfunction()

function(configure_and_build source build)
    run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${source} -B ${build} -DCMAKE_BUILD_TYPE=Debug
        -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_COMPILER=${C_COMPILER}
        -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DLLVM_DIR=${LLVM_DIR} ${ARGN})
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
        configure_and_build(${SOURCE} ${WORK}/opjit -DBUILD_SHARED_LIBS=OFF -DOPJIT_CODEGEN=static
                            -DOPJIT_BUILD_TESTS=OFF)
        set(BUILD ${WORK}/opjit)
    endif()
    if(WAY STREQUAL "packed")
        run(${CMAKE_CPACK_COMMAND} --config ${BUILD}/CPackConfig.cmake -G TGZ -B ${WORK}/packages)
        file(GLOB archives ${WORK}/packages/*.tar.gz)
        list(LENGTH archives count)
        if(NOT count EQUAL 4)
            message(FATAL_ERROR "packages are ${archives}, must be four")
        endif()
        foreach(archive IN LISTS archives)
            file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${prefix})
        endforeach()
        find_program(DPKG_DEB dpkg-deb)
        if(DPKG_DEB) # Debian's packages hold the same files
            run(${CMAKE_CPACK_COMMAND} --config ${BUILD}/CPackConfig.cmake -G DEB -B ${WORK}/packages)
            file(GLOB packages ${WORK}/packages/*.deb)
            foreach(package IN LISTS packages)
                run(${DPKG_DEB} -x ${package} ${WORK}/debian)
            endforeach()
            file(GLOB_RECURSE from_archives RELATIVE ${prefix} ${prefix}/*)
            file(GLOB_RECURSE from_packages RELATIVE ${WORK}/debian/usr ${WORK}/debian/usr/*)
            if(NOT from_archives STREQUAL from_packages)
                message(SEND_ERROR "archives hold ${from_archives}\nDebian's packages hold ${from_packages}")
            endif()
        endif()
    elseif(WAY STREQUAL "pkgconfig")
        set(ENV{DESTDIR} ${WORK}/staged)
        run(${CMAKE_COMMAND} --install ${BUILD})
        unset(ENV{DESTDIR})
        file(GLOB_RECURSE pc ${WORK}/staged/opjit.pc)
        string(REGEX REPLACE "/[^/]+/pkgconfig/opjit.pc$" "" prefix ${pc})
    else()
        run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
    endif()
    if(WAY MATCHES "^(installed|packed)$")
        foreach(file share/man/man1/opjit.1 share/bash-completion/completions/opjit share/zsh/site-functions/_opjit
                     share/fish/vendor_completions.d/opjit.fish share/doc/opjit-program/MODEL.md)
            if(NOT EXISTS ${prefix}/${file})
                message(SEND_ERROR "${file} is not installed")
            endif()
        endforeach()
    endif()
    file(RENAME ${prefix} ${WORK}/moved)
    set(prefix ${WORK}/moved)
    foreach(component runtime dev codegen program)
        file(GLOB notices ${prefix}/share/doc/opjit-${component}/*)
        if(NOT notices MATCHES "LICENSE;.*THIRD-PARTY.txt" AND NOT (WAY STREQUAL "installed_static" AND component
                                                                    STREQUAL "codegen"))
            message(SEND_ERROR "${component} has the notices ${notices}; LICENSE and THIRD-PARTY.txt are needed")
        endif()
    endforeach()
    # The program finds its code generator from where it is now, through a link too.
    file(CREATE_LINK ${prefix}/bin/opjit ${WORK}/opjit-link SYMBOLIC)
    foreach(program ${prefix}/bin/opjit ${WORK}/opjit-link)
        run(${program} run --no-cache --executor cpu ${consumer}/kernels.json)
        if(NOT WAY STREQUAL "installed_static")
            run(${program} run --no-cache --out-of-process ${consumer}/kernels.json)
        endif()
        run(${program} compile --no-cache ${consumer}/kernels.json --emit lib,header --name consumer_kernels -o
            ${WORK}/kernels)
    endforeach()
endif()

function(build_by_pkg_config package source program)
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${package} OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    execute_process(COMMAND ${PKG_CONFIG} --variable=libdir ${package} OUTPUT_VARIABLE libdir
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    run(${C_COMPILER} -std=c11 -Wall -Wextra -Wpedantic -Werror -Ikernels ${consumer}/${source} ${ARGN} -o ${program}
        ${flags}
        -Wl,-rpath,${libdir})
    run(${WORK}/${program})
endfunction()

if(WAY STREQUAL "pkgconfig")
    file(GLOB_RECURSE pc ${prefix}/opjit.pc)
    cmake_path(GET pc PARENT_PATH pc_dir)
    set(ENV{PKG_CONFIG_PATH} ${pc_dir})
    build_by_pkg_config(opjit main.c eye_c)
    build_by_pkg_config(opjit-runtime runtime.c runtime_c kernels/libconsumer_kernels.a)
    return()
endif()

if(NOT WAY STREQUAL "subdirectory")
    configure_and_build(${consumer} ${WORK}/build -DCMAKE_PREFIX_PATH=${prefix})
endif()
run(${WORK}/build/eye_c)
run(${WORK}/build/eye_cxx)
run(${WORK}/build/kernels_c)
run(${WORK}/build/runtime_c)
