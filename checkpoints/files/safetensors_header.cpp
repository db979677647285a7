#include "checkpoints/files/safetensors_header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "checkpoints/error.h"

namespace hone::checkpoints {
namespace {

constexpr std::size_t max_metadata = std::size_t{1} << 16;

/// Takes the events of the JSON parser. Where an event has no meaning, the header is refused; nesting deeper
/// than a tensor's lists never has one.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit HeaderReader(const std::string& file_name) : file_name_(file_name) {}

    [[nodiscard]] SafetensorsHeader take() { return std::move(header_); }

    bool null() override { refuse_value("null"); }
    bool boolean(bool value) override { refuse_value(value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override { refuse_value(fmt::format("{}", value)); }
    bool number_float(number_float_t /*value*/, const string_t& text) override { refuse_value(text); }
    bool binary(binary_t& /*value*/) override { refuse_value("binary data"); }
    bool number_unsigned(number_unsigned_t value) override;
    bool string(string_t& value) override;
    bool start_object(std::size_t elements) override;
    bool key(string_t& value) override;
    bool end_object() override;
    bool start_array(std::size_t elements) override;
    bool end_array() override;
    bool parse_error(std::size_t position, const std::string& last_token,
                     const nlohmann::detail::exception& error) override;

  private:
    enum class Level { outside, top, metadata, tensor, list };

    [[noreturn]] void refuse(const std::string& why) const;
    [[noreturn]] void refuse_value(std::string_view value) const;
    /// What the value to come stands for, for messages.
    [[nodiscard]] std::string subject() const;
    void finish_tensor();

    const std::string& file_name_;
    SafetensorsHeader header_;
    bool has_metadata_ = false;
    Level level_ = Level::outside;
    std::string name_;             ///< key at the top: a tensor, or the metadata
    std::string field_;            ///< key one level below
    std::set<std::string> given_;  ///< fields of this tensor
    std::vector<std::uint64_t> offsets_;
    HeaderEntry entry_;
};

void HeaderReader::refuse(const std::string& why) const {
    throw CheckpointError(fmt::format("{}: {}{}", file_name_, subject(), why));
}

void HeaderReader::refuse_value(std::string_view value) const {
    const std::string allowed = level_ == Level::metadata  ? "text"
                                : level_ == Level::top     ? "an object"
                                : level_ == Level::outside ? "an object"
                                : level_ == Level::list    ? "integers from 0"
                                : field_ == "dtype"        ? "one of " + stored_type_names()
                                                           : "a list of integers";
    refuse(fmt::format("has {} where only {} is allowed", shown(value), allowed));
}

std::string HeaderReader::subject() const {
    if (level_ == Level::outside || name_.empty()) return "the header ";
    if (name_ == metadata_key) return fmt::format("{} ", metadata_key);
    if (field_.empty()) return fmt::format("tensor {} ", shown(name_));
    return fmt::format("tensor {}: {} ", shown(name_), shown(field_));
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
    if (level_ != Level::list) refuse_value(fmt::format("{}", value));
    std::vector<std::uint64_t>& list = field_ == "shape" ? entry_.shape : offsets_;
    const std::size_t most = field_ == "shape" ? max_tensor_rank : 2;
    if (list.size() == most) refuse(fmt::format("has more than {} numbers", most));
    list.push_back(value);
    return true;
}

bool HeaderReader::string(string_t& value) {
    if (level_ == Level::metadata) {
        header_.metadata[field_] = value;
        return true;
    }
    if (level_ != Level::tensor || field_ != "dtype") refuse_value(value);
    const std::optional<StoredType> type = stored_type(value);
    if (!type) refuse_value(value);
    entry_.type = *type;
    return true;
}

bool HeaderReader::start_object(std::size_t /*elements*/) {
    if (level_ == Level::outside) {
        level_ = Level::top;
    } else if (level_ == Level::top) {
        level_ = name_ == metadata_key ? Level::metadata : Level::tensor;
    } else {
        refuse_value("an object");
    }
    return true;
}

bool HeaderReader::key(string_t& value) {
    if (level_ == Level::top) {
        name_ = value;
        field_.clear();
        if (name_.empty()) refuse("has a tensor without a name");
        const bool is_metadata = name_ == metadata_key;
        if (is_metadata ? std::exchange(has_metadata_, true) : header_.entries.contains(name_))
            refuse("stands twice");
        if (header_.entries.size() == max_tensors) refuse(fmt::format("is one more than {}", max_tensors));
        return true;
    }
    field_ = value;
    if (level_ == Level::metadata) {
        if (header_.metadata.contains(field_)) refuse(fmt::format("has key {} twice", shown(field_)));
        if (header_.metadata.size() == max_metadata)
            refuse(fmt::format("has more than {} keys", max_metadata));
        return true;
    }
    if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
        refuse("is not known; allowed are dtype, shape and data_offsets");
    if (!given_.insert(field_).second) refuse("stands twice");
    return true;
}

bool HeaderReader::end_object() {
    if (level_ == Level::tensor) finish_tensor();
    level_ = level_ == Level::top ? Level::outside : Level::top;
    return true;
}

void HeaderReader::finish_tensor() {
    field_.clear();
    for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        if (!given_.contains(needed)) refuse(fmt::format("has no {}", needed));
    }
    if (offsets_.size() != 2) refuse(fmt::format("has {} data_offsets instead of 2", offsets_.size()));
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.emplace(name_, std::exchange(entry_, {}));
    given_.clear();
    offsets_.clear();
}

bool HeaderReader::start_array(std::size_t /*elements*/) {
    if (level_ != Level::tensor || field_ == "dtype") refuse_value("a list");
    level_ = Level::list;
    return true;
}

bool HeaderReader::end_array() {
    level_ = Level::tensor;
    return true;
}

bool HeaderReader::parse_error(std::size_t position, const std::string& /*last_token*/,
                               const nlohmann::detail::exception& /*error*/) {
    throw CheckpointError(
        fmt::format("{}: the header is not valid JSON at its byte {}", file_name_, position));
}

}  // namespace

SafetensorsHeader parse_header(std::string_view json, const std::string& file_name) {
    // The parser takes a zero for the end of its input: what stands behind it would be hidden.
    if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos)
        throw CheckpointError(fmt::format("{}: the header has a zero at its byte {}", file_name, zero + 1));
    HeaderReader reader(file_name);
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
    return reader.take();
}

}  // namespace hone::checkpoints
