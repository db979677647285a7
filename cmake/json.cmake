# nlohmann/json lays the children of a tree on a std::vector when it destroys it, so as not to recurse. Where no memory is
# left for that, std::bad_alloc leaves a destructor, and the process ends (3.11.2, 3.12.0). This makes a copy of json.hpp
# that recurses then instead: what we parse is at most 32 levels deep. A json.hpp that looks otherwise is used as it is.
function(hone_make_json_safe_without_memory include_folder)
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
    set(folder ${PROJECT_BINARY_DIR}/json)
    file(CONFIGURE OUTPUT ${folder}/nlohmann/json.hpp CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
    target_include_directories(hone_dep_json SYSTEM BEFORE INTERFACE ${folder})
endfunction()
