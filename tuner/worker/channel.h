// The frames of runtime/workers/channel.h under the tuner's own names.
#pragma once

#include "runtime/workers/channel.h"

namespace hone::tuner {

using runtime::Channel;
using runtime::Clock;
using runtime::Message;
using runtime::ProtocolError;
using runtime::Received;
using runtime::UniqueFd;

using runtime::bits;
using runtime::boolean;
using runtime::integer;
using runtime::list;
using runtime::member;
using runtime::number;
using runtime::small_integer;
using runtime::text;

}  // namespace hone::tuner
