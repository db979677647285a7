#include "runtime/system/write_error.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "runtime/system/input_error.h"

using namespace hone::runtime;

TEST_CASE("a name that cannot be is the user's affair, a system that does not write is not") {
    for (const int name : {ENOENT, ENOTDIR, ENAMETOOLONG, EISDIR})
        CHECK_THROWS_AS(throw_write_error("f", "cannot be written", name), InputError);
    for (const int system : {ENOSPC, EDQUOT, EACCES, EROFS, EIO})
        CHECK_THROWS_AS(throw_write_error("f", "cannot be written", system), WriteError);
    CHECK_THROWS_WITH(
        throw_write_error("a/f", "cannot be written", ENOENT),
        "a/f: cannot be written: No such file or directory; allowed: a name in a folder that exists");
}

TEST_CASE("a full disk is told apart from missing rights, and each has its hint") {
    const WriteError full("f", "cannot be written", ENOSPC);
    const WriteError denied("f", "cannot be written", EACCES);
    CHECK(std::string(denied.what()) == "f: cannot be written: Permission denied");
    CHECK(full.disk_full());
    CHECK(WriteError("f", "cannot be written", EDQUOT).disk_full());
    CHECK_FALSE(denied.disk_full());
    CHECK(WriteError("f", "cannot be written", EFBIG).hint().starts_with("allow larger files (ulimit -f)"));
    CHECK(full.hint().starts_with("free space"));
    CHECK(denied.hint().starts_with("write to a folder where this user may make files"));
}
