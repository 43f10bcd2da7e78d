// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/internal/png_writer.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {
namespace {

// Units: pixels between the pictures, and around them.
constexpr std::int64_t kGap = 2;
constexpr std::uint8_t kWhite = 255;

[[noreturn]] void bad_sheet(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.sheet",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

// Puts the picture at that place; grey ones become colours where the sheet has
// them.
void place(
    const Image& image,
    std::int64_t top,
    std::int64_t left,
    Image& sheet) {
  const std::int64_t channels = sheet.shape.channels;
  const std::uint8_t* from = image.pixels.data();
  for (std::int64_t y = 0; y < image.shape.height; ++y) {
    std::uint8_t* to =
        sheet.pixels.data() + ((top + y) * sheet.shape.width + left) * channels;
    for (std::int64_t x = 0; x < image.shape.width; ++x) {
      if (image.shape.channels == channels) {
        to = std::copy_n(from, channels, to);
      } else {
        to = std::fill_n(to, channels, *from);
      }
      from += image.shape.channels;
    }
  }
}

} // namespace

Image contact_sheet(const std::vector<Image>& images, std::int64_t columns) {
  if (images.empty() || columns < 1) {
    bad_sheet(format(
        "a sheet takes pictures, and 1 column at least; got {} and {}",
        counted(images.size(), "picture"),
        counted(
            static_cast<std::uint64_t>(std::max<std::int64_t>(columns, 0)),
            "column")));
  }
  const auto count = std::ssize(images);
  columns = std::min<std::int64_t>(columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  ImageShape cell;
  for (const Image& image : images) {
    cell.channels = std::max(cell.channels, image.shape.channels);
    cell.height = std::max(cell.height, image.shape.height);
    cell.width = std::max(cell.width, image.shape.width);
  }
  Image sheet{
      .shape = {
          .channels = cell.channels,
          .height = rows * (cell.height + kGap) + kGap,
          .width = columns * (cell.width + kGap) + kGap}};
  sheet.pixels.assign(static_cast<std::size_t>(sheet.shape.numel()), kWhite);
  for (std::int64_t i = 0; i < count; ++i) {
    const Image& image = images[static_cast<std::size_t>(i)];
    const std::int64_t top = i / columns * (cell.height + kGap) + kGap;
    const std::int64_t left = i % columns * (cell.width + kGap) + kGap;
    place(
        image,
        top + (cell.height - image.shape.height) / 2,
        left + (cell.width - image.shape.width) / 2,
        sheet);
  }
  return sheet;
}

void write_png(const std::string& path, const Image& image, FileSystem& fs) {
  write_file_atomically(fs, path, internal::encode_png(image)).value();
}

Image augmented_sheet(const ImageFolder& folder, const SheetOptions& options) {
  if (options.samples < 1 || options.epochs < 0) {
    bad_sheet(format(
        "a sheet takes 1 sample at least and 0 epochs at least; got {} and {}",
        options.samples,
        options.epochs));
  }
  const std::int64_t rows = std::min(options.samples, folder.size());
  std::vector<Image> images;
  images.reserve(static_cast<std::size_t>(rows * (options.epochs + 1)));
  for (std::int64_t row = 0; row < rows; ++row) {
    // Over all of the folder, whose classes lie one after the other.
    const std::int64_t index = row * folder.size() / rows;
    images.push_back(folder.plain_picture(index));
    for (std::int64_t i = 0; i < options.epochs; ++i) {
      images.push_back(folder.picture(index, options.first_epoch + i));
    }
  }
  return contact_sheet(images, options.epochs + 1);
}

} // namespace lockstep
