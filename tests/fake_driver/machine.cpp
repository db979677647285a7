#include "tests/fake_driver/machine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

namespace hone::fake {

thread_local constinit ContextStack context_stack;

namespace {

constexpr std::size_t largest_real_allocation = 1 << 20;
constexpr std::size_t launches_kept = 4096;
constexpr int shared_bytes_without_opt_in = 49152;

/// Of what the last embedding had of each row, what there is of one that was gathered.
std::int32_t of_gathered(const std::vector<std::int32_t>& rows, const CUstream_st& stream,
                         std::size_t number) {
    return rows[static_cast<std::size_t>(stream.gathered[number])];
}

/// Parameters of the kernel that draws tokens.
constexpr int logits = 0, seed = 5, counter = 6, drawn = 7;

// After these a real process has to end: they are found at the next call, and at each one after it.
bool is_sticky(CUresult code) {
    return (code >= CUDA_ERROR_ILLEGAL_ADDRESS && code <= CUDA_ERROR_TENSOR_MEMORY_LEAK && code != 701) ||
           code == CUDA_ERROR_ECC_UNCORRECTABLE || code == CUDA_ERROR_UNKNOWN;
}

unsigned long long volume(const unsigned int (&extent)[3]) {
    return static_cast<unsigned long long>(extent[0]) * extent[1] * extent[2];
}

// "sm_90a" runs on exactly 9.0; "sm_80" on 8.0 and later minor versions.
bool runs_on(const std::string& arch, const FakeDevice& device) {
    const int target = std::atoi(arch.c_str() + std::min<std::size_t>(3, arch.size()));
    const int capability = device.compute_capability();
    if (arch.ends_with('a')) return target == capability;
    return target / 10 == capability / 10 && target <= capability;
}

// Sizes of a kernel's parameters, as the image says them: "8,8,4".
std::vector<std::size_t> sizes_of(const std::string& text) {
    std::vector<std::size_t> sizes;
    std::istringstream words(text == "-" ? "" : text);
    for (std::string word; std::getline(words, word, ',');)
        sizes.push_back(static_cast<std::size_t>(std::atoi(word.c_str())));
    return sizes;
}

// A parameter that is larger than a word is recorded by its first word, a tensor map by its address.
void take_parameters(const std::vector<std::size_t>& sizes, void** parameters, FakeLaunch& record) {
    for (const std::size_t bytes : sizes) {
        if (record.parameter_count == 24) return;
        const int i = record.parameter_count++;
        std::memcpy(&record.parameters[i], parameters[i], std::min<std::size_t>(8, bytes));
    }
}

/// As rules see it: a kernel takes as long on every GPU.
Subject on_gpu(Subject subject, const FakeDevice& device) {
    subject.words += " gpu=" + std::to_string(device.number);
    return subject;
}

}  // namespace

void Machine::reset() {
    script = Script::from_environment();
    devices = devices_of(script);
    while (primary_contexts.size() < devices.size()) {
        auto& context = primary_contexts.emplace_back(std::make_unique<CUctx_st>());
        context->device = static_cast<int>(primary_contexts.size()) - 1;
        context->default_stream = std::make_unique<CUstream_st>();
        context->default_stream->context = context.get();
    }
    for (auto& context : primary_contexts) {
        context->sticky = CUDA_SUCCESS;
        context->hung = false;
        context->default_stream->hung = false;
    }
    launches_.clear();
    launch_count_ = 0;
    previous_ = {};
    const Rule* noise = script.setting("noise", "seed");
    noise_.seed(noise == nullptr ? 1 : static_cast<std::uint64_t>(noise->number("seed")));
}

void Machine::reset_if_script_changed() {
    const char* text = std::getenv("HONE_FAKE_SCRIPT");
    if (script.text() != (text == nullptr ? "" : text)) reset();
}

CUctx_st* Machine::current_context() const { return context_stack.empty() ? nullptr : context_stack.back(); }

const FakeDevice& Machine::device_of(const CUctx_st& context) const {
    return devices[static_cast<std::size_t>(context.device)];
}

CUresult Machine::allocate(CUctx_st& context, std::size_t bytes, CUdeviceptr* address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    for (const Rule* rule :
         script.fire("alloc", Subject{.words = "bytes=" + std::to_string(bytes), .names = {}})) {
        if (bytes > static_cast<std::size_t>(rule->number("over")))
            return static_cast<CUresult>(rule->number("fail", 2));
    }
    if (allocated_bytes(context.device) + static_cast<std::int64_t>(bytes) >
        device_of(context).memory_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Allocation allocation{.bytes = bytes, .device = context.device, .memory = nullptr};
    if (bytes <= largest_real_allocation) {
        allocation.memory.reset(new char[bytes + 255]());  // room to align as the driver does
        *address = (reinterpret_cast<CUdeviceptr>(allocation.memory.get()) + 255) & ~CUdeviceptr{255};
    } else {
        *address = next_large_address_;
        next_large_address_ += (bytes + (2u << 20)) & ~CUdeviceptr{(2u << 20) - 1};
    }
    memory_.emplace(*address, std::move(allocation));
    ++live["memory"];
    return CUDA_SUCCESS;
}

CUresult Machine::release(CUdeviceptr address) {
    if (address == 0) return CUDA_SUCCESS;
    if (memory_.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;
    --live["memory"];
    return CUDA_SUCCESS;
}

std::int64_t Machine::allocated_bytes(int device) const {
    std::int64_t total = 0;
    for (const auto& [address, allocation] : memory_) {
        if (allocation.device == device) total += static_cast<std::int64_t>(allocation.bytes);
    }
    return total;
}

void Machine::note_host_memory(void* memory, std::size_t bytes) {
    host_memory_[reinterpret_cast<CUdeviceptr>(memory)] = bytes;
}

void Machine::forget_host_memory(void* memory) { host_memory_.erase(reinterpret_cast<CUdeviceptr>(memory)); }

char* Machine::host_memory(CUdeviceptr address, std::size_t bytes, bool* valid) {
    const auto behind = host_memory_.upper_bound(address);
    *valid = behind != host_memory_.begin() &&
             address + bytes <= std::prev(behind)->first + std::prev(behind)->second;
    if (*valid) return reinterpret_cast<char*>(address);
    auto at = memory_.upper_bound(address);
    if (at == memory_.begin()) return nullptr;
    --at;
    if (address + bytes > at->first + at->second.bytes) return nullptr;
    *valid = true;
    return at->second.memory == nullptr ? nullptr : reinterpret_cast<char*>(address);
}

CUresult Machine::set_memory(CUdeviceptr to, std::size_t bytes, const void* pattern,
                             std::size_t pattern_bytes) {
    bool valid = false;
    char* memory = host_memory(to, bytes, &valid);
    if (!valid) return CUDA_ERROR_INVALID_VALUE;
    if (memory == nullptr) return CUDA_SUCCESS;
    for (std::size_t at = 0; at + pattern_bytes <= bytes; at += pattern_bytes)
        std::memcpy(memory + at, pattern, pattern_bytes);
    return CUDA_SUCCESS;
}

CUresult Machine::copy_memory(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    bool valid_to = false;
    bool valid_from = false;
    char* target = host_memory(to, bytes, &valid_to);
    const char* source = host_memory(from, bytes, &valid_from);
    if (!valid_to || !valid_from) return CUDA_ERROR_INVALID_VALUE;
    if (target != nullptr && source != nullptr) std::memmove(target, source, bytes);
    if (target != nullptr && source == nullptr) std::memset(target, 0, bytes);
    return CUDA_SUCCESS;
}

CUresult Machine::load_module(CUctx_st& context, const char* image, CUmodule* module) {
    if (std::strncmp(image, "hone fake image ", 16) != 0) return CUDA_ERROR_INVALID_IMAGE;
    std::optional<FakeImage> parsed = parse_image(image);
    if (!parsed) return CUDA_ERROR_INVALID_IMAGE;
    for (const Rule* rule : script.fire("load", on_gpu(subject_of(*parsed, ""), device_of(context))))
        return static_cast<CUresult>(rule->number("fail", 200));
    if (!runs_on(parsed->arch, device_of(context))) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto loaded = std::make_unique<CUmod_st>();
    loaded->context = &context;
    loaded->image = *std::move(parsed);
    for (const ImageKernel& kernel : loaded->image.kernels) {
        const Subject subject = subject_of(loaded->image, kernel.name);
        loaded->functions[kernel.name] = {
            .module = loaded.get(),
            .kernel = kernel,
            .subject = subject,
            .hash = stable_hash(subject.words),
            .parameter_bytes = sizes_of(kernel.parameter_bytes),
            .max_dynamic_shared_bytes = shared_bytes_without_opt_in - kernel.shared_bytes,
            .non_portable_cluster = 0,
            .of_harness = loaded->image.source.starts_with("harness/")};
    }
    *module = loaded.release();
    ++live["module"];
    return CUDA_SUCCESS;
}

CUresult Machine::check_launch(const CUctx_st& context, const LaunchRequest& request) const {
    const FakeLaunch& launch = request.record;
    const FakeDevice& device = device_of(context);
    const auto threads = volume(launch.block);
    const auto cluster = volume(launch.cluster);
    if (threads == 0 || threads > 1024 || volume(launch.grid) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (launch.grid[1] > 65535 || launch.grid[2] > 65535) return CUDA_ERROR_INVALID_VALUE;
    if (launch.shared_bytes >
        static_cast<unsigned>(std::max(0, request.function->max_dynamic_shared_bytes))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (threads * static_cast<unsigned>(request.function->kernel.registers) > 65536)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (cluster > 1) {
        if (device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_INVALID_VALUE;
        if (cluster > (request.function->non_portable_cluster != 0 ? 16u : 8u))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        for (int i = 0; i < 3; ++i) {
            if (launch.grid[i] % launch.cluster[i] != 0) return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult Machine::launch(CUstream_st& stream, LaunchRequest request, void** parameters) {
    if (request.function->module->context != stream.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult result = check_launch(*stream.context, request); result != CUDA_SUCCESS) return result;
    std::strncpy(request.record.kernel, request.function->kernel.name.c_str(),
                 sizeof(request.record.kernel) - 1);
    if (parameters != nullptr) {
        const std::vector<std::size_t>& sizes = request.function->parameter_bytes;
        take_parameters(sizes, parameters, request.record);
        for (const Rule* rule : script.settings("launch", "write")) {
            if (!matches(rule->text("match"), request.function->subject)) continue;
            const auto index = static_cast<std::size_t>(rule->number("write"));
            if (index < sizes.size())
                std::memcpy(&request.pointers[static_cast<int>(index)], parameters[index],
                            sizeof(CUdeviceptr));
        }
    }
    return enqueue(stream, [this, request](CUstream_st& on) { return run_kernel(on, request); });
}

CUresult Machine::enqueue(CUstream_st& stream, Work work) {
    if (stream.capture != nullptr) {
        stream.capture->nodes.push_back(std::move(work));
        return CUDA_SUCCESS;
    }
    return work(stream);
}

CUresult Machine::apply(const Rule& rule, CUstream_st& stream, const LaunchRequest& request) {
    act_on_process(rule);
    if (rule.has("hang")) stream.hung = stream.context->hung = true;
    if (rule.has("write")) {
        const CUdeviceptr address = request.pointers.at(static_cast<int>(rule.number("write"))) +
                                    static_cast<CUdeviceptr>(rule.number("offset"));
        const long long value = rule.number("value", 1);
        bool valid = false;
        if (char* memory = host_memory(address, sizeof(value), &valid))
            std::memcpy(memory, &value, sizeof(value));
        if (!valid) stream.context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (!rule.has("fail")) return CUDA_SUCCESS;
    const auto code = static_cast<CUresult>(rule.number("fail"));
    if (!is_sticky(code)) return code;
    stream.context->sticky = code;
    return CUDA_SUCCESS;
}

double Machine::duration_us(const CUctx_st& context, const LaunchRequest& request,
                            const std::vector<const Rule*>& rules) {
    const FakeLaunch& launch = request.record;
    const FakeDevice& device = device_of(context);
    const double resident = static_cast<double>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) *
                            device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    const double waves = static_cast<double>(volume(launch.grid) * volume(launch.block)) / resident;
    const double share = static_cast<double>(request.function->hash % 4096) / 4096.0;
    double duration = (2.0 + 8.0 * share) * std::max(1.0, waves);
    for (const Rule* rule : rules) duration = rule->real("us", duration) * rule->real("slow", 1.0);
    if (const Rule* noise = script.setting("noise", "percent")) {
        const double factor =
            1.0 + noise->real("percent") / 100.0 * std::normal_distribution<double>()(noise_);
        duration *= std::max(0.5, factor);
    }
    return duration;
}

/// As kernel_templates/embedding has it: five pointers, ids first, and then how many of them. Without
/// positions it gathers rows of those that a step has, or, where a row is one element, tokens.
void Machine::note_ids(CUstream_st& stream, const LaunchRequest& request) {
    constexpr int ids = 0, table = 1, positions = 2, out = 4, count = 5;
    const FakeLaunch& launch = request.record;
    const auto tokens = static_cast<std::size_t>(launch.parameters[count]);
    const auto* const from = numbers_at<std::int32_t>(launch, ids, tokens);
    const std::vector<std::int32_t> read(from, from == nullptr ? from : from + tokens);
    if (launch.parameters[positions] != 0) {
        const auto* const at = numbers_at<std::int32_t>(launch, positions, tokens);
        stream.embedded = read;
        stream.positions.assign(at, at == nullptr ? at : at + tokens);
        return;
    }
    if (matches("hidden=1", request.function->subject)) {
        constexpr int table_rows = 6;
        const auto rows = static_cast<std::size_t>(launch.parameters[table_rows]);
        const auto* const drawn_before = numbers_at<std::int32_t>(launch, table, rows);
        auto* const to = numbers_at<std::int32_t>(launch, out, tokens);
        for (std::size_t i = 0; i < read.size() && drawn_before != nullptr && to != nullptr; ++i)
            to[i] = drawn_before[read[i]];
        return;
    }
    stream.gathered = read;
}

/// Of rows that tokens are drawn from, or of gathered ones: the last of seven pointers of a linear layer.
void Machine::make_logits(const CUstream_st& stream, const LaunchRequest& request, std::size_t vocabulary) {
    const FakeLaunch& launch = request.record;
    const bool draws = request.function->kernel.name == "sample_row";
    const std::size_t rows = draws ? launch.grid[0] / launch.cluster[0] : stream.gathered.size();
    const auto* const seeds = numbers_at<std::int64_t>(launch, seed, draws ? rows : 0);
    const auto* const counters = numbers_at<std::int64_t>(launch, counter, draws ? rows : 0);
    auto* const out = numbers_at<std::uint16_t>(launch, draws ? logits : 6, rows * vocabulary);
    if (out == nullptr || (draws && (seeds == nullptr || counters == nullptr))) return;
    for (std::size_t i = 0; i < rows * vocabulary; ++i) {
        const std::size_t row = i / vocabulary;
        const std::int64_t of_row =
            draws ? seeds[row] + 3 * counters[row] : 3 * of_gathered(stream.positions, stream, row);
        const auto number = static_cast<float>((of_row + static_cast<std::int64_t>(i % vocabulary)) % 8);
        out[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
    }
}

/// As kernel_templates/sample has it: the tokens are the parameter behind seven that are read.
void Machine::draw_tokens(CUstream_st& stream, const LaunchRequest& request,
                          const std::vector<const Rule*>& rules) {
    const FakeLaunch& launch = request.record;
    std::vector<std::int32_t> tokens(launch.grid[0] / launch.cluster[0]);
    auto* const to = numbers_at<std::int32_t>(launch, drawn, tokens.size());
    if (to == nullptr) return;
    if (std::ranges::any_of(rules, [](const Rule* rule) { return rule->has("seeded"); })) {
        const auto* const seeds = numbers_at<std::int64_t>(launch, seed, tokens.size());
        const auto* const counters = numbers_at<std::int64_t>(launch, counter, tokens.size());
        const bool has_gathered = !stream.in_graph && stream.gathered.size() == tokens.size();
        const bool knows_ids = has_gathered || (stream.in_graph && stream.embedded.size() == tokens.size());
        const auto embedded = [&](std::size_t row) {
            return has_gathered ? of_gathered(stream.embedded, stream, row) : stream.embedded[row];
        };
        for (std::size_t i = 0; i < tokens.size() && seeds != nullptr && counters != nullptr; ++i) {
            const std::int64_t token = 31 * seeds[i] + 7 * counters[i];
            const bool follows = !knows_ids || counters[i] == 0 || embedded(i) == (token - 7) % 997;
            tokens[i] = follows ? static_cast<std::int32_t>(token % 997) : 998;
        }
    }
    long long late_us = 0;
    for (const Rule* rule : rules) late_us = rule->number("late_us", late_us);
    const auto write = [to, tokens = std::move(tokens)] {
        for (std::size_t i = 0; i < tokens.size(); ++i)
            std::atomic_ref(to[i]).store(tokens[i], std::memory_order_release);
    };
    if (late_us == 0) return write();
    stream.late = std::make_unique<LateWork>();
    stream.late->thread = std::thread([late = stream.late.get(), write, late_us] {
        std::this_thread::sleep_for(std::chrono::microseconds(late_us));
        write();
        late->done = true;
    });
}

CUresult Machine::run_kernel(CUstream_st& stream, const LaunchRequest& request) {
    if (stream.context->sticky != CUDA_SUCCESS) return stream.context->sticky;
    stream.late.reset();
    // Tests launch hundreds of thousands of kernels, most of them without a rule to hold texts against.
    const bool is_ruled = script.has_rules("launch");
    std::vector<const Rule*> rules;
    if (is_ruled)
        rules =
            script.fire("launch", on_gpu(request.function->subject, device_of(*stream.context)), previous_);
    for (const Rule* rule : rules) {
        if (const CUresult result = apply(*rule, stream, request); result != CUDA_SUCCESS) return result;
    }
    const bool is_idle = std::ranges::any_of(rules, [](const Rule* rule) { return rule->has("idle"); });
    if (is_ruled && request.function->kernel.name == "embedding_rows") note_ids(stream, request);
    for (const Rule* rule : rules) {
        if (rule->has("logits"))
            make_logits(stream, request, static_cast<std::size_t>(rule->number("logits")));
    }
    if (request.function->kernel.name == "sample_row" && !is_idle && stream.context->sticky == CUDA_SUCCESS &&
        !stream.hung) {
        draw_tokens(stream, request, rules);
    }
    FakeLaunch& record = launches_.emplace_back(request.record);
    record.duration_us = duration_us(*stream.context, request, rules);
    if (launches_.size() > launches_kept) launches_.pop_front();
    ++launch_count_;
    stream.clock_us += record.duration_us;
    if (is_ruled && !request.function->of_harness) previous_ = request.function->subject;
    return CUDA_SUCCESS;
}

}  // namespace hone::fake
