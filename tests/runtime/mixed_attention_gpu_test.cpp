// A batch of prompts and single tokens over pages on the GPU, in one call of the operator, whose two launches
// run beside each other: against double arithmetic over the whole result, told of the mixture and not told,
// and the same bits again and again.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "hone/hone.h"
#include "kernel_templates/attention_prefill/declaration.h"
#include "runtime/operators/attention.h"
#include "tests/runtime/gpu_run.h"
#include "tests/runtime/paged_attention_call.h"

using namespace hone;
using namespace hone::test;

namespace {

constexpr std::int64_t heads = 8;
constexpr std::int64_t kv_heads = 2;
constexpr std::int64_t head_dim = 64;
constexpr double limit = 4e-3;  // relative, of bf16

struct Sequence {
    std::int64_t queries;
    std::int64_t keys;
};

/// Random queries, keys and values; pages in another order than that of their tokens, and one more than are
/// used.
class Batch {
  public:
    Batch(std::vector<Sequence> sequences, std::int64_t page_size)
        : sequences_(std::move(sequences)),
          page_size_(page_size),
          q_(made(tokens() * heads)),
          k_(made(pool_pages() * page_size * kv_heads)),
          v_(made(pool_pages() * page_size * kv_heads)) {}

    [[nodiscard]] std::int64_t count() const { return std::ssize(sequences_); }
    [[nodiscard]] std::int64_t tokens() const {
        return std::accumulate(sequences_.begin(), sequences_.end(), std::int64_t{0},
                               [](std::int64_t sum, const Sequence& s) { return sum + s.queries; });
    }
    [[nodiscard]] AttentionSizes sizes() const {
        AttentionSizes most{.batch = count()};
        for (const Sequence& s : sequences_) {
            most.q_len = std::max(most.q_len, s.queries);
            most.kv_len = std::max(most.kv_len, s.keys);
        }
        return most;
    }

    /// Results of as many calls, each into memory that was poisoned; `prompts` as in AttentionArgs.
    [[nodiscard]] std::vector<std::vector<std::byte>> results(const AttentionKernel& attention,
                                                              std::int64_t prompts, int calls) const {
        const runtime::Driver& driver = *Bench::get().driver;
        const runtime::Stream stream = runtime::create_stream(driver);
        const DeviceBytes q = on_device(q_.bytes), k = on_device(k_.bytes), v = on_device(v_.bytes);
        const PagedAttentionCall call(attention, sizes(), {starts(), keys(), page_table()}, pool_pages());
        std::vector<DeviceBytes> outs;
        for (int i = 0; i < calls; ++i)
            outs.push_back(on_device(std::vector<std::byte>(q_.bytes.size(), std::byte{0xff})));
        for (const DeviceBytes& out : outs) {
            AttentionArgs args = call.args(q, k, v, out, tokens());
            args.prompts = prompts;
            REQUIRE(attention.run(stream.get(), args, sizes()) == Status::ok);
        }
        runtime::check(driver, driver.cuStreamSynchronize(stream.get()), "the calls");
        std::vector<std::vector<std::byte>> found;
        for (const DeviceBytes& out : outs) found.push_back(runtime::download(driver, out.span()));
        return found;
    }

    /// Relative error over the whole result, largest over its rows; infinite where one is not a number.
    [[nodiscard]] double error_of(const std::vector<std::byte>& bytes) const {
        HostTensor results(Dtype::bf16, tokens() * heads, head_dim, head_dim);
        results.bytes = bytes;
        double worst = 0;
        std::int64_t row = 0;
        for (std::int64_t b = 0; b < count(); ++b) {
            for (std::int64_t i = 0; i < sequences_[static_cast<std::size_t>(b)].queries; ++i, ++row) {
                for (std::int64_t h = 0; h < heads; ++h) {
                    const std::vector<double> want = expected(b, i, row, h);
                    double difference = 0, total = 0;
                    for (std::int64_t c = 0; c < head_dim; ++c) {
                        const double x = want[static_cast<std::size_t>(c)];
                        difference += std::pow(results.at(row * heads + h, c) - x, 2);
                        total += x * x;
                    }
                    const double error = std::sqrt(difference / std::max(total, 1e-12));
                    worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
                }
            }
        }
        return worst;
    }

