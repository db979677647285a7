#include "tuner/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds bar_interval{100};
constexpr milliseconds line_interval{5000};
constexpr milliseconds rate_known_after{500};  // before that a remaining time would be a guess
constexpr std::size_t usual_width = 80;

std::size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_width;
}

double rate_per_s(const tuner::Progress& progress, milliseconds elapsed) {
    if (elapsed < rate_known_after) return 0;
    return static_cast<double>(progress.candidates_done) * 1000 / static_cast<double>(elapsed.count());
}

std::string remaining(const tuner::Progress& progress, milliseconds elapsed) {
    const double rate = rate_per_s(progress, elapsed);
    if (!(rate > 0) || progress.candidates_total < progress.candidates_done) return {};
    const auto left = static_cast<double>(progress.candidates_total - progress.candidates_done) / rate;
    return fmt::format("about {} left",
                       tuner::format_duration(milliseconds(static_cast<std::int64_t>(left) * 1000)));
}

double share_done(const tuner::Progress& progress) {
    const bool by_candidates = progress.candidates_total > 0;
    const auto done = static_cast<double>(by_candidates ? progress.candidates_done : progress.problems_done);
    const auto total =
        static_cast<double>(by_candidates ? progress.candidates_total : progress.problems_total);
    return total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
}

}  // namespace

std::string progress_line(const tuner::Progress& progress, milliseconds elapsed, const ProgressUnits& units) {
    std::string line = fmt::format("{}/{} {}, {} {}", progress.problems_done, progress.problems_total,
                                   units.problems, progress.candidates_done, units.candidates);
    if (const double rate = rate_per_s(progress, elapsed); rate > 0) line += fmt::format(", {:.0f}/s", rate);
    if (const std::string left = remaining(progress, elapsed); !left.empty()) line += ", " + left;
    return line;
}

std::string progress_bar(const tuner::Progress& progress, milliseconds elapsed, std::size_t width,
                         const ProgressUnits& units) {
    constexpr std::size_t cells = 20;
    const auto full = static_cast<std::size_t>(share_done(progress) * cells);
    std::string line =
        fmt::format("[{}{}] {}  {}", std::string(full, '#'), std::string(cells - full, '-'),
                    progress_line(progress, elapsed, units), tuner::escape_controls(progress.current));
    if (line.size() > width) line.resize(width);  // ASCII but for a problem's text, which is ASCII too
    return line;
}

ProgressDisplay::ProgressDisplay(const Console& console, const ProgressUnits& units)
    : console_(console), units_(units) {}

void ProgressDisplay::update(const tuner::Progress& progress) {
    const auto now = Clock::now();
    const auto interval = console_.stderr_terminal ? bar_interval : line_interval;
    if (now - std::max(shown_, started_) < interval) return;
    shown_ = now;
    const auto elapsed = std::chrono::duration_cast<milliseconds>(now - started_);
    if (!console_.stderr_terminal) {
        console_.note(progress_line(progress, elapsed, units_));
        return;
    }
    fmt::print(stderr, "\r\033[K{}", progress_bar(progress, elapsed, terminal_width() - 1, units_));
    std::fflush(stderr);
    bar_visible_ = true;
}

void ProgressDisplay::finish() {
    if (!bar_visible_) return;
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
    bar_visible_ = false;
}

}  // namespace hone::cli
