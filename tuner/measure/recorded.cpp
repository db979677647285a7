#include "tuner/measure/recorded.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "cache/validator.h"
#include "runtime/system/text_file.h"
#include "tuner/errors.h"
#include "tuner/measure/wire.h"

namespace hone::tuner {
namespace {

using nlohmann::json;

constexpr std::size_t max_samples = 64;  // enough for every stage of a race; more would only repeat

/// Nanoseconds are finer than the clock of CUDA events.
json rounded(const std::vector<double>& us) {
    json list = json::array();
    for (const double sample : us) list.push_back(std::round(sample * 1e4) / 1e4);
    return list;
}

json candidate_json(const RecordedCandidate& recorded) {
    json object{{"status", name(recorded.verdict.status)},
                {"registers", recorded.resources.registers},
                {"shared_bytes", recorded.resources.shared_bytes},
                {"us", rounded(recorded.us)}};
    if (!recorded.verdict.detail.empty()) object["detail"] = recorded.verdict.detail;
    if (recorded.resources.spill_bytes != 0) object["spill_bytes"] = recorded.resources.spill_bytes;
    if (recorded.verdict.relative_l2 != 0) object["relative_l2"] = recorded.verdict.relative_l2;
    return object;
}

std::vector<double> samples_from(const json& object) {
    std::vector<double> us;
    for (const json& item : list(object, "us")) {
        if (!item.is_number() || !(item.get<double>() >= 0 && item.get<double>() <= cache::limits::real)) {
            throw ProtocolError("member 'us' holds something that is no time");
        }
        us.push_back(item.get<double>());
    }
    return us;
}

RecordedCandidate candidate_from(const json& object) {
    const std::optional<cache::TrialStatus> status = cache::trial_status_from_name(text(object, "status"));
    if (!status) throw ProtocolError("member 'status' is unknown");
    RecordedCandidate recorded{.verdict = {.status = *status, .detail = {}},
                               .resources = {.registers = small_integer(object, "registers"),
                                             .shared_bytes = small_integer(object, "shared_bytes")},
                               .us = samples_from(object)};
    if (object.contains("detail")) recorded.verdict.detail = text(object, "detail");
    if (object.contains("spill_bytes")) recorded.resources.spill_bytes = small_integer(object, "spill_bytes");
    if (object.contains("relative_l2")) recorded.verdict.relative_l2 = number(object, "relative_l2");
    return recorded;
}

RecordedProblem problem_from(const json& object) {
    RecordedProblem recorded{.begin = verdict_from_json(member(object, "begin")),
                             .calls_per_replay = small_integer(object, "calls_per_replay"),
                             .candidates = {}};
    if (recorded.calls_per_replay < 1) throw ProtocolError("member 'calls_per_replay' is less than 1");
    const json& candidates = member(object, "candidates");
    if (!candidates.is_object()) throw ProtocolError("member 'candidates' is no object");
    for (const auto& [name, value] : candidates.items())
        recorded.candidates.emplace(name, candidate_from(value));
    return recorded;
}

DeviceInfo device_from_header(const json& object) {
    if (text(object, "schema") != recording_schema) throw ProtocolError("another schema");
    return device_info_from_json(member(object, "device"));
}

bool same_device(const DeviceInfo& a, const DeviceInfo& b) { return a.gpu == b.gpu; }

/// One line of a recording. A problem that stands there twice: the later line counts.
void read_line(const std::string& line, std::size_t number, Recording& recording) {
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) throw ProtocolError("not a JSON object");
    if (number == 1) {
        recording.device = device_from_header(object);
    } else {
        recording.problems.insert_or_assign(text(object, "problem"), problem_from(object));
    }
}

constexpr std::uintmax_t max_recording_bytes = std::uintmax_t{1} << 30;

/// What is no file of a bearable size is not read at all: a device never ends.
void check_recording_file(const std::filesystem::path& file) {
    runtime::require_regular_file(file);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    if (!error && bytes > max_recording_bytes)
        throw ConfigError(
            fmt::format("{}: {} bytes; allowed are up to {}", file.string(), bytes, max_recording_bytes));
}

/// The file of a recording that this device's sweeps may be added to.
const std::filesystem::path& checked_for(const DeviceInfo& device, const std::filesystem::path& file) {
    std::error_code ignored;  // what cannot be looked at cannot be written either, which says why
    if (!std::filesystem::exists(file, ignored)) return file;
    check_recording_file(file);
    if (std::filesystem::file_size(file, ignored) != 0 && !same_device(read_recording(file).device, device))
        throw ConfigError(file.string() + ": holds the sweep of another GPU");
    return file;
}

}  // namespace

