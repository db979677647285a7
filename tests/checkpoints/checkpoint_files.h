// Checkpoints made by hand for tests: raw safetensors files byte by byte, tensors of numbers, and a slow
// packer that shares nothing with the readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/files/safetensors_writer.h"
#include "runtime/system/input_error.h"
#include "tests/support/minifloat.h"

namespace hone::test {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of_numbers(const std::vector<T>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
}

/// A safetensors file of any header and any data, right or wrong.
inline Bytes raw_safetensors(const std::string& header, std::size_t data_bytes) {
    Bytes file(8 + header.size() + data_bytes);
    const std::uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    std::memcpy(file.data() + 8, header.data(), header.size());
    for (std::size_t i = 0; i < data_bytes; ++i) file[8 + header.size() + i] = static_cast<std::byte>(i);
    return file;
}

/// What stands in a file that is in memory.
inline checkpoints::SafetensorsContents parsed(const Bytes& file, const std::string& name) {
    return checkpoints::parse_safetensors(file, file.size(), name);
}

inline Bytes bytes_of_file(const std::filesystem::path& file) {
    Bytes bytes(std::filesystem::file_size(file));
    checkpoints::SourceFile(file).read_at(0, bytes);
    return bytes;
}

inline void write_bytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
    write_bytes(file, std::as_bytes(std::span(text)));
}

/// Tensors of a checkpoint to be, changed at will before they are written.
class TensorFile {
  public:
    struct Entry {
        checkpoints::StoredType type = checkpoints::StoredType::u8;
        std::vector<std::uint64_t> shape;
        Bytes bytes;
    };

    Entry& operator[](const std::string& name) { return entries_[name]; }
    void erase(const std::string& name) { entries_.erase(name); }
    [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }

    void set(const std::string& name, std::vector<std::uint64_t> shape,
             const std::vector<std::uint32_t>& words) {
        entries_[name] = {checkpoints::StoredType::i32, std::move(shape), bytes_of_numbers(words)};
    }
    void set_halves(const std::string& name, std::vector<std::uint64_t> shape,
                    const std::vector<double>& values) {
        std::vector<std::uint16_t> halves;
        for (const double value : values)
            halves.push_back(static_cast<std::uint16_t>(encoded(rounded(value, fp16_format), fp16_format)));
        entries_[name] = {checkpoints::StoredType::f16, std::move(shape), bytes_of_numbers(halves)};
    }
    void set_floats(const std::string& name, std::vector<std::uint64_t> shape,
                    const std::vector<float>& values) {
        entries_[name] = {checkpoints::StoredType::f32, std::move(shape), bytes_of_numbers(values)};
    }

    void write(const std::filesystem::path& file) const {
        std::vector<checkpoints::TensorToWrite> tensors;
        for (const auto& [name, entry] : entries_)
            tensors.push_back({name, entry.type, entry.shape, entry.bytes});
        checkpoints::write_safetensors(file, tensors);
    }

  private:
    std::map<std::string, Entry> entries_;
};

/// A matrix of numbers, [rows, columns].
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<std::uint32_t> values;

    Matrix(std::size_t row_count, std::size_t column_count)
        : rows(row_count), columns(column_count), values(row_count * column_count) {}
    std::uint32_t& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
    [[nodiscard]] std::uint32_t at(std::size_t row, std::size_t column) const {
        return values[row * columns + column];
    }
};

inline Matrix random_matrix(std::size_t rows, std::size_t columns, std::uint32_t least, std::uint32_t most,
                            std::mt19937& random) {
    Matrix matrix(rows, columns);
    for (std::uint32_t& value : matrix.values)
        value = std::uniform_int_distribution<std::uint32_t>(least, most)(random);
    return matrix;
}

/// One word of numbers, the first at its low end, by adding powers.
inline std::uint32_t packed_word(const std::vector<std::uint32_t>& numbers) {
    std::uint64_t word = 0;
    std::uint64_t power = 1;
    for (const std::uint32_t number : numbers) {
        word += number * power;
        power *= std::uint64_t{1} << (32 / numbers.size());
    }
    return static_cast<std::uint32_t>(word);
}

/// Words of a matrix whose rows are cut into words; `order[i]`: which number of the word's part stands i-th.
inline std::vector<std::uint32_t> packed_along_rows(const Matrix& matrix,
                                                    const std::vector<std::size_t>& order) {
    std::vector<std::uint32_t> words;
    for (std::size_t row = 0; row < matrix.rows; ++row) {
        for (std::size_t first = 0; first < matrix.columns; first += order.size()) {
            std::vector<std::uint32_t> numbers;
            for (const std::size_t offset : order) numbers.push_back(matrix.at(row, first + offset));
            words.push_back(packed_word(numbers));
        }
    }
    return words;
}

/// Words of a matrix whose columns are cut into words of `in_word` numbers.
inline std::vector<std::uint32_t> packed_along_columns(const Matrix& matrix, std::size_t in_word) {
    std::vector<std::uint32_t> words;
    for (std::size_t first = 0; first < matrix.rows; first += in_word) {
        for (std::size_t column = 0; column < matrix.columns; ++column) {
            std::vector<std::uint32_t> numbers;
            for (std::size_t i = 0; i < in_word; ++i) numbers.push_back(matrix.at(first + i, column));
            words.push_back(packed_word(numbers));
        }
    }
    return words;
}

/// What a InputError says; "" when nothing is thrown.
template <class Action>
std::string refusal(const Action& action) {
    try {
        static_cast<void>(action());
    } catch (const runtime::InputError& error) {
        return error.what();
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace hone::test
