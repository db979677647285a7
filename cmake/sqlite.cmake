# hone_sqlite: the pinned amalgamation of third_party/sqlite as a static library of its own, without our warnings and
# without sanitizers. Linked by cache/ alone.

set(sqlite_dir ${PROJECT_SOURCE_DIR}/third_party/sqlite)

# The README beside the sources names their checksums; an update that forgets one of the two fails here.
file(READ ${sqlite_dir}/README.md sqlite_readme)
foreach(file sqlite3.c sqlite3.h)
    file(SHA256 ${sqlite_dir}/${file} sum)
    if(NOT sqlite_readme MATCHES "${sum}")
        message(FATAL_ERROR "third_party/sqlite/${file} has SHA-256 ${sum}, which its README.md does not name.")
    endif()
endforeach()

add_library(hone_sqlite STATIC ${sqlite_dir}/sqlite3.c)
target_include_directories(hone_sqlite SYSTEM PUBLIC $<BUILD_INTERFACE:${sqlite_dir}>)
target_compile_definitions(hone_sqlite PRIVATE
    SQLITE_THREADSAFE=1                # serialized: connections may be handed between threads
    SQLITE_DQS=0                       # "text" is an identifier, never a string
    SQLITE_DEFAULT_FOREIGN_KEYS=1
    SQLITE_TRUSTED_SCHEMA=0            # a foreign cache file may hold views and triggers
    SQLITE_DEFAULT_MEMSTATUS=0         # no lock around each allocation for statistics nobody reads
    SQLITE_LIKE_DOESNT_MATCH_BLOBS
    SQLITE_OMIT_DEPRECATED
    SQLITE_OMIT_LOAD_EXTENSION         # a cache file cannot bring code
    SQLITE_OMIT_SHARED_CACHE
)
# Tests under sanitizers do not need the optimizer's second level.
if(HONE_SANITIZE)
    target_compile_options(hone_sqlite PRIVATE -O1 -w)
else()
    target_compile_options(hone_sqlite PRIVATE -O2 -w)
endif()
target_link_libraries(hone_sqlite PRIVATE $<BUILD_INTERFACE:hone_hardening>)  # it reads files of others
set_target_properties(hone_sqlite PROPERTIES C_VISIBILITY_PRESET hidden EXPORT_NAME sqlite)
target_link_libraries(hone_sqlite PRIVATE Threads::Threads ${CMAKE_DL_LIBS} $<$<PLATFORM_ID:Linux>:m>)
