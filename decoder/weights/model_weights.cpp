#include "decoder/weights/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "decoder/error.h"
#include "decoder/weights/code_reader.h"
#include "decoder/weights/staging.h"
#include "hone/quantize.h"
#include "hone/quantize_on_device.h"
#include "runtime/system/parallel.h"

namespace hone::decoder {
namespace {

/// Bytes that a thread reads and copies at a time.
constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;
/// From the page cache each copies some 5 GB/s, and the bus takes what all of them bring.
constexpr int reading_threads = 8;

QuantizeWeights quantizing(const checkpoints::WeightFormat& format, Dtype dtype, std::int64_t rows,
                           std::int64_t columns) {
    return {.in = columns,
            .max_out = rows,
            .dtype = dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .scale_dtype = dtype};
}

}  // namespace

/// Lists first what the model needs, then makes it. Names are checked while they are listed.
class WeightLoader {
  public:
    WeightLoader(const Gpu& gpu, Runtime& runtime, const Description& model, const WeightSource& source,
                 const checkpoints::WeightFormat& format, const LoadProgress& progress, ModelWeights& weights)
        : gpu_(gpu),
          runtime_(runtime),
          description_(model),
          model_(model.model),
          source_(source),
          makes_codes_(format.format && !source.codes()),
          progress_(progress),
          weights_(weights),
          codes_(gpu, source),
          staging_(gpu, piece_bytes) {
        weights.code_format = source.codes() ? source.codes()->format : format;
    }

    void load() {
        refuse_codes_of_experts();
        check_all();
        check_room();
        load_tables();
        for (std::int64_t layer = 0; layer < model_.num_hidden_layers; ++layer)
            weights_.layers.push_back(load_layer(layer));
        weights_.final_norm = norm(std::string(names().final_norm));
        load_head();
        read_all(std::exchange(pieces_, {}));
        codes_.read(reading_threads, [this](std::int64_t bytes) { report(bytes); });
        gpu_.wait();
    }

  private:
    const TensorNames& names() const { return *description_.names; }

    std::string full(const std::string& name) const {
        const std::string prefixed = std::string(names().optional_prefix) + name;
        return !names().optional_prefix.empty() && source_.has(prefixed) ? prefixed : name;
    }
    std::string in_layer(std::int64_t layer, std::string_view name) const {
        return fmt::format("{}{}.{}", names().layer, layer, name);
    }

    WantedTensor matrix_tensor(const std::string& name, std::int64_t rows, std::int64_t columns) const {
        return {.name = full(name + ".weight"), .rows = rows, .columns = columns};
    }
    WantedTensor linear_tensor(const std::string& name, std::int64_t rows, std::int64_t columns) const {
        WantedTensor tensor = matrix_tensor(name, rows, columns);
        tensor.transposed = names().columns_first;
        return tensor;
    }
    WantedTensor vector_tensor(const std::string& name, std::string_view ending, std::int64_t size) const {
        return {
            .name = full(fmt::format("{}.{}", name, ending)), .rows = 1, .columns = size, .is_vector = true};
    }

    /// Before the first byte is read: a missing shard or a wrong config.json is told at once.
    void check_all() {
        checking_ = true;
        load_tables();
        for (std::int64_t layer = 0; layer < model_.num_hidden_layers; ++layer)
            static_cast<void>(load_layer(layer));
        static_cast<void>(norm(std::string(names().final_norm)));
        load_head();
        checking_ = false;
    }

    void refuse_codes_of_experts() const {
        if (!description_.has_experts() || !makes_codes_) return;
        throw DecoderError(fmt::format(
            "--format {}: {} has experts, whose operator takes weights of 16 and 32 bits alone; allowed: no "
            "--format",
            name(*weights_.code_format.format), model_.name));
    }

    void check_room() const {
        const std::int64_t free_bytes = runtime::free_memory_bytes(gpu_.driver());
        if (planned_bytes_ <= free_bytes) return;
        const std::string_view advice = weights_.code_format.format
                                            ? ""
                                            : "; codes of 8 or 4 bits take half or a quarter of 16 (--format "
                                              "fp8, --format w4a16)";
        throw DecoderError(fmt::format("the weights take {:.2f} GB, and the GPU has {:.2f} GB free{}",
                                       static_cast<double>(planned_bytes_) * 1e-9,
                                       static_cast<double>(free_bytes) * 1e-9, advice));
    }

