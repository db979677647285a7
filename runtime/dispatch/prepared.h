// What every prepared operator answers, whichever it is: the public kernel objects hold one of these. run()
// is no virtual function: who made the object knows its type.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/report.h"
#include "kernel_templates/problem.h"

namespace hone::runtime {

class Prepared {
  public:
    Prepared() = default;
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
    virtual ~Prepared() = default;

    /// What was chosen, part by part.
    [[nodiscard]] virtual std::vector<PrepareReport> reports() const = 0;
    /// Bytes of workspace that a call of any sizes up to these needs; 0: none. Throws std::invalid_argument
    /// for sizes that no call may have.
    [[nodiscard]] virtual std::int64_t workspace_bytes(const Sizes& sizes) const = 0;
};

}  // namespace hone::runtime
