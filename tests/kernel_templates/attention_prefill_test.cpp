#include <doctest/doctest.h>

#include <random>

#include "tests/kernel_templates/attention_prefill_cases.h"

using namespace hone;
using namespace hone::attention_prefill_cases;

namespace {

/// Pairs of a query and a key that it sees, one by one.
double count_pairs(const attention_prefill::AttentionProblem& p) {
    double pairs = 0;
    for (std::int64_t i = 0; i < p.q_len; ++i) {
        const std::int64_t own = i + p.kv_len - p.q_len;
        for (std::int64_t j = 0; j < p.kv_len; ++j)
            pairs += (!p.causal || j <= own) && (p.window == 0 || j > own - p.window) ? 1 : 0;
    }
    return pairs;
}

}  // namespace

TEST_CASE("the fields of attention_prefill stand in their order, with their defaults") {
    CHECK(
        to_string(problem_of("dtype=bf16 heads=32 kv_heads=8 head_dim=128 batch=1 q_len=512 kv_len=600")) ==
        "attention_prefill dtype=bf16 causal=no window=0 softcap=no lse=no lengths=none heads=32 kv_heads=8 "
        "head_dim=128 batch=1 q_len=512 kv_len=600");
}

TEST_CASE("problems of attention_prefill without pages do not speak of them, those with pages do") {
    const std::string text =
        "attention_prefill dtype=bf16 causal=no window=0 softcap=no lse=no lengths=kv page_size=16 heads=32 "
        "kv_heads=8 head_dim=128 batch=1 q_len=512 kv_len=600";
    CHECK(to_string(*parse_problem(text)) == text);
    CHECK(problem_of("dtype=bf16 heads=8 kv_heads=8 head_dim=64 batch=1 q_len=17 page_size=0") ==
          problem_of("dtype=bf16 heads=8 kv_heads=8 head_dim=64 batch=1 q_len=17"));
}

TEST_CASE("a sequence of attention_prefill has as many keys as queries where the text does not say") {
    CHECK(problem_of("dtype=bf16 heads=8 kv_heads=8 head_dim=64 batch=1 q_len=17") ==
          problem_of("dtype=bf16 heads=8 kv_heads=8 head_dim=64 batch=1 q_len=17 kv_len=17"));
}

TEST_CASE("attention_prefill refuses what it cannot mean, in words") {
    const auto error_of = [](const std::string& text) {
        std::string error;
        CHECK_FALSE(parse_problem("attention_prefill dtype=bf16 " + text, &error).has_value());
        return error;
    };
    const std::string size = " batch=1 q_len=16 kv_len=16";
    CHECK(error_of("heads=10 kv_heads=4 head_dim=64" + size).find("no multiple of kv_heads=4") !=
          std::string::npos);
    CHECK(error_of("window=64 heads=8 kv_heads=8 head_dim=64" + size).find("needs causal=yes") !=
          std::string::npos);
    CHECK(error_of("heads=8 kv_heads=8 head_dim=257" + size).find("1 to 256") != std::string::npos);
    CHECK(error_of("lengths=paged heads=8 kv_heads=8 head_dim=64" + size).find("page_size=0") !=
          std::string::npos);
    CHECK(error_of("lengths=cumulative page_size=16 heads=8 kv_heads=8 head_dim=64" + size)
              .find("allowed with lengths=cumulative: 0") != std::string::npos);
    CHECK(error_of("heads=8 kv_heads=8 head_dim=64 batch=1 q_len=16 kv_len=0").find("kv_len") !=
          std::string::npos);
    CHECK(
        error_of("heads=1024 kv_heads=8 head_dim=1 batch=65536 q_len=1000 kv_len=1").find("batch * heads") !=
        std::string::npos);
    CHECK(error_of("heads=8 kv_heads=8 head_dim=256 batch=1024 q_len=1 kv_len=16777216").find("of k") !=
          std::string::npos);
}

