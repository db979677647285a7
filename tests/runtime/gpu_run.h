// For tests that run candidates on the GPU: tensors on the host as numbers and as bytes, and one launch of a
// candidate over them. Slow and plain; a test fixes every input and checks every output.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache.h"
#include "kernel_templates/catalog.h"
#include "runtime/compile/compile_crew.h"
#include "runtime/cuda/launcher.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/workers/program.h"
#include "tests/runtime/candidate_draw.h"
#include "tests/runtime/late_looks.h"
#include "tests/support/minifloat.h"

namespace hone::test {

/// Elements of one dtype, as the numbers they stand for and as the bytes a kernel sees.
class HostTensor {
  public:
    HostTensor(Dtype dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride)
        : dtype_(dtype), columns_(columns), stride_(stride) {
        bytes.assign(static_cast<std::size_t>(rows * stride * size_bytes(dtype)), std::byte{0xff});
    }
    void set(std::int64_t row, std::int64_t column, double value) { store(row * stride_ + column, value); }
    /// The first element of a row of an index tensor.
    void set_index(std::int64_t row, std::int64_t value) {
        if (dtype_ == wide_index_dtype) return put(row * stride_, value);
        put(row * stride_, static_cast<std::int32_t>(value));
    }
    [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
        const std::int64_t i = row * stride_ + column;
        if (dtype_ == Dtype::fp32) return load<float>(i);
        if (dtype_ == index_dtype) return load<std::int32_t>(i);
        if (dtype_ == Dtype::int8) return load<std::int8_t>(i);
        if (dtype_ == Dtype::fp8_e4m3) return decoded(load<std::uint8_t>(i), fp8_format);
        return decoded(load<std::uint16_t>(i), dtype_ == Dtype::fp16 ? fp16_format : bf16_format);
    }
    /// Whether the bytes between this row and the next still hold what they were filled with.
    [[nodiscard]] bool padding_untouched(std::int64_t row) const { return untouched(row, columns_); }
    /// The same of the whole row.
    [[nodiscard]] bool row_untouched(std::int64_t row) const { return untouched(row, 0); }

    std::vector<std::byte> bytes;

  private:
    [[nodiscard]] bool untouched(std::int64_t row, std::int64_t first_column) const {
        const auto begin = bytes.begin() + (row * stride_ + first_column) * size_bytes(dtype_);
        return std::all_of(begin, bytes.begin() + (row + 1) * stride_ * size_bytes(dtype_),
                           [](std::byte b) { return b == std::byte{0xff}; });
    }
    template <class T>
    [[nodiscard]] T load(std::int64_t i) const {
        T value;
        std::memcpy(&value, bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        return value;
    }
    template <class T>
    void put(std::int64_t i, T value) {
        std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
    void store(std::int64_t i, double value) {
        if (dtype_ == Dtype::fp32) return put(i, static_cast<float>(value));
        if (dtype_ == Dtype::int8) return put(i, static_cast<std::int8_t>(value));
        if (dtype_ == Dtype::fp8_e4m3)
            return put(i, static_cast<std::uint8_t>(encoded(rounded(value, fp8_format), fp8_format)));
        const MinifloatFormat& format = dtype_ == Dtype::fp16 ? fp16_format : bf16_format;
        put(i, static_cast<std::uint16_t>(encoded(rounded(value, format), format)));
    }

    Dtype dtype_;
    std::int64_t columns_;
    std::int64_t stride_;
};

/// What is wrong with a result of [rows, columns], or empty: the first element that misses `wanted` by more
/// than is tolerated, or the relative error of all; or what was written behind a row.
[[nodiscard]] inline std::string fault_of(const HostTensor& result, std::span<const double> wanted,
                                          std::int64_t rows, std::int64_t columns,
                                          const Tolerance& tolerance) {
    double difference = 0;
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        if (!result.padding_untouched(r)) return "wrote behind row " + std::to_string(r);
        for (std::int64_t c = 0; c < columns; ++c) {
            const double want = wanted[static_cast<std::size_t>(r * columns + c)];
            const double got = result.at(r, c);
            const double off = std::abs(got - want);
            if (!(off <= tolerance.max_abs + tolerance.max_rel * std::abs(want))) {
                return "row " + std::to_string(r) + " column " + std::to_string(c) + ": " +
                       std::to_string(got) + " for " + std::to_string(want);
            }
            difference += off * off;
            total += want * want;
        }
    }
    const double error = std::sqrt(difference / std::max(total, 1e-30));
    return error <= tolerance.relative_l2 ? "" : "relative error " + std::to_string(error);
}

/// In four sums that do not wait for one another: the references of large cases take seconds.
inline double dot(const double* a, const double* b, std::int64_t count) {
    double sum0 = 0;
    double sum1 = 0;
    double sum2 = 0;
    double sum3 = 0;
    std::int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
        sum0 += a[k] * b[k];
        sum1 += a[k + 1] * b[k + 1];
        sum2 += a[k + 2] * b[k + 2];
        sum3 += a[k + 3] * b[k + 3];
    }
    for (; k < count; ++k) sum0 += a[k] * b[k];
    return (sum0 + sum1) + (sum2 + sum3);
}

inline double round_to(Dtype dtype, double value) {
    if (dtype == Dtype::fp32) return static_cast<float>(value);
    return rounded(value, dtype == Dtype::fp16 ? fp16_format : bf16_format);
}

/// The GPU, the compilers and the images that are kept, opened once for the whole test program.
class Bench {
  public:
    static Bench& get() {
        static Bench bench;
        return bench;
    }

