// A model on a GPU, from its folder to the first step: driver, runtime, weights, operators, cache.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "decoder/forward/forward.h"

namespace hone::decoder {

struct ModelOptions {
    std::filesystem::path folder;            ///< of a Hugging Face model
    std::optional<models::Model> made_up{};  ///< in place of a folder: a model of these shapes, for its speed
    std::optional<Description> description{};  ///< the folder's, where it has been read: describe_folder()
    /// What codes are made of linear layers: its format, group, zeros and lm_head count. Of a folder with
    /// codes: what these have to be.
    std::optional<checkpoints::QuantizeRequest> quantize{};
    /// fp8: keys and values are cached as codes, worth code times the checkpoint's scale, or 1: those up to
    /// 448 scales in size, rounded to 4 bits; larger ones become the largest.
    KvDtype kv_dtype = KvDtype::same;
    int device = 0;
    std::int64_t max_sequences = 16;  ///< that are computed together
    std::int64_t max_context = 0;     ///< tokens of a text; 0: as many as the model knows, at most 8192
    std::int64_t max_step_tokens = 2048;
    double memory_share = 0.9;  ///< of what is free, for the cache of keys and values at most
    /// What the GPU may take for a step, also for one that is measured: where one has not ended by then it
    /// hangs.
    std::chrono::milliseconds longest_step = usual_longest_step;
    RuntimeOptions runtime{};
    /// Whoever puts other kernels into the steps may need images that another process has removed meanwhile.
    bool may_compile_later = false;
    /// Sequences, at most, whose steps can be told to share norms or not: Forward::share_norms().
    std::int64_t told_sequences = 0;
    LoadProgress on_weights{};
};

/// How long it took until a model was ready, in seconds.
struct StartTimes {
    double weights_s = 0;  ///< driver, runtime and weights
    double kernels_s = 0;  ///< preparing operators, and capturing the steps' graphs
};

class RunningModel {
  public:
    /// Throws DecoderError, ModelError, CheckpointError, Error and CudaError: what cannot be read, run, or
    /// does not fit, with what would. EngineFailure: the GPU hangs.
    explicit RunningModel(const ModelOptions& options);

    RunningModel(const RunningModel&) = delete;
    RunningModel& operator=(const RunningModel&) = delete;
    /// Gives back what it has on the GPU, unless that hangs.
    ~RunningModel();

    [[nodiscard]] const Gpu& gpu() const { return parts_->gpu; }
    [[nodiscard]] Forward& forward() { return *parts_->forward; }
    [[nodiscard]] const Description& description() const { return parts_->description; }
    [[nodiscard]] const ModelWeights& weights() const { return *parts_->weights; }
    [[nodiscard]] const Capacity& capacity() const { return parts_->capacity; }
    [[nodiscard]] const Runtime& runtime() const { return parts_->runtime; }
    [[nodiscard]] const StartTimes& start_times() const { return parts_->start_times; }
    /// Bytes that a step of one token has to read at a text of so many tokens: weights, keys and values.
    [[nodiscard]] std::int64_t floor_bytes(std::int64_t sequences, std::int64_t kv_len) const;

  private:
    struct Read;
    struct Parts {
        Parts(const ModelOptions& options, const Read& read);
        void load(const ModelOptions& options, const Read& read);
        [[nodiscard]] Capacity capacity_for(const ModelOptions& options) const;

        using Clock = std::chrono::steady_clock;
        Clock::time_point begun = Clock::now();
        Gpu gpu;
        Runtime runtime;
        Description description;
        std::unique_ptr<ModelWeights> weights;
        StartTimes start_times;
        Capacity capacity;
        std::unique_ptr<Forward> forward;
        std::unique_ptr<Parts> left_before;  ///< of another model, where the GPU hangs
    };

    void leave_where_it_hangs() noexcept;

    std::unique_ptr<Parts> parts_;
};

}  // namespace hone::decoder