std::string header_line(const DeviceInfo& device) {
    return json{{"schema", recording_schema}, {"device", to_json(device)}}.dump();
}

std::string problem_line(const std::string& problem, const RecordedProblem& recorded) {
    json candidates = json::object();
    for (const auto& [name, candidate] : recorded.candidates) candidates[name] = candidate_json(candidate);
    return json{{"problem", problem},
                {"begin", to_json(recorded.begin)},
                {"calls_per_replay", recorded.calls_per_replay},
                {"candidates", std::move(candidates)}}
        .dump();
}

Recording read_recording(const std::filesystem::path& file) {
    check_recording_file(file);
    std::ifstream in(file);
    if (!in) throw ConfigError(file.string() + ": cannot be read");
    Recording recording;
    std::string line;
    std::size_t number = 0;
    while (std::getline(in, line)) {
        const bool cut_off = in.eof();  // the last line has no newline: its writer was killed
        try {
            read_line(line, ++number, recording);
        } catch (const ProtocolError& error) {
            if (cut_off && number > 1) break;
            throw ConfigError(fmt::format("{}:{}: {}", file.string(), number, error.what()));
        }
    }
    if (number == 0) throw ConfigError(file.string() + ":1: an empty recording");
    return recording;
}

RecordingMeasurer::RecordingMeasurer(Measurer& measurer, const std::filesystem::path& file)
    : measurer_(measurer), file_(checked_for(measurer.device(), file), header_line(measurer.device())) {}

RecordingMeasurer::~RecordingMeasurer() = default;

RecordedCandidate& RecordingMeasurer::record(const CandidateImage& candidate) {
    RecordedCandidate& recorded = current_.candidates[to_string(candidate.candidate)];
    if (candidate.image != nullptr) recorded.resources = candidate.image->resources;
    return recorded;
}

void RecordingMeasurer::add(const CandidateImage& candidate, const Samples& samples) {
    RecordedCandidate& recorded = record(candidate);
    if (samples.verdict.status != cache::TrialStatus::ok) recorded.verdict = samples.verdict;
    for (const double us : samples.us) {
        if (recorded.us.size() < max_samples) recorded.us.push_back(us);
    }
}

Verdict RecordingMeasurer::begin_problem(const Problem& problem) {
    problem_ = to_string(problem);
    current_ = recorded_[problem_];
    current_.begin = measurer_.begin_problem(problem);
    current_.calls_per_replay = measurer_.calls_per_replay();
    return current_.begin;
}

Verdict RecordingMeasurer::verify(const CandidateImage& candidate) {
    Verdict verdict = measurer_.verify(candidate);
    record(candidate).verdict = verdict;
    return verdict;
}

Samples RecordingMeasurer::time(const CandidateImage& candidate, int replays) {
    Samples samples = measurer_.time(candidate, replays);
    add(candidate, samples);
    return samples;
}

std::vector<Samples> RecordingMeasurer::interleave(const std::vector<CandidateImage>& candidates,
                                                   int rounds) {
    std::vector<Samples> samples = measurer_.interleave(candidates, rounds);
    for (std::size_t i = 0; i < samples.size(); ++i) add(candidates[i], samples[i]);
    return samples;
}

void RecordingMeasurer::note_rejected(const Candidate& candidate, const Verdict& verdict,
                                      const cache::Resources& resources) {
    current_.candidates[to_string(candidate)] = {.verdict = verdict, .resources = resources, .us = {}};
    measurer_.note_rejected(candidate, verdict, resources);
}

void RecordingMeasurer::end_problem() {
    file_.append_line(problem_line(problem_, current_));
    recorded_[problem_] = current_;
    measurer_.end_problem();
}

}  // namespace hone::tuner
