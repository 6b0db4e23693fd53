// SPDX-License-Identifier: BSD-3-Clause
#include "tools/png.h"

#include <zlib.h>

#include <stdexcept>
#include <string_view>

namespace weft {
namespace {

void append_be32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

/// Length, type, data, and the CRC of the last two.
void append_chunk(std::string& out, std::string_view type, std::string_view data) {
  append_be32(out, static_cast<std::uint32_t>(data.size()));
  std::string body(type);
  body += data;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  out += body;
  append_be32(out, static_cast<std::uint32_t>(crc));
}

}  // namespace

std::string png(const Picture& picture) {
  const std::size_t width = picture.width, height = picture.height;
  if (width == 0 || height == 0 || picture.pixels.size() != width * height || picture.palette.empty() ||
      picture.palette.size() > 256)
    throw std::invalid_argument("a picture's size is not that of its pixels and palette");
  std::string rows;
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(picture.pixels.data()) + y * width, width);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                rows.size(), 9) != Z_OK)
    throw std::runtime_error("a picture could not be compressed");
  packed.resize(size);

  std::string header;
  append_be32(header, picture.width);
  append_be32(header, picture.height);
  header += std::string_view("\x08\x03\x00\x00\x00", 5);  // 8 bits, palette
  std::string palette;
  for (const auto& colour : picture.palette)
    for (const std::uint8_t part : colour) palette += static_cast<char>(part);

  std::string out("\x89PNG\r\n\x1a\n", 8);
  append_chunk(out, "IHDR", header);
  append_chunk(out, "PLTE", palette);
  if (picture.first_is_transparent) append_chunk(out, "tRNS", std::string_view("\0", 1));
  append_chunk(out, "IDAT", packed);
  append_chunk(out, "IEND", {});
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : digits[word >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace weft