    void load_tables() {
        weights_.embedding =
            values({matrix_tensor(std::string(names().embedding), model_.vocab_size, model_.hidden_size)});
        if (!names().positions.empty()) {
            weights_.positions = values({matrix_tensor(std::string(names().positions),
                                                       model_.max_position_embeddings, model_.hidden_size)});
        }
    }

    LayerWeights load_layer(std::int64_t layer) {
        const auto name = [&](std::string_view part) { return in_layer(layer, part); };
        const std::int64_t hidden = model_.hidden_size;
        const std::int64_t between = model_.intermediate_size;
        LayerWeights made;
        made.attention_norm = norm(name(names().attention_norm));
        made.qkv = linear(parts_of(layer, names().qkv, qkv_rows(), hidden));
        if (model_.qkv_bias) made.qkv_bias = values(biases_of(layer, names().qkv, qkv_rows()));
        if (model_.qk_norm) {
            made.q_norm = values({vector_tensor(name(names().q_norm), "weight", model_.head_dim)});
            made.k_norm = values({vector_tensor(name(names().k_norm), "weight", model_.head_dim)});
        }
        made.output = linear({linear_tensor(name(names().output), hidden, description_.q_width())});
        if (model_.output_bias)
            made.output_bias = values({vector_tensor(name(names().output), "bias", hidden)});
        made.network_norm = norm(name(names().network_norm));
        if (description_.has_norms_behind()) {
            made.behind_attention = norm(name(names().behind_attention));
            made.behind_network = norm(name(names().behind_network));
        }
        if (description_.has_experts(layer)) {
            load_experts(layer, made);
            return made;
        }
        load_up(layer, made);
        made.down = linear({linear_tensor(name(names().down), hidden, between)});
        require_alike_network(layer, made);
        if (model_.ffn_bias) made.down_bias = values({vector_tensor(name(names().down), "bias", hidden)});
        return made;
    }

    /// Rows of each tensor of queries, keys and values.
    std::vector<std::int64_t> qkv_rows() const {
        if (names().qkv.size() == 1) return {description_.qkv_width()};
        return {description_.q_width(), description_.kv_width(), description_.kv_width()};
    }

    std::vector<WantedTensor> parts_of(std::int64_t layer, const std::vector<std::string_view>& parts,
                                       const std::vector<std::int64_t>& rows, std::int64_t columns) const {
        std::vector<WantedTensor> tensors;
        for (std::size_t i = 0; i < parts.size(); ++i)
            tensors.push_back(linear_tensor(in_layer(layer, parts[i]), rows[i], columns));
        return tensors;
    }
    std::vector<WantedTensor> biases_of(std::int64_t layer, const std::vector<std::string_view>& parts,
                                        const std::vector<std::int64_t>& rows) const {
        std::vector<WantedTensor> tensors;
        for (std::size_t i = 0; i < parts.size(); ++i)
            tensors.push_back(vector_tensor(in_layer(layer, parts[i]), "bias", rows[i]));
        return tensors;
    }

    /// Gate and up are two weights, which may stand in one tensor.
    void load_up(std::int64_t layer, LayerWeights& made) {
        const std::int64_t between = model_.intermediate_size;
        const auto& parts = names().up;
        const std::string first = in_layer(layer, parts.front());
        if (!model_.gated_ffn) {
            made.up = linear({linear_tensor(first, between, model_.hidden_size)});
            if (model_.ffn_bias) made.up_bias = values({vector_tensor(first, "bias", between)});
            return;
        }
        if (parts.size() == 1) {
            const WantedTensor both = linear_tensor(first, 2 * between, model_.hidden_size);
            made.gate = linear({both}, 0, between);
            made.up = linear({both}, between, between);
            return;
        }
        made.gate = linear({linear_tensor(first, between, model_.hidden_size)});
        made.up = linear({linear_tensor(in_layer(layer, parts[1]), between, model_.hidden_size)});
    }

