// What arrives on the control port of a VIPL NIC: the request and the messages behind it, whole or
// in pieces. Anything is understood, and then means what it says, or refused.
#include "libvipl/connection/wire.hpp"
#include "tests/fuzz/require.hpp"

using namespace viaduct::vipl;

namespace {

void check_request(std::span<const std::byte, sizeof(WireRequest)> bytes) {
  Request request, again;
  if (parse(bytes, request) != Parsed::valid) return;
  require(parse(encode(request), again) == Parsed::valid);
  require(again.callee == request.callee && again.caller == request.caller);
  require(again.nonce == request.nonce && again.model == request.model);
  require(again.silent == request.silent);
  require(again.card.queue_pair.number == request.card.queue_pair.number);
  require(again.card.max_transfer_size == request.card.max_transfer_size);
  require(request.callee.discriminator.bytes().size() <= Discriminator::kMax);
}

void check_messages(std::span<const std::byte> bytes) {
  while (true) {
    Message message;
    std::size_t used = 0;
    if (!parse(bytes, message, used) || used == 0) return;
    require(used <= bytes.size() && used <= kLongestMessage);
    const MessageBytes encoded = encode(message);
    require(encoded.size == used);
    Message again;
    std::size_t used_again = 0;
    require(parse(encoded.span(), again, used_again) && used_again == used);
    require(again.type == message.type && again.code == message.code &&
            again.name == message.name && again.key == message.key);
    // Not complete without its last byte.
    require(parse(encoded.span().first(used - 1), again, used_again) && used_again == 0);
    bytes = bytes.subspan(used);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() < sizeof(WireRequest)) {
    check_messages(bytes);
    return 0;
  }
  check_request(bytes.first<sizeof(WireRequest)>());
  check_messages(bytes.subspan(sizeof(WireRequest)));
  return 0;
}
