# Compiler options of our own targets: link hone_options PRIVATE. Third-party code is never compiled with them.

include(CheckCXXCompilerFlag)

option(HONE_WERROR "Treat warnings as errors" OFF)
set(HONE_SANITIZE "" CACHE STRING
    "Comma-separated sanitizers for our own targets: address,undefined or thread; with clang fuzzer-no-link as well")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the static libraries end up in a shared one (C ABI, Python)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_library(hone_options INTERFACE)
target_compile_features(hone_options INTERFACE cxx_std_20)
target_compile_options(hone_options INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wno-missing-field-initializers  # designated initializers leave members at their defaults on purpose
    $<$<BOOL:${HONE_WERROR}>:-Werror>
)
# A file of templates compiles a tenth faster where GCC collects the garbage of its own memory only from 256 MiB on.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hone_options INTERFACE "SHELL:--param ggc-min-heapsize=262144")
endif()
# GCC clears structs of some hundred bytes by `rep stos` on x86-64, which takes longer to start than the rest of a
# look-up takes.
check_cxx_compiler_flag("-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign" HONE_HAS_MEMSET_STRATEGY)
if(HONE_HAS_MEMSET_STRATEGY)
    target_compile_options(hone_options INTERFACE
        "-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign")
endif()
target_compile_definitions(hone_options INTERFACE HONE_VERSION="${PROJECT_VERSION}")

# What an attacker needs after a fault of ours is made rarer: checked copies, canaries on the stack, a table of functions
# that is read-only once the library is loaded, and branches that only land where they may. CMakeLists.txt leaves the
# canaries off what every call goes through (the property HONE_WITHOUT_CANARIES of a target: a precompiled header serves files
# of the same options alone). Sanitizers bring their own checks, and FORTIFY hides calls from them.
add_library(hone_hardening INTERFACE)
if(NOT HONE_SANITIZE)
    target_compile_options(hone_hardening INTERFACE
        $<$<NOT:$<BOOL:$<TARGET_PROPERTY:HONE_WITHOUT_CANARIES>>>:-fstack-protector-strong>)
    # A distribution's compiler may define it already, and warns when it is defined anew. It needs an optimizer.
    target_compile_options(hone_hardening INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
    check_cxx_compiler_flag("-fcf-protection=full" HONE_HAS_CF_PROTECTION)  # x86-64
    if(HONE_HAS_CF_PROTECTION)
        target_compile_options(hone_hardening INTERFACE -fcf-protection=full)
    endif()
    target_link_options(hone_hardening INTERFACE LINKER:-z,relro,-z,now)
endif()
target_link_libraries(hone_options INTERFACE hone_hardening)

# What nobody calls is left out: an eighth of libhone.so, and with it the one symbol of glibc 2.36 (arc4random), which stands
# in a part of the C++ library that is linked for its neighbours.
target_link_options(hone_options INTERFACE LINKER:--gc-sections)

# Applied to executables: everything that is linked into one needs the sanitizer's runtime.
add_library(hone_link_options INTERFACE)
if(HONE_SANITIZE)
    target_compile_options(hone_options INTERFACE
        -fsanitize=${HONE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(hone_link_options INTERFACE -fsanitize=${HONE_SANITIZE})
endif()

# With fuzzer-no-link among the sanitizers, clang notes the way through our code for libFuzzer (tests/fuzz). Clang
# before 16 crashes at lambdas in consteval functions and has no std::source_location.
if(HONE_SANITIZE MATCHES "fuzzer")
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "Fuzzing takes clang, which has libFuzzer: cmake --preset fuzz.")
    endif()
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
        target_compile_definitions(hone_options INTERFACE consteval=constexpr)
        target_include_directories(hone_options SYSTEM BEFORE INTERFACE
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/tests/fuzz/old_clang>)
        target_compile_options(hone_options INTERFACE -Wno-keyword-macro)
    endif()
endif()
