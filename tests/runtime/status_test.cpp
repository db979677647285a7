#include <doctest/doctest.h>

#include <set>
#include <string>

#include "hone/hone.h"
#include "runtime/c_api/conversions.h"

namespace hone {
namespace {

constexpr Status all[] = {
    Status::ok,          Status::bad_rows,      Status::null_pointer, Status::misaligned, Status::bad_stride,
    Status::bad_epsilon, Status::launch_failed, Status::not_prepared, Status::bad_scale,  Status::bad_lengths,
    Status::bad_pages,   Status::capturing,     Status::bad_indices};

TEST_CASE("every status has a number of its own in C, and the same words there where it is the same thing") {
    std::set<int> numbers;
    std::set<std::string> words;
    for (const Status status : all) {
        const hone_status c = c_api::to_c(status);
        numbers.insert(c);
        words.insert(std::string(describe(status)));
        // In C++ an empty kernel object is the wrong handle, and the runtime knows why a launch was refused.
        if (status == Status::not_prepared || status == Status::launch_failed) continue;
        CHECK(std::string(describe(status)) == hone_status_string(c));
    }
    CHECK(numbers.size() == std::size(all));
    CHECK(words.size() == std::size(all));
    CHECK(words.count("unknown status") == 0);
    CHECK(numbers.count(HONE_FAILED) == 0);
}

TEST_CASE("a number that is no status has words, too") {
    std::set<std::string> words;
    for (const hone_status status :
         {HONE_BAD_HANDLE, HONE_BAD_STRUCT, HONE_FORKED, HONE_LAUNCH_FAILED, HONE_BAD_ARGUMENT, HONE_NO_GPU,
          HONE_COMPILE_FAILED, HONE_FROZEN, HONE_OUT_OF_MEMORY, HONE_FAILED}) {
        words.insert(hone_status_string(status));
    }
    CHECK(words.size() == 10);
    CHECK(hone_status_string(static_cast<hone_status>(19)) == std::string("unknown status"));
    CHECK(describe(static_cast<Status>(99)) == "unknown status");
}

}  // namespace
}  // namespace hone
