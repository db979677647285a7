# What shells and man are told of the hone program, which prints it itself: made at build time, installed where they look.

set(described ${PROJECT_BINARY_DIR}/command_line)
set(descriptions)

# hone_describe(FILE ARGUMENTS...): the program's output as a file.
function(hone_describe file)
    add_custom_command(
        OUTPUT ${described}/${file}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${described}
        COMMAND ${CMAKE_COMMAND} -E env HONE_DATA_DIR=${PROJECT_SOURCE_DIR}/configs $<TARGET_FILE:hone> ${ARGN}
            > ${described}/${file}
        DEPENDS hone
        COMMENT "Describing the command line: ${file}"
        VERBATIM)
    set(descriptions ${descriptions} ${described}/${file} PARENT_SCOPE)
endfunction()

hone_describe(hone completion bash)
hone_describe(_hone completion zsh)
hone_describe(hone.fish completion fish)
hone_describe(hone.1 manual)
add_custom_command(
    OUTPUT ${described}/hone.1.gz
    COMMAND gzip --no-name --best --keep --force ${described}/hone.1
    DEPENDS ${described}/hone.1
    COMMENT "Compressing the man page"
    VERBATIM)
add_custom_target(hone_command_line ALL DEPENDS ${descriptions} ${described}/hone.1.gz)

install(FILES ${described}/hone DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT hone)
install(FILES ${described}/_hone DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT hone)
install(FILES ${described}/hone.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT hone)
install(FILES ${described}/hone.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT hone)
