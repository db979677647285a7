#include "cache/layers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "cache/bundle.h"
#include "cache/environment.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

struct Loaded {
    std::vector<LoadedWinner> winners;
    std::vector<std::string> warnings;
};

/// What is known of the problems of the samples used here.
Loaded load(const LayerPaths& paths, std::span<const PackagedBundle> packaged = {}) {
    Loaded loaded;
    const Winners winners(paths, packaged, h100(), toolchain(),
                          [&](const std::string& text) { loaded.warnings.push_back(text); });
    loaded.winners = winners_of_samples(winners, 3);
    return loaded;
}

Loaded load(const LayerPaths& paths, const std::string& bundle) {
    return load(paths, Packaged("packaged.json", bundle).layer());
}

void store(const fs::path& file, const Trial& trial) { Cache::open(file).store(trial); }

std::string first_layer(const Loaded& loaded) {
    return loaded.winners.size() == 1 ? loaded.winners[0].layer
                                      : std::to_string(loaded.winners.size()) + " winners";
}

Trial older_template(Trial trial) {
    trial.template_hash = "ffffffffffffffffffffffffffffffff";
    return trial;
}

}  // namespace

TEST_CASE("the cache's place comes from HONE_CACHE, then XDG_CACHE_HOME, then HOME") {
    Environment environment{
        .hone_cache = "/a/b.db", .hone_site_cache = "/site.db", .xdg_cache_home = "/x", .home = "/h"};
    CHECK(layer_paths(environment).user == "/a/b.db");
    CHECK(layer_paths(environment).site == "/site.db");
    environment.hone_cache.reset();
    environment.hone_site_cache.reset();
    CHECK(layer_paths(environment).user == "/x/hone/cache.db");
    CHECK_FALSE(layer_paths(environment).site);
    environment.xdg_cache_home = "relative";  // the XDG specification says to ignore it
    CHECK(layer_paths(environment).user == "/h/.cache/hone/cache.db");
    environment.home = "home";
    CHECK(kind_of_error([&] { (void)layer_paths(environment); }) == "unusable");
    std::string why;
    try {
        (void)layer_paths(environment);
    } catch (const CacheError& error) {
        why = error.what();
    }
    CHECK(why ==
          "no place for the cache is known: HONE_CACHE is unset, XDG_CACHE_HOME is 'relative', no absolute "
          "path and HOME is 'home', no absolute path");
    CHECK(kind_of_error([&] { (void)layer_paths(Environment{}); }) == "unusable");
}

TEST_CASE("empty environment variables count as unset") {
    CHECK(in_child([] {
              ::setenv("HONE_CACHE", "", 1);
              ::setenv("HONE_SITE_CACHE", "", 1);
              ::setenv("XDG_CACHE_HOME", "", 1);
              ::setenv("HOME", "/home/me", 1);
              require(layer_paths().user == "/home/me/.cache/hone/cache.db", "HOME is not used");
              require(!layer_paths().site, "a site");
              ::setenv("HOME", "", 1);
              require(kind_of_error([] { (void)layer_paths(); }) == "unusable", "a place was found");
              std::vector<std::string> warnings;
              (void)Winners(h100(), toolchain(), [&](const std::string& text) { warnings.push_back(text); });
              require(warnings.size() == 1, "warnings: " + std::to_string(warnings.size()));
          }) == "");
}

