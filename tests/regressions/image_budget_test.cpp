// Issue 16, fault 14: a cache keeps the images of winners, finalists and defaults, compressed; those of
// losers go at the end of their race, and from older caches by `hone cache gc`.
#include <doctest/doctest.h>

#include <set>

#include "cache/file_system.h"
#include "kernel_templates/catalog.h"
#include "tests/cache/support.h"
#include "tests/cli/program.h"

using namespace hone::cache;
using namespace hone::cache::test;
using hone::test::Sandbox;
namespace fs = std::filesystem;

namespace {

ImageKey image_of(const Trial& trial) {
    ImageKey key = sample_image_key(0);
    key.template_hash = trial.template_hash;
    key.static_fields = trial.key.static_fields;
    key.candidate = trial.candidate;
    return key;
}

Trial loser(int i) {
    Trial trial = sample_trial(i);
    trial.winner = false;
    return trial;
}

}  // namespace

TEST_CASE("gc drops the images of losers and keeps those of winners, finalists, defaults and unknown ones") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    Trial winner = loser(1);
    winner.winner = true;
    Trial finalist = loser(2);
    finalist.stage = Stage::final_round;
    Trial safe = loser(4);
    safe.is_default = true;
    Trial failed_finalist = loser(5);
    failed_finalist.stage = Stage::final_round;
    failed_finalist.status = TrialStatus::crashed;
    const std::vector<Trial> kept{winner, finalist, safe};
    const std::vector<Trial> lost{loser(7), loser(8), failed_finalist};
    for (const std::vector<Trial>* trials : {&kept, &lost}) {
        cache.store(*trials);
        for (const Trial& trial : *trials) cache.store_image(image_of(trial), sample_image(1));
    }
    cache.store_image(sample_image_key(99), sample_image(2));  // dispatch compiled it: it has no trial
    CHECK(cache.gc().images_removed == 3);
    for (const Trial& trial : kept) CHECK(cache.image(image_of(trial)));
    for (const Trial& trial : lost) CHECK_FALSE(cache.image(image_of(trial)));
    CHECK(cache.image(sample_image_key(99)));
    CHECK(cache.trials().size() == 6);
    CHECK(cache.gc().images_removed == 0);
}

TEST_CASE("an image takes fewer bytes than its code, and comes back the same") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    Image image = sample_image(1, 1000);
    image.cubin.reserve(100'000);
    for (int i = 0; i < 99; ++i)
        image.cubin.insert(image.cubin.end(), image.cubin.begin(), image.cubin.begin() + 1000);
    cache.store_image(sample_image_key(1), image);
    CHECK(cache.stats().image_bytes < 3000);
    CHECK(cache.image(sample_image_key(1))->cubin == image.cubin);
    CHECK(cache.verify().ok);
    run_sql(directory / "cache.db", "UPDATE image SET cubin = zeroblob(2000)");
    CHECK_FALSE(cache.verify().ok);
    CHECK_FALSE(cache.image(sample_image_key(1)));
}

TEST_CASE("after hone tune the cache has images of winners, finalists and defaults alone") {
    Sandbox box;
    box.use_fake_gpus();
    const auto tuned = box.run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens",
                                "1,16,64", "--gpu", "0"});
    REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
    Cache cache = Cache::open(box.path("cache/cache.db"));
    std::set<std::string> tried;
    std::set<std::string> deserving;
    for (const Trial& trial : cache.trials()) {
        tried.insert(trial.candidate);
        if (trial.status == TrialStatus::ok &&
            (trial.winner || trial.is_default || trial.stage == Stage::final_round))
            deserving.insert(trial.candidate);
    }
    REQUIRE(deserving.size() < tried.size());
    // The reference and the harness have no trial.
    CHECK(cache.stats().images <= static_cast<std::int64_t>(deserving.size()) + 4);
    CHECK(cache.stats().images >= static_cast<std::int64_t>(deserving.size()));
    MESSAGE("tried " << tried.size() << ", images kept " << cache.stats().images);
    // What is kept is what dispatch and the next run ask for: nothing is compiled again.
    const auto again = box.run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens",
                                "1,16,64", "--gpu", "0", "--json"});
    CHECK(again.json()["data"]["runs"][0]["compiles"] == 0);
}
