#include "tests/runtime/machine_code.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace hone::runtime {
namespace {

template <class T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("an image ends too early");
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

/// Six counters of a warp. A load counts one up until it has come; an instruction names those that have to be
/// at zero before it is issued.
constexpr unsigned scoreboards = 6;

class Instruction {
  public:
    static constexpr std::size_t bytes = 16;

    Instruction(std::span<const std::byte> code, std::size_t place)
        : place_(place), low_(at<std::uint64_t>(code, place)), high_(at<std::uint64_t>(code, place + 8)) {}

    [[nodiscard]] unsigned waits_for() const { return bits(high_, 52, scoreboards); }
    /// 7: none, for one of a later load stands for it, too: they come in their order.
    [[nodiscard]] unsigned counted_by() const { return bits(high_, 46, 3); }
    [[nodiscard]] bool loads_shared() const {
        return happens() && (code() == 0x984 || code() == 0x83b || code() == 0x980);  // LDS, LDSM, LD
    }
    [[nodiscard]] bool arrives() const {
        return happens() && (code() == 0x9a7 || (code() & 0x1ff) == 0x11d);  // SYNCS.ARRIVE, BAR
    }

    [[nodiscard]] std::optional<std::size_t> jumps_to() const {
        if (!happens() || (code() != 0x947 && code() != 0x547 && code() != 0x944)) return std::nullopt;
        // In words of 4 bytes behind this instruction: 8 low bits, and 48 with the sign.
        const auto upper = static_cast<std::int64_t>(low_ >> 34 | high_ << 30) << 16 >> 16;
        const std::int64_t words = upper * 256 + bits(low_, 16, 8);
        return static_cast<std::size_t>(static_cast<std::int64_t>(place_ + bytes) + words * 4);
    }
    [[nodiscard]] bool goes_on() const {
        const bool leaves = code() == 0x947 || code() == 0x94d || code() == 0x950;  // BRA, EXIT, RET
        return !(leaves && guard() == always && bits(high_, 23, 4) == always);
    }
    [[nodiscard]] bool jumps_anywhere() const { return code() == 0x949 || code() == 0x94a; }  // BRX, JMX

  private:
    static constexpr unsigned always = 7;
    static constexpr unsigned never = 15;

    static unsigned bits(std::uint64_t word, unsigned first, unsigned count) {
        return static_cast<unsigned>(word >> first) & ((1u << count) - 1);
    }
    [[nodiscard]] unsigned code() const { return bits(low_, 0, 12); }
    [[nodiscard]] unsigned guard() const { return bits(low_, 12, 4); }
    [[nodiscard]] bool happens() const { return guard() != never; }

    std::size_t place_;
    std::uint64_t low_;
    std::uint64_t high_;
};

/// Which scoreboards may count loads from shared memory, and in the bit behind those whether some load waits
/// for a later one's; in front of each instruction.
class LoadsUnderWay {
  public:
    explicit LoadsUnderWay(std::span<const std::byte> code) : before_(code.size() / Instruction::bytes) {
        for (std::size_t i = 0; i < before_.size(); ++i)
            instructions_.emplace_back(code, i * Instruction::bytes);
        reach(0, 0);
        while (!open_.empty()) {
            const std::size_t i = open_.back();
            open_.pop_back();
            follow(i);
        }
    }

    void collect(const std::string& kernel, Arrivals& arrivals) const {
        for (std::size_t i = 0; i < before_.size(); ++i) {
            if (!before_[i] || !instructions_[i].arrives()) continue;
            ++arrivals.all;
            if ((*before_[i] & ~instructions_[i].waits_for()) != 0)
                arrivals.early.push_back(fmt::format("{} at {:#x}", kernel, i * Instruction::bytes));
        }
    }

  private:
    static constexpr unsigned uncounted = 1u << scoreboards;

    void follow(std::size_t i) {
        const Instruction& instruction = instructions_[i];
        if (instruction.jumps_anywhere()) throw std::runtime_error("a jump whose target is not known");
        unsigned pending = *before_[i] & ~instruction.waits_for();
        if (instruction.loads_shared()) {
            const unsigned by = instruction.counted_by();
            pending = by < scoreboards ? (pending & ~uncounted) | 1u << by : pending | uncounted;
        }
        if (const auto target = instruction.jumps_to()) reach(*target / Instruction::bytes, pending);
        if (instruction.goes_on()) reach(i + 1, pending);
    }
    void reach(std::size_t i, unsigned pending) {
        if (i >= before_.size()) throw std::runtime_error("a kernel goes on behind its end");
        const unsigned joined = before_[i].value_or(0) | pending;
        if (before_[i] == joined) return;
        before_[i] = joined;
        open_.push_back(i);
    }

    std::vector<Instruction> instructions_;
    std::vector<std::optional<unsigned>> before_;
    std::vector<std::size_t> open_;
};

}  // namespace

Arrivals arrivals_of(std::span<const std::byte> cubin) {
    Arrivals arrivals;
    const auto file = at<Elf64_Ehdr>(cubin, 0);
    const auto section = [&](std::size_t i) {
        return at<Elf64_Shdr>(cubin, file.e_shoff + i * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = section(file.e_shstrndx);
    for (std::size_t i = 0; i < file.e_shnum; ++i) {
        const Elf64_Shdr header = section(i);
        if (header.sh_type != SHT_PROGBITS || (header.sh_flags & SHF_EXECINSTR) == 0) continue;
        const std::string name(reinterpret_cast<const char*>(cubin.data()) + names.sh_offset +
                               header.sh_name);
        LoadsUnderWay(cubin.subspan(header.sh_offset, header.sh_size)).collect(name, arrivals);
    }
    return arrivals;
}

}  // namespace hone::runtime
