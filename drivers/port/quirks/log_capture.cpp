#include "drivers/port/quirks/log_capture.hpp"

#include <dlfcn.h>
#include <rte_log.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::port {
namespace {

// DPDK's own threads log too, and one of them may have fetched the stream just before a capture
// ends. So there is one stream for the whole life of the process, and it is never closed; outside
// of captures it passes on what still arrives.
struct Store {
  std::mutex mutex;
  bool capturing = false;
  std::string text;
  std::FILE* stream = nullptr;
};

Store& store() {
  static Store* const instance = new Store;  // never destroyed, for the reason above
  return *instance;
}

ssize_t write_to_store(void*, const char* data, std::size_t size) {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  if (!s.capturing) return static_cast<ssize_t>(std::fwrite(data, 1, size, stderr));
  if (s.text.size() < 64 * 1024) s.text.append(data, size);
  return static_cast<ssize_t>(size);
}

// AF_XDP's libraries speak for themselves, on stderr. They come with the driver's plug-in, if at
// all, so they are looked up and not linked.
using PrintFunction = int (*)(int level, const char* format, va_list arguments);
using SetPrintFunction = PrintFunction (*)(PrintFunction);
struct PrintingLibrary {
  const char *file, *set_print;
};
constexpr PrintingLibrary kPrinting[] = {{"libbpf.so.1", "libbpf_set_print"},
                                         {"libxdp.so.1", "libxdp_set_print"}};
static_assert(std::size(kPrinting) == LogCapture::kLibraries);

SetPrintFunction set_print(const PrintingLibrary& library) {
  void* const handle = dlopen(library.file, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  auto* const function = reinterpret_cast<SetPrintFunction>(dlsym(handle, library.set_print));
  dlclose(handle);  // the plug-in holds it
  return function;
}

int print_to_store(int level, const char* format, va_list arguments) {
  constexpr int warning = 0;  // the most severe level of both
  if (level != warning) return 0;
  char text[512];
  const int size = std::vsnprintf(text, sizeof text, format, arguments);
  if (size > 0) write_to_store(nullptr, text, std::min<std::size_t>(size, sizeof text - 1));
  return size;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const auto end = text.find('\n');
    all.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return all;
}

// What EAL says at every start, or after the true reason, explains nothing.
bool explains(std::string_view line) {
  for (const auto noise :
       {"Detected CPU", "Detected NUMA", "Detected static", "Detected shared", "Selected IOVA",
        "Multi-process socket", "VFIO support", "No available", "No free", "Probe PCI", "No bpffs",
        "without a working bpffs", "Failed to register mp action", "No DPDK runtime directory",
        "Failed to attach device on", "Driver cannot attach the device", "Usage:", "Using memfd"})
    if (line.find(noise) != std::string_view::npos) return false;
  return line.find_first_not_of(" \t") != std::string_view::npos;
}

// "EAL: x", "eth_dev_start(): x" -> "x"
std::string_view without_prefix(std::string_view line) {
  if (line.starts_with("EAL: ")) line.remove_prefix(5);
  const auto call = line.find("(): ");
  if (call != std::string_view::npos && line.find(' ') > call) line.remove_prefix(call + 4);
  while (line.ends_with(' ') || line.ends_with('.') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

LogCapture::LogCapture() : outer_(!store().capturing) {
  if (!outer_) return;
  Store& s = store();
  if (s.stream == nullptr) {
    cookie_io_functions_t io{};
    io.write = write_to_store;
    s.stream = fopencookie(nullptr, "w", io);
    if (s.stream != nullptr) std::setvbuf(s.stream, nullptr, _IOLBF, 0);
  }
  // DPDK does not tell whether the application gave it a stream: ask for the stream with and
  // without.
  before_ = rte_log_get_stream();
  rte_openlog_stream(nullptr);
  had_own_stream_ = rte_log_get_stream() != before_;
  const std::lock_guard lock(s.mutex);
  s.text.clear();
  s.capturing = s.stream != nullptr;
  if (s.capturing) rte_openlog_stream(s.stream);
  for (std::size_t i = 0; i < kLibraries; ++i)
    if (const auto function = set_print(kPrinting[i])) {
      silenced_[i] = true;
      printed_by_[i] = function(print_to_store);
    }
}

LogCapture::~LogCapture() {
  if (!outer_) return;
  rte_openlog_stream(had_own_stream_ ? before_ : nullptr);
  for (std::size_t i = 0; i < kLibraries; ++i)
    if (silenced_[i]) set_print(kPrinting[i])(printed_by_[i]);
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  s.capturing = false;
}

std::string LogCapture::reason(const std::string& otherwise) const {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  std::string out;
  int quoted = 0;
  for (const auto line : lines(s.text)) {
    if (!explains(line) || quoted == 3) continue;
    if (quoted++ > 0) out += ", ";
    out += without_prefix(line);
  }
  return out.empty() ? otherwise : out;
}

StdioCapture::StdioCapture(std::string program)
    : prefix_(std::move(program) + ": "), streams_{{{&stdout, stdout}, {&stderr, stderr}}} {
  for (Stream& stream : streams_) {
    stream.held = open_memstream(&stream.text, &stream.size);
    if (stream.held != nullptr) *stream.variable = stream.held;
  }
}

std::string StdioCapture::complaint() {
  for (Stream& stream : streams_) {
    if (stream.held == nullptr) continue;
    std::fflush(stream.held);
    for (const auto line : lines({stream.text, stream.size}))
      if (line.starts_with(prefix_)) return std::string(line.substr(prefix_.size()));
  }
  return "";
}

StdioCapture::~StdioCapture() {
  for (Stream& stream : streams_) {
    if (stream.held == nullptr) continue;
    *stream.variable = stream.before;
    std::fclose(stream.held);
    std::string_view text(stream.text, stream.size);
    text = text.substr(0, text.find("\nUsage: "));
    for (const auto line : lines(text))
      if (!line.empty() && !line.starts_with("EAL: ") && !line.starts_with(prefix_))
        std::fprintf(stream.before, "%.*s\n", static_cast<int>(line.size()), line.data());
    std::free(stream.text);
  }
}

}  // namespace viaduct::port
