#include "decoder/weights/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "decoder/error.h"
#include "decoder/weights/code_reader.h"
#include "decoder/weights/staging.h"
#include "hone/quantize.h"
#include "hone/quantize_on_device.h"
#include "runtime/operators/quantize_on_device.h"
#include "runtime/system/parallel.h"

namespace hone::decoder {
namespace {

/// Bytes that a thread reads and copies at a time.
constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;
/// From the page cache each copies some 5 GB/s, and the bus takes what all of them bring.
constexpr int reading_threads = 8;
/// Bytes of a weight that codes are made of at a time, where it is made of several tensors.
constexpr std::int64_t scratch_bytes = std::int64_t{256} << 20;

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
          staging_(gpu, piece_bytes),
          codes_(gpu, source, staging_) {
        weights.code_format = source.codes() ? source.codes()->format : format;
    }

    void load() {
        check_all();
        check_room();
        load_tables();
        for (std::int64_t layer = 0; layer < model_.num_hidden_layers; ++layer)
            weights_.layers.push_back(load_layer(layer));
        weights_.final_norm = norm(std::string(names().final_norm));
        load_head();
        read_all(std::exchange(pieces_, {}));
        codes_.read(reading_threads, [this](std::int64_t bytes) { report(bytes); });
        gpu_.wait_for_load();
    }

  private:
    /// Rows of a tensor.
    struct Rows {
        const WantedTensor* tensor;
        std::int64_t first;
        std::int64_t count;
    };

    const TensorNames& names() const { return *description_.names; }

    /// As the source calls it. A language model beside others has their writers' names in front, those of
    /// transformers 4 or 5.
    std::string full(const std::string& name) const {
        const std::string prefixed = std::string(names().optional_prefix) + name;
        const std::string_view within = prefixed;
        for (const std::string& known :
             {prefixed, "language_model." + prefixed,
              within.starts_with("model.") ? fmt::format("model.language_model.{}", within.substr(6))
                                           : name}) {
            if (source_.has(known)) return known;
        }
        return name;
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
        weights_.unread = source_.beside(wanted_);
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
            const std::int64_t rows = model_.max_position_embeddings;
            const std::int64_t first = names().first_position;
            weights_.positions = values(
                matrix_tensor(std::string(names().positions), first + rows, model_.hidden_size), first, rows);
        }
    }

