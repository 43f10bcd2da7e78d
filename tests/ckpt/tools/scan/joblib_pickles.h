// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles with joblib's arrays, made by hand: opcodes of the wrapper's parts.
#pragma once

#include <string>

namespace lockstep::test::joblib {

inline const std::string kEvil = "cos\nsystem\n(Vid\ntR";
inline const std::string kSubclass = "\x8c\x08subclasscnumpy\nndarray\n";
inline const std::string kShape = "\x8c\x05shapeK\x02K\x03\x86";
inline const std::string kAligned = "\x8c\x1bnumpy_array_alignment_bytesK\x10";
inline const std::string kWrapperClass =
    "cjoblib.numpy_pickle\nNumpyArrayWrapper\n";
inline const std::string kWrapper = kWrapperClass + ")\x81";
inline const std::string kTag = "ctorch.jit._pickle\nrestore_type_tag\n";
inline const std::string kEncode = "c_codecs\nencode\n";
// An object of a class that nobody minds.
inline const std::string kObject =
    "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81";
inline const std::string kFill = "\x03\xff\xff\xff";

inline std::string type_of(
    const std::string& letters,
    const std::string& state) {
  return "\x8c\x05"
         "dtypecnumpy\ndtype\n(\x8c\x02" +
         letters + "\x89\x88tR" + state + "b";
}

// (3, '<', None, names, fields, bytes, alignment, flags)
inline std::string
type_state(const std::string& fields, const std::string& bytes, char flags) {
  return "(K\x03U\x01<N" + fields + bytes + "K\x01K" + flags + "t";
}

inline const std::string kPlainState =
    type_state("NN", "J\xff\xff\xff\xff", '\0');
inline const std::string kObjectState =
    type_state("NN", "J\xff\xff\xff\xff", '\x3f');
inline const std::string kFloat = type_of("f8", kPlainState);

// What stands in the dict of the wrapper, the elements, and what follows.
inline std::string pickle_of(
    const std::string& state,
    const std::string& elements,
    const std::string& rest = kEvil + ".") {
  return "\x80\x04" + kWrapper + "}(" + state + "ub" + elements + "0" + rest;
}

} // namespace lockstep::test::joblib
