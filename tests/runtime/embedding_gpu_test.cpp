// Every variant of embedding on the GPU against arithmetic on the host: dtypes, types of index, odd sizes,
// strides, ids that no table has.
#include <doctest/doctest.h>

#include <random>

#include "kernel_templates/embedding/rows_plan.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using embedding::EmbeddingProblem;

constexpr float scale = 1.75F;

class EmbeddingCase {
  public:
    /// `padding`: elements between rows.
    EmbeddingCase(const std::string& text, std::int64_t padding)
        : problem_(*parse_problem("embedding " + text)), p_(problem_), stride_(p_.hidden + padding) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.hidden * 31 + p_.tokens));
        std::normal_distribution<double> normal(0.0, 1.0);
        for (const Argument& argument : problem_.family->arguments(problem_)) {
            const bool is_index = argument.shape[3] == 1 && argument.role == Role::input;
            HostTensor tensor(argument.dtype, argument.present ? argument.shape[2] : 0, argument.shape[3],
                              is_index ? 1 : stride_);
            for (std::int64_t r = 0; argument.present && r < argument.shape[2]; ++r) {
                if (is_index)
                    tensor.set_index(
                        r, index(argument.name == "ids" ? p_.vocabulary : p_.position_rows, random));
                else if (argument.role == Role::weight)
                    for (std::int64_t c = 0; c < p_.hidden; ++c) tensor.set(r, c, normal(random));
            }
            host_.push_back(std::move(tensor));
        }
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] std::string fault(const Candidate& candidate) const {
        const Scalar stride = Scalar::of(stride_);
        const std::vector<HostTensor> results =
            run_on_gpu(problem_, candidate, host_,
                       {Scalar::of(p_.tokens), Scalar::of(p_.vocabulary), Scalar::of(p_.position_rows),
                        stride, stride, stride, Scalar::of(scale)});
        const Tolerance tolerance = problem_.family->tolerance(problem_, embedding::out);
        return fault_of(results[embedding::out], wanted_, p_.tokens, p_.hidden, tolerance);
    }

  private:
    /// Now and then one that the table does not have.
    std::int64_t index(std::int64_t count, std::mt19937_64& random) {
        const auto wrong = random() % 20;
        const std::int64_t found = wrong == 0   ? -1
                                   : wrong == 1 ? count
                                                : static_cast<std::int64_t>(random()) & (count - 1);
        indices_.push_back(found);
        return found;
    }

    void expect() {
        const auto count = static_cast<std::size_t>(p_.tokens);
        for (std::size_t t = 0; t < count; ++t) {
            const std::int64_t id = indices_[t];
            const std::int64_t position = p_.positions ? indices_[count + t] : 0;
            const bool exists = id >= 0 && id < p_.vocabulary && position >= 0 && position < p_.position_rows;
            for (std::int64_t c = 0; c < p_.hidden; ++c) {
                double value = exists ? host_[embedding::table].at(id, c) : 0.0;
                if (p_.scale) value *= static_cast<double>(scale);
                if (p_.positions && exists) value += host_[embedding::position_table].at(position, c);
                wanted_.push_back(round_to(p_.dtype, value));
            }
        }
    }

    Problem problem_;
    EmbeddingProblem p_;
    std::int64_t stride_;
    std::vector<std::int64_t> indices_;
    std::vector<HostTensor> host_;
    std::vector<double> wanted_;
};

void check_problem(const std::string& text, std::size_t each, std::int64_t padding = 0) {
    const EmbeddingCase embedding(text + " vocabulary=1024 position_rows=64", padding);
    const auto suits = [&](const Candidate& candidate) {
        return padding % candidate.variant->access_elements(embedding.problem(), candidate.config) == 0;
    };
    for (const Candidate& candidate : test::sample(embedding.problem(), each, suits)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(embedding.fault(candidate) == "");
    }
}

}  // namespace

TEST_CASE("rows are right in every dtype, with every type of index, scale and positions") {
    for (const char* dtype : {"fp32", "fp16", "bf16"}) {
        for (const char* index : {"int32", "int64"}) {
            for (const char* rest : {"", "scale=yes ", "positions=yes ", "scale=yes positions=yes "}) {
                check_problem(
                    std::string("dtype=") + dtype + " index=" + index + " " + rest + "hidden=2304 tokens=37",
                    1);
            }
        }
    }
}

TEST_CASE("rows are right at odd, short and long hidden sizes, for one token and for many") {
    for (const char* hidden : {"1", "2", "33", "127", "768", "4096", "16384"})
        check_problem(std::string("dtype=bf16 hidden=") + hidden + " tokens=9", 3);
    for (const char* tokens : {"1", "2", "131", "5000"})
        check_problem(std::string("dtype=fp16 positions=yes hidden=64 tokens=") + tokens, 3);
}

TEST_CASE("rows with a stride are right, and what stands between the rows is not touched") {
    for (const std::int64_t padding : {8, 64, 1}) {
        check_problem("dtype=bf16 hidden=1024 tokens=9", 3, padding);
        check_problem("dtype=fp32 scale=yes positions=yes hidden=333 tokens=40", 3, padding);
    }
}
