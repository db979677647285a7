#include "support.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "kernel_templates/catalog.h"

/// Writes down which lines were run, as _exit() does not; there in builds of the preset `coverage` alone.
extern "C" [[gnu::weak]] void __gcov_dump();

namespace hone::cache::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

std::string fields_of(const Family& family, int i) {
    std::string text;
    for (const Field& field : family.fields) {
        if (field.default_value >= 0 || !field.default_as.empty()) continue;
        const std::int64_t wanted = field.kind == Field::Kind::dynamic ? 1 + i : 4096;
        text +=
            ' ' + std::string(field.name) + '=' +
            (field.kind == Field::Kind::choice ? std::string(field.choices[0])
                                               : std::to_string(std::clamp(wanted, field.min, field.max)));
    }
    return text;
}

/// Every second one is as older schemas wrote it.
void add_clock(int i, Timing& timing) {
    if (i % 2 == 0) return;
    timing.sm_clock_mhz = 1500 + i % 480;
    timing.incumbent_ratio = 1 + i % 7 / 64.0;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
    // In memory where that is possible: nothing here depends on what a power cut leaves, and disks are slow
    // to sync.
    const bool memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
    std::string name =
        ((memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "hone-cache-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = fs::canonical(name);
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    for (const auto& entry : fs::recursive_directory_iterator(path_, ignored)) {
        if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
            fs::permissions(entry.path(), fs::perms::owner_all, ignored);
        }
    }
    fs::remove_all(path_, ignored);
}

GpuKey h100() {
    return {.name = "NVIDIA H100 80GB HBM3",
            .compute_major = 9,
            .compute_minor = 0,
            .sm_count = 132,
            .memory_clock_mhz = 2619,
            .mig_profile = ""};
}

Toolchain toolchain() { return {.driver = "580.95.05", .nvrtc = "13.0"}; }

Trial sample_trial(int i) {
    Trial trial;
    trial.key = {.gpu = h100(),
                 .family = "sample",
                 .static_fields = "hidden=" + std::to_string(64 * (i % 7 + 1)),
                 .dynamic_fields = "rows=" + std::to_string(i % 5 + 1)};
    trial.toolchain = toolchain();
    trial.candidate = "simple threads=" + std::to_string(i);
    trial.template_hash = "0123456789abcdef0123456789abcdef";
    trial.winner = i % 3 == 0;
    trial.timing = {.median_us = 1.5 + i / 7.0, .p10_us = 1.25, .p90_us = 2.5 + i, .samples = 30};
    add_clock(i, trial.timing);
    trial.resources = {.registers = 32, .shared_bytes = 1024, .spill_bytes = 0};
    trial.created_at = 1'790'000'000'000 + i;
    trial.tool_version = "0.1.0";
    return trial;
}

Trial sample_winner(int i) {
    const Family& family = *find_family("attention_decode");  // with many candidates
    std::string error;
    const auto problem = parse_problem(family, fields_of(family, i), &error);
    if (!problem) throw std::logic_error("sample_winner: " + error);
    Candidate candidate{.variant = family.variants.front(), .config = {}};
    for (std::size_t t = 0; t < candidate.variant->tunables.size(); ++t) {
        candidate.config[t] = candidate.variant->tunables[t].values.items[0];
    }
    Trial trial = sample_trial(i);
    trial.key = {.gpu = h100(),
                 .family = std::string(family.name),
                 .static_fields = static_text(*problem),
                 .dynamic_fields = dynamic_text(*problem)};
    trial.candidate = to_string(candidate);
    trial.template_hash = std::string(template_hash(*candidate.variant));
    trial.winner = true;
    // Longer than what the validator holds to be possible.
    trial.timing = {.median_us = 150 + i / 7.0, .p10_us = 125, .p90_us = 250.0 + i, .samples = 30};
    add_clock(i, trial.timing);
    return trial;
}

std::vector<LoadedWinner> winners_of_samples(const Winners& winners, int count) {
    std::set<std::pair<std::string, std::string>> problems;
    for (int i = 0; i < count; ++i) {
        const TuningKey key = sample_winner(i).key;
        problems.emplace(key.family, key.static_fields);
    }
    std::vector<LoadedWinner> all;
    for (const auto& [family, static_fields] : problems)
        std::ranges::move(winners.of(family, static_fields).winners, std::back_inserter(all));
    return all;
}

Packaged::Packaged(std::string name, std::string_view bundle)
    : name_(std::move(name)), packed_(pack_bundle(bundle)) {
    for (const PackedRows& rows : packed_.rows)
        rows_.push_back({rows.family, rows.static_fields, rows.block, rows.length});
    view_ = {.name = name_, .head = packed_.head, .rows = rows_, .tail = packed_.tail};
}

ImageKey sample_image_key(int i) {
    return {.template_hash = "0123456789abcdef0123456789abcdef",
            .static_fields = "hidden=64",
            .candidate = "simple threads=" + std::to_string(i),
            .arch = "sm_90a",
            .nvrtc = "13.0",
            .options = "--std=c++20 --gpu-architecture=sm_90a"};
}

Image sample_image(int i, std::size_t bytes) {
    Image image{.cubin = std::vector<std::byte>(bytes),
                .resources = {.registers = 40 + i % 100, .shared_bytes = 512}};
    // Noise, which no compression makes smaller.
    std::uint64_t state = static_cast<std::uint64_t>(i) + 1;
    for (std::byte& byte : image.cubin) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        byte = static_cast<std::byte>(state >> 56);
    }
    return image;
}

