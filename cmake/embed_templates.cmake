# Texts of the source tree that travel inside the libraries. Nobody edits a list: folders and files are found, and an
# edited template or header changes the hash at the next build.

add_executable(hone_embed ${PROJECT_SOURCE_DIR}/cmake/tools/embed.cpp)
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
