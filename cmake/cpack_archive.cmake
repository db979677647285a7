# What `cpack -G TGZ` does otherwise than `cpack -G DEB`: one folder, which works wherever it is unpacked.
if(CPACK_GENERATOR STREQUAL "TGZ")
    string(TOLOWER "${CPACK_SYSTEM_NAME}" system)
    execute_process(COMMAND uname -m OUTPUT_VARIABLE processor OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${CPACK_PACKAGE_VERSION}-${system}-${processor})
    set(CPACK_PACKAGING_INSTALL_PREFIX "")
endif()