void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

std::string in_child(const std::function<void()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        std::string trouble;
        try {
            work();
        } catch (const std::exception& error) {
            trouble = error.what();
        }
        trouble.resize(std::min<std::size_t>(trouble.size(), 4000));
        if (__gcov_dump != nullptr) __gcov_dump();
        ::_exit(::write(ends[1], trouble.data(), trouble.size()) == static_cast<ssize_t>(trouble.size()) ? 0
                                                                                                         : 9);
    }
    ::close(ends[1]);
    std::string trouble;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
        trouble.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) trouble += " died of signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        trouble += " exit status " + std::to_string(WEXITSTATUS(status));
    return trouble;
}

std::string as_ordinary_user(const std::function<void()>& work) {
    return in_child([&] {
        if (::geteuid() == 0) {
            require(::setresgid(nobody, nobody, nobody) == 0, "setresgid");
            require(::setresuid(nobody, nobody, nobody) == 0, "setresuid");
        }
        work();
    });
}

std::string kind_of_error(const std::function<void()>& work) {
    try {
        work();
        return "";
    } catch (const CacheError& error) {
        if (error.hint().empty() || std::string_view(error.what()).empty()) return "an error without words";
        using Kind = CacheError::Kind;
        switch (error.kind()) {
            case Kind::unusable: return "unusable";
            case Kind::busy: return "busy";
            case Kind::read_only: return "read_only";
            case Kind::full: return "full";
            case Kind::newer_schema: return "newer_schema";
            case Kind::not_a_cache: return "not_a_cache";
            case Kind::damaged: return "damaged";
            case Kind::unsafe_permissions: return "unsafe_permissions";
        }
        return "?";
    }
}

std::string open_error(const fs::path& file, OpenMode mode) {
    return kind_of_error([&] { (void)Cache::open(file, mode); });
}

std::string read_file(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& file, std::string_view content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    ::chmod(file.c_str(), 0600);
}

void run_sql(const fs::path& file, const std::string& sql) {
    sqlite3* handle = nullptr;
    require(sqlite3_open(file.c_str(), &handle) == SQLITE_OK, "sqlite3_open");
    const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
    const std::string message = sqlite3_errmsg(handle);
    sqlite3_close(handle);
    require(code == SQLITE_OK, sql + ": " + message);
}

std::string listing(const fs::path& directory) {
    std::vector<std::string> lines;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        struct stat status {};
        ::lstat(entry.path().c_str(), &status);
        std::ostringstream line;
        line << entry.path() << ' ' << std::oct << status.st_mode << std::dec << ' ' << status.st_size << ' '
             << status.st_mtim.tv_sec << '.' << status.st_mtim.tv_nsec << ' ';
        if (S_ISREG(status.st_mode)) line << std::hash<std::string>()(read_file(entry.path()));
        lines.push_back(line.str());
    }
    std::ranges::sort(lines);
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    return all;
}

}  // namespace hone::cache::test
