// Issue 16, fault 10: whatever happens to the bytes of a cache, dispatch and explain go on with the winners
// or the fallback, tell a loss in exactly one warning, and soon; an export never leaves winners out without
// saying so.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "cache/bundle.h"
#include "cache/file_system.h"
#include "cache/layers.h"
#include "hone/hone.h"
#include "tests/cache/support.h"
#include "tests/cli/program.h"
#include "tests/support/fake_machine.h"

using namespace hone::cache;
using namespace hone::cache::test;
using hone::test::Ended;
using hone::test::Sandbox;
namespace fs = std::filesystem;

namespace {

constexpr int stored_winners = 40;
using Clock = std::chrono::steady_clock;

void fill(const fs::path& file) {
    Cache cache = Cache::open(file);
    std::vector<Trial> trials;
    for (int i = 0; i < 200; ++i) trials.push_back(sample_trial(3 * i + 1));  // none of them won
    for (int i = 0; i < stored_winners; ++i) trials.push_back(sample_winner(i));
    cache.store(trials);
    for (int i = 0; i < 3; ++i) cache.store_image(sample_image_key(i), sample_image(i, 9000));
}

std::string damaged(std::string content, std::mt19937& random) {
    const auto any = [&](std::size_t limit) {
        return static_cast<std::size_t>(random()) % std::max<std::size_t>(limit, 1);
    };
    constexpr std::size_t page = 4096;
    switch (any(6)) {
        case 0: content.resize(any(content.size())); break;
        case 1:
            std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(any(content.size() / page) * page),
                        page, '\0');
            break;
        case 2: {  // a page that belongs elsewhere
            const std::size_t pages = content.size() / page;
            const std::string other = content.substr(any(pages) * page, page);
            content.replace(any(pages) * page, page, other);
            break;
        }
        case 3: content[any(200)] ^= static_cast<char>(1 << any(8)); break;
        default:
            for (std::size_t flips = 1 + any(30); flips > 0; --flips)
                content[any(content.size())] ^= static_cast<char>(1 << any(8));
    }
    return content;
}

struct Damages {
    TemporaryDirectory directory;
    std::string intact;
    std::string log;
    std::mt19937 random;

    explicit Damages(unsigned seed) : random(seed) {
        const auto file = directory / "original.db";
        fill(file);
        run_sql(file, "PRAGMA wal_checkpoint(TRUNCATE)");
        intact = read_file(file);
    }

    /// A damaged copy at `file`; every third time with a log of noise and its index beside it.
    void leave_at(const fs::path& file, int i) {
        for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(with_suffix(file, suffix));
        write_file(file, i % 5 == 4 ? intact : damaged(intact, random));
        if (i % 3 != 2) return;
        std::string noise(random() % 20'000, '\0');
        for (char& byte : noise) byte = static_cast<char>(random());
        if (random() % 2 == 0 && noise.size() > 4) noise.replace(0, 4, "\x37\x7f\x06\x82");
        write_file(with_suffix(file, "-wal"), noise);
        write_file(with_suffix(file, "-shm"), std::string(32768, static_cast<char>(random())));
    }
};

/// Keys with their candidates, of which none may be wrong.
std::set<std::string> identities(const std::vector<Trial>& trials) {
    std::set<std::string> all;
    for (const Trial& trial : trials) all.insert(identity(trial));
    return all;
}

std::set<std::string> stored_identities() {
    std::set<std::string> all;
    for (int i = 0; i < stored_winners; ++i) all.insert(identity(sample_winner(i)));
    return all;
}

int count(const std::string& text, std::string_view part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("dispatch loads a damaged cache soon, with one warning exactly where winners are lost") {
    Damages damages(16);
    const auto file = damages.directory / "cache.db";
    const LayerPaths paths{.site = std::nullopt, .user = file};
    const std::set<std::string> stored = stored_identities();
    int losses = 0;
    for (int i = 0; i < scaled(600); ++i) {
        damages.leave_at(file, i);
        std::vector<std::string> warnings;
        const auto start = Clock::now();
        const Winners winners(paths, {}, h100(), toolchain(),
                              [&](const std::string& text) { warnings.push_back(text); });
        const std::vector<LoadedWinner> loaded = winners_of_samples(winners, stored_winners);
        INFO("damage " << i << ", warnings: " << (warnings.empty() ? "none" : warnings[0]));
        CHECK(Clock::now() - start < std::chrono::seconds(2));
        for (const LoadedWinner& winner : loaded) CHECK(stored.contains(identity(winner.trial)));
        CHECK(warnings.size() <= 1);
        const bool lost = loaded.size() < stored.size();
        losses += lost ? 1 : 0;
        if (lost) CHECK(warnings.size() == 1);
        if (!warnings.empty()) CHECK(warnings[0].find(file.string()) != std::string::npos);
    }
    MESSAGE("damages: " << scaled(600) << ", with lost winners: " << losses);
    CHECK(losses > 0);
}

TEST_CASE("explain answers and export tells a loss, whatever is damaged") {
    Damages damages(10);
    Sandbox box;
    fs::create_directories(box.path("cache"));
    fs::permissions(box.path("cache"), fs::perms::owner_all);
    const auto file = box.path("cache/cache.db");
    const Trial asked = sample_winner(3);
    std::vector<std::string> explain{"explain", asked.key.family, "--arch", "sm_90a"};
    for (const std::string* fields : {&asked.key.static_fields, &asked.key.dynamic_fields}) {
        for (std::size_t at = 0; at < fields->size();) {
            const std::size_t end = std::min(fields->find(' ', at), fields->size());
            explain.push_back(fields->substr(at, end - at));
            at = end + 1;
        }
    }
    for (int i = 0; i < scaled(60); ++i) {
        damages.leave_at(file, i);
        INFO("damage " << i);
        const auto start = Clock::now();
        const Ended explained = box.run(explain);
        CHECK_MESSAGE(explained.code == 0, explained.err);
        CHECK_MESSAGE(count(explained.err, "warning") <= 1, explained.err);
        const Ended exported = box.run({"export"});
        if (exported.code == 0) {
            CHECK(identities(read_bundle(exported.out, "stdout")) == stored_identities());
        } else {
            CHECK(exported.code == 5);
            CHECK(!exported.err.empty());
        }
        CHECK(Clock::now() - start < std::chrono::seconds(8));
    }
}

TEST_CASE("a whole start of dispatch, images and all, warns of a damaged cache once at most") {
    Damages damages(3);
    const hone::test::FakeMachine machine;
    const auto file = damages.directory / "cache.db";
    for (int i = 0; i < scaled(80); ++i) {
        damages.leave_at(file, i);
        std::vector<std::string> warnings;
        hone::RuntimeOptions options;
        options.cache_file = file;
        options.on_warning = [&](std::string_view text) { warnings.emplace_back(text); };
        const auto start = Clock::now();
        {
            hone::Runtime runtime(options);
            const auto norm = runtime.prepare(hone::RmsNorm{.hidden = 4096, .max_rows = 16});
            CHECK_FALSE(norm.reports().empty());
        }
        INFO("damage " << i
                       << ", warnings: " << (warnings.size() > 1 ? warnings[0] + " | " + warnings[1] : ""));
        CHECK(warnings.size() <= 1);
        CHECK(Clock::now() - start < std::chrono::seconds(8));
    }
}
