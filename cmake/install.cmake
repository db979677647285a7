# `cmake --install`, find_package(hone), and packages (`cpack`): Debian's, and an archive for other systems. Components: the
# program with what it reads (hone), the shared libraries (libhone0), and what a program is built with (libhone-dev), which
# needs neither tuner nor yaml-cpp, and nothing of the third-party headers that we build with.
include(CMakePackageConfigHelpers)

set(hone_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hone)

install(TARGETS hone_package hone_runtime hone_cache hone_kernel_templates hone_sqlite hone_dep_fmt
    EXPORT hone-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone-dev)

# The C interface: hone::c of the same package, and pkg-config. Both find the library relative to themselves.
install(TARGETS hone_c EXPORT hone-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone0 NAMELINK_COMPONENT libhone-dev)
install(FILES ${PROJECT_SOURCE_DIR}/runtime/hone.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhone-dev)
if(TARGET hone_decoder_c)
    install(TARGETS hone_decoder_c EXPORT hone-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone0 NAMELINK_COMPONENT libhone-dev)
    install(FILES ${PROJECT_SOURCE_DIR}/decoder/c_api/hone_decoder.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhone-dev)
endif()
file(RELATIVE_PATH hone_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libhone-dev)

install(EXPORT hone-targets NAMESPACE hone:: DESTINATION ${hone_package_dir} COMPONENT libhone-dev)

configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake.in ${PROJECT_BINARY_DIR}/hone-config.cmake
    INSTALL_DESTINATION ${hone_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hone-config.cmake ${PROJECT_BINARY_DIR}/hone-config-version.cmake
    DESTINATION ${hone_package_dir} COMPONENT libhone-dev)

# Public headers include each other as "hone/x.h", and the vocabulary of the lower layers that the interface shares as
# "kernel_templates/x.h", which resolves beside them. The include-direction test knows this list.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/hone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhone-dev
    FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/kernel_templates/dtype.h ${PROJECT_SOURCE_DIR}/kernel_templates/enums.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone/kernel_templates COMPONENT libhone-dev)

# Examples compile where they are installed; their folder has what they include.
file(GLOB hone_examples ${PROJECT_SOURCE_DIR}/examples/*.c ${PROJECT_SOURCE_DIR}/examples/*.cpp
    ${PROJECT_SOURCE_DIR}/examples/*.h)
install(FILES ${hone_examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhone-dev/examples COMPONENT libhone-dev)

if(HONE_BUILD_DECODER)
    install(TARGETS hone_sentencepiece hone_http LIBRARY DESTINATION lib/hone COMPONENT hone)
endif()
if(TARGET hone)
    install(TARGETS hone RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hone)
    # Read by the tuner at run time; tuner/data_files.h says where it looks.
    foreach(folder models plans recorded)
        if(EXISTS ${PROJECT_SOURCE_DIR}/configs/${folder})
            install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/hone
                COMPONENT hone)
        endif()
    endforeach()
    install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hone COMPONENT hone)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hone/docs COMPONENT hone
        PATTERN decisions EXCLUDE)
endif()

# Each package has the licence, and those of the code that is linked in where its packages' copyright is at hand; SQLite's is
# in the public domain.
set(vega ${PROJECT_SOURCE_DIR}/third_party/vega)  # in the page of `hone report`
set(hone_licences ${PROJECT_SOURCE_DIR}/LICENSE ${vega}/LICENSE ${vega}/LICENSE.vega-lite)
foreach(package libfmt-dev nlohmann-json3-dev libxxhash-dev libyaml-cpp-dev libcli11-dev zlib1g-dev
        libpcre2-dev libutf8proc-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)
        list(APPEND hone_licences /usr/share/doc/${package}/copyright)
    endif()
endforeach()
set(hone_copyright ${PROJECT_BINARY_DIR}/copyright)
file(WRITE ${hone_copyright} "")
foreach(file ${hone_licences})
    file(READ ${file} text)
    file(APPEND ${hone_copyright} "== ${file} ==\n\n${text}\n")
endforeach()
foreach(component hone libhone0 libhone-dev)
    install(FILES ${hone_copyright} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${component} COMPONENT ${component})
endforeach()

# cpack -G DEB, or cpack -G TGZ for one archive of all components, in the build folder.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/cpack_archive.cmake)
set(CPACK_PACKAGE_CONTACT "the Hone project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_COMPONENTS_ALL hone libhone0 libhone-dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_HONE_PACKAGE_NAME hone)
set(CPACK_DEBIAN_HONE_PACKAGE_DEPENDS "libc6 (>= 2.28)")
set(CPACK_DEBIAN_HONE_PACKAGE_SUGGESTS "libcuda1, libnvrtc13")
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_NAME libhone0)
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_DEPENDS "libc6 (>= 2.28)")
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_NAME libhone-dev)
set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_DEPENDS "libhone0 (= ${PROJECT_VERSION}), libc6-dev")
set(CPACK_COMPONENT_HONE_DESCRIPTION "Tunes CUDA kernels on the GPU at hand: the command hone.")
set(CPACK_COMPONENT_LIBHONE0_DESCRIPTION "Dispatches tuned CUDA kernels, and runs models with them: the shared libraries with the C interface.")
set(CPACK_COMPONENT_LIBHONE-DEV_DESCRIPTION
    "Headers, static libraries and examples for programs that dispatch tuned CUDA kernels from C and C++.")
include(CPack)
