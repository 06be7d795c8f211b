#include "layout.hpp"

#include <algorithm>
#include <cstring>

#include "random.hpp"

namespace stress {

namespace {
constexpr int kMaxPieces = 2000;  // of what is cut into single elements
}

std::size_t size_of(Element element) {
  switch (element) {
    case Element::byte: return 1;
    case Element::integer: return sizeof(int);
    case Element::real: return sizeof(double);
    case Element::pair: return sizeof(int) + sizeof(double);
  }
  return 0;
}

int basic_items(Element element) {
  return element == Element::pair ? 2 : 1;
}

MPI_Datatype Layout::base() const {
  return element_ == Element::byte ? MPI_BYTE : element_ == Element::integer ? MPI_INT : MPI_DOUBLE;
}

Layout::Layout(Element element, int elements, std::uint64_t seed)
    : element_(element), elements_(elements) {
  Random random(seed);
  const int shape = random.below(10);
  if (element == Element::pair)
    make_pairs(random.bits());
  else if (elements == 0 || shape < 5)
    make_plain();
  else if (shape < 7 && elements <= kMaxPieces)
    make_vector(random.bits());
  else if (shape == 9)
    make_struct(random.bits());
  else
    make_blocks(random.bits());
  if (derived_ && !absolute_) MPI_Type_commit(&type_);
  // A gap at the end too, where nothing may be written.
  span_ += 16;
}

void Layout::add_piece(std::size_t at, std::size_t bytes) {
  if (bytes == 0) return;
  if (!pieces_.empty() && pieces_.back().at + pieces_.back().bytes == at)
    pieces_.back().bytes += bytes;
  else
    pieces_.push_back({at, bytes});
  span_ = std::max(span_, at + bytes);
}

void Layout::make_plain() {
  type_ = base();
  count_ = elements_;
  add_piece(0, static_cast<std::size_t>(elements_) * size_of(element_));
}

// Blocks of one length at one distance; sometimes several items of such a type, one behind the
// other.
void Layout::make_vector(std::uint64_t seed) {
  Random random(seed);
  int block = 1;
  for (const int candidate : {2, 3, 4, 5, 8, 16, 64, 1000})
    if (elements_ % candidate == 0 && random.percent(50)) block = candidate;
  const int stride = block + random.between(0, 3);
  int blocks = elements_ / block;
  count_ = blocks % 2 == 0 && random.percent(50) ? 2 : 1;
  blocks /= count_;
  MPI_Type_vector(blocks, block, stride, base(), &type_);
  derived_ = true;
  // The extent of a vector ends with its last block.
  const std::size_t size = size_of(element_), distance = static_cast<std::size_t>(stride) * size;
  const std::size_t extent =
      static_cast<std::size_t>(blocks - 1) * distance + static_cast<std::size_t>(block) * size;
  for (int item = 0; item < count_; ++item)
    for (int b = 0; b < blocks; ++b)
      add_piece(static_cast<std::size_t>(item) * extent + static_cast<std::size_t>(b) * distance,
                static_cast<std::size_t>(block) * size);
}

// Blocks of any length at any distance, the last one first in every other layout.
void Layout::make_blocks(std::uint64_t seed) {
  Random random(seed);
  std::vector<int> lengths, places;
  const int most = std::max(1, elements_ / 4);
  int at = 0;
  for (int left = elements_; left > 0;) {
    const int length = std::min(left, random.between(1, most));
    at += random.between(0, 3);
    lengths.push_back(length);
    places.push_back(at);
    at += length;
    left -= length;
  }
  if (random.percent(50)) {
    std::reverse(lengths.begin(), lengths.end());
    std::reverse(places.begin(), places.end());
  }
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), base(), &type_);
  derived_ = true;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    add_piece(static_cast<std::size_t>(places[i]) * size_of(element_),
              static_cast<std::size_t>(lengths[i]) * size_of(element_));
}

// A piece in one run and the rest in steps, at absolute addresses.
void Layout::make_struct(std::uint64_t seed) {
  Random random(seed);
  const int rest = random.below(std::min(elements_, kMaxPieces) + 1), run = elements_ - rest;
  const std::size_t size = size_of(element_);
  const std::size_t gap = size * static_cast<std::size_t>(random.between(0, 4));
  absolute_ = derived_ = true;
  add_piece(0, static_cast<std::size_t>(run) * size);
  const std::size_t from = static_cast<std::size_t>(run) * size + gap;
  for (int i = 0; i < rest; ++i) add_piece(from + static_cast<std::size_t>(i) * 2 * size, size);
}

// An int and a double that lie anywhere to each other.
void Layout::make_pairs(std::uint64_t seed) {
  Random random(seed);
  const bool real_first = random.percent(50);
  const std::size_t integer_at = real_first ? 8 + 4 * static_cast<std::size_t>(random.below(3)) : 0;
  const std::size_t real_at = real_first ? 0 : 8 * static_cast<std::size_t>(random.between(1, 2));
  const std::size_t extent = 24 + 8 * static_cast<std::size_t>(random.below(2));
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {static_cast<MPI_Aint>(integer_at), static_cast<MPI_Aint>(real_at)};
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, tight;
  MPI_Type_create_struct(2, lengths, places, types, &tight);
  MPI_Type_create_resized(tight, 0, static_cast<MPI_Aint>(extent), &type_);
  MPI_Type_free(&tight);
  derived_ = true;
  count_ = elements_;
  for (int i = 0; i < elements_; ++i) {
    add_piece(static_cast<std::size_t>(i) * extent + integer_at, sizeof(int));
    add_piece(static_cast<std::size_t>(i) * extent + real_at, sizeof(double));
  }
}

Layout::Arguments Layout::arguments(std::byte* memory) {
  if (!absolute_) return {memory, count_, type_};
  if (type_ == MPI_DATATYPE_NULL) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    for (const Piece& piece : pieces_) {
      MPI_Aint place;
      MPI_Get_address(memory + piece.at, &place);
      places.push_back(place);
      lengths.push_back(static_cast<int>(piece.bytes / size_of(element_)));
      types.push_back(base());
    }
    MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                           types.data(), &type_);
    MPI_Type_commit(&type_);
  }
  return {MPI_BOTTOM, 1, type_};
}

void Layout::free_type() {
  if (derived_ && type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
}

void Layout::scatter(const std::vector<std::byte>& stream, std::byte* memory) const {
  std::size_t done = 0;
  for (const Piece& piece : pieces_) {
    const std::size_t bytes = std::min(piece.bytes, stream.size() - done);
    if (bytes != 0) std::memcpy(memory + piece.at, stream.data() + done, bytes);
    done += bytes;
    if (done == stream.size()) return;
  }
}

}  // namespace stress