    /// Their images, in their order: each is compiled once in a test program, side by side with the others,
    /// or found in the cache that HONE_TEST_CACHE names, which keeps them from one program to the next.
    std::vector<runtime::CompileCrew::JobPtr> compile(const Problem& problem,
                                                      std::span<const Candidate> candidates) {
        std::vector<runtime::CompileCrew::JobPtr> jobs;
        for (const Candidate& candidate : candidates) jobs.push_back(job_of(problem, candidate));
        for (const auto& job : jobs) {
            crew_.finish(*job, jobs);
            if (images_ && !job->packed.stored.empty() && !std::exchange(job->stored, true))
                images_->store_image(job->key, job->packed);
        }
        return jobs;
    }

    std::shared_ptr<const runtime::Driver> driver = runtime::Driver::load();
    runtime::PrimaryContext context{driver, 0};
    DeviceTraits traits = runtime::device_traits(*driver, 0);
    /// Whose looks are late (late_looks) in images that are asked for; HONE_TEST_LATE_WARP says one for all
    /// tests.
    std::optional<int> late_warp = named_late_warp();

  private:
    static std::optional<cache::Cache> opened_images() {
        const char* file = std::getenv("HONE_TEST_CACHE");
        if (file == nullptr) return std::nullopt;
        return cache::Cache::open(file);
    }
    static std::optional<int> named_late_warp() {
        const char* warp = std::getenv("HONE_TEST_LATE_WARP");
        return warp == nullptr ? std::nullopt : std::optional(std::stoi(warp));
    }
    [[nodiscard]] runtime::CompileCrew::JobPtr job_of(const Problem& problem, const Candidate& candidate) {
        cache::ImageKey key =
            runtime::candidate_image_key(problem, candidate, traits.arch(), nvrtc_->version());
        if (late_warp) key.options += fmt::format(" late_warp={}", *late_warp);
        const std::string name = runtime::key_text(key);
        if (const auto known = kept_.find(name); known != kept_.end()) return known->second;
        if (std::optional<cache::Image> image = images_ ? images_->image(key) : std::nullopt) {
            const auto job = std::make_shared<runtime::CompileJob>();
            job->key = key;
            job->state = runtime::CompileJob::State::done;
            job->image.cubin = std::move(image->cubin);
            return kept_[name] = job;
        }
        runtime::CompileRequest request = runtime::candidate_request(problem, candidate, traits.arch());
        if (late_warp) request.constants += late_looks(*late_warp);
        return crew_.add(key, std::move(request));
    }

