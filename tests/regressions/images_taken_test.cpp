// Another process removes images and trials while this one works: `hone tune --chain` ended with "is not in
// the image cache", and winners that were cleared between two looks were called damaged.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

/// Runs a command over and over until it is destroyed.
class Disturber {
  public:
    Disturber(const Sandbox& sandbox, Sandbox::Words words)
        : thread_([this, &sandbox, words = std::move(words)] {
              while (!ends_) static_cast<void>(sandbox.run(words));
          }) {}
    ~Disturber() {
        ends_ = true;
        thread_.join();
    }

  private:
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

}  // namespace

TEST_CASE("a step is raced to its end though its images are taken away") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Disturber disturber(sandbox, {"cache", "clear", "--op", "layernorm", "--images", "--yes"});
    for (int i = 0; i < 3; ++i) {
        const Ended ended = sandbox.run({"tune", "gpt2", "--chain", "--tokens", "1"});
        INFO(ended.err);
        CHECK(ended.code == 0);
    }
}

TEST_CASE("winners that come and go are not damaged") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(
        sandbox.run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=512", "--tokens", "1"}).code ==
        0);
    const Disturber clears(sandbox, {"cache", "clear", "--op", "layernorm", "--yes"});
    const Disturber tunes(sandbox, {"tune", "--op", "layernorm", "--fields", "dtype=bf16 hidden=512 bias=no",
                                    "--tokens", "1,2,4,8", "--retune"});
    for (int i = 0; i < 60; ++i) {
        const Ended ended = sandbox.run({"export", "-o", sandbox.path("winners.json").string()});
        INFO(ended.err);
        REQUIRE(ended.code == 0);
    }
}
