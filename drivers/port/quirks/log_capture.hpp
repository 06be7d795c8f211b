// Works around: DPDK (seen with 22.11), whose functions return an errno, but say only in the log
// why.
// Safe with another version: it uses DPDK's public functions, and those of libbpf and libxdp only
// from the libraries of the ABI (.so.1) that has them. Costs: nothing but while a port is set up.
//
// Keeps DPDK's log back while something is being set up, so that success is silent and a failure
// can quote the reason. Lines that are known to explain nothing are left out of the quotation;
// where another version words them otherwise, they are quoted, too.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string>

namespace viaduct::port {

// Used under setup_lock() (eal.hpp). A capture inside another one reads the same text.
class LogCapture {
 public:
  static constexpr std::size_t kLibraries = 2;  // that print beside DPDK's log

  LogCapture();
  ~LogCapture();  // DPDK logs to where it did before
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // The captured lines that tell a reason, as one clause: "could not open AF_PACKET socket".
  // `otherwise` when nothing was said.
  std::string reason(const std::string& otherwise) const;

 private:
  bool outer_;  // no capture around this one
  bool had_own_stream_ = false;
  std::FILE* before_ = nullptr;
  std::array<bool, kLibraries> silenced_{};
  std::array<int (*)(int, const char*, std::va_list), kLibraries> printed_by_{};
};

// Holds back what is printed through stdio meanwhile: refusing its arguments, EAL prints a page of
// usage and speaks on stderr beside its log. What other threads print is only delayed.
class StdioCapture {
 public:
  // EAL calls itself `program` when it complains.
  explicit StdioCapture(std::string program);
  ~StdioCapture();  // prints what was held, without what EAL said
  StdioCapture(const StdioCapture&) = delete;
  StdioCapture& operator=(const StdioCapture&) = delete;

  // What EAL complained about, or "".
  std::string complaint();

 private:
  struct Stream {
    std::FILE** variable;  // glibc lets stdout and stderr be set like any variable
    std::FILE* before;
    std::FILE* held = nullptr;
    char* text = nullptr;
    std::size_t size = 0;
  };
  std::string prefix_;
  std::array<Stream, 2> streams_;
};

}  // namespace viaduct::port
