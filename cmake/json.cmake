# hone_cut(TEXT BEGIN END VARIABLE): the text without what stands from BEGIN up to the last END, which stays.
function(hone_cut text begin end variable)
    string(FIND "${text}" "${begin}" begins_at)
    string(FIND "${text}" "${end}" ends_at REVERSE)
    if(begins_at GREATER_EQUAL 0 AND ends_at GREATER begins_at)
        string(SUBSTRING "${text}" 0 ${begins_at} front)
        string(SUBSTRING "${text}" ${ends_at} -1 back)
        set(${variable} "${front}${back}" PARENT_SCOPE)
    endif()
endfunction()

# hone_copy_json(INCLUDE_FOLDER)
# Makes a copy of nlohmann/json's json.hpp (3.11.2, 3.12.0) with two changes:
#
# It lays the children of a tree on a std::vector when it destroys it, so as not to recurse. Where no memory is left for that,
# std::bad_alloc leaves a destructor, and the process ends. Ours recurses then instead: what we parse is at most 32 levels deep.
#
# Its literals ("..."_json), which nobody here uses, are functions and no templates, so that each file that includes it instantiates
# the parser for them: 0.8 s for an empty file. Ours has none.
#
# A json.hpp that looks otherwise is used as it is.
function(hone_copy_json include_folder)
    file(READ ${include_folder}/nlohmann/json.hpp text)
    set(begin "// flatten the current json_value to a heap-allocated stack")
    set(end "// since it doesn't have any children\n                }\n")
    string(FIND "${text}" "${begin}" begins_at)
    string(FIND "${text}" "${end}" ends_at)
    if(begins_at LESS 0 OR ends_at LESS begins_at)
        message(WARNING "json.hpp is not as cmake/json.cmake knows it: where memory ends, destroying JSON ends the process.")
        return()
    endif()
    string(REPLACE "${begin}" "try {  ${begin}" text "${text}")
    string(REPLACE "${end}" "${end}                } catch (const std::bad_alloc&) {}  // children go by recursion\n" text "${text}")
    hone_cut("${text}" "inline namespace literals" "NLOHMANN_JSON_NAMESPACE_END" text)
    hone_cut("${text}" "#if JSON_USE_GLOBAL_UDLS" "#include <nlohmann/detail/macro_unscope.hpp>" text)
    set(folder ${PROJECT_BINARY_DIR}/json)
    file(CONFIGURE OUTPUT ${folder}/nlohmann/json.hpp CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
    target_include_directories(hone_dep_json SYSTEM BEFORE INTERFACE ${folder})
endfunction()
