#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/system/short_text.h"
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

/// What the run knows itself, else what the rate tells.
std::optional<milliseconds> time_left(const tuner::Progress& progress, milliseconds elapsed,
                                      const ProgressUnits& units) {
    if (progress.left || !units.are_alike) return progress.left;
    const double rate = rate_per_s(progress, elapsed);
    if (!(rate > 0) || progress.candidates_total < progress.candidates_done) return std::nullopt;
    const auto left = static_cast<double>(progress.candidates_total - progress.candidates_done) / rate;
    return milliseconds(static_cast<std::int64_t>(left * 1000));
}

/// In whole seconds: it is no measurement.
std::string remaining(milliseconds left) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(left);
    if (seconds < std::chrono::minutes(1)) return fmt::format("about {} s left", seconds.count());
    return fmt::format("about {} left", tuner::format_duration(seconds));
}

/// "rmsnorm rows=16, best 2.129 us"
std::string current(const tuner::Progress& progress) {
    std::string text = runtime::escape_controls(progress.current);
    if (progress.best_us > 0) text += fmt::format(", best {} us", tuner::format_us(progress.best_us));
    return text;
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
    if (const auto left = time_left(progress, elapsed, units)) line += ", " + remaining(*left);
    return progress.current.empty() ? line : line + ": " + current(progress);
}

std::string progress_bar(const tuner::Progress& progress, milliseconds elapsed, std::size_t width,
                         const ProgressUnits& units) {
    constexpr std::size_t cells = 20;
    const auto full = static_cast<std::size_t>(share_done(progress) * cells);
    std::string line = fmt::format("[{}{}] {}", std::string(full, '#'), std::string(cells - full, '-'),
                                   progress_line(progress, elapsed, units));
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
    say(fmt::format("\r\033[K{}", progress_bar(progress, elapsed, terminal_width() - 1, units_)));
    bar_visible_ = true;
}

void ProgressDisplay::finish() {
    if (!bar_visible_) return;
    say("\r\033[K");
    bar_visible_ = false;
}

}  // namespace hone::cli
