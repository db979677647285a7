#include "runtime/dispatch/snapshot.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "runtime/system/short_text.h"

namespace hone::runtime {
namespace {

/// nullopt: no files, the packaged layer alone. The site's may be there where no place for the user's is
/// known.
std::optional<cache::LayerPaths> cache_files(const RuntimeOptions& options, const WarningSink& warn) {
    if (!options.use_cache) return std::nullopt;
    cache::LayerPaths paths = cache::known_layer_paths([&](const cache::CacheError& nowhere) {
        if (options.cache_file.empty()) warn(fmt::format("no tuning cache: {}", nowhere.what()));
    });
    if (!options.cache_file.empty()) paths.user = options.cache_file;
    return paths;
}

std::optional<cache::Cache> open_image_cache(const std::filesystem::path& file, ImageOptions& images) {
    try {
        return cache::Cache::open(file, cache::OpenMode::read_write);
    } catch (const std::exception& error) {
        if (!std::exchange(images.cache_warned, true))
            images.warn(fmt::format("compiled images are not kept: {}", error.what()));
    }
    try {
        return cache::Cache::open(file, cache::OpenMode::read_only);
    } catch (const std::exception&) {
        return std::nullopt;  // the first attempt has warned
    }
}

void load_compiler(ImageOptions& images) {
    try {
        images.nvrtc = Nvrtc::load();
    } catch (const LibraryError& error) {
        images.nvrtc_problem = error.what();
    } catch (const NvrtcError& error) {
        images.nvrtc_problem = error.what();
    }
}

}  // namespace

WarningSink sink_of_stderr() {
    return [](const std::string& text) {
        const std::string shown = escape_message(with_short_words(text));
        std::fprintf(stderr, "hone: warning: %s\n", shown.c_str());
    };
}

WarningSink warning_sink(const RuntimeOptions& options) {
    if (!options.on_warning) return sink_of_stderr();
    return [sink = options.on_warning](const std::string& text) { sink(text); };
}

Snapshot take_snapshot(const DeviceSession& session, const RuntimeOptions& options, const WarningSink& warn) {
    ImageOptions images;
    images.warn = warn;
    load_compiler(images);
    const cache::Toolchain toolchain{session.driver().version(), images.nvrtc ? images.nvrtc->version() : ""};

    const WarningSink noted = [&](const std::string& text) {
        // One file, one warning: what made its results unreadable also makes its images so.
        images.cache_warned = true;
        warn(text);
    };
    const std::optional<cache::LayerPaths> paths = cache_files(options, noted);
    cache::Winners winners(paths, session.gpu(), toolchain, noted);
    if (paths && !paths->user.empty()) images.cache = open_image_cache(paths->user, images);
    return {std::move(winners), std::move(images)};
}

}  // namespace hone::runtime
