# Third-party libraries, as hone_dep_* targets that hide where the distribution keeps them. cmake/packages.txt names the
# packages. Which layer may use which one is in the CMakeLists.txt.

find_package(Threads REQUIRED)

# Fails with the package that is missing instead of a page of CMake text.
function(hone_find_header variable header package)
    find_path(${variable} ${header})
    if(NOT ${variable})
        message(FATAL_ERROR "<${header}> not found. On Debian and Ubuntu: apt-get install ${package}")
    endif()
    mark_as_advanced(${variable})
endfunction()

function(hone_header_library name header package)
    string(TOUPPER HONE_${name}_INCLUDE_DIR variable)
    hone_find_header(${variable} ${header} ${package})
    add_library(hone_dep_${name} INTERFACE)
    target_include_directories(hone_dep_${name} SYSTEM INTERFACE ${${variable}})
    target_compile_definitions(hone_dep_${name} INTERFACE ${ARGN})
endfunction()

# Headers only, all of them, so that nothing but the C library is needed at run time.
hone_header_library(json nlohmann/json.hpp nlohmann-json3-dev)
include(json)
hone_copy_json(${HONE_JSON_INCLUDE_DIR})
hone_header_library(xxhash xxhash.h libxxhash-dev)

# {fmt} as headers costs five seconds of compile time a file, most of it for code that is the same in all of them; that
# part is compiled once where we know its list (Debian 12 and Ubuntu 24.04 have 9.1).
hone_find_header(HONE_FMT_INCLUDE_DIR fmt/format.h libfmt-dev)
file(STRINGS ${HONE_FMT_INCLUDE_DIR}/fmt/core.h fmt_version_line REGEX "^#define FMT_VERSION ")
if(fmt_version_line MATCHES " 9[0-9][0-9][0-9][0-9]$")
    add_library(hone_dep_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
    target_compile_options(hone_dep_fmt PRIVATE -w)
    target_compile_features(hone_dep_fmt PUBLIC cxx_std_20)
    set(fmt_visibility PUBLIC)
else()
    add_library(hone_dep_fmt INTERFACE)
    target_compile_definitions(hone_dep_fmt INTERFACE $<BUILD_INTERFACE:FMT_HEADER_ONLY=1>)
    set(fmt_visibility INTERFACE)
endif()
target_include_directories(hone_dep_fmt SYSTEM ${fmt_visibility} $<BUILD_INTERFACE:${HONE_FMT_INCLUDE_DIR}>)
set_target_properties(hone_dep_fmt PROPERTIES EXPORT_NAME fmt)

if(HONE_BUILD_TUNER)
    hone_header_library(cli11 CLI/CLI.hpp libcli11-dev)

    # Static where there is one: its version differs between Debian 12 (0.7) and Ubuntu 24.04 (0.8), and a binary built
    # on one has to run on the other. The archive is position dependent enough to fit into executables only.
    hone_find_header(HONE_YAML_INCLUDE_DIR yaml-cpp/yaml.h libyaml-cpp-dev)
    find_library(HONE_YAML_LIBRARY NAMES libyaml-cpp.a yaml-cpp)
    if(NOT HONE_YAML_LIBRARY)
        message(FATAL_ERROR "libyaml-cpp not found. On Debian and Ubuntu: apt-get install libyaml-cpp-dev")
    endif()
    mark_as_advanced(HONE_YAML_LIBRARY)
    add_library(hone_dep_yaml INTERFACE)
    target_include_directories(hone_dep_yaml SYSTEM INTERFACE ${HONE_YAML_INCLUDE_DIR})
    target_link_libraries(hone_dep_yaml INTERFACE ${HONE_YAML_LIBRARY})

    # Static, too: the program needs nothing but the C library.
    hone_header_library(zlib zlib.h zlib1g-dev)
    find_library(HONE_ZLIB_LIBRARY NAMES libz.a z REQUIRED)
    mark_as_advanced(HONE_ZLIB_LIBRARY)
    target_link_libraries(hone_dep_zlib INTERFACE ${HONE_ZLIB_LIBRARY})
endif()

# What the decoder reads text with, and serves it. Static where there is an archive; Debian has none of sentencepiece and cpp-httplib.
function(hone_found_library name header package)
    string(TOUPPER HONE_${name}_LIBRARY variable)
    hone_header_library(${name} ${header} ${package})
    find_library(${variable} NAMES ${ARGN})
    if(NOT ${variable})
        message(FATAL_ERROR "The library of <${header}> not found. On Debian and Ubuntu: apt-get install ${package}")
    endif()
    mark_as_advanced(${variable})
    target_link_libraries(hone_dep_${name} INTERFACE ${${variable}})
endfunction()
if(HONE_BUILD_DECODER)
    hone_found_library(pcre2 pcre2.h libpcre2-dev libpcre2-8.a pcre2-8)
    hone_found_library(utf8proc utf8proc.h libutf8proc-dev libutf8proc.a utf8proc)
    hone_found_library(sentencepiece sentencepiece_processor.h libsentencepiece-dev libsentencepiece.a sentencepiece)
    hone_found_library(httplib httplib.h libcpp-httplib-dev cpp-httplib)
    # As the library was compiled: its classes have members more.
    target_compile_definitions(hone_dep_httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT)
endif()

if(HONE_BUILD_TESTS)
    hone_header_library(doctest doctest/doctest.h doctest-dev)
    hone_find_header(HONE_RAPIDCHECK_INCLUDE_DIR rapidcheck.h librapidcheck-dev)
    find_library(HONE_RAPIDCHECK_LIBRARY NAMES librapidcheck.a rapidcheck REQUIRED)
    mark_as_advanced(HONE_RAPIDCHECK_LIBRARY)
    add_library(hone_dep_rapidcheck INTERFACE)
    target_include_directories(hone_dep_rapidcheck SYSTEM INTERFACE ${HONE_RAPIDCHECK_INCLUDE_DIR})
    target_link_libraries(hone_dep_rapidcheck INTERFACE ${HONE_RAPIDCHECK_LIBRARY})
endif()

# CUDA: two headers, no library. The driver, NVRTC and NVML are opened at run time.
find_path(HONE_CUDA_INCLUDE_DIR nvrtc.h
    HINTS ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda /usr/local/cuda-13 /opt/cuda
    PATH_SUFFIXES include targets/x86_64-linux/include targets/sbsa-linux/include
    DOC "Folder with cuda.h and nvrtc.h of a CUDA 13 toolkit")
set(cuda_advice "Hone needs cuda.h and nvrtc.h of a CUDA toolkit, 13.0 or later, to build (the toolkit is searched in \
CUDA_HOME, CUDA_PATH and /usr/local/cuda). Install one, or set -DHONE_CUDA_INCLUDE_DIR to the folder with the headers.")
if(NOT HONE_CUDA_INCLUDE_DIR OR NOT EXISTS ${HONE_CUDA_INCLUDE_DIR}/cuda.h)
    message(FATAL_ERROR "No CUDA toolkit found. ${cuda_advice}")
endif()
file(STRINGS ${HONE_CUDA_INCLUDE_DIR}/cuda.h cuda_version_line REGEX "^#define CUDA_VERSION ")
string(REGEX MATCH "[0-9]+" HONE_CUDA_VERSION "${cuda_version_line}")
if(HONE_CUDA_VERSION LESS 13000)
    message(FATAL_ERROR "${HONE_CUDA_INCLUDE_DIR}/cuda.h is of version ${HONE_CUDA_VERSION}, too old. ${cuda_advice}")
endif()
add_library(hone_dep_cuda_headers INTERFACE)
target_include_directories(hone_dep_cuda_headers SYSTEM INTERFACE ${HONE_CUDA_INCLUDE_DIR})
