# hone_add_layer(NAME GLOB|GLOB_RECURSE PATTERN...)
# The static library hone_NAME from the sources that match; main.cpp is left to the program, c_api/ to the shared library. Included from the repository
# root: #include "cache/cache.h".
function(hone_add_layer name glob_mode)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
    file(${glob_mode} sources CONFIGURE_DEPENDS ${ARGN})
    list(FILTER sources EXCLUDE REGEX "/(main\\.cpp|c_api/[^/]*)$")
    add_library(hone_${name} STATIC ${sources})
    set_target_properties(hone_${name} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(hone_${name} PUBLIC cxx_std_20)
    target_include_directories(hone_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
    hone_link_for_build(hone_${name} PRIVATE hone_options)
endfunction()

# hone_split_layer(NAME PART FOLDER...)
# The files of hone_NAME below these folders are compiled as hone_PART, which has options of its own, and stay in the library.
# What they include is linked to hone_PART, too.
function(hone_split_layer name part)
    get_target_property(sources hone_${name} SOURCES)
    list(JOIN ARGN "|" folders)
    set(of_part ${sources})
    list(FILTER of_part INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/(${folders})")
    list(REMOVE_ITEM sources ${of_part})
    add_library(hone_${part} OBJECT ${of_part})
    set_target_properties(hone_${name} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:hone_${part}>")
endfunction()

# hone_add_module(NAME SOURCE...)
# libhone_NAME.so, which is opened at run time. It lies beside the programs.
function(hone_add_module name)
    add_library(hone_${name} MODULE ${ARGN})
    target_include_directories(hone_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_${name} PRIVATE hone_options)
    set_target_properties(hone_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

# hone_add_c_library(TARGET SHARED|STATIC NAME HEADER_FOLDER SOURCE...)
# libNAME.so, which shows what cmake/NAME.map says and needs nothing but the C library. Its header is in HEADER_FOLDER.
# STATIC, for tests: an archive of the target's name.
function(hone_add_c_library target kind name header_folder)
    add_library(${target} ${kind} ${ARGN})
    if(kind STREQUAL STATIC)
        set(output ${target})
    else()
        set(output ${name})
    endif()
    set(map ${PROJECT_SOURCE_DIR}/cmake/${name}.map)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${header_folder}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:hone_options>)
    target_link_options(${target} PRIVATE LINKER:--version-script=${map})
    hone_compile_in_units(${target})
    if(HONE_SANITIZE)
        target_link_options(${target} PRIVATE -fsanitize=${HONE_SANITIZE})
    else()
        hone_for_old_glibc(${target})
        target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--no-undefined)
    endif()
endfunction()

# hone_precompile(TARGET HEADER...)
# The standard headers that nearly every file includes, and these, read once for all files of the target: a quarter to a half
# of what compiling a file takes. The dev preset builds without, so that each file includes what it uses. Reading them takes three
# seconds: a target of the same options and headers reuses another's, `target_precompile_headers(TARGET REUSE_FROM OTHER)`.
function(hone_precompile target)
    target_precompile_headers(${target} PRIVATE
        <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view> <vector> ${ARGN})
endfunction()

# Headers and options that whoever uses the installed package does not need.
function(hone_link_for_build target visibility)
    foreach(library IN LISTS ARGN)
        target_link_libraries(${target} ${visibility} $<BUILD_INTERFACE:${library}>)
    endforeach()
endfunction()

# hone_add_programs(FOLDER EXTENSION LIBRARY...): one program FOLDER_x for each FOLDER/x.EXTENSION.
function(hone_add_programs folder extension)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.${extension})
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM stem)
        add_executable(${folder}_${stem} ${source})
        set_target_properties(${folder}_${stem} PROPERTIES
            OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder} C_STANDARD 11)
        target_link_libraries(${folder}_${stem} PRIVATE ${ARGN} hone_link_options ${CMAKE_DL_LIBS})
    endforeach()
endfunction()
