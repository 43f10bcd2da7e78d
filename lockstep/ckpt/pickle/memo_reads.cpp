// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/memo_reads.h"

#include <algorithm>

#include "lockstep/base/numbers.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {

void MemoReads::add(std::uint64_t index) {
  if (index >= limit_) {
    return;
  }
  if (index >= bits_.size()) {
    bits_.resize(std::min(std::max(index + 1, 2 * bits_.size()), limit_));
  }
  bits_[index] = true;
}

MemoReads find_memo_reads(ByteSpan bytes, std::uint64_t max_opcodes) {
  MemoReads reads(bytes.size());
  PickleDecoder decoder(bytes);
  for (std::uint64_t count = 0; count < max_opcodes; ++count) {
    const Instruction* in = decoder.next();
    if (in == nullptr || in->info->action == Action::kStop) {
      break;
    }
    if (in->info->action == Action::kGet) {
      const bool is_text = in->info->operand == Operand::kLine;
      reads.add(
          is_text ? parse_number<std::uint64_t>(in->text).value_or(0)
                  : in->number);
    }
  }
  return reads;
}

} // namespace lockstep::ckpt
