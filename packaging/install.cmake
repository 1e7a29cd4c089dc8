# SPDX-License-Identifier: Apache-2.0
# install.cmake - what is installed, in four components, and cpack's packages of them.  Included by CMakeLists.txt.
#   runtime   the shared libraries that applications are linked to, and libopjit-device, which they load
#   dev       headers, package files for CMake and pkg-config, static libraries
#   codegen   libopjit-codegen, which libopjit and the program load, and libopjit-codegen-llvm, which that loads;
#             libopjit-codegen-process and opjit-worker
#   program   opjit, its man page and completions
# No file of an installed tree contains its path, so the tree can be moved: package files refer to the rest relative to
# themselves.
include(CMakePackageConfigHelpers)

set(components runtime dev)
set(opjit_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/opjit)
set(libraries opjit opjit-runtime)
if(TARGET opjit-device)
    list(APPEND libraries opjit-device)
endif()
install(TARGETS ${libraries} EXPORT opjit_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT opjit_targets NAMESPACE opjit:: FILE opjitTargets.cmake DESTINATION ${opjit_package_dir} COMPONENT dev)
# Optional parts have export sets of their own, which opjitConfig.cmake includes if they are installed.
if(TARGET opjit-codegen)
    list(APPEND components codegen)
    # The worker is no program for people, so it lies below the library that starts it.
    install(TARGETS ${codegen_libraries} opjit-codegen-process opjit-worker EXPORT opjit_codegen_targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT codegen
            RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/opjit COMPONENT codegen)
    install(EXPORT opjit_codegen_targets NAMESPACE opjit:: FILE opjitCodegenTargets.cmake
            DESTINATION ${opjit_package_dir}
            COMPONENT codegen)
endif()
if(TARGET opjit-program)
    list(APPEND components program)
    install(TARGETS opjit-program EXPORT opjit_program_targets RUNTIME COMPONENT program)
    install(EXPORT opjit_program_targets NAMESPACE opjit:: FILE opjitProgramTargets.cmake
            DESTINATION ${opjit_package_dir}
            COMPONENT program)
    install(FILES frontend/cli/MODEL.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/opjit-program COMPONENT program)
endif()
if(TARGET opjit_manual)
    install(FILES ${manual}/opjit.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
    install(FILES ${manual}/opjit.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME opjit
            COMPONENT program)
    install(FILES ${manual}/opjit.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _opjit
            COMPONENT program)
    install(FILES ${manual}/opjit.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
install(DIRECTORY include/opjit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
# Packages may not share files, and each must contain its licences.
foreach(component IN LISTS components)
    install(FILES LICENSE packaging/THIRD-PARTY.txt DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/opjit-${component}
            COMPONENT ${component})
endforeach()
install(FILES CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/opjit-dev COMPONENT dev)

# --- find_package -----------------------------------------------------------------------------------------------------
# The user of a static library links its dependencies, too.
get_target_property(library_type opjit TYPE)
set(opjit_find_dependencies "")
if(library_type STREQUAL "STATIC_LIBRARY")
    string(APPEND opjit_find_dependencies "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n")
    if(OPJIT_FFI)
        string(APPEND opjit_find_dependencies "find_dependency(PkgConfig)\n"
            "pkg_check_modules(LIBFFI REQUIRED QUIET IMPORTED_TARGET libffi)\n")
    endif()
    if(OPJIT_CODEGEN STREQUAL "static")
        string(APPEND opjit_find_dependencies "find_dependency(LLVM ${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR} CONFIG HINTS ${LLVM_DIR})\n")
    endif()
endif()
configure_file(packaging/opjitConfig.cmake.in opjitConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/opjitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/opjitConfig.cmake ${PROJECT_BINARY_DIR}/opjitConfigVersion.cmake
              frontend/cli/opjitKernels.cmake
        DESTINATION ${opjit_package_dir} COMPONENT dev)

# --- pkg-config -------------------------------------------------------------------------------------------------------
# libdir may be several levels deep, or an absolute path without a known prefix.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "^(.*[^/])/*$" "\${pcfiledir}/\\1" pc_prefix ${pc_prefix})
endif()
set(pc_libdir \${prefix})
cmake_path(APPEND pc_libdir ${CMAKE_INSTALL_LIBDIR})
set(pc_includedir \${prefix})
cmake_path(APPEND pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
set(pc_requires "")
if(OPJIT_FFI)
    set(pc_requires libffi)
endif()

# pc_file(<library> <libraries that the static one needs in addition to libc> <description>)
function(pc_file pc_name pc_libraries pc_description)
    configure_file(packaging/library.pc.in ${pc_name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()
set(llvm "")
if(OPJIT_CODEGEN STREQUAL "static")
    set(llvm "-L${LLVM_LIBRARY_DIR} -lLLVM-${LLVM_VERSION_MAJOR} ")
endif()
pc_file(opjit "${llvm}" "embeddable operator-graph JIT compiler")
pc_file(opjit-runtime "" "runs kernels that opjit made; no compiler")

# --- packages ---------------------------------------------------------------------------------------------------------
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_VENDOR opjit)
set(CPACK_PACKAGE_CONTACT "opjit maintainers <opjit@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "embeddable operator-graph JIT compiler")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_STRIP_FILES ON)
# One archive and one package per component; archives unpacked into one folder form the installed tree.
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_INCLUDE_TOPLEVEL_DIRECTORY OFF)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libopjit${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libopjit-dev)
set(CPACK_DEBIAN_CODEGEN_PACKAGE_NAME libopjit-codegen)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME opjit)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_CODEGEN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers) # ldconfig
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(DPKG_SHLIBDEPS)
if(DPKG_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
cpack_add_component(runtime DESCRIPTION "shared libraries of opjit, an embeddable operator-graph JIT compiler")
cpack_add_component(dev DEPENDS runtime DESCRIPTION "headers and package files of opjit")
cpack_add_component(codegen DESCRIPTION "code generation of opjit, with LLVM")
if(TARGET opjit-codegen)
    cpack_add_component(program DEPENDS codegen DESCRIPTION "runs, explains and compiles models of operators")
else()
    cpack_add_component(program DESCRIPTION "runs and explains models of operators")
endif()