  private:
    [[nodiscard]] HostTensor made(std::int64_t rows) {
        HostTensor tensor(Dtype::bf16, rows, head_dim, head_dim);
        std::normal_distribution<double> normal;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < head_dim; ++c) tensor.set(r, c, normal(random_));
        return tensor;
    }
    [[nodiscard]] std::int64_t pages_each() const { return (sizes().kv_len + page_size_ - 1) / page_size_; }
    [[nodiscard]] std::int64_t pool_pages() const { return count() * pages_each() + 1; }
    /// 7 has no factor in common with the pools of this file.
    [[nodiscard]] std::int64_t page(std::int64_t sequence, std::int64_t number) const {
        return (sequence * pages_each() + number + 1) * 7 % pool_pages();
    }
    [[nodiscard]] std::vector<std::int32_t> starts() const {
        std::vector<std::int32_t> starts{0};
        for (const Sequence& s : sequences_)
            starts.push_back(starts.back() + static_cast<std::int32_t>(s.queries));
        return starts;
    }
    [[nodiscard]] std::vector<std::int32_t> keys() const {
        std::vector<std::int32_t> keys;
        for (const Sequence& s : sequences_) keys.push_back(static_cast<std::int32_t>(s.keys));
        return keys;
    }
    [[nodiscard]] std::vector<std::int32_t> page_table() const {
        std::vector<std::int32_t> table;
        for (std::int64_t b = 0; b < count(); ++b)
            for (std::int64_t i = 0; i < pages_each(); ++i)
                table.push_back(static_cast<std::int32_t>(page(b, i)));
        return table;
    }

    /// Query `i` of a sequence, which is row `row` of all, for one head.
    [[nodiscard]] std::vector<double> expected(std::int64_t sequence, std::int64_t i, std::int64_t row,
                                               std::int64_t head) const {
        const Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
        std::vector<double> sums(head_dim, 0.0);
        double total = 0;
        for (std::int64_t j = 0; j <= i + s.keys - s.queries; ++j) {
            const std::int64_t token = page(sequence, j / page_size_) * page_size_ + j % page_size_;
            const std::int64_t at = token * kv_heads + head / (heads / kv_heads);
            double score = 0;
            for (std::int64_t c = 0; c < head_dim; ++c) score += k_.at(at, c) * q_.at(row * heads + head, c);
            const double weight = std::exp(score / std::sqrt(head_dim));
            total += weight;
            for (std::int64_t c = 0; c < head_dim; ++c)
                sums[static_cast<std::size_t>(c)] += weight * v_.at(at, c);
        }
        for (double& sum : sums) sum /= std::max(total, 1e-300);
        return sums;
    }

    std::mt19937_64 random_{7};
    std::vector<Sequence> sequences_;
    std::int64_t page_size_;
    HostTensor q_, k_, v_;
};

void check_mixture(const std::vector<Sequence>& sequences, std::int64_t page_size, std::int64_t prompts) {
    Runtime engine({.use_cache = false});
    const AttentionKernel attention = engine.prepare(Attention{.heads = heads,
                                                               .kv_heads = kv_heads,
                                                               .head_dim = head_dim,
                                                               .max_batch = 16,
                                                               .max_q_len = 256,
                                                               .max_kv_len = 512,
                                                               .packed = true,
                                                               .page_size = page_size});
    const Batch batch(sequences, page_size);
    for (const std::int64_t known : {std::int64_t{0}, prompts}) {
        CAPTURE(known);
        const auto found = batch.results(attention, known, 20);
        CHECK(batch.error_of(found.front()) < 10 * limit);
        for (const auto& again : found) CHECK(again == found.front());
    }
}

/// The first one lets its successor start, takes 20 ms, and marks a word; the second one waits for its
/// predecessor, and says what it finds there.
constexpr std::string_view neighbours = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry in_front(.param .u64 word)
{
    .reg .pred %early;
    .reg .u64 %word, %begin, %now;
    griddepcontrol.launch_dependents;
    ld.param.u64 %word, [word];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %early, %now, 20000000;
    @%early bra again;
    st.global.u32 [%word], 1;
    ret;
}
.visible .entry behind(.param .u64 word, .param .u64 found)
{
    .reg .u32 %value;
    .reg .u64 %word, %found;
    griddepcontrol.wait;
    ld.param.u64 %word, [word];
    ld.param.u64 %found, [found];
    ld.volatile.global.u32 %value, [%word];
    st.global.u32 [%found], %value;
    ret;
}
)";

Plan neighbours_plan() {
    static constexpr KernelArg args[] = {pointer_arg(0, "word"), pointer_arg(1, "found")};
    static constexpr Kernel kernels[] = {{"in_front", std::span(args).first(1)}, {"behind", args}};
    Plan plan;
    plan.launch_count = 2;
    for (std::size_t i = 0; i < 2; ++i) {
        plan.launches[i] = Launch{.kernel = &kernels[i], .grid = {1, 1, 1}, .block = {1, 1, 1}};
        plan.launches[i].programmatic = i == 1;
    }
    return plan;
}

