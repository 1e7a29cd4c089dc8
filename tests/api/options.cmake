# SPDX-License-Identifier: Apache-2.0
# options.cmake - what a project that has this tree in its own gets: its own build type, no -Werror, no install rules
# and no tests unless it asks, no program where it says so.  Nothing is built.
#   cmake -DSOURCE=.. -DWORK=.. -DC_COMPILER=.. -P options.cmake
cmake_minimum_required(VERSION 3.25)

# Configures a project that has the tree in its own, with options; its build rules are text, its targets' names are
# targets.
function(configure)
    file(REMOVE_RECURSE ${WORK}/build)
    execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${WORK} -B ${WORK}/build -DCMAKE_C_COMPILER=${C_COMPILER}
                            -DOPJIT_CODEGEN=none -DOPJIT_FFI=OFF ${ARGN}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${WORK}/build/build.ninja text)
    set(text "${text}" PARENT_SCOPE)
    file(READ ${WORK}/build/opjit/cmake_install.cmake installs)
    set(installs "${installs}" PARENT_SCOPE)
endfunction()

# check(<what> <condition>...)
function(check what)
    if(${ARGN})
        return()
    endif()
    message(SEND_ERROR "${what}: not so")
endfunction()

unset(ENV{CFLAGS})
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
file(WRITE ${WORK}/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(host LANGUAGES C)\nadd_subdirectory(${SOURCE} opjit)\n")

configure()
file(STRINGS ${WORK}/build/CMakeCache.txt build_type REGEX "^CMAKE_BUILD_TYPE:STRING=")
check("the host's build type stays empty" build_type STREQUAL "CMAKE_BUILD_TYPE:STRING=")
check("no -Werror" NOT text MATCHES "-Werror")
check("no tests" NOT text MATCHES "opjit_support")
check("the program is there" text MATCHES "opjit-program")
check("nothing is installed" NOT installs MATCHES "file\\(INSTALL")

configure(-DOPJIT_BUILD_PROGRAM=OFF -DOPJIT_INSTALL=ON -DOPJIT_WERROR=ON)
check("-Werror where it is asked for" text MATCHES "-Werror")
check("no program" NOT text MATCHES "opjit-program")
check("libraries are installed" installs MATCHES "libopjit-runtime.so")
check("headers are installed" installs MATCHES "include/opjit")
message(STATUS "two projects configured")
