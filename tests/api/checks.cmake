# SPDX-License-Identifier: Apache-2.0
# Checks of the library from outside and of the dependencies between its folders.  Included by tests/CMakeLists.txt; the
# scripts beside this file do the work and say what they check.
enable_language(CXX)
set(api ${CMAKE_CURRENT_LIST_DIR})

opjit_test(api.layers ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${api}/layers.cmake)
opjit_test(api.tuning ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${api}/tuning.cmake)
opjit_test(api.places ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${api}/places.cmake)
opjit_test(api.spdx ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${api}/spdx.cmake)
foreach(language C CXX)
    string(TOLOWER api.headers_${language} name)
    opjit_test(${name} ${CMAKE_COMMAND} -DINCLUDE=${PROJECT_SOURCE_DIR}/include -DLANGUAGE=${language}
               -DCOMPILER=${CMAKE_${language}_COMPILER} -P ${api}/headers.cmake)
endforeach()

# The rest is for ordinary builds: a sanitizer adds symbols to every file and its library to every program.  It also
# needs shared libraries, which only the default build has.
get_target_property(type opjit TYPE)
if(OPJIT_SANITIZE OR OPJIT_FUZZ OR NOT TARGET opjit-codegen OR NOT type STREQUAL "SHARED_LIBRARY")
    return()
endif()

# The archive of codegen exists only if tests of its internals are built.
add_custom_target(api_archives ALL DEPENDS opjit_internal opjit_internal_codegen)
opjit_test(api.symbols ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DREADELF=${CMAKE_READELF}
           -DINCLUDE=${PROJECT_SOURCE_DIR}/include
           "-DARCHIVES=$<TARGET_FILE:opjit_internal>;$<TARGET_FILE:opjit_internal_codegen>;$<TARGET_OBJECTS:opjit_devices>;$<TARGET_OBJECTS:opjit_process>"
           -DOPJIT=$<TARGET_FILE:opjit> -DRUNTIME=$<TARGET_FILE:opjit-runtime> -DCODEGEN=$<TARGET_FILE:opjit-codegen>
           $<$<TARGET_EXISTS:opjit-codegen-llvm>:-DBACKEND=$<TARGET_FILE:$<IF:$<TARGET_EXISTS:opjit-codegen-llvm>,opjit-codegen-llvm,opjit-codegen>>>
           -DDEVICE=$<TARGET_FILE:opjit-device> -DPROGRAM=$<TARGET_FILE:opjit-program>
           -DPROCESS=$<TARGET_FILE:opjit-codegen-process> -DWORKER=$<TARGET_FILE:opjit-worker> -P ${api}/symbols.cmake)

# The library that an application ships if it only runs kernels.
opjit_test(api.runtime ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF} -DRUNTIME=$<TARGET_FILE:opjit-runtime>
           -DDEVICE=$<TARGET_FILE:opjit-device> -P ${api}/runtime.cmake)

# A separate project that uses opjit, in every supported way.
foreach(way installed pkgconfig packed installed_static subdirectory)
    opjit_test(api.consumer_${way} ${CMAKE_COMMAND} -DWAY=${way} -DSOURCE=${PROJECT_SOURCE_DIR}
               -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/${way}
               -DC_COMPILER=${CMAKE_C_COMPILER} -DCXX_COMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
               -DPKG_CONFIG=${PKG_CONFIG_EXECUTABLE} -DLLVM_DIR=${LLVM_DIR} -P ${api}/consumer.cmake)
endforeach()
set_tests_properties(api.consumer_installed_static api.consumer_subdirectory PROPERTIES LABELS slow RUN_SERIAL ON)

opjit_test(api.options ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
           -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/options
           -DC_COMPILER=${CMAKE_C_COMPILER} -P ${api}/options.cmake)

# Builds without LLVM, for this machine and for another one.
set(none ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DPROGRAM=$<TARGET_FILE:opjit-program>
    -DC_COMPILER=${CMAKE_C_COMPILER}
    -DCXX_COMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR})
opjit_test(api.none ${none} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/none -P ${api}/none.cmake)
if(OPJIT_QEMU_AARCH64 AND OPJIT_GCC_AARCH64)
    opjit_test(api.none_aarch64 ${none} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/none_aarch64
               -DTOOLCHAIN=${api}/aarch64.cmake -DEMULATOR=${OPJIT_QEMU_AARCH64}
               -DLOADER=/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1 -P ${api}/none.cmake)
else()
    opjit_test(api.none_aarch64 sh -c "echo skipped: no qemu-aarch64 or no aarch64-linux-gnu-gcc was found; exit 77")
endif()
set_tests_properties(api.none api.none_aarch64 PROPERTIES LABELS slow RUN_SERIAL ON)

opjit_test(api.manual ${CMAKE_COMMAND} -DINCLUDE=${PROJECT_SOURCE_DIR}/include -DLIBRARY=$<TARGET_FILE:opjit>
           -DWORK=${CMAKE_CURRENT_BINARY_DIR}/manual -DCOMPILER=${CMAKE_C_COMPILER} -P ${api}/manual.cmake)
if(EXISTS ${PROJECT_SOURCE_DIR}/README.md)
    opjit_test(api.readme ${CMAKE_COMMAND} -DREADME=${PROJECT_SOURCE_DIR}/README.md
               -DINCLUDE=${PROJECT_SOURCE_DIR}/include -DLIBRARY=$<TARGET_FILE:opjit>
               -DPROGRAM=$<TARGET_FILE:opjit-program> -DWORK=${CMAKE_CURRENT_BINARY_DIR}/readme
               -DCOMPILER=${CMAKE_C_COMPILER} -P ${api}/readme.cmake)
endif()
