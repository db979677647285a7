#include "cache/compression.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace hone::cache {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t shortest_match = 4;
constexpr std::size_t farthest = 65535;
constexpr std::size_t last_literals = 5;  ///< a block ends with as many bytes that are no match
constexpr std::size_t last_match = 12;    ///< and no match begins closer to its end
constexpr std::size_t nibble = 15;        ///< a length of 15 and more goes on in bytes of its own
constexpr int hash_bits = 15;
constexpr int most_tries = 64;

std::uint32_t word_at(Bytes bytes, std::size_t at) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    return word;
}

struct Match {
    std::size_t length = 0;
    std::size_t distance = 0;
};

/// Earlier places of the four bytes at each place, the latest first.
class Places {
  public:
    explicit Places(Bytes bytes)
        : bytes_(bytes), latest_(std::size_t{1} << hash_bits, nowhere), earlier_(bytes.size(), nowhere) {}

    void add(std::size_t at) {
        std::uint32_t& slot = latest_[hash(at)];
        earlier_[at] = slot;
        slot = static_cast<std::uint32_t>(at);
    }

    [[nodiscard]] Match longest(std::size_t at) const {
        Match best;
        std::uint32_t place = latest_[hash(at)];
        for (int tries = 0; place != nowhere && at - place <= farthest && tries < most_tries; ++tries) {
            const std::size_t length = common(place, at);
            if (length > best.length) best = {.length = length, .distance = at - place};
            place = earlier_[place];
        }
        return best.length >= shortest_match ? best : Match{};
    }

  private:
    static constexpr std::uint32_t nowhere = 0xffffffff;

    [[nodiscard]] std::size_t hash(std::size_t at) const {
        return word_at(bytes_, at) * 2654435761U >> (32 - hash_bits);
    }

    [[nodiscard]] std::size_t common(std::size_t a, std::size_t b) const {
        const std::size_t end = bytes_.size() - last_literals;
        std::size_t length = 0;
        while (b + length < end && bytes_[a + length] == bytes_[b + length]) ++length;
        return length;
    }

    Bytes bytes_;
    std::vector<std::uint32_t> latest_;  // 128 KiB: as much as some threads have of a stack
    std::vector<std::uint32_t> earlier_;
};

void put(std::vector<std::byte>& to, std::size_t value) { to.push_back(static_cast<std::byte>(value)); }

void put_rest_of_length(std::vector<std::byte>& to, std::size_t length) {
    if (length < nibble) return;
    for (length -= nibble; length >= 255; length -= 255) put(to, 255);
    put(to, length);
}

/// Literals, then a match; without one at the block's end.
void put_sequence(std::vector<std::byte>& to, Bytes literals, const Match& match) {
    const std::size_t more = match.length == 0 ? 0 : match.length - shortest_match;
    put(to, std::min(literals.size(), nibble) << 4 | std::min(more, nibble));
    put_rest_of_length(to, literals.size());
    to.insert(to.end(), literals.begin(), literals.end());
    if (match.length == 0) return;
    put(to, match.distance & 0xff);
    put(to, match.distance >> 8);
    put_rest_of_length(to, more);
}

/// Reads a block and checks every step.
class Reader {
  public:
    explicit Reader(Bytes block) : block_(block) {}

    [[nodiscard]] bool at_end() const { return block_.empty(); }

    std::optional<std::size_t> byte() {
        if (block_.empty()) return std::nullopt;
        const auto value = static_cast<std::size_t>(block_.front());
        block_ = block_.subspan(1);
        return value;
    }

    /// A length whose first four bits are known.
    std::optional<std::size_t> length(std::size_t first) {
        std::size_t sum = first;
        for (bool more = first == nibble; more;) {
            const auto next = byte();
            if (!next) return std::nullopt;
            sum += *next;
            more = *next == 255;
        }
        return sum;
    }

    std::optional<Bytes> bytes(std::size_t count) {
        if (count > block_.size()) return std::nullopt;
        const Bytes taken = block_.first(count);
        block_ = block_.subspan(count);
        return taken;
    }

  private:
    Bytes block_;
};

/// The bytes that a block stands for, as many as are expected and no more.
class Output {
  public:
    explicit Output(std::size_t length) : bytes_(length) {}

    [[nodiscard]] bool append(Bytes literals) {
        if (literals.size() > rest()) return false;
        std::ranges::copy(literals, bytes_.begin() + static_cast<std::ptrdiff_t>(written_));
        written_ += literals.size();
        return true;
    }

    /// One by one where the match reaches into itself.
    [[nodiscard]] bool append(const Match& match) {
        if (match.distance == 0 || match.distance > written_ || match.length > rest()) return false;
        std::byte* const to = &bytes_[written_];
        const std::byte* const from = to - match.distance;
        if (match.length <= match.distance) {
            std::memcpy(to, from, match.length);
        } else {
            for (std::size_t i = 0; i < match.length; ++i) to[i] = from[i];
        }
        written_ += match.length;
        return true;
    }

    [[nodiscard]] std::size_t rest() const { return bytes_.size() - written_; }
    [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
    std::size_t written_ = 0;
};

std::optional<Match> read_match(Reader& from, std::size_t first) {
    const auto low = from.byte();
    const auto high = from.byte();
    const auto length = from.length(first);
    if (!low || !high || !length) return std::nullopt;
    return Match{.length = *length + shortest_match, .distance = *low | *high << 8};
}

}  // namespace

std::vector<std::byte> compress(Bytes bytes) {
    std::vector<std::byte> block;
    std::size_t literals_from = 0;
    if (bytes.size() > last_match && bytes.size() < 0xffffffff) {
        Places places(bytes);
        const std::size_t end = bytes.size() - last_match;
        for (std::size_t at = 0; at < end;) {
            const Match match = places.longest(at);
            places.add(at);
            // A better match one byte further is worth a literal.
            const bool wait =
                match.length > 0 && at + 1 < end && places.longest(at + 1).length > match.length + 1;
            if (match.length == 0 || wait) {
                ++at;
                continue;
            }
            put_sequence(block, bytes.subspan(literals_from, at - literals_from), match);
            literals_from = at + match.length;
            for (++at; at < literals_from && at < end; ++at) places.add(at);
            at = literals_from;
        }
    }
    put_sequence(block, bytes.subspan(literals_from), {});
    return block;
}

std::optional<std::vector<std::byte>> decompress(Bytes block, std::size_t length) {
    // A byte of a block stands for 255 bytes at most: a length that lies is not believed with memory.
    if (length / 255 > block.size()) return std::nullopt;
    Reader from(block);
    Output bytes(length);
    while (const auto token = from.byte()) {
        const auto count = from.length(*token >> 4);
        const auto literals = count ? from.bytes(*count) : std::nullopt;
        if (!literals || !bytes.append(*literals)) return std::nullopt;
        if (from.at_end()) break;  // the last sequence has no match
        const auto match = read_match(from, *token & nibble);
        if (!match || !bytes.append(*match)) return std::nullopt;
    }
    if (bytes.rest() > 0) return std::nullopt;
    return bytes.take();
}

}  // namespace hone::cache
