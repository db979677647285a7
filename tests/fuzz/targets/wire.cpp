// Messages between the tuner and its workers. An input that begins with '{' gets a right frame; another one
// is the bytes on the socket. Whatever a message says of plans, problems, devices or times comes back as it
// was sent.
#include <sys/socket.h>

#include "kernel_templates/catalog.h"
#include "runtime/compile/compile_worker.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/made_trials.h"
#include "tuner/measure/wire.h"
#include "tuner/worker/channel.h"

namespace {

using namespace hone;
using namespace hone::tuner;
using hone::fuzz::require;
using hone::runtime::frame_magic;
using hone::runtime::FrameHeader;
using hone::runtime::socket_pair;
using nlohmann::json;

std::string framed(std::string_view text) {
    const FrameHeader header{.magic = frame_magic, .json_bytes = static_cast<std::uint32_t>(text.size())};
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + std::string(text);
}

/// A value that was read is written, and read from that is written the same. Returns whether it was read.
template <class Parse>
bool comes_back(const json& object, Parse parse) {
    try {
        const json written = to_json(parse(object));
        require(to_json(parse(written)).dump() == written.dump(), "what was read and written is read alike");
        return true;
    } catch (const ProtocolError&) {
        return false;
    }
}

/// No argument is larger than bytes can be counted.
void check_arguments(const ProblemSetup& setup) {
    for (const Argument& argument : setup.arguments)
        require(argument.elements() >= 1 && argument.bytes() >= 0, "an argument's bytes can be counted");
}

bool read_object(const json& object) {
    NameTable names;
    bool read = comes_back(object, device_info_from_json);
    read |= comes_back(object, [&](const json& of) { return plan_from_json(of, names); });
    read |= comes_back(object, [&](const json& of) {
        ProblemSetup setup = problem_setup_from_json(of, names);
        check_arguments(setup);
        return setup;
    });
    read |= comes_back(object, [&](const json& of) { return candidate_call_from_json(of, names); });
    read |= comes_back(object, verdict_from_json);
    read |= comes_back(object, samples_from_json);
    read |= comes_back(object, sustained_from_json);
    read |= comes_back(object, gpu_key_from_json);
    read |= comes_back(object, runtime::compile_request_from_json);
    return read;
}

ProblemSetup made_setup(const Problem& problem) {
    const Family& family = *problem.family;
    ProblemSetup setup{.arguments = family.arguments(problem),
                       .tolerances = {},
                       .scalars = {},
                       .reference_plan = family.reference_plan(problem),
                       .bytes_per_call = 1e6,
                       .seed = 7};
    setup.tolerances.resize(setup.arguments.size(), Tolerance{1e-3, 1e-2, 1e-1});
    for (const ScalarArgument& scalar : family.scalars(problem)) setup.scalars.push_back(scalar.tuning_value);
    return setup;
}

CandidateCall made_call(const Problem& problem) {
    const Candidate candidate = hone::fuzz::made_candidate(problem);
    const DeviceTraits traits = *representative_device({9, 0, true});
    return {"image", candidate.variant->plan(problem, candidate.config, traits)};
}

}  // namespace

const int hone::fuzz::mutations = 6000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const Problem norm = made_problem(*find_family("rmsnorm"));
    const Problem decode = made_problem(*find_family("attention_decode"));
    const DeviceInfo device{.traits = *representative_device({9, 0, true}),
                            .gpu = made_winner(*norm.family).key.gpu,
                            .toolchain = {.driver = "580.95.05", .nvrtc = "13.0"}};
    const Samples samples{.verdict = {.detail = "why"}, .us = {1.5, 2.25}, .energy_mj = 3};
    const Sustained sustained{
        .verdict = {}, .us = 2.5, .power_w = 350, .counted = true, .seconds = 2, .calls = 7};
    const runtime::CompileRequest request{"norm/group_rows.cu", "struct Shape {};", {9, 0, true}};
    return {{"setup.json", to_json(made_setup(norm)).dump()},
            {"paged_setup.json", to_json(made_setup(decode)).dump()},
            {"call.json", to_json(made_call(norm)).dump()},
            {"mapped_call.json", to_json(made_call(made_problem(*find_family("attention_prefill")))).dump()},
            {"plan.json", to_json(made_call(decode).plan).dump()},
            {"device.json", to_json(device).dump()},
            {"samples.json", to_json(samples).dump()},
            {"sustained.json", to_json(sustained).dump()},
            {"compile.json", to_json(request).dump()},
            {"frame", framed(to_json(samples).dump())}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = hone::fuzz::text_of(data, size);
    const std::string bytes = input.starts_with('{') ? framed(input) : std::string(input);
    if (bytes.size() > 100'000) return 0;  // a socket takes no more at once
    auto [ours, theirs] = socket_pair();
    require(
        ::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
        "the socket takes the input");
    theirs.reset();
    Channel channel(std::move(ours));
    Message message;
    try {
        const Received got = channel.receive(message, Clock::now() + std::chrono::seconds(5));
        require(got == Received::message || got == Received::end_of_file, "a closed socket is no wait");
        if (got == Received::message && read_object(message.head)) hone::fuzz::count_read();
    } catch (const ProtocolError&) {
        return 0;
    }
    return 0;
}