    void load_experts(std::int64_t layer, LayerWeights& made) {
        const std::int64_t hidden = model_.hidden_size;
        const std::int64_t width = description_.expert_width();
        made.router = linear({linear_tensor(in_layer(layer, names().router), model_.experts, hidden)});
        const std::int64_t before = weights_.bytes_a_step_;
        made.gate = of_experts(layer, names().expert_up[0], width, hidden);
        made.up = of_experts(layer, names().expert_up[1], width, hidden);
        made.down = of_experts(layer, names().expert_down, hidden, width);
        weights_.expert_bytes_ += weights_.bytes_a_step_ - before;
    }

    /// Of all experts one after the other.
    MatrixWeight of_experts(std::int64_t layer, std::string_view name, std::int64_t rows,
                            std::int64_t columns) {
        std::vector<WantedTensor> tensors;
        for (std::int64_t expert = 0; expert < model_.experts; ++expert) {
            const std::string part = fmt::format("{}.{}.{}", names().experts, expert, name);
            tensors.push_back(linear_tensor(in_layer(layer, part), rows, columns));
        }
        const auto is_coded = [&](const WantedTensor& tensor) {
            return source_.coded(tensor.name) != nullptr;
        };
        if (std::ranges::any_of(tensors, is_coded)) {
            throw DecoderError(fmt::format(
                "{} has codes, and the operator of experts takes weights of 16 and 32 bits alone; allowed: a "
                "checkpoint whose experts are numbers (hone quantize --skip experts leaves them out)",
                std::ranges::find_if(tensors, is_coded)->name));
        }
        return linear(tensors);
    }

    /// The operator of a network takes codes of all its weights or of none.
    void require_alike_network(std::int64_t layer, const LayerWeights& made) const {
        if (made.up.is_coded == made.down.is_coded &&
            (!model_.gated_ffn || made.gate.is_coded == made.up.is_coded))
            return;
        throw DecoderError(fmt::format(
            "the feed-forward network of layer {} has codes of some of its weights and numbers of others; "
            "the "
            "decoder takes codes of all or of none (hone quantize --skip mlp leaves all of them out)",
            layer));
    }

    void load_head() {
        const WantedTensor own =
            matrix_tensor(std::string(names().head), model_.vocab_size, model_.hidden_size);
        const bool makes_codes = makes_codes_ && weights_.code_format.lm_head;
        const bool has_codes = source_.coded(own.name) != nullptr;
        if (model_.tied_head && !makes_codes && !has_codes) {
            weights_.head = {.rows = model_.vocab_size,
                             .columns = model_.hidden_size,
                             .values = weights_.embedding,
                             .bytes = model_.vocab_size * model_.hidden_size * width()};
            if (!checking_) weights_.bytes_a_step_ += weights_.head.bytes;
        } else {
            const WantedTensor table =
                matrix_tensor(std::string(names().embedding), model_.vocab_size, model_.hidden_size);
            const bool takes_table = model_.tied_head && !has_codes;
            weights_.head = made_of({takes_table ? table : own}, 0, model_.vocab_size, makes_codes);
        }
        if (model_.head_bias) {
            weights_.head_bias =
                values({vector_tensor(std::string(names().head), "bias", model_.vocab_size)});
        }
    }

    NormWeight norm(const std::string& name) {
        WantedTensor weight = vector_tensor(name, "weight", model_.hidden_size);
        weight.less_one = names().norms_less_one;
        NormWeight made{.weight = values({weight})};
        if (model_.norm_bias) made.bias = values({vector_tensor(name, "bias", model_.hidden_size)});
        return made;
    }

    std::int64_t width() const { return description_.element_bytes(); }

    /// The tensors one after the other, in the model's dtype.
    const void* values(const std::vector<WantedTensor>& tensors) {
        std::int64_t elements = 0;
        for (const WantedTensor& tensor : tensors) elements += tensor.elements();
        return read_later(tensors, 0, elements, allocate(elements * width()));
    }

