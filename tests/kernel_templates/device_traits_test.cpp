#include "kernel_templates/device_traits.h"

#include <doctest/doctest.h>

using namespace hone;

TEST_CASE("architecture names read back") {
    for (const Arch arch : supported_archs()) {
        CHECK(arch_from_name(to_string(arch)) == arch);
        REQUIRE(representative_device(arch));
        CHECK(representative_device(arch)->arch() == arch);
    }
    CHECK(to_string(Arch{9, 0, true}) == "sm_90a");
    CHECK(arch_from_name("sm_120a") == Arch{12, 0, true});
}

TEST_CASE("what is no architecture name is refused") {
    for (const char* text :
         {"", "sm_", "sm_a", "90a", "sm_9", "sm_90b", "sm_90aa", "compute_90", "sm_-90", "sm_99999"}) {
        INFO(text);
        CHECK_FALSE(arch_from_name(text));
    }
}

TEST_CASE("capabilities follow the generation") {
    CHECK_FALSE(representative_device({7, 5, false})->has_async_copy());
    CHECK(representative_device({8, 0, false})->has_async_copy());
    CHECK_FALSE(representative_device({8, 9, false})->has_clusters());
    CHECK(representative_device({9, 0, true})->has_clusters());
}
