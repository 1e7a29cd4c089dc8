# SPDX-License-Identifier: Apache-2.0
# layers.cmake - reads every #include line of the library and the reference and checks the arrows between the layers:
#     frontend -> codegen/codegen.h -> ir -> runtime -> include, and outside headers only where they belong.
# It reads text and follows no #if: an include that no build uses counts too.
#   cmake -DROOT=<source folder> -P layers.cmake
cmake_minimum_required(VERSION 3.25)

# check(<folder> <what may be included>): a regular expression over "<file>" of each include, system headers as <file>.
function(check folder allowed)
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.c ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.def)
    if(folder STREQUAL "frontend")
        list(FILTER files EXCLUDE REGEX "^frontend/(cli|hosts)/")
    elseif(folder STREQUAL "codegen")
        list(FILTER files EXCLUDE REGEX "^codegen/(front|process)/")
    endif()
    foreach(file IN LISTS files)
        file(READ ${ROOT}/${file} text)
        string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"]" lines "${text}")
        foreach(line IN LISTS lines)
            string(REGEX REPLACE ".*include[ \t]*([<\"])([^>\"]+)[>\"]" "\\1\\2" include "${line}")
            if(NOT include MATCHES "^(${allowed})")
                message(SEND_ERROR "${file} may not include ${include}")
            endif()
        endforeach()
        set_property(GLOBAL APPEND PROPERTY files_read ${file})
    endforeach()
endfunction()

# Of the outside: the C library and POSIX, and nothing that belongs to one folder alone.
set(c "<(assert|ctype|errno|fenv|float|inttypes|limits|locale|math|stdarg|stdalign|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|time)\\.h")
set(posix "<(dirent|dlfcn|elf|fcntl|glob|libgen|link|pthread|sched|signal|spawn|strings|unistd|cpuid|termios)\\.h|<(sys|linux|asm|net)/")
set(public "<opjit/")

check(include/opjit "<(stdbool|stddef|stdint|windows)\\.h|${public}")
check(runtime "${c}|${posix}|${public}|\"runtime/|<(ffi|xxhash)\\.h")
check(ir "${c}|${public}|\"ir/|\"runtime/(base/base|target/target)\\.h")
check(codegen "${c}|${posix}|${public}|\"codegen/|\"ir/(ir|analysis/analysis|eval/math|eval/numerics)\\.h|\"ir/core/ops\\.def|\"runtime/(base/base|target/target)\\.h|<llvm-c/|<llvm/Config/llvm-config\\.h|\"opjit_(build_id|targets)\\.h")
# What loads LLVM's backend has to find its library.
check(codegen/front "\"codegen/(codegen|driver/driver|front/front)\\.h|<stdatomic\\.h|<string\\.h|\"runtime/base/module\\.h|${public}|<llvm-c/|\"opjit_build_id\\.h")
# A host has the client, so no LLVM; and nothing else of codegen knows of processes.
check(codegen/process
      "${c}|${posix}|<(malloc|poll)\\.h|${public}|\"codegen/(codegen\\.h|process/)|\"ir/ir\\.h|\"runtime/(base/(base|limits|lock|module)|target/target)\\.h|\"opjit_build_id\\.h")
check(frontend "${c}|${posix}|${public}|\"frontend/|\"codegen/codegen\\.h|\"ir/|\"runtime/|\"opjit_build_id\\.h")
check(frontend/cli "${c}|${posix}|${public}|\"frontend/cli/|\"runtime/base/(base|utf8)\\.h|<immintrin\\.h")

# Its rooms: text knows no files, files no models, models no commands, and timing none of them.
check(frontend/cli/text "${c}|${posix}|${public}|\"frontend/cli/text/|\"runtime/base/(base|utf8)\\.h")
check(frontend/cli/files "${c}|${posix}|${public}|\"frontend/cli/(files|text)/|\"runtime/base/(base|utf8)\\.h")
check(frontend/cli/model "${c}|${posix}|${public}|\"frontend/cli/(model|files|text)/|\"runtime/base/(base|utf8)\\.h")
check(frontend/cli/measure "${c}|${posix}|${public}|\"frontend/cli/measure/|\"runtime/base/(base|utf8)\\.h|<immintrin\\.h")

# A host may have the program's reader of models, as TVM FFI's has.
check(frontend/hosts "${c}|${posix}|${public}|\"frontend/(hosts/|cli/model/model\\.h)|<(Python|structmember)\\.h")

# The program uses the public API alone: it is the proof that the API suffices.  From inside it takes runtime/base's
# memory, byte strings, lines of errors and UTF-8, which know nothing of operators or kernels, instead of a second copy
# of them; of base.h's other names, none.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/frontend/cli/*.c ${ROOT}/frontend/cli/*.h)
set(base "arena|bytes|error|default_allocator|allocate|release|no_memory|printable|hash64")
foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} text)
    string(REGEX MATCHALL "opjit_(rt|fe|ir|cg)_[a-z0-9_]+" names "${text}")
    list(FILTER names EXCLUDE REGEX "^opjit_rt_(${base})(_|$)")
    if(names)
        message(SEND_ERROR "${file} uses ${names}: the program has to do with the public headers")
    endif()
endforeach()
check(tests/reference "${c}|${public}|\"tests/reference/")

# The library does not know its program and its hosts.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/frontend/*.c ${ROOT}/frontend/*.h)
list(FILTER files EXCLUDE REGEX "^frontend/(cli|hosts)/")
foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "#[ \t]*include[ \t]*\"frontend/(cli|hosts)/")
    if(lines)
        message(SEND_ERROR "${file} may not include headers of the program or of hosts: ${lines}")
    endif()
endforeach()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/codegen/*.c ${ROOT}/codegen/*.h)
list(FILTER files EXCLUDE REGEX "^codegen/process/")
foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "#[ \t]*include[ \t]*\"codegen/process/")
    if(lines)
        message(SEND_ERROR "${file} may not include what makes processes: ${lines}")
    endif()
endforeach()

# <ffi.h> is in one file, so that a build without libffi leaves out one file's worth of code.
set(ffi_files "")
get_property(files GLOBAL PROPERTY files_read)
foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "#[ \t]*include[ \t]*<ffi\\.h>")
    if(lines)
        list(APPEND ffi_files ${file})
    endif()
endforeach()
list(LENGTH ffi_files count)
if(count GREATER 1)
    message(SEND_ERROR "<ffi.h> belongs in one file, not in ${ffi_files}")
endif()

list(LENGTH files count)
message(STATUS "${count} files read")