    std::shared_ptr<const runtime::Nvrtc> nvrtc_ = runtime::Nvrtc::load();
    std::optional<cache::Cache> images_ = opened_images();
    std::map<std::string, runtime::CompileCrew::JobPtr> kept_;  ///< found there, by key
    runtime::CompileCrew crew_{nvrtc_, {.program = runtime::own_worker_program()}};
};

/// Compiles the candidate and launches it, `launches` times back to back, with a workspace of just the size
/// that it asks for, filled with NaN. `host` are the call's tensors, one an argument (workspaces: empty);
/// returns them as the launch left them. `in_place`: the first of the two arguments is the second one itself.
inline std::vector<HostTensor> run_on_gpu(const Problem& problem, const Candidate& candidate,
                                          const std::vector<HostTensor>& host,
                                          const std::array<Scalar, max_call_scalars>& scalars,
                                          std::optional<std::pair<std::size_t, std::size_t>> in_place = {},
                                          int launches = 1) {
    using namespace runtime;
    Bench& bench = Bench::get();
    const CompileCrew::JobPtr compiled = bench.compile(problem, {&candidate, 1}).front();
    if (compiled->error != nullptr) std::rethrow_exception(compiled->error);
    const Plan plan = candidate.variant->plan(problem, candidate.config, bench.traits);
    const LoadedPlan loaded(*bench.driver, compiled->image.cubin, plan);
    const Stream stream = create_stream(*bench.driver);
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    std::vector<HostTensor> results = host;
    std::vector<DeviceBuffer<std::byte>> buffers;
    Call call;
    call.scalars = scalars;
    for (std::size_t i = 0; i < host.size(); ++i) {
        if (arguments[i].role == Role::workspace)
            results[i].bytes.assign(static_cast<std::size_t>(plan.workspace_bytes), std::byte{0xff});
        buffers.emplace_back(*bench.driver, results[i].bytes.size());
        upload(*bench.driver, buffers.back().span(), results[i].bytes);
        call.pointers[i] = buffers.back().data();
    }
    if (in_place) call.pointers[in_place->first] = call.pointers[in_place->second];
    for (int i = 0; i < launches; ++i)
        REQUIRE(launch(*bench.driver, loaded, plan, call, stream.get()) == CUDA_SUCCESS);
    REQUIRE(bench.driver->cuStreamSynchronize(stream.get()) == CUDA_SUCCESS);
    for (std::size_t i = 0; i < host.size(); ++i)
        results[i].bytes = download(*bench.driver, buffers[i].span());
    if (in_place) results[in_place->first] = results[in_place->second];
    return results;
}

/// Which candidates have been tried, for the whole test program.
inline CandidateDraw& candidate_draw() {
    static CandidateDraw draw(Bench::get().traits);
    return draw;
}

/// The fallback and `each` configs of each variant, of those that `suits` takes; compiled. Problems with the
/// same static fields have the same images, all of them where they are allowed, so that few are seen at many
/// sizes.
inline std::vector<Candidate> sample(const Problem& problem, std::size_t each,
                                     const CandidateTest& suits = any_candidate) {
    std::vector<Candidate> chosen = candidate_draw().with_fallback(problem, each, suits);
    CHECK(!chosen.empty());
    Bench::get().compile(problem, chosen);
    return chosen;
}

/// The same of what suits a case's strides.
template <class Case>
std::vector<Candidate> sample_of(const Case& tried, std::size_t each) {
    return sample(tried.problem(), each, [&](const Candidate& candidate) { return tried.suits(candidate); });
}

/// `count` configs of one variant, drawn likewise; it must have some.
inline std::vector<Candidate> sample_variant(const Problem& problem, const Variant& variant,
                                             std::size_t count, const CandidateTest& suits = any_candidate) {
    std::vector<Candidate> chosen = candidate_draw().of_variant(problem, variant, count, suits);
    CHECK(!chosen.empty());
    Bench::get().compile(problem, chosen);
    return chosen;
}

struct TunableRange {
    std::string_view name;
    std::int64_t least = 0;
    std::int64_t most = 0;
};

/// `count` configs of each variant that has the tunables, with such values of them, drawn likewise; where
/// such a variant runs, there must be some.
inline std::vector<Candidate> sample_with(const Problem& problem, std::span<const TunableRange> wanted,
                                          std::size_t count) {
    const auto index_of = [](const Variant& variant, const TunableRange& range) {
        const std::span tunables(variant.tunables);
        return static_cast<std::size_t>(std::ranges::find(tunables, range.name, &Tunable::name) -
                                        tunables.begin());
    };
    const auto has_all = [&](const Variant& variant) {
        return std::ranges::all_of(wanted, [&](const TunableRange& range) {
            return index_of(variant, range) < variant.tunables.size();
        });
    };
    const auto suits = [&](const Candidate& candidate) {
        return std::ranges::all_of(wanted, [&](const TunableRange& range) {
            const std::int64_t value = candidate.config[index_of(*candidate.variant, range)];
            return value >= range.least && value <= range.most;
        });
    };
    std::vector<Candidate> chosen;
    bool exist = false;
    bool run = false;
    for (const Variant* variant : problem.family->variants) {
        if (!has_all(*variant)) continue;
        exist = true;
        if (!runs_on(*variant, Bench::get().traits)) continue;
        run = true;
        const std::vector<Candidate> drawn = candidate_draw().of_variant(problem, *variant, count, suits);
        chosen.insert(chosen.end(), drawn.begin(), drawn.end());
    }
    REQUIRE(exist);
    CHECK(chosen.empty() != run);
    Bench::get().compile(problem, chosen);
    return chosen;
}
inline std::vector<Candidate> sample_with(const Problem& problem, const TunableRange& wanted,
                                          std::size_t count) {
    return sample_with(problem, std::span(&wanted, 1), count);
}

}  // namespace hone::test