TEST_CASE("the site cache is read where no place for the user's is known") {
    const TemporaryDirectory directory;
    const fs::path site = directory / "site.db";
    store(site, sample_winner(1));
    CHECK(in_child([&] {
              for (const char* name : {"HONE_CACHE", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
              ::setenv("HONE_SITE_CACHE", site.c_str(), 1);
              ::setenv("HONE_PACKAGED", "off", 1);
              const Trial stored = sample_winner(1);
              const Winners winners(h100(), toolchain(), nullptr);
              require(winners.of(stored.key.family, stored.key.static_fields).winners.size() == 1,
                      "the site's winner is left out");
          }) == "");
}

TEST_CASE("a word that HONE_PACKAGED does not know is a warning") {
    for (const auto& [word, warned] : {std::pair{"off", 0}, {"on", 0}, {"", 0}, {"no", 1}, {"OFF", 1}}) {
        CAPTURE(word);
        CHECK(in_child([&, word = word, warned = warned] {
                  ::setenv("HONE_PACKAGED", word, 1);
                  ::setenv("HOME", "/nonexistent", 1);
                  int warnings = 0;
                  (void)Winners(h100(), toolchain(), [&](const std::string& text) {
                      require(
                          text.starts_with(std::string("HONE_PACKAGED is '") + word + "', allowed: off, on"),
                          text);
                      ++warnings;
                  });
                  require(warnings == warned, "warnings: " + std::to_string(warnings));
              }) == "");
    }
}

TEST_CASE("trust depends on GPU, template and toolchain") {
    const Trial winner = sample_winner(1);
    const auto trust = [&](const std::function<void(Trial&)>& change) {
        Trial trial = winner;
        change(trial);
        return name(trust_of(trial, h100(), toolchain()));
    };
    CHECK(trust([](Trial&) {}) == "exact");
    CHECK(trust([](Trial& t) { t.toolchain.driver = "1"; }) == "compatible");
    CHECK(trust([](Trial& t) { t.toolchain.nvrtc = "12.9"; }) == "compatible");
    CHECK(trust([](Trial& t) { t.key.gpu.name = "NVIDIA H200"; }) == "foreign");
    CHECK(trust([](Trial& t) { t.key.gpu.sm_count = 114; }) == "foreign");
    CHECK(trust([](Trial& t) { t.key.gpu.mig_profile = "1g.10gb"; }) == "foreign");
    CHECK(trust([](Trial& t) { t.key.gpu.sm_count = 114, t.toolchain.driver = "1"; }) == "foreign");
    CHECK(trust([](Trial& t) { t = older_template(t); }) == "stale");
    CHECK(trust([](Trial& t) { t = older_template(t), t.key.gpu.sm_count = 114; }) == "stale");
    CHECK(trust([](Trial& t) { t.key.gpu.compute_major = 8; }) == "unusable");
    CHECK(trust([](Trial& t) { t.key.gpu.compute_minor = 3; }) == "unusable");
    CHECK(trust([](Trial& t) { t.key.family = "no_such_family"; }) == "unusable");
    CHECK(trust([](Trial& t) { t.key.static_fields = "hidden=-1"; }) == "unusable");
    CHECK(trust([](Trial& t) { t.candidate = "no_such_variant"; }) == "unusable");
    CHECK(trust([](Trial& t) { t.status = TrialStatus::crashed; }) == "unusable");
}

TEST_CASE("later layers win among equals") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    const std::string bundle = write_bundle({sample_winner(1)});
    CHECK(load({.site = std::nullopt, .user = directory / "none.db"}, bundle).winners.at(0).layer ==
          "packaged");
    store(*paths.site, sample_winner(1));
    CHECK(first_layer(load(paths, bundle)) == "site");
    store(paths.user, sample_winner(1));
    CHECK(first_layer(load(paths, bundle)) == "user");
    CHECK(load(paths, bundle).warnings.empty());
}

TEST_CASE("trust comes before provenance, provenance before the layer") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    Trial compatible = sample_winner(1);
    compatible.toolchain.driver = "1";
    store(paths.user, compatible);
    Trial predicted = sample_winner(1);
    predicted.provenance = Provenance::predicted;
    store(*paths.site, predicted);
    CHECK(first_layer(load(paths)) == "site");  // exact, though only predicted
    Trial predicted_here = predicted;
    predicted_here.created_at += 1000;
    store(paths.user, predicted_here);
    CHECK(first_layer(load(paths)) == "user");
    CHECK(load(paths, write_bundle({sample_winner(1)})).winners.at(0).layer == "packaged");  // measured
}

