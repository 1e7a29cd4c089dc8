# SPDX-License-Identifier: Apache-2.0
# symbols.cmake - reads the symbols that our code defines and uses.
#   cmake -DNM=<nm> -DREADELF=<readelf> -DINCLUDE=<include folder> -DARCHIVES=<a;b> -DOPJIT=<lib> -DRUNTIME=<lib>
#         [-DCODEGEN=<lib>] [-DBACKEND=<lib>] [-DDEVICE=<lib>] [-DPROGRAM=<opjit>] [-DPROCESS=<lib> -DWORKER=<program>]
#         -P symbols.cmake
# ARCHIVES  hold every object of the library: names have our prefix, and what a library must not do is not called.
# The rest  are shared libraries: they export what the headers declare and nothing else, and do not need LLVM.
cmake_minimum_required(VERSION 3.25)

# --- names: a static library has no namespace except its prefix -------------------------------------------------------
foreach(archive IN LISTS ARCHIVES)
    execute_process(COMMAND ${NM} -g --defined-only ${archive} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[0-9a-f]+ [A-Z] [^\n]+" lines "${text}")
    foreach(line IN LISTS lines)
        # The JIT interface's names are GDB's; they are hidden in a shared library.
        if(NOT line MATCHES " [A-Z] (opjit_|__jit_debug_)")
            message(SEND_ERROR "${archive}: symbol without the opjit_ prefix: ${line}")
        endif()
    endforeach()
endforeach()

# --- calls: memory comes from the hook, and nothing prints or ends the process ----------------------------------------
set(memory "malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|strndup|asprintf|vasprintf|free")
set(prints "printf|puts|putchar|vprintf|perror|__printf_chk|stdout")
set(ends "abort|exit|_exit|_Exit|quick_exit")
foreach(archive IN LISTS ARCHIVES)
    execute_process(COMMAND ${NM} -A -u ${archive} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^:\n]+\\.o: *U [^\n]+" lines "${text}")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "^([^:]+)\\.o: *U ([^@]+)" match "${line}")
        set(object ${CMAKE_MATCH_1})
        set(symbol ${CMAKE_MATCH_2})
        if(symbol MATCHES "^(${memory})$" AND NOT object STREQUAL "base.c")
            message(SEND_ERROR "${object} uses ${symbol}: memory comes from the allocator (runtime/base/base.c)")
        elseif(symbol MATCHES "^(${prints}|${ends})$")
            message(SEND_ERROR "${object} uses ${symbol}: the library neither prints nor ends the process")
        elseif(symbol STREQUAL "stderr" AND NOT object STREQUAL "context.c")
            message(SEND_ERROR "${object} uses stderr: only OPJIT_VERBOSE prints (runtime/base/context.c)")
        endif()
    endforeach()
endforeach()

# --- exports ----------------------------------------------------------------------------------------------------------
# Every declaration marked OPJIT_API, up to its parameter list; what stands right before it is the name.
set(declared "")
file(GLOB headers ${INCLUDE}/opjit/*.h)
foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(REGEX MATCHALL "OPJIT_API [^;(#]*\\(" declarations "${text}")
    foreach(declaration IN LISTS declarations)
        string(REGEX MATCH "(opjit_[a-z0-9_]+)\\($" match "${declaration}")
        list(APPEND declared ${CMAKE_MATCH_1})
    endforeach()
endforeach()

# Sets <out> to the exported names of a shared library and checks that it has no need of LLVM.
function(read_exports library out)
    execute_process(COMMAND ${NM} -D --defined-only ${library} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    # Capital letters are global; ld may leave a local name of a merged section in the table, which binds nothing.
    string(REGEX MATCHALL "[A-Zu] [A-Za-z0-9_]+(@@[^\n]*)?\n" lines "${text}")
    set(names "")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^[A-Za-z] ([A-Za-z0-9_]+).*" "\\1" name "${line}")
        list(APPEND names ${name})
    endforeach()
    set(${out} "${names}" PARENT_SCOPE)
endfunction()

function(check_no_llvm library)
    execute_process(COMMAND ${READELF} -d ${library} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    if(text MATCHES "NEEDED[^\n]*LLVM")
        message(SEND_ERROR "${library} is linked to LLVM")
    endif()
endfunction()

foreach(library IN ITEMS ${OPJIT} ${RUNTIME})
    check_no_llvm(${library})
    read_exports(${library} names)
    foreach(name IN LISTS names)
        if(NOT name IN_LIST declared)
            message(SEND_ERROR "${library} exports ${name}, which no public header declares with OPJIT_API")
        endif()
    endforeach()
    if(library STREQUAL OPJIT)
        foreach(name IN LISTS declared)
            if(NOT name IN_LIST names)
                message(SEND_ERROR "${library} does not export ${name}, which a public header declares")
            endif()
        endforeach()
    endif()
endforeach()

foreach(module IN ITEMS "${CODEGEN}:opjit_codegen_query" "${DEVICE}:opjit_device_query"
                        "${BACKEND}:opjit_codegen_query" "${PROCESS}:opjit_codegen_query")
    string(REGEX MATCH "^(.+):(.+)$" match "${module}")
    if(match)
        set(library ${CMAKE_MATCH_1})
        set(only ${CMAKE_MATCH_2})
        read_exports(${library} names)
        if(NOT names STREQUAL only)
            message(SEND_ERROR "${library} exports ${names}; ${only} alone is allowed")
        endif()
    endif()
endforeach()
foreach(file IN ITEMS ${DEVICE} ${PROCESS} ${WORKER})
    check_no_llvm(${file})
endforeach()

# --- binding: no function's address stays writable once a file is loaded ----------------------------------------------
foreach(file IN ITEMS ${OPJIT} ${RUNTIME} ${CODEGEN} ${BACKEND} ${DEVICE} ${PROGRAM} ${PROCESS} ${WORKER})
    execute_process(COMMAND ${READELF} -dlW ${file} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    if(NOT text MATCHES "\\(FLAGS\\)[^\n]*BIND_NOW|FLAGS_1\\)[^\n]*NOW" OR NOT text MATCHES "GNU_RELRO")
        message(SEND_ERROR "${file} is not linked with -z relro -z now")
    endif()
endforeach()

list(LENGTH declared count)
message(STATUS "${count} public functions")
