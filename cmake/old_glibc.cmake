# hone_for_old_glibc(TARGET): links a program or a shared library so that it runs from glibc 2.28 on (RHEL 8, Ubuntu
# 20.04), whatever newer one it is built with. Three things stand in the way, and each has its remedy:
# - functions that glibc did not have then, or has newer versions of: runtime/system/old_glibc/*.c are linked in instead;
# - functions of libpthread and libdl, which glibc 2.34 moved into libc, with new versions. The old versions are still there,
#   but what asks libc for them does not find them in a glibc before 2.30, which looks into the named library alone. So they
#   are linked from libraries made below, which have nothing but those names, with the versions and in the files of old;
#   any glibc has these two files;
# - _start, which relies on the C library to run constructors: runtime/system/old_glibc/start.c.
# What else is too new shows in python.wheel_test, on Debian 12. On other processors than x86-64 none of this is done: their
# versions have other names.

# hone_add_old_library(NAME SONAME-VERSION VERSION-SCRIPT FUNCTION...): the target hone_old_NAME, only to link with.
function(hone_add_old_library name soversion script)
    set(folder ${PROJECT_BINARY_DIR}/old_glibc)
    set(functions "")
    foreach(function IN LISTS ARGN)
        string(APPEND functions "void ${function}(void) {}\n")
    endforeach()
    file(CONFIGURE OUTPUT ${folder}/${name}.c CONTENT "${functions}")
    file(CONFIGURE OUTPUT ${folder}/${name}.map CONTENT "${script}\n")
    add_library(hone_old_${name} SHARED ${folder}/${name}.c)
    set_target_properties(hone_old_${name} PROPERTIES
        OUTPUT_NAME ${name} SOVERSION ${soversion} LIBRARY_OUTPUT_DIRECTORY ${folder} C_VISIBILITY_PRESET default)
    target_link_options(hone_old_${name} PRIVATE -nostdlib LINKER:--version-script=${folder}/${name}.map)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT HONE_SANITIZE)
    # What our code and the C++ library call.
    hone_add_old_library(pthread 0 "GLIBC_2.2.5 { *; }; GLIBC_2.3.3 { pthread_condattr_setclock; };"
        __pthread_key_create pthread_condattr_setclock pthread_create pthread_detach pthread_getspecific pthread_join pthread_key_create
        pthread_key_delete pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_settype pthread_once
        pthread_setspecific)
    hone_add_old_library(dl 2 "GLIBC_2.2.5 { dlopen; dlsym; dlclose; dlerror; }; GLIBC_2.3.3 { dladdr1; dlinfo; };"
        dlopen dlsym dlclose dlerror dladdr1 dlinfo)
endif()

file(GLOB hone_old_glibc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/system/old_glibc/*.c)
set_source_files_properties(${hone_old_glibc_sources} PROPERTIES
    COMPILE_OPTIONS "-std=c11;-D_GNU_SOURCE;-fno-builtin")

function(hone_for_old_glibc target)
    set(sources ${hone_old_glibc_sources})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL SHARED_LIBRARY)
        list(FILTER sources EXCLUDE REGEX "/start\\.c$")  # a library has no _start
    endif()
    target_sources(${target} PRIVATE ${sources})
    foreach(library pthread dl)
        if(TARGET hone_old_${library})
            # As options, because CMake would have the loader look for a library in the folder that it lies in.
            target_link_options(${target} PRIVATE LINKER:--no-as-needed $<TARGET_FILE:hone_old_${library}>)
            add_dependencies(${target} hone_old_${library})
        endif()
    endforeach()
endfunction()
