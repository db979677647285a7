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