TEST_CASE(
    "a winner chosen in a model's step comes before one measured alone, also of a later layer and driver") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    store(paths.user, sample_winner(1));
    Trial in_chain = sample_winner(1);
    in_chain.chain = "llama-3-8b tokens=1 kv=1024";
    in_chain.toolchain.driver = "1";
    const Loaded loaded = load(paths, write_bundle({in_chain}));
    REQUIRE(loaded.winners.size() == 1);
    CHECK(loaded.winners[0].trial == in_chain);
    CHECK(loaded.winners[0].layer == "packaged");
    CHECK(loaded.winners[0].trust == Trust::compatible);
    Trial here = in_chain;
    here.created_at += 1000;
    store(paths.user, here);
    CHECK(first_layer(load(paths, write_bundle({in_chain}))) == "user");
}

TEST_CASE("a step's choice of another template or GPU does not come before what was measured alone here") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    store(paths.user, sample_winner(1));
    Trial stale = older_template(sample_winner(1));
    stale.chain = "llama-3-8b tokens=1 kv=1024";
    CHECK(first_layer(load(paths, write_bundle({stale}))) == "user");
}

TEST_CASE("an older winner of this build's template comes before a newer one of another build") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = std::nullopt, .user = directory / "user.db"};
    Trial newer = older_template(sample_winner(1));
    newer.created_at += 1'000'000;
    store(paths.user, sample_winner(1));
    store(paths.user, newer);
    const Loaded loaded = load(paths);
    REQUIRE(loaded.winners.size() == 1);
    CHECK(loaded.winners[0].trust == Trust::exact);
    CHECK(loaded.winners[0].trial == sample_winner(1));
}

TEST_CASE("other GPUs of the same capability are loaded beside, unusable rows are not") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = std::nullopt, .user = directory / "user.db"};
    Trial foreign = sample_winner(1);
    foreign.key.gpu.name = "NVIDIA H200";
    Trial older_gpu = sample_winner(1);
    older_gpu.key.gpu.compute_major = 8;
    Trial stale = older_template(sample_winner(2));
    for (const Trial& trial : {sample_winner(1), foreign, older_gpu, stale}) store(paths.user, trial);
    int exact = 0, foreigners = 0, stales = 0;
    for (const LoadedWinner& winner : load(paths).winners) {
        exact += winner.trust == Trust::exact;
        foreigners += winner.trust == Trust::foreign;
        stales += winner.trust == Trust::stale;
        CHECK(winner.trust != Trust::unusable);
    }
    CHECK(exact == 1);
    CHECK(foreigners == 1);
    CHECK(stales == 1);
}

TEST_CASE("a bad layer is left out with one warning, the others stay") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    const std::string bundle = write_bundle({sample_winner(1)});
    const auto expect = [&](const char* what) {
        INFO(what);
        const Loaded loaded = load(paths, bundle);
        CHECK(first_layer(loaded) == "packaged");
        REQUIRE(loaded.warnings.size() == 1);
        CHECK(loaded.warnings[0].find("the site cache is left out") == 0);
        CHECK(loaded.warnings[0].find('\n') == std::string::npos);
        fs::remove(*paths.site);
    };
    expect("missing, though it was asked for");
    write_file(*paths.site, "text");
    expect("not a database");
    store(*paths.site, sample_winner(1));
    run_sql(*paths.site, "PRAGMA user_version = 99");
    expect("newer");
    store(*paths.site, sample_winner(1));
    run_sql(*paths.site, "DROP VIEW winner; DROP VIEW ranked_winner; DROP TABLE trial");
    expect("tables missing");
    store(*paths.site, sample_winner(1));
    ::chmod(paths.site->c_str(), 0666);
    expect("unsafe");
    fs::create_directory(*paths.site);
    expect("a directory");
    fs::create_symlink("/nowhere", *paths.site);
    expect("a dangling link");
}