    MatrixWeight linear(const std::vector<WantedTensor>& tensors) {
        std::int64_t rows = 0;
        for (const WantedTensor& tensor : tensors) rows += tensor.rows;
        return linear(tensors, 0, rows);
    }
    /// `rows` rows from the `first` on.
    MatrixWeight linear(const std::vector<WantedTensor>& tensors, std::int64_t first, std::int64_t rows) {
        return made_of(tensors, first, rows, makes_codes_);
    }

    MatrixWeight made_of(const std::vector<WantedTensor>& tensors, std::int64_t first, std::int64_t rows,
                         bool makes_codes) {
        const std::int64_t columns = tensors.front().columns;
        const bool has_codes = are_coded(source_, tensors);
        const std::int64_t before = weights_.bytes_a_step_;
        MatrixWeight made{.rows = rows, .columns = columns, .is_coded = makes_codes || has_codes};
        if (has_codes) {
            made.packed = stored(tensors, first, rows);
        } else if (makes_codes) {
            made.packed = quantized(tensors, first, rows, columns);
        } else {
            made.values =
                read_later(tensors, first * columns, rows * columns, allocate(rows * columns * width()));
            if (!checking_) weights_.bytes_a_step_ += rows * columns * width();
        }
        made.bytes = weights_.bytes_a_step_ - before;
        return made;
    }

    /// Codes that the source has, which are read when all places are known.
    QuantizedWeightPointers stored(const std::vector<WantedTensor>& tensors, std::int64_t first,
                                   std::int64_t rows) {
        const CodedRows wanted = coded_rows(source_, tensors, first, rows);
        const PackedBytes bytes = bytes_of_rows(wanted.shape, rows);
        const CodesOnGpu to{.codes = allocate(bytes.codes),
                            .scales = allocate(bytes.scales),
                            .zeros = bytes.zeros > 0 ? allocate(bytes.zeros) : CodesOnGpu::Span{}};
        if (checking_) {
            all_bytes_ += bytes.all();
            return {};
        }
        codes_.add(wanted, to);
        weights_.bytes_a_step_ += bytes.all();
        return {.codes = to.codes.data(), .scales = to.scales.data(), .zeros = to.zeros.data()};
    }

    QuantizedWeightPointers quantized(const std::vector<WantedTensor>& tensors, std::int64_t first,
                                      std::int64_t rows, std::int64_t columns) {
        const QuantizeWeights how = quantizing(weights_.code_format, model_.dtype, rows, columns);
        const PackedShape shape{.format = how.format,
                                .out = rows,
                                .in = columns,
                                .group = how.group,
                                .zeros = how.zeros,
                                .scale_dtype = how.scale_dtype};
        check(shape);
        const std::int64_t codes = packed_bytes(how.format, rows, columns);
        if (checking_) {
            planned_bytes_ += codes + scale_bytes(shape) + zero_count(shape);
            static_cast<void>(pieces_of(tensors, first * columns, rows * columns, {}));
            return {};
        }
        const std::int64_t dense = rows * columns * width();
        if (static_cast<std::int64_t>(scratch_.bytes()) < dense)
            scratch_ = Bytes(gpu_.driver(), static_cast<std::size_t>(dense));
        read_all(pieces_of(tensors, first * columns, rows * columns, scratch_.span()));
        const auto part = [&](std::int64_t bytes) { return bytes > 0 ? allocate(bytes).data() : nullptr; };
        const QuantizeWeightsArgs args{.weight = scratch_.data(),
                                       .codes = part(codes),
                                       .scales = part(scale_bytes(shape)),
                                       .zeros = part(zero_count(shape)),
                                       .workspace = workspace(how, rows)};
        quantize_on_device(runtime_, how, args, rows, gpu_.stream());
        weights_.bytes_a_step_ += codes + scale_bytes(shape) + zero_count(shape);
        return {.codes = args.codes, .scales = args.scales, .zeros = args.zeros};
    }

    void* workspace(const QuantizeWeights& how, std::int64_t rows) {
        const auto bytes = static_cast<std::size_t>(quantize_on_device_workspace(runtime_, how, rows));
        if (workspace_.bytes() < bytes) workspace_ = Bytes(gpu_.driver(), bytes);
        return bytes == 0 ? nullptr : workspace_.data();
    }