    LayerWeights load_layer(std::int64_t layer) {
        const auto name = [&](std::string_view part) { return in_layer(layer, part); };
        const std::int64_t hidden = model_.hidden_size;
        const std::int64_t between = model_.intermediate_size;
        LayerWeights made;
        if (description_.has_norms_in_front()) {
            const bool are_two = model_.two_norms && !names().first_of_two_norms.empty();
            made.attention_norm = norm(name(are_two ? names().first_of_two_norms : names().attention_norm));
            if (!description_.has_one_norm())
                made.network_norm = norm(name(are_two ? names().second_of_two_norms : names().network_norm));
        }
        load_qkv(layer, made);
        if (model_.qk_norm) {
            const bool is_wide = description_.has_wide_head_norms();
            const std::int64_t q = is_wide ? description_.q_width() : model_.head_dim;
            const std::int64_t k = is_wide ? description_.kv_width() : model_.head_dim;
            made.q_norm = values({vector_tensor(name(names().q_norm), "weight", q)});
            made.k_norm = values({vector_tensor(name(names().k_norm), "weight", k)});
        }
        if (model_.sinks) made.sinks = sinks(name(names().sinks));
        made.output = linear({linear_tensor(name(names().output), hidden, description_.q_width())});
        if (model_.output_bias)
            made.output_bias = values({vector_tensor(name(names().output), "bias", hidden)});
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

    void load_qkv(std::int64_t layer, LayerWeights& made) {
        if (names().qkv_by_groups) return load_grouped_qkv(in_layer(layer, names().qkv.front()), made);
        made.qkv = linear(parts_of(layer, names().qkv, qkv_rows(), model_.hidden_size));
        if (model_.qkv_bias) made.qkv_bias = values(biases_of(layer, names().qkv, qkv_rows()));
    }

    void load_grouped_qkv(const std::string& name, LayerWeights& made) {
        const std::int64_t width = description_.qkv_width();
        const WantedTensor weight = linear_tensor(name, width, model_.hidden_size);
        if (are_coded(source_, {weight})) {
            throw DecoderError(fmt::format(
                "{}: codes of queries, keys and values whose rows stand by heads, which the decoder does not "
                "reorder; allowed: the original weights, with --format",
                weight.name));
        }
        made.qkv = made_of_numbers(by_kind(weight), makes_codes_);
        if (!model_.qkv_bias) return;
        const WantedTensor bias{.name = full(name + ".bias"), .rows = width, .columns = 1, .is_vector = true};
        made.qkv_bias = read_later(by_kind(bias), allocate(bias.elements() * this->width()));
    }

    /// Queries' rows, then keys', then values', of a tensor that has them by heads of keys.
    std::vector<Rows> by_kind(const WantedTensor& tensor) const {
        const std::int64_t head = model_.head_dim;
        const std::int64_t queries = model_.num_attention_heads / model_.num_key_value_heads * head;
        std::vector<Rows> all;
        const auto add = [&](std::int64_t first, std::int64_t count) {
            for (std::int64_t group = 0; group < model_.num_key_value_heads; ++group)
                all.push_back({&tensor, group * (queries + 2 * head) + first, count});
        };
        add(0, queries);
        add(queries, head);
        add(queries + head, head);
        return all;
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

    /// Routers stay numbers: their few rows decide too much.
    void load_experts(std::int64_t layer, LayerWeights& made) {
        const std::int64_t hidden = model_.hidden_size;
        const std::int64_t width = description_.expert_width();
        const bool is_stacked = has_stacked_experts(layer);
        const std::string_view router = is_stacked ? names().stacked_router : names().router;
        made.router = made_of({linear_tensor(in_layer(layer, router), model_.experts, hidden)}, 0,
                              model_.experts, false);
        if (model_.router_bias)
            made.router_bias = values({vector_tensor(in_layer(layer, router), "bias", model_.experts)});
        const std::int64_t before = weights_.bytes_a_step_;
        if (is_stacked) {
            made.gate = of_stack(layer, {names().stacked_up, 2 * width}, 0, width, hidden);
            made.up = of_stack(layer, {names().stacked_up, 2 * width}, width, width, hidden);
            made.down = of_stack(layer, {names().stacked_down, hidden}, 0, hidden, width);
            if (model_.expert_bias) load_stacked_biases(layer, made);
        } else {
            made.gate = of_experts(layer, names().expert_up[0], width, hidden);
            made.up = of_experts(layer, names().expert_up[1], width, hidden);
            made.down = of_experts(layer, names().expert_down, hidden, width);
        }
        weights_.expert_bytes_ += weights_.bytes_a_step_ - before;
        require_alike_experts(layer, made);
    }

    std::string name_of_expert(std::int64_t layer, std::int64_t expert, std::string_view name) const {
        return in_layer(layer, fmt::format("{}.{}.{}", names().experts, expert, name));
    }
    bool has_stacked_experts(std::int64_t layer) const {
        if (names().experts.empty()) return true;
        return !source_.has(full(name_of_expert(layer, 0, names().expert_down) + ".weight")) &&
               source_.has(full(in_layer(layer, names().stacked_up)));
    }

    /// All experts' weights one after the other.
    MatrixWeight of_experts(std::int64_t layer, std::string_view name, std::int64_t rows,
                            std::int64_t columns) {
        std::vector<WantedTensor> tensors;
        for (std::int64_t expert = 0; expert < model_.experts; ++expert)
            tensors.push_back(linear_tensor(name_of_expert(layer, expert, name), rows, columns));
        require_whole_parts(tensors.front(), rows);
        return linear(tensors);
    }

    /// Of all experts, those of gate and up in one tensor.
    void load_stacked_biases(std::int64_t layer, LayerWeights& made) {
        const std::int64_t width = description_.expert_width();
        const auto bias = [&](const Stack& stack, std::int64_t first, std::int64_t rows) {
            const WantedTensor tensor{.name = full(in_layer(layer, fmt::format("{}_bias", stack.name))),
                                      .rows = model_.experts * stack.rows,
                                      .columns = 1,
                                      .is_vector = true,
                                      .stacked = model_.experts,
                                      .in_turns = stands_in_turns(stack)};
            return read_later(rows_of_stack(tensor, first, rows),
                              allocate(model_.experts * rows * this->width()));
        };
        const Stack both{names().stacked_up, 2 * width};
        made.gate_bias = bias(both, 0, width);
        made.up_bias = bias(both, width, width);
        made.down_bias = bias({names().stacked_down, model_.hidden_size}, 0, model_.hidden_size);
    }

    struct Stack {
        std::string_view name;
        std::int64_t rows;  ///< of an expert
    };
    bool stands_in_turns(const Stack& stack) const {
        return names().stacked_in_turns && stack.name == names().stacked_up;
    }
    /// Of each expert `rows` rows from the `first` on.
    std::vector<Rows> rows_of_stack(const WantedTensor& tensor, std::int64_t first, std::int64_t rows) const {
        std::vector<Rows> all;
        for (std::int64_t expert = 0; expert < model_.experts; ++expert)
            all.push_back({&tensor, expert * (tensor.rows / model_.experts) + first, rows});
        return all;
    }
    /// Of each expert `rows` rows from the `first` on.
    MatrixWeight of_stack(std::int64_t layer, const Stack& stack, std::int64_t first, std::int64_t rows,
                          std::int64_t columns) {
        const WantedTensor tensor{.name = full(in_layer(layer, stack.name)),
                                  .rows = model_.experts * stack.rows,
                                  .columns = columns,
                                  .transposed = names().stacked_columns_first,
                                  .stacked = model_.experts,
                                  .in_turns = stands_in_turns(stack)};
        require_whole_parts(tensor, rows);
        return made_of_numbers(rows_of_stack(tensor, first, rows), makes_codes_);
    }

    /// Codes of experts stand one after the other as if they were one weight's: so each has whole parts of
    /// them.
    void require_whole_parts(const WantedTensor& tensor, std::int64_t rows) const {
        const checkpoints::LayerOutline* const stored = source_.coded(tensor.name);
        if (stored == nullptr && !makes_codes_) return;
        const checkpoints::WeightFormat& format = weights_.code_format;
        const std::int64_t whole = rows_of_part(
            stored != nullptr ? stored->shape : PackedShape{.format = *format.format, .group = format.group});
        if (rows % whole == 0) return;
        throw DecoderError(fmt::format(
            "{}: codes of an expert's {} rows cannot stand behind those of another; allowed with {} "
            "are multiples of {}",
            tensor.name, rows, name(*format.format), whole));
    }

    /// The layers of a model share their operators: all experts have codes, or all have numbers.
    void require_alike_experts(std::int64_t layer, const LayerWeights& made) {
        const bool is_coded = coded_experts_.value_or(made.up.is_coded);
        coded_experts_ = is_coded;
        if (made.gate.is_coded == is_coded && made.up.is_coded == is_coded && made.down.is_coded == is_coded)
            return;
        throw DecoderError(fmt::format(
            "the experts of layer {} have codes of some weights and numbers of others, or not what those "
            "of other layers have; the decoder takes codes of all or of none (hone quantize --skip "
            "experts leaves all of them out)",
            layer));
    }

    /// The operator of a network takes codes of all its weights or of none.
    void require_alike_network(std::int64_t layer, const LayerWeights& made) const {
        if (made.up.is_coded == made.down.is_coded &&
            (!model_.gated_ffn || made.gate.is_coded == made.up.is_coded))
            return;
        throw DecoderError(fmt::format(
            "the feed-forward network of layer {} has codes of some of its weights and numbers of others; "
            "the decoder takes codes of all or of none (hone quantize --skip mlp leaves all of them out)",
            layer));
    }

    void load_head() {
        const WantedTensor own =
            matrix_tensor(std::string(names().head), model_.vocab_size, model_.hidden_size);
        const bool makes_codes = makes_codes_ && weights_.code_format.lm_head;
        const bool has_codes = source_.coded(own.name) != nullptr;
        wanted_.insert(own.name);  // files of tied models may have it twice
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
        NormWeight made{.weight = values({vector_tensor(name, "weight", model_.hidden_size)})};
        if (model_.norm_bias) made.bias = values({vector_tensor(name, "bias", model_.hidden_size)});
        return made;
    }

    /// fp32, whatever the model's dtype is. A vector of its own: there are as many as heads.
    const float* sinks(const std::string& name) {
        const WantedTensor tensor{
            .name = full(name), .rows = 1, .columns = model_.num_attention_heads, .is_vector = true};
        if (checking_) {
            static_cast<void>(pieces_of({{&tensor, 0, 1}}, {}));
            return nullptr;
        }
        const auto count = static_cast<std::size_t>(tensor.elements());
        std::vector<float> values(count);
        source_.read(tensor, Dtype::fp32, 0, tensor.elements(), std::as_writable_bytes(std::span(values)));
        report(tensor.elements() * width());
        runtime::DeviceBuffer<float>& made = weights_.sinks_.emplace_back(gpu_.driver(), count);
        runtime::upload(gpu_.driver(), made.span(), std::span<const float>(values));
        return made.data();
    }

    std::int64_t width() const { return description_.element_bytes(); }

    /// The tensors one after the other, in the model's dtype.
    const void* values(const std::vector<WantedTensor>& tensors) {
        std::vector<Rows> all;
        std::int64_t elements = 0;
        for (const WantedTensor& tensor : tensors) {
            all.push_back({&tensor, 0, tensor.rows});
            elements += tensor.elements();
        }
        return read_later(all, allocate(elements * width()));
    }
    /// `rows` rows of a tensor from the `first` on.
    const void* values(const WantedTensor& tensor, std::int64_t first, std::int64_t rows) {
        return read_later({{&tensor, first, rows}}, allocate(rows * tensor.columns * width()));
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

    /// Rows from the `first` on of the tensors, as if they were one.
    static std::vector<Rows> rows_of(const std::vector<WantedTensor>& tensors, std::int64_t first,
                                     std::int64_t count) {
        std::vector<Rows> all;
        std::int64_t begin = 0;  // of the tensor, among all rows
        for (const WantedTensor& tensor : tensors) {
            const std::int64_t from = std::max(first, begin);
            const std::int64_t end = std::min(first + count, begin + tensor.rows);
            if (from < end) all.push_back({&tensor, from - begin, end - from});
            begin += tensor.rows;
        }
        return all;
    }

    MatrixWeight made_of(const std::vector<WantedTensor>& tensors, std::int64_t first, std::int64_t rows,
                         bool makes_codes) {
        if (!are_coded(source_, tensors)) return made_of_numbers(rows_of(tensors, first, rows), makes_codes);
        const std::int64_t before = weights_.bytes_a_step_;
        MatrixWeight made{.rows = rows, .columns = tensors.front().columns, .is_coded = true};
        made.packed = stored(tensors, first, rows);
        made.bytes = weights_.bytes_a_step_ - before;
        return made;
    }
    /// Of these rows one below the other, which the source has as numbers.
    MatrixWeight made_of_numbers(const std::vector<Rows>& all, bool makes_codes) {
        const std::int64_t before = weights_.bytes_a_step_;
        MatrixWeight made{
            .rows = count_of(all), .columns = all.front().tensor->columns, .is_coded = makes_codes};
        if (makes_codes) {
            made.packed = quantized(all);
        } else {
            const std::int64_t bytes = made.rows * made.columns * width();
            made.values = read_later(all, allocate(bytes));
            if (!checking_) weights_.bytes_a_step_ += bytes;
        }
        made.bytes = weights_.bytes_a_step_ - before;
        return made;
    }
    static std::int64_t count_of(std::span<const Rows> all) {
        std::int64_t rows = 0;
        for (const Rows& part : all) rows += part.count;
        return rows;
    }

    /// Codes that the source has, which are read when all places are known.
    QuantizedWeightPointers stored(const std::vector<WantedTensor>& tensors, std::int64_t first,
                                   std::int64_t rows) {
        const CodedRows wanted = coded_rows(source_, tensors, first, rows);
        const PackedBytes bytes = bytes_of_rows(wanted.shape, rows);
        const CodesOnGpu to = allocate(bytes);
        if (checking_) {
            all_bytes_ += bytes.all();
            for (const WantedTensor& tensor : tensors) wanted_.insert(tensor.name);
            return {};
        }
        codes_.add(wanted, to);
        weights_.bytes_a_step_ += bytes.all();
        return pointers_to(to);
    }

    PackedShape shape_of_codes(std::int64_t rows, std::int64_t columns) const {
        const QuantizeWeights how = quantizing(weights_.code_format, model_.dtype, rows, columns);
        return {.format = how.format,
                .out = rows,
                .in = columns,
                .group = how.group,
                .zeros = how.zeros,
                .scale_dtype = how.scale_dtype};
    }

    /// Some rows at a time become codes, as many as the scratch memory has room for.
    QuantizedWeightPointers quantized(const std::vector<Rows>& all) {
        const std::int64_t columns = all.front().tensor->columns;
        const PackedShape shape = shape_of_codes(count_of(all), columns);
        check(shape);
        const PackedBytes bytes = bytes_of_rows(shape, shape.out);
        if (checking_) {
            planned_bytes_ += bytes.all();
            static_cast<void>(pieces_of(all, {}));
            return {};
        }
        const CodesOnGpu to = allocate(bytes);
        std::int64_t done = 0;
        for (std::size_t next = 0; next < all.size();) {
            const std::size_t first = next++;
            std::int64_t rows = all[first].count;
            while (next < all.size() && (rows + all[next].count) * columns * width() <= scratch_bytes)
                rows += all[next++].count;
            // Only whole parts can be made apart from those behind them.
            while (next < all.size() && (done + rows) % rows_of_part(shape) != 0) rows += all[next++].count;
            quantize({all.begin() + static_cast<std::ptrdiff_t>(first),
                      all.begin() + static_cast<std::ptrdiff_t>(next)},
                     shape, done, to);
            done += rows;
        }
        weights_.bytes_a_step_ += bytes.all();
        return pointers_to(to);
    }
    /// Makes codes of these rows, which stand from row `place` on, where a part begins.
    void quantize(const std::vector<Rows>& some, const PackedShape& all, std::int64_t place,
                  const CodesOnGpu& to) {
        const std::int64_t rows = count_of(some);
        const QuantizeWeights how = quantizing(weights_.code_format, model_.dtype, rows, all.in);
        const std::int64_t dense = rows * all.in * width();
        if (static_cast<std::int64_t>(scratch_.bytes()) < dense)
            scratch_ = Bytes(gpu_.driver(), static_cast<std::size_t>(dense));
        read_all(pieces_of(some, scratch_.span()));
        const PackedBytes begin = bytes_of_rows(all, place);
        const auto at = [](const CodesOnGpu::Span& span, std::int64_t offset) {
            return span.count == 0 ? nullptr : span.data() + offset;
        };
        const QuantizeWeightsArgs args{.weight = scratch_.data(),
                                       .codes = at(to.codes, begin.codes),
                                       .scales = at(to.scales, begin.scales),
                                       .zeros = at(to.zeros, begin.zeros),
                                       .workspace = workspace(how, rows)};
        runtime::quantize_on_device(runtime_, how, args, rows, gpu_.stream(),
                                    [this] { gpu_.wait_for_load(); });
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

    CodesOnGpu allocate(const PackedBytes& bytes) {
        return {.codes = allocate(bytes.codes),
                .scales = allocate(bytes.scales),
                .zeros = bytes.zeros > 0 ? allocate(bytes.zeros) : CodesOnGpu::Span{}};
    }
    static QuantizedWeightPointers pointers_to(const CodesOnGpu& codes) {
        return {.codes = codes.codes.data(), .scales = codes.scales.data(), .zeros = codes.zeros.data()};
    }

    /// Elements of a tensor that a thread reads at once, and where on the GPU they go.
    struct Piece {
        std::shared_ptr<const WantedTensor> tensor;
        std::int64_t first;
        std::int64_t count;
        runtime::DeviceSpan<std::byte> to;
    };

    /// The rows' elements one after the other, on their way to the GPU; while names are checked, none.
    std::vector<Piece> pieces_of(const std::vector<Rows>& all, runtime::DeviceSpan<std::byte> to) {
        if (checking_) {
            for (const Rows& rows : all) {
                source_.check(*rows.tensor);
                wanted_.insert(rows.tensor->name);
                all_bytes_ += rows.count * rows.tensor->columns * width();
            }
            return {};
        }
        std::vector<Piece> pieces;
        for (const Rows& rows : all) {
            const auto tensor = std::make_shared<const WantedTensor>(*rows.tensor);
            const std::int64_t columns = tensor->columns;
            const std::int64_t end = (rows.first + rows.count) * columns;
            const std::int64_t step = piece_bytes / width();
            for (std::int64_t at = rows.first * columns; at < end; at += step) {
                const std::int64_t count = std::min(step, end - at);
                const auto bytes = static_cast<std::size_t>(count * width());
                pieces.push_back({tensor, at, count, to.subspan(0, bytes)});
                to = to.subspan(bytes, to.count - bytes);
            }
        }
        return pieces;
    }

    /// Pieces of all tensors are read together when all places are known: threads wait once, not a tensor.
    const void* read_later(const std::vector<Rows>& all, runtime::DeviceSpan<std::byte> to) {
        std::ranges::move(pieces_of(all, to), std::back_inserter(pieces_));
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
    Staging staging_;
    CodeReader codes_;
    std::vector<Piece> pieces_;                  ///< that are not read yet
    std::set<std::string, std::less<>> wanted_;  ///< names of tensors that the model has
    std::optional<bool> coded_experts_;          ///< known once a layer has some
    bool checking_ = false;                      ///< names and shapes alone; nothing is made
    Bytes scratch_;                              ///< of the weight that codes are made of
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
