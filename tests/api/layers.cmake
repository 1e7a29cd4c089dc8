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
        list(FILTER files EXCLUDE REGEX "^frontend/cli/")
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
check(codegen "${c}|${posix}|${public}|\"codegen/|\"ir/(ir|analysis/analysis|eval/math|eval/numerics)\\.h|\"ir/core/ops\\.def|\"runtime/(base/base|target/target)\\.h|<llvm-c/|<llvm/Config/llvm-config\\.h|\"opjit_build_id\\.h")
check(frontend "${c}|${posix}|${public}|\"frontend/|\"codegen/codegen\\.h|\"ir/|\"runtime/|\"opjit_build_id\\.h")
check(frontend/cli "${c}|${posix}|${public}|\"frontend/|\"ir/|\"runtime/|\"opjit_build_id\\.h|<immintrin\\.h")

# The program is to use the public headers alone.  What it still takes from inside stands here, and only gets shorter: a row
# that no file needs any more is refused, too.
#   runtime/base      arena, byte strings, errors as the library writes them; the decoder of UTF-8
#   desc/suggest.h    "did you mean"
#   target, device    opjit targets: named targets, the devices that are there; suggestions of targets
#   ir.h              FLOAT16 and back
set(taken
    "[^/]*:runtime/base/(base|utf8)"
    "(late|model):frontend/desc/suggest" "options:frontend/desc/suggest"
    "(cmd_bench|cmd_list|options):runtime/target/target" "cmd_list:runtime/device/device"
    "(model_resource|number):ir/ir"
    "cmd_list:opjit_build_id")
file(GLOB files RELATIVE ${ROOT} ${ROOT}/frontend/cli/*.c ${ROOT}/frontend/cli/*.h)
set(unused ${taken})
foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE ".*\"([^\"]+)\\.h\".*" "\\1" include "${line}")
        if(include MATCHES "^frontend/cli/")
            continue()
        endif()
        cmake_path(GET file STEM stem)
        set(known FALSE)
        foreach(row IN LISTS taken)
            if("${stem}:${include}" MATCHES "^${row}$")
                set(known TRUE)
                list(REMOVE_ITEM unused "${row}")
            endif()
        endforeach()
        if(NOT known)
            message(SEND_ERROR "${file} includes ${include}.h: the program has to do with the public headers")
        endif()
    endforeach()
endforeach()
if(unused)
    message(SEND_ERROR "nothing of the program takes ${unused} any more: the list gets shorter")
endif()
check(tests/reference "${c}|${public}|\"tests/reference/")

# The library does not know its program.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/frontend/*.c ${ROOT}/frontend/*.h)
list(FILTER files EXCLUDE REGEX "^frontend/cli/")
foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "#[ \t]*include[ \t]*\"frontend/cli/")
    if(lines)
        message(SEND_ERROR "${file} may not include the program's headers: ${lines}")
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