TEST_CASE("operations of attention_prefill count the pairs that see each other, and bytes each tensor once") {
    std::mt19937 random(5);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (int i = 0; i < 300; ++i) {
        const bool causal = draw(0, 1) == 1;
        const std::string window = std::to_string(causal && draw(0, 1) == 1 ? draw(1, 90) : 0);
        const Problem problem = problem_of(
            "dtype=bf16 heads=6 kv_heads=2 head_dim=10 causal=" + std::string(causal ? "yes" : "no") +
            " window=" + window + " batch=3 q_len=" + std::to_string(draw(1, 80)) +
            " kv_len=" + std::to_string(draw(1, 80)));
        INFO(to_string(problem));
        const attention_prefill::AttentionProblem p(problem);
        const Work work = problem.family->work(problem);
        CHECK(work.flops == 4.0 * count_pairs(p) * 3 * 6 * 10);
        CHECK(work.bytes == 2.0 * 10 * 3 * static_cast<double>(2 * 6 * p.q_len + 2 * 2 * p.kv_len));
    }
}

TEST_CASE("lengths of attention_prefill when tuning are within the call's, packed tensors without gaps") {
    const auto arguments_of = [](const std::string& text) {
        const Problem problem = problem_of("dtype=bf16 heads=4 kv_heads=2 head_dim=64 lse=yes " + text);
        return problem.family->arguments(problem);
    };
    using namespace attention_prefill;
    const std::vector<Argument> kv = arguments_of("lengths=kv batch=5 q_len=100 kv_len=333");
    const double last = kv[kv_lengths].fill_offset + 4 * kv[kv_lengths].fill_scale;
    CHECK(kv[kv_lengths].fill_offset == 333);
    CHECK(kv[kv_lengths].fill_scale < 0);
    CHECK(last >= 100);
    CHECK_FALSE(kv[q_starts].present);
    const std::vector<Argument> packed = arguments_of("lengths=cumulative batch=5 q_len=100 kv_len=333");
    CHECK(packed[q].shape == std::array<std::int64_t, 4>{1, 500, 4, 64});
    CHECK(packed[k].shape == std::array<std::int64_t, 4>{1, 1665, 2, 64});
    CHECK(packed[attention_prefill::lse].shape == std::array<std::int64_t, 4>{1, 4, 500, 1});
    CHECK(packed[kv_starts].fill_offset + 5 * packed[kv_starts].fill_scale == 1665);
    CHECK_FALSE(packed[kv_lengths].present);
}

TEST_CASE("pages of attention_prefill are shuffled when tuning, sequences over them differ in length") {
    using namespace attention_prefill;
    const Problem problem = problem_of(
        "dtype=bf16 heads=4 kv_heads=2 head_dim=64 lengths=paged page_size=16 batch=5 q_len=100 kv_len=333");
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    CHECK(arguments[q].shape == std::array<std::int64_t, 4>{1, 500, 4, 64});
    CHECK(arguments[k].shape == std::array<std::int64_t, 4>{5 * 21, 16, 2, 64});
    CHECK(arguments[page_table].shape == std::array<std::int64_t, 4>{1, 5, 21, 1});
    CHECK(arguments[page_table].fill == Fill::permutation);
    CHECK(arguments[kv_lengths].present);
    CHECK(arguments[kv_lengths].fill_scale < 0);
    CHECK(arguments[q_starts].present);
    CHECK_FALSE(arguments[kv_starts].present);
}

TEST_CASE("pages, scales and sinks come behind all other parameters of attention_prefill's kernels") {
    const Family& family = *find_family("attention_prefill");
    for (const Variant* variant : family.variants) {
        for (const Kernel& kernel : variant->kernels) {
            const auto& last = attention_prefill::later_args;
            REQUIRE(kernel.args.size() > std::size(last));
            for (std::size_t i = 0; i < std::size(last); ++i) {
                const std::string name = last[i].name;
                CHECK(kernel.args[kernel.args.size() - std::size(last) + i].name == name);
                CHECK(std::ranges::count(kernel.args, name, &KernelArg::name) == 1);
            }
        }
    }
}

TEST_CASE("every chip from sm_75 has a default for pages of any size") {
    for (const char* page_size : {"1", "16", "24", "256", "65536"}) {
        for (const char* dtype : {"bf16", "fp32"}) {
            const Problem problem = problem_of(std::string("dtype=") + dtype +
                                               " causal=yes lengths=paged page_size=" + page_size +
                                               " heads=8 kv_heads=2 head_dim=128 batch=4 q_len=512");
            for (const Arch arch : supported_archs())
                CHECK(fallback(problem, *representative_device(arch)).has_value());
        }
    }
}
