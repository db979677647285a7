# Texts of the source tree that travel inside the libraries. Nobody edits a list: folders and files are found, and an
# edited template or header changes the hash at the next build.

add_executable(hone_embed
    ${PROJECT_SOURCE_DIR}/cmake/tools/embed.cpp ${PROJECT_SOURCE_DIR}/cache/sha256.cpp
    ${PROJECT_SOURCE_DIR}/cache/packed_bundle.cpp ${PROJECT_SOURCE_DIR}/cache/compression.cpp)
target_include_directories(hone_embed PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(hone_embed PRIVATE hone_options hone_link_options)

# Adds a generated source: the output of `embed ARGUMENTS...`, made again when one of DEPENDS changes.
function(hone_embed target output)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;DEPENDS")
    add_custom_command(
        OUTPUT ${output}
        COMMAND hone_embed ${arg_ARGUMENTS}
        DEPENDS hone_embed ${arg_DEPENDS}
        COMMENT "Embedding into ${target}"
        VERBATIM)
    target_sources(${target} PRIVATE ${output})
endfunction()

# Implements families() and embedded_sources() of kernel_templates/catalog.h.
function(hone_embed_templates target)
    set(root ${PROJECT_SOURCE_DIR}/kernel_templates)
    file(GLOB_RECURSE texts CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.cu ${root}/*.cuh)
    file(GLOB families CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*/family.cpp)
    # Launch plans and what they include count into the hashes.
    file(GLOB_RECURSE plans CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*/*.cpp ${root}/*/*.h)
    set(depends ${texts} ${families} ${plans})
    list(REMOVE_DUPLICATES depends)
    list(TRANSFORM depends PREPEND ${root}/)
    set(output ${PROJECT_BINARY_DIR}/generated/kernel_templates/catalog_data.cpp)
    hone_embed(${target} ${output}
        ARGUMENTS templates ${root} ${output} ${texts} ${families}
        DEPENDS ${depends})
endfunction()

# Implements packaged_bundles() of cache/packaged.h.
function(hone_embed_packaged_bundles target)
    file(GLOB bundles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/configs/tuned/*.json)
    set(output ${PROJECT_BINARY_DIR}/generated/cache/packaged_bundles.cpp)
    hone_embed(${target} ${output} ARGUMENTS bundles ${output} ${bundles} DEPENDS ${bundles})
endfunction()

# The page of `hone report` (tuner/report/page/): what its source names goes into one text.
function(hone_embed_page target)
    set(vega ${PROJECT_SOURCE_DIR}/third_party/vega)
    # The README beside the files names their checksums; an update that forgets one of the two fails here.
    file(READ ${vega}/README.md readme)
    foreach(file vega.min.js vega-lite.min.js vega-interpreter.js)
        file(SHA256 ${vega}/${file} sum)
        if(NOT readme MATCHES "${sum}")
            message(FATAL_ERROR "third_party/vega/${file} has SHA-256 ${sum}, which its README.md does not name.")
        endif()
    endforeach()
    add_executable(hone_embed_page
        ${PROJECT_SOURCE_DIR}/cmake/tools/embed_page.cpp ${PROJECT_SOURCE_DIR}/cache/sha256.cpp
        ${PROJECT_SOURCE_DIR}/tuner/report/page/packed.cpp)
    target_include_directories(hone_embed_page PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_embed_page PRIVATE hone_dep_zlib hone_options hone_link_options)
    set(web ${PROJECT_SOURCE_DIR}/tuner/report/page/web)
    file(GLOB texts CONFIGURE_DEPENDS ${web}/* ${vega}/*)
    set(output ${PROJECT_BINARY_DIR}/generated/tuner/page.cpp)
    add_custom_command(
        OUTPUT ${output}
        COMMAND hone_embed_page ${web}/report.html ${output}
        DEPENDS hone_embed_page ${texts}
        COMMENT "Embedding the page into ${target}"
        VERBATIM)
    target_sources(${target} PRIVATE ${output})
endfunction()
