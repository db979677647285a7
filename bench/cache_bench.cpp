// What the cache costs: storing a trial, loading ten thousand winners, opening, looking up an image, and what
// a process that dispatches pays for the winners that ship with the build. Uses a directory below TMPDIR
// (default /tmp), so that the disk counts.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/layers.h"

namespace {

using namespace hone::cache;

Trial winner(int i) {
    Trial trial;
    trial.key = {
        .gpu = {"NVIDIA H100 80GB HBM3", 9, 0, 132, 2619, ""},
        .family = "rmsnorm",
        .static_fields = "dtype=bf16 output=same residual=no hidden=" + std::to_string(64 * (i % 100 + 1)),
        .dynamic_fields = "rows=" + std::to_string(i / 100 + 1)};
    trial.toolchain = {"580.95.05", "13.0"};
    trial.candidate = "block_rows threads=256 vector=8 unroll=2 home=registers";
    trial.template_hash = "0123456789abcdef0123456789abcdef";
    trial.winner = true;
    trial.timing = {1.5 + i, 1.25, 1.75, 50};
    trial.created_at = 1'790'000'000'000 + i;
    trial.tool_version = "0.1.0";
    return trial;
}

/// Median and 99th percentile in microseconds.
void report(const char* what, int times, const std::function<void(int)>& work) {
    std::vector<double> us;
    for (int i = 0; i < times; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work(i);
        us.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::sort(us);
    std::printf("%-44s median %10.1f us   p99 %10.1f us\n", what, us[us.size() / 2],
                us[us.size() * 99 / 100]);
}

}  // namespace

int main() {
    std::string directory = (std::filesystem::temp_directory_path() / "hone-cache-bench-XXXXXX").string();
    if (::mkdtemp(directory.data()) == nullptr) return 1;
    const std::filesystem::path file = std::filesystem::path(directory) / "cache.db";
    {
        Cache cache = Cache::open(file);
        report("store one trial", 2000, [&](int i) { cache.store(winner(i)); });
        std::vector<Trial> all;
        for (int i = 0; i < 10'000; ++i) all.push_back(winner(i));
        report("store 10,000 trials at once (8,000 new)", 1, [&](int) { cache.store(all); });
        report("load 10,000 winners", 20, [&](int) { (void)cache.winners(); });
        const Image image{.cubin = std::vector<std::byte>(100'000), .resources = {}};
        report("store an image of 100 KB", 200, [&](int i) {
            cache.store_image({"hash", "static", std::to_string(i), "sm_90a", "13.0", ""}, image);
        });
        report("read an image of 100 KB", 200, [&](int i) {
            (void)cache.image({"hash", "static", std::to_string(i), "sm_90a", "13.0", ""});
        });
    }
    report("open for writing", 50, [&](int) { (void)Cache::open(file); });
    report("open for reading", 50, [&](int) { (void)Cache::open(file, OpenMode::read_only); });
    report("open for reading, load 10,000 winners", 20,
           [&](int) { (void)Cache::open(file, OpenMode::read_only).winners(); });
    const auto packaged = [] { return Winners(std::nullopt, winner(0).key.gpu, winner(0).toolchain, {}); };
    report("the packaged winners of one problem", 200,
           [&](int) { (void)packaged().of("rmsnorm", "dtype=bf16 output=same residual=no hidden=4096"); });
    report("all packaged winners", 20, [&](int) {
        const Winners winners = packaged();
        for (const PackagedBundle& bundle : packaged_bundles()) {
            for (const PackagedRows& rows : bundle.rows) (void)winners.of(rows.family, rows.static_fields);
        }
    });
    report("the text of all packaged bundles", 20, [](int) {
        for (const PackagedBundle& bundle : packaged_bundles()) (void)text_of(bundle);
    });
    std::filesystem::remove_all(directory);
}
