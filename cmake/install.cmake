# `cmake --install` and find_package(hone). The package is the dispatch library: it needs neither tuner nor yaml-cpp, and
# nothing of the third-party headers that we build with.
include(CMakePackageConfigHelpers)

set(hone_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hone)

install(TARGETS hone_package hone_runtime hone_cache hone_kernel_templates hone_sqlite hone_dep_fmt
    EXPORT hone-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The C interface: hone::c of the same package, and pkg-config. Both find the library relative to themselves.
install(TARGETS hone_c EXPORT hone-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime/hone.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH hone_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT hone-targets NAMESPACE hone:: DESTINATION ${hone_package_dir})

configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake.in ${PROJECT_BINARY_DIR}/hone-config.cmake
    INSTALL_DESTINATION ${hone_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hone-config.cmake ${PROJECT_BINARY_DIR}/hone-config-version.cmake
    DESTINATION ${hone_package_dir})

# Public headers include each other as "hone/x.h", and the vocabulary of the lower layers that the interface shares as
# "kernel_templates/x.h", which resolves beside them. The include-direction test knows this list.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/hone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/kernel_templates/dtype.h ${PROJECT_SOURCE_DIR}/kernel_templates/enums.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone/kernel_templates)

if(TARGET hone)
    install(TARGETS hone RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # Read by the tuner at run time; tuner/data_files.h says where it looks.
    foreach(folder models plans recorded)
        if(EXISTS ${PROJECT_SOURCE_DIR}/configs/${folder})
            install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/hone)
        endif()
    endforeach()
endif()
