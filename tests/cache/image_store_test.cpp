#include "cache/image_store.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

TEST_CASE("an image comes back exactly as it was stored") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    CHECK_FALSE(cache.image(sample_image_key(1)));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
        const int i = static_cast<int>(bytes);
        cache.store_image(sample_image_key(i), sample_image(i, bytes));
        const auto image = cache.image(sample_image_key(i));
        REQUIRE(image);
        CHECK(image->cubin == sample_image(i, bytes).cubin);
        CHECK(image->resources == sample_image(i, bytes).resources);
    }
    CHECK(cache.stats().images == 3);
    CHECK(cache.stats().image_bytes == 300'001);
    CHECK(cache.verify().images_checked == 3);
    Cache reader = Cache::open(directory / "cache.db", OpenMode::read_only);
    CHECK(reader.image(sample_image_key(300'000)));
}

TEST_CASE("any difference in what an image was made from is another image") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    cache.store_image(sample_image_key(1), sample_image(1));
    const std::vector<std::function<void(ImageKey&)>> changes{
        [](ImageKey& k) { k.template_hash += "0"; },    [](ImageKey& k) { k.static_fields = "hidden=65"; },
        [](ImageKey& k) { k.candidate = ""; },          [](ImageKey& k) { k.arch = "sm_90"; },
        [](ImageKey& k) { k.nvrtc = "13.1"; },          [](ImageKey& k) { k.options += " -G"; },
        [](ImageKey& k) { std::swap(k.arch, k.nvrtc); }};
    for (const auto& change : changes) {
        ImageKey key = sample_image_key(1);
        change(key);
        CHECK_FALSE(cache.image(key));
    }
}

TEST_CASE("storing again replaces the image, storing the same again writes nothing") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    cache.store_image(sample_image_key(1), sample_image(1));
    const auto version = cache.stats().file_bytes;
    cache.store_image(sample_image_key(1), sample_image(1));
    CHECK(cache.stats().file_bytes == version);
    cache.store_image(sample_image_key(1), sample_image(2));
    CHECK(cache.image(sample_image_key(1))->cubin == sample_image(2).cubin);
    CHECK(cache.stats().images == 1);
}

TEST_CASE("a damaged image is a miss and is removed") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    for (const char* damage : {"cubin = zeroblob(3000)", "cubin = substr(cubin, 1, 2999)", "length = 1",
                               "registers = registers + 1", "checksum = '0123456789abcdef0123456789abcdef'",
                               "candidate = 'another'", "options = ''", "cubin = x''", "spill_bytes = 7"}) {
        INFO(damage);
        Cache::open(file).store_image(sample_image_key(1), sample_image(1));
        run_sql(file, std::string("UPDATE image SET ") + damage);
        Cache reader = Cache::open(file, OpenMode::read_only);
        CHECK_FALSE(reader.image(sample_image_key(1)));
        Cache cache = Cache::open(file);
        CHECK_FALSE(cache.verify().ok);
        CHECK(cache.stats().images == 1);
        CHECK_FALSE(cache.image(sample_image_key(1)));
        CHECK(cache.stats().images == 0);
        CHECK(cache.verify().ok);
    }
}

TEST_CASE("gc removes damaged images") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    {
        Cache cache = Cache::open(file);
        for (int i = 0; i < 4; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    }
    run_sql(file, "UPDATE image SET cubin = zeroblob(3000) WHERE candidate LIKE '%=2'");
    Cache cache = Cache::open(file);
    const GcReport report = cache.gc();
    CHECK(report.images_removed == 1);
    CHECK(report.bytes_freed == 3000);
    CHECK(cache.stats().images == 3);
    CHECK(cache.verify().ok);
}

