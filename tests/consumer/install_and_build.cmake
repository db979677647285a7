# cmake -DBUILD=<build tree> -DCONFIG=<build type> -DWORK=<scratch folder> -DSOURCE=<this folder> -P install_and_build.cmake
# Installs into a scratch prefix, builds the consumers against it, runs them.
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    message("${output}")
    if(NOT result EQUAL 0)
        string(REPLACE ";" " " command "${ARGN}")
        message(FATAL_ERROR "failed (${result}): ${command}")
    endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# Elsewhere than at the build's prefix: an installed package can be moved.
file(RENAME ${WORK}/prefix ${WORK}/moved)
file(GLOB examples ${WORK}/moved/share/doc/libhone-dev/examples/*.c*)
if(NOT examples)
    message(FATAL_ERROR "no example was installed")
endif()
list(JOIN examples "\\;" examples)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/consumer -G Ninja -DCMAKE_BUILD_TYPE=${CONFIG}
    -DCMAKE_PREFIX_PATH=${WORK}/moved "-DEXAMPLES=${examples}")
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${CMAKE_COMMAND} -E env XDG_CACHE_HOME=${WORK}/cache ${WORK}/consumer/consumer)
run(${CMAKE_COMMAND} -E env XDG_CACHE_HOME=${WORK}/cache ${WORK}/consumer/consumer_c)
if(EXISTS ${WORK}/consumer/consumer_decoder)
    run(${CMAKE_COMMAND} -E env XDG_CACHE_HOME=${WORK}/cache ${WORK}/consumer/consumer_decoder)
endif()

# The same through pkg-config, where there is one.
find_program(pkg_config pkg-config)
file(GLOB_RECURSE pc ${WORK}/moved/*/hone.pc)
cmake_path(GET pc PARENT_PATH pc_folder)
if(pkg_config)
    run(sh -c "PKG_CONFIG_PATH='${pc_folder}' && export PKG_CONFIG_PATH && cc -std=c11 -o '${WORK}/by_pkg_config' \
'${SOURCE}/main.c' $(pkg-config --cflags --libs hone) -Wl,-rpath,$(pkg-config --variable=libdir hone)")
    run(${CMAKE_COMMAND} -E env XDG_CACHE_HOME=${WORK}/cache ${WORK}/by_pkg_config)
endif()

# The installed program finds its models beside itself.
if(EXISTS ${WORK}/moved/bin/hone)
    run(${WORK}/moved/bin/hone --version)
    foreach(file bash-completion/completions/hone zsh/site-functions/_hone fish/vendor_completions.d/hone.fish
            man/man1/hone.1.gz)
        if(NOT EXISTS ${WORK}/moved/share/${file})
            message(FATAL_ERROR "not installed: share/${file}")
        endif()
    endforeach()
endif()
