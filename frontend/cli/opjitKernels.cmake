# SPDX-License-Identifier: Apache-2.0
# opjitKernels.cmake - kernels at build time, for projects that use opjit's package or its source tree:
#
#   opjit_add_kernels(<target> MODELS <model.json>...
#                     [TARGETS <cpu:...>...] [LEVEL quick|peak] [DISPATCHABLE <name>] [FEATURE_LEVEL <5.1>]
#                     [LATE <field>...] [PREFIX_MODEL] [MASKS_ABSORB] [DEPENDS <file>...])
#
# makes <target> a library of all dispatchables of the models, compiled again whenever a model, one of the files after
# DEPENDS (data that models read) or opjit changes.  A program that links it includes "<target>.h", or a header a
# dispatchable, and calls them; it needs nothing else.  With opjit::runtime linked as well, <target>_registry gives the
# same kernels by name (opjit_library_of).  Fields after LATE become parameters of the functions.  <target> has to be a
# C identifier.
#
# Without TARGETS there are three versions for x86-64 (v1, v3, v4), of which the best that the machine runs is chosen
# when the program is loaded; for other processors one, that any of them runs.
#
# OPJIT_PROGRAM may name the opjit to use.  It has to where this package's can't make code: in a cross build, whose
# program doesn't run here, and in a build without code generation; else one is looked for in the PATH of the machine
# that builds.

# Sets <out> to code for the processor that is built for.
function(opjit_default_targets out)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        set(${out} cpu:x86-64-v1 cpu:x86-64-v3 cpu:x86-64-v4 PARENT_SCOPE)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        set(${out} cpu:aarch64 PARENT_SCOPE)
    elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64")
        set(${out} cpu:rv64gc PARENT_SCOPE)
    else()
        message(FATAL_ERROR
                "opjit_add_kernels: there is no code for CMAKE_SYSTEM_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR}; x86_64, aarch64 and riscv64 are known")
    endif()
endfunction()

# Sets OPJIT_PROGRAM where the program of this package or tree can't make code.
function(opjit_find_program)
    set(codegen none)
    foreach(library opjit::opjit opjit::runtime)
        if(TARGET ${library} AND TARGET opjit::program)
            get_target_property(codegen ${library} OPJIT_CODEGEN)
        endif()
    endforeach()
    if(OPJIT_PROGRAM OR (NOT CMAKE_CROSSCOMPILING AND NOT codegen STREQUAL "none"))
        return()
    endif()
    find_program(OPJIT_PROGRAM opjit NO_CMAKE_FIND_ROOT_PATH NO_CMAKE_PATH NO_CMAKE_INSTALL_PREFIX
                 DOC "An opjit that makes code and runs on this machine")
    if(NOT OPJIT_PROGRAM)
        message(FATAL_ERROR
                "opjit_add_kernels: OPJIT_PROGRAM has to name an opjit that runs on this machine and makes code: what is built here doesn't")
    endif()
endfunction()

function(opjit_add_kernels target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "PREFIX_MODEL;MASKS_ABSORB" "LEVEL;DISPATCHABLE;FEATURE_LEVEL"
                          "MODELS;TARGETS;LATE;DEPENDS")
    if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR
                "opjit_add_kernels(${target}): ${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}: unknown, or without a value")
    endif()
    if(NOT arg_MODELS)
        message(FATAL_ERROR "opjit_add_kernels(${target}): there are no MODELS")
    endif()
    if(NOT arg_TARGETS)
        opjit_default_targets(arg_TARGETS)
    endif()
    if(CMAKE_CROSSCOMPILING AND arg_TARGETS MATCHES "(^|;)cpu(:host)?(;|$)")
        message(FATAL_ERROR
                "opjit_add_kernels(${target}): TARGETS ${arg_TARGETS}: cpu and cpu:host are the machine that builds, this is a cross build")
    endif()
    opjit_find_program()

    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target})
    set(archive ${folder}/lib${target}.a)
    set(header ${folder}/${target}.h)
    file(MAKE_DIRECTORY ${folder}) # an imported target's include folder has to be there
    set(options --no-cache --quiet --name ${target})
    foreach(one IN LISTS arg_TARGETS)
        list(APPEND options --target ${one})
    endforeach()
    foreach(field IN LISTS arg_LATE)
        list(APPEND options --late ${field})
    endforeach()
    foreach(option IN ITEMS LEVEL DISPATCHABLE FEATURE_LEVEL)
        if(arg_${option})
            string(TOLOWER --${option} name)
            string(REPLACE _ - name ${name})
            list(APPEND options ${name} ${arg_${option}})
        endif()
    endforeach()
    foreach(option IN ITEMS PREFIX_MODEL MASKS_ABSORB)
        if(arg_${option})
            string(TOLOWER --${option} name)
            string(REPLACE _ - name ${name})
            list(APPEND options ${name})
        endif()
    endforeach()
    set(models "")
    foreach(model IN LISTS arg_MODELS)
        cmake_path(ABSOLUTE_PATH model)
        list(APPEND models ${model})
    endforeach()
    set(data "")
    foreach(file IN LISTS arg_DEPENDS)
        cmake_path(ABSOLUTE_PATH file)
        list(APPEND data ${file})
    endforeach()

    # The program looks for its code generator beside itself; a package may have been moved.
    set(environment "")
    set(compilers "")
    if(TARGET opjit::codegen)
        set(environment OPJIT_CODEGEN=$<TARGET_FILE:opjit::codegen>)
        set(compilers opjit::codegen)
    endif()
    if(OPJIT_PROGRAM)
        set(program ${OPJIT_PROGRAM})
        set(environment "")
    else()
        set(program $<TARGET_FILE:opjit::program>)
        list(APPEND compilers opjit::program)
    endif()
    add_custom_command(OUTPUT ${archive} ${header}
        COMMAND ${CMAKE_COMMAND} -E env ${environment} -- ${program}
                compile ${models} ${options} --emit lib,header -o ${folder}
        DEPENDS ${models} ${data} ${compilers}
        COMMENT "Compiling the kernels of ${target}" VERBATIM)
    add_custom_target(${target}_files DEPENDS ${archive} ${header})
    add_library(${target} STATIC IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${archive} INTERFACE_INCLUDE_DIRECTORIES ${folder})
    add_dependencies(${target} ${target}_files)
endfunction()