    runtime::DeviceSpan<std::byte> allocate(std::int64_t bytes) {
        if (checking_) {
            planned_bytes_ += bytes;
            return {};
        }
        weights_.memory_.emplace_back(gpu_.driver(), static_cast<std::size_t>(bytes));
        weights_.bytes_ += bytes;
        return weights_.memory_.back().span();
    }

    /// Elements of a tensor that a thread reads at once, and where on the GPU they go.
    struct Piece {
        std::shared_ptr<const WantedTensor> tensor;
        std::int64_t first;
        std::int64_t count;
        runtime::DeviceSpan<std::byte> to;
    };

    /// Elements of the tensors, as if they were one, on their way to the GPU; while names are checked, none.
    std::vector<Piece> pieces_of(const std::vector<WantedTensor>& tensors, std::int64_t first,
                                 std::int64_t count, runtime::DeviceSpan<std::byte> to) {
        if (checking_) {
            for (const WantedTensor& tensor : tensors) source_.check(tensor);
            all_bytes_ += count * width();
            return {};
        }
        std::vector<Piece> pieces;
        std::int64_t begin = 0;  // of the tensor, among all elements
        for (const WantedTensor& tensor : tensors) {
            const auto shared = std::make_shared<const WantedTensor>(tensor);
            const std::int64_t from = std::max(first, begin);
            const std::int64_t end = std::min(first + count, begin + tensor.elements());
            const std::int64_t step = piece_bytes / width();
            for (std::int64_t at = from; at < end; at += step) {
                const std::int64_t elements = std::min(step, end - at);
                pieces.push_back({shared, at - begin, elements,
                                  to.subspan(static_cast<std::size_t>((at - first) * width()),
                                             static_cast<std::size_t>(elements * width()))});
            }
            begin += tensor.elements();
        }
        return pieces;
    }

    /// Pieces of all tensors are read together when all places are known: threads wait once, not a tensor.
    const void* read_later(const std::vector<WantedTensor>& tensors, std::int64_t first, std::int64_t count,
                           runtime::DeviceSpan<std::byte> to) {
        std::ranges::move(pieces_of(tensors, first, count, to), std::back_inserter(pieces_));
        return to.data();
    }

    void read_all(const std::vector<Piece>& pieces) {
        runtime::for_each_piece(static_cast<std::int64_t>(pieces.size()), reading_threads,
                                [&](std::int64_t i) { read(pieces[static_cast<std::size_t>(i)]); });
    }

    void read(const Piece& piece) {
        const runtime::CurrentContext current(gpu_.driver(), gpu_.context());
        staging_.send(piece.to, [&](std::span<std::byte> bytes) {
            source_.read(*piece.tensor, model_.dtype, piece.first, piece.count, bytes);
        });
        report(static_cast<std::int64_t>(piece.to.count));
    }

    void report(std::int64_t bytes) {
        const std::lock_guard lock(report_mutex_);
        done_bytes_ += bytes;
        if (progress_) progress_(done_bytes_, all_bytes_);
    }

    const Gpu& gpu_;
    Runtime& runtime_;
    const Description& description_;
    const models::Model& model_;
    const WeightSource& source_;
    bool makes_codes_;  ///< of the numbers of linear layers
    const LoadProgress& progress_;
    ModelWeights& weights_;
    CodeReader codes_;
    Staging staging_;
    std::vector<Piece> pieces_;  ///< that are not read yet
    bool checking_ = false;      ///< names and shapes alone; nothing is made
    Bytes scratch_;              ///< of the weight that codes are made of
    Bytes workspace_;
    std::int64_t planned_bytes_ = 0;  ///< of the GPU's memory
    std::int64_t all_bytes_ = 0;      ///< that are read
    std::int64_t done_bytes_ = 0;
    std::mutex report_mutex_;
};

ModelWeights::ModelWeights(const Gpu& gpu, Runtime& runtime, const Description& model,
                           const WeightSource& source, const checkpoints::WeightFormat& format,
                           const LoadProgress& progress) {
    WeightLoader(gpu, runtime, model, source, format, progress, *this).load();
}

}  // namespace hone::decoder