/// Whether what follows a launch of prompts, which stands beside another one, finds that one at its end.
/// None of the sequences is a prompt, so that the launch itself ends at once.
bool ends_behind(const Problem& problem, const Candidate& candidate, const Attention& described) {
    using namespace runtime;
    Bench& bench = Bench::get();
    const Driver& driver = *bench.driver;
    const CompileCrew::JobPtr compiled = bench.compile(problem, {&candidate, 1}).front();
    if (compiled->error != nullptr) std::rethrow_exception(compiled->error);
    Plan plan = candidate.variant->plan(problem, candidate.config, bench.traits);
    REQUIRE(plan.runs_beside);
    plan.launches[0].programmatic = true;
    const LoadedPlan prompts(driver, compiled->image.cubin, plan);
    Plan both = neighbours_plan();
    const LoadedPlan others(driver, std::as_bytes(std::span(neighbours.data(), neighbours.size() + 1)), both);

    const DeviceBytes zeros = on_device(std::vector<std::byte>(1 << 20));
    const auto none = reinterpret_cast<const std::int32_t*>(zeros.data());
    const DeviceBytes workspace = on_device(std::vector<std::byte>(8));
    Call call = prefill_call(described,
                             {.q = zeros.data(),
                              .k = zeros.data(),
                              .v = zeros.data(),
                              .out = zeros.data(),
                              .kv_lengths = none,
                              .q_starts = none,
                              .page_table = none,
                              .workspace = workspace.data(),
                              .pool_pages = 1,
                              .q_tokens = 1},
                             {described.max_batch, described.max_q_len, described.max_kv_len});
    call.scalars[attention_prefill::least_queries] = Scalar::of(std::int64_t{2});
    const DeviceIndices words(driver, {0, 0});
    Call of_words;
    of_words.pointers = {const_cast<std::int32_t*>(words.data()),
                         const_cast<std::int32_t*>(words.data() + 1)};

    const Stream stream = create_stream(driver);
    both.launch_count = 1;
    REQUIRE(launch(driver, others, both, of_words, stream.get()) == CUDA_SUCCESS);
    REQUIRE(launch(driver, prompts, plan, call, stream.get()) == CUDA_SUCCESS);
    both.first_launch = 1;
    both.launch_count = 2;
    REQUIRE(launch(driver, others, both, of_words, stream.get()) == CUDA_SUCCESS);
    check(driver, driver.cuStreamSynchronize(stream.get()), "the launches");
    std::array<std::int32_t, 2> found{};
    check(driver,
          driver.cuMemcpyDtoH(found.data(), reinterpret_cast<CUdeviceptr>(words.data()), sizeof(found)),
          "the words");
    CHECK(found[0] == 1);
    return found[1] == 1;
}

}  // namespace

TEST_CASE("prompts beside single tokens are right in pages of 16, told of the mixture or not") {
    check_mixture({{1, 400}, {1, 1}, {0, 30}, {1, 512}, {1, 77}, {150, 300}, {2, 90}, {256, 256}}, 16, 3);
}

TEST_CASE("prompts alone of several lengths are right in pages of 64, and in pages that threads copy") {
    check_mixture({{40, 300}, {2, 90}, {200, 200}}, 64, 3);
    check_mixture({{1, 300}, {2, 90}, {120, 200}}, 5, 2);
}

TEST_CASE("a launch of prompts beside another one ends behind it, also where it is tuned as a plain one") {
    if (!Bench::get().traits.has_programmatic_launch()) return;
    for (const int page_size : {16, 64}) {
        const Attention described{.heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = head_dim,
                                  .max_batch = 2,
                                  .max_q_len = 64,
                                  .max_kv_len = 64,
                                  .packed = true,
                                  .page_size = page_size};
        const Problem problem = *parse_problem(
            "attention_prefill dtype=bf16 causal=yes lengths=paged heads=2 kv_heads=1 head_dim=64 batch=2 "
            "q_len=64 kv_len=64 page_size=" +
            std::to_string(page_size));
        const Candidate candidate =
            parse_candidate(*problem.family,
                            "wgmma consumers=1 tile_n=64 stages=2 query_stages=1 blocks_per_sm=1 "
                            "query_in_registers=0 section_mib=4 dynamic=0 softmax_first=0 late_maxima=0 "
                            "programmatic=0")
                .value();
        if (!runs_on(*candidate.variant, Bench::get().traits)) return;
        REQUIRE(allowed(problem, candidate, Bench::get().traits));
        CAPTURE(page_size);
        CHECK(ends_behind(problem, candidate, described));
    }
}