TEST_CASE("all layers bad, no sink: dispatch still gets an answer") {
    const TemporaryDirectory directory;
    write_file(directory / "site.db", "text");
    write_file(directory / "user.db", std::string(5000, 'x'));
    const LayerPaths paths{.site = directory / "site.db", .user = directory / "user.db"};
    const Packaged bad("bad.json", "{");
    CHECK(winners_of_samples(Winners(paths, bad.layer(), h100(), toolchain(), nullptr), 3).empty());
    const Loaded loaded = load(paths, "{");
    CHECK(loaded.winners.empty());
    CHECK(loaded.warnings.size() == 2);
}

TEST_CASE("packaged rows that are damaged are left out of their problem alone, which says so") {
    const TemporaryDirectory directory;
    const LayerPaths none{.site = std::nullopt, .user = directory / "none.db"};
    Trial other = sample_winner(2);
    other.key.static_fields.replace(other.key.static_fields.find("softcap=no"), 10, "softcap=yes");
    const Packaged sound("sound.json", write_bundle({sample_winner(1), other}));
    REQUIRE(sound.view().rows.size() == 2);
    std::vector<PackagedRows> rows(sound.view().rows.begin(), sound.view().rows.end());
    PackagedBundle damaged = sound.view();
    damaged.rows = rows;
    const auto read = [&](std::size_t problem) {
        const Winners winners(none, std::span(&damaged, 1), h100(), toolchain(), nullptr);
        return winners.of(rows[problem].family, rows[problem].static_fields);
    };
    CHECK(read(0).trouble.empty());
    rows[0].block.remove_suffix(1);
    CHECK(read(0).winners.empty());
    CHECK(read(0).trouble == "packaged winners are left out: sound.json: the rows of " +
                                 std::string(rows[0].family) + ' ' + std::string(rows[0].static_fields) +
                                 " are damaged");
    CHECK(read(1).winners.size() == 1);
    CHECK(read(1).trouble.empty());
    CHECK_THROWS_AS((void)text_of(damaged), BundleError);
    rows[0] = rows[1];
    rows[0].length += 1;
    CHECK(read(0).winners.empty());
    std::string text = write_bundle({sample_winner(1)});
    text.replace(text.find("median_us"), 9, "mediam_us");
    const Packaged misspelt("misspelt.json", text);
    damaged = misspelt.view();
    rows[0] = damaged.rows.front();
    CHECK(read(0).trouble ==
          "packaged winners are left out: misspelt.json: row 1, field 'median_us': is missing");
}

TEST_CASE("the bundles that ship with this build can be read by it, problem by problem") {
    const Winners winners(std::nullopt, h100(), toolchain(), nullptr);
    std::size_t found = 0;
    for (const PackagedBundle& bundle : packaged_bundles()) {
        for (const PackagedRows& rows : bundle.rows) {
            const StaticWinners of = winners.of(rows.family, rows.static_fields);
            CHECK(of.trouble == "");
            found += of.winners.size();
            for (const LoadedWinner& winner : of.winners) {
                CHECK(winner.trial.key.family == rows.family);
                CHECK(winner.trial.key.static_fields == rows.static_fields);
            }
        }
    }
    CHECK(found > 0);
    CHECK(winners.of("rmsnorm", "no such fields").winners.empty());
}

TEST_CASE("winners that are damaged are left out with one warning that counts them and says what to do") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    {
        Cache cache = Cache::open(file);
        for (const int i : {0, 1, 2}) cache.store(sample_winner(i));
    }
    run_sql(file, "UPDATE trial SET median_us = median_us * 2 WHERE rowid < 3");
    const Loaded loaded = load({.site = std::nullopt, .user = file});
    CHECK(loaded.winners.size() == 1);
    REQUIRE(loaded.warnings.size() == 1);
    CHECK(loaded.warnings[0].starts_with("2 winners of the user cache are damaged and left out: "));
    CHECK(loaded.warnings[0].find("hone cache verify") != std::string::npos);
}
