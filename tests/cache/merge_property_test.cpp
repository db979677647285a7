// Laws that hold for all inputs.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>

#include "cache/bundle.h"
#include "cache/checksum.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

namespace {

using Numbers = std::vector<int>;

Numbers some_numbers() { return *rc::gen::container<Numbers>(rc::gen::inRange(0, 30)); }

/// RapidCheck tries each law 100 times: the files are made once and emptied.
class Caches {
  public:
    Cache& make(std::size_t slot, const Numbers& numbers) {
        while (open_.size() <= slot)
            open_.push_back(Cache::open(directory_ / (std::to_string(open_.size()) + ".db")));
        (void)open_[slot].clear({}, false);
        std::vector<Trial> trials;
        for (const int i : numbers) trials.push_back(sample_trial(i));
        open_[slot].store(trials);
        return open_[slot];
    }

  private:
    TemporaryDirectory directory_;
    std::deque<Cache> open_;  // references stay valid
};

bool same(const Cache& a, const Cache& b) { return a.trials() == b.trials() && a.winners() == b.winners(); }

Trial any_trial() {
    Trial trial = sample_trial(*rc::gen::arbitrary<int>() % 1000);
    trial.key.family = *rc::gen::arbitrary<std::string>();
    trial.candidate = *rc::gen::arbitrary<std::string>();
    trial.detail = *rc::gen::arbitrary<std::string>();
    trial.created_at = *rc::gen::arbitrary<std::int64_t>();
    trial.key.gpu.sm_count = *rc::gen::arbitrary<int>();
    trial.energy_mj = *rc::gen::arbitrary<double>();
    trial.status = *rc::gen::element(TrialStatus::ok, TrialStatus::crashed, TrialStatus::timed_out);
    return trial;
}

}  // namespace

TEST_CASE("merge is commutative, associative and idempotent") {
    Caches caches;
    CHECK(rc::check("a + b == b + a", [&] {
        const Numbers a = some_numbers(), b = some_numbers();
        Cache& ab = caches.make(0, {});
        Cache& ba = caches.make(1, {});
        for (const Numbers& numbers : {a, b}) merge(ab, caches.make(2, numbers));
        for (const Numbers& numbers : {b, a}) merge(ba, caches.make(2, numbers));
        RC_ASSERT(same(ab, ba));
    }));
    CHECK(rc::check("(a + b) + c == a + (b + c)", [&] {
        const Numbers a = some_numbers(), b = some_numbers(), c = some_numbers();
        Cache& left = caches.make(0, {});
        Cache& right = caches.make(1, {});
        Cache& first = caches.make(2, a);
        Cache& both = caches.make(3, b);
        Cache& third = caches.make(4, c);
        for (const Cache* next : {&first, &both, &third}) merge(left, *next);
        merge(both, third);
        merge(right, first);
        merge(right, both);
        RC_ASSERT(same(left, right));
    }));
    CHECK(rc::check("a + a == a", [&] {
        const Numbers a = some_numbers();
        Cache& once = caches.make(0, a);
        Cache& again = caches.make(1, a);
        RC_ASSERT(merge(once, again).added == 0);
        RC_ASSERT(same(once, again));
    }));
}

TEST_CASE("any trial comes back as it was stored") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    CHECK(rc::check("store, then read", [&] {
        const Trial trial = any_trial();
        (void)cache.clear({}, false);
        cache.store(trial);
        RC_ASSERT(cache.trials() == std::vector<Trial>{trial});
    }));
}

TEST_CASE("different field sequences have different fingerprints") {
    CHECK(rc::check("a cut moved between two fields", [] {
        const auto text = *rc::gen::nonEmpty<std::string>();
        const auto a = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
        const auto b = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
        const auto print = [&](std::size_t cut) {
            return Fingerprint("test").text(text.substr(0, cut)).text(text.substr(cut)).hex();
        };
        RC_ASSERT((print(a) == print(b)) == (a == b));
    }));
}

TEST_CASE("reading a written bundle is the identity") {
    CHECK(rc::check("write, then read", [] {
        std::vector<Trial> winners;
        Numbers numbers = some_numbers();
        std::ranges::sort(numbers);
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        for (const int i : numbers) {
            Trial winner = sample_winner(i);
            winner.timing.median_us = 100 + *rc::gen::inRange(1, 1'000'000) / 977.0;
            winner.energy_mj = *rc::gen::inRange(0, 1'000'000) / 3.0;
            winner.is_default = *rc::gen::arbitrary<bool>();
            winner.provenance =
                *rc::gen::element(Provenance::measured, Provenance::replayed, Provenance::predicted);
            winners.push_back(winner);
        }
        const std::string text = write_bundle(winners);
        std::vector<Trial> back = read_bundle(text, "file.json");
        RC_ASSERT(write_bundle(back) == text);
        std::ranges::sort(winners, {}, [](const Trial& t) { return identity(t); });
        std::ranges::sort(back, {}, [](const Trial& t) { return identity(t); });
        RC_ASSERT(back == winners);
    }));
}