TEST_CASE("past the size limit the least recently used images go first") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    cache.set_image_limit(10'000);
    for (int i = 0; i < 3; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    run_sql(file,
            "UPDATE image SET last_used = 1000 + CASE candidate WHEN 'simple threads=0' THEN 2 "
            "WHEN 'simple threads=1' THEN 0 ELSE 1 END");
    cache.store_image(sample_image_key(3), sample_image(3));
    CHECK_FALSE(cache.image(sample_image_key(1)));
    CHECK(cache.stats().images == 3);
    cache.store_image(sample_image_key(4), sample_image(4, 9'999));  // alone almost as large as the limit
    CHECK(cache.stats().images == 1);
    CHECK(cache.image(sample_image_key(4)));
    cache.store_image(sample_image_key(5),
                      sample_image(5, 10'001));  // larger than the limit: not worth the rest
    CHECK_FALSE(cache.image(sample_image_key(5)));
    CHECK(cache.stats().images == 1);
    cache.set_image_limit(100);
    CHECK(cache.gc().images_removed == 1);
    CHECK(cache.stats().image_bytes == 0);
}

// Their sum overflowed, which ended each store and gc; one of them alone pushed all others out.
TEST_CASE("lengths that cannot be true make no room, and gc removes their rows") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    for (int i = 0; i < 4; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    run_sql(file,
            "UPDATE image SET last_used = 1000, length = CASE candidate WHEN 'simple threads=0' THEN "
            "9223372036854775807 WHEN 'simple threads=1' THEN 9223372036854775806 ELSE length END");
    cache.store_image(sample_image_key(4), sample_image(4));
    CHECK(cache.stats().images == 5);
    const GcReport report = cache.gc();
    CHECK(report.images_removed == 2);
    CHECK(report.bytes_freed == 0);
    for (int i = 2; i < 5; ++i) CHECK(cache.image(sample_image_key(i)));
    CHECK(cache.verify().ok);
}

TEST_CASE("reading an image notes its use once a day, not each time") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    cache.store_image(sample_image_key(1), sample_image(1));
    const sqlite::Connection look = sqlite::Connection::open(file, sqlite::Access::read_only);
    run_sql(file, "UPDATE image SET last_used = unixepoch() * 1000 - 3600 * 1000");
    const auto an_hour_ago = look.integer("SELECT last_used FROM image");
    CHECK(cache.image(sample_image_key(1)));
    CHECK(look.integer("SELECT last_used FROM image") == an_hour_ago);
    run_sql(file, "UPDATE image SET last_used = last_used - 24 * 3600 * 1000");
    CHECK(cache.image(sample_image_key(1)));
    CHECK(look.integer("SELECT last_used FROM image") > an_hour_ago);
}

TEST_CASE("somebody who holds the cache is not waited for at each look-up of an old image") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    for (int i = 0; i < 2; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    run_sql(file, "UPDATE image SET last_used = 1000");
    {
        const sqlite::Connection holder = sqlite::Connection::open(file, sqlite::Access::read_write);
        holder.execute("BEGIN IMMEDIATE");
        CHECK(cache.image(sample_image_key(0)));  // waits, and notes nothing
        holder.execute("ROLLBACK");
    }
    CHECK(cache.image(sample_image_key(1)));
    const sqlite::Connection look = sqlite::Connection::open(file, sqlite::Access::read_only);
    CHECK(look.integer("SELECT max(last_used) FROM image") == 1000);  // nor does it try again at once
}

TEST_CASE("gc gives the space of removed images back to the file system") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    for (int i = 0; i < 20; ++i) cache.store_image(sample_image_key(i), sample_image(i, 100'000));
    (void)cache.gc();
    const auto full = std::filesystem::file_size(directory / "cache.db");
    CHECK(full > 2'000'000);
    cache.set_image_limit(0);
    CHECK(cache.gc().images_removed == 20);
    CHECK(std::filesystem::file_size(directory / "cache.db") < 200'000);
    CHECK(cache.verify().ok);
}

TEST_CASE(
    "images of candidates that were tried and lost are dropped; winners', finalists' and unknown ones stay") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    const auto tried = [&](int i, Stage stage, bool winner) {
        Trial trial = sample_trial(i);
        trial.key.static_fields = sample_image_key(i).static_fields;
        trial.stage = stage;
        trial.winner = winner;
        cache.store(trial);
    };
    tried(0, Stage::final_round, true);
    tried(1, Stage::screened, false);
    tried(2, Stage::raced, false);
    tried(3, Stage::final_round, false);
    for (int i = 0; i < 5; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    cache.drop_lost_images();
    for (const int kept : {0, 3, 4}) CHECK(cache.image(sample_image_key(kept)));
    for (const int lost : {1, 2}) CHECK_FALSE(cache.image(sample_image_key(lost)));
    CHECK(cache.trials().size() == 4);
    Cache reader = Cache::open(directory / "cache.db", OpenMode::read_only);
    CHECK(kind_of_error([&] { reader.drop_lost_images(); }) == "read_only");
}

TEST_CASE("a winner that is launched from another candidate's image keeps that one, though the other lost") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    const auto launched = [](bool programmatically) {
        return fmt::format(
            "group_rows threads=256 lanes=256 vector=8 rows=1 early_weights=1 load_hint=0 store_hint=0 "
            "programmatic={:d}",
            programmatically);
    };
    ImageKey made = sample_image_key(0);
    made.candidate = launched(true);
    for (const bool programmatically : {false, true}) {
        Trial trial = sample_trial(0);
        trial.key.gpu = h100();
        trial.key.family = "rmsnorm";
        trial.key.static_fields = made.static_fields;
        trial.template_hash = made.template_hash;
        trial.candidate = launched(programmatically);
        trial.winner = !programmatically;
        trial.stage = programmatically ? Stage::raced : Stage::final_round;
        cache.store(trial);
    }
    cache.store_image(made, sample_image(0));
    cache.drop_lost_images();
    CHECK(cache.image(made));
}

TEST_CASE("gc looks for what can go without the writers' lock, and takes it only to remove something") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    for (int i = 0; i < 3; ++i) {
        cache.store(sample_trial(i));
        cache.store_image(sample_image_key(100 + i), sample_image(i));
    }
    const sqlite::Connection other = sqlite::Connection::open(file, sqlite::Access::read_write);
    const sqlite::Transaction writing(other, sqlite::Transaction::Kind::write);
    CHECK(cache.gc().images_removed == 0);
    cache.drop_lost_images();
}

TEST_CASE(
    "an image found to be lost stays when its candidate has won since, and what replaced a damaged one") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    const auto tried = [&](int i, bool wins) {
        Trial trial = sample_trial(i);
        trial.key.static_fields = sample_image_key(i).static_fields;
        trial.key.dynamic_fields = wins ? "rows=2" : "rows=1";
        trial.stage = wins ? Stage::final_round : Stage::raced;
        trial.winner = wins;
        cache.store(trial);
    };
    for (int i = 0; i < 4; ++i) cache.store_image(sample_image_key(i), sample_image(i));
    tried(0, false);
    tried(1, false);
    run_sql(file, "UPDATE image SET cubin = x'00', last_used = 1 WHERE rowid >= 3");
    const sqlite::Connection connection = sqlite::Connection::open(file, sqlite::Access::read_write);
    UselessImages found = find_lost_images(connection);
    find_damaged_images(connection, found);
    CHECK(found.lost.size() == 2);
    CHECK(found.damaged.size() == 2);
    tried(1, true);
    CHECK_FALSE(cache.image(sample_image_key(3)));
    cache.store_image(sample_image_key(3), sample_image(3));
    CHECK(delete_useless_images(connection, found).count == 2);
    for (const int kept : {1, 3}) CHECK(cache.image(sample_image_key(kept)));
    for (const int gone : {0, 2}) CHECK_FALSE(cache.image(sample_image_key(gone)));
}
