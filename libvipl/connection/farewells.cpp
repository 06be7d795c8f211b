#include "libvipl/connection/farewells.hpp"

namespace viaduct::vipl {
namespace {

constexpr auto kLongest = std::chrono::seconds(1);
// Of them at a time; then the oldest has to go.
constexpr std::size_t kMost = 1024;

}  // namespace

void Farewells::add(std::shared_ptr<Stream> stream) {
  stream->set_owner(*this);
  stream->finish();
  if (departing_.size() >= kMost) departing_.pop_front();
  Stream* const which = stream.get();
  departing_.push_back(
      {std::move(stream), Loop::Timer(loop_, kLongest, [this, which] { remove(*which); })});
}

void Farewells::refuse(std::shared_ptr<Stream> stream, Refusal refusal) {
  stream->send({.type = MessageType::refused, .code = static_cast<std::uint8_t>(refusal)});
  add(std::move(stream));
}

void Farewells::refuse(Descriptor connection, Refusal refusal) {
  refuse(Stream::make(loop_, std::move(connection), Stream::Kind::connected, *this), refusal);
}

void Farewells::remove(Stream& stream) {
  departing_.remove_if([&](const Departing& d) { return d.stream.get() == &stream; });
}

}  // namespace viaduct::vipl
