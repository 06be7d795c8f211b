// Writing pcap files: file header, then a record header and the bytes for each frame. DeviceQueue
// calls it for each frame that crosses the port.
#include "drivers/port/packet_capture.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::port {
namespace {

// The two headers of the pcap format, in the byte order of this machine; readers tell by the magic.
struct FileHeader {
  std::uint32_t magic = 0xa1b23c4d;  // classic pcap with nanoseconds, in the writer's byte order
  std::uint16_t major = 2, minor = 4;
  std::uint32_t zone = 0, accuracy = 0;  // both always 0
  std::uint32_t snap_length = 65535;     // bytes: no frame is longer
  std::uint32_t link_type = 1;           // Ethernet
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
  std::uint32_t seconds, nanoseconds, captured, length;  // time since 1970; bytes here, and in all
};
static_assert(sizeof(RecordHeader) == 16);

[[noreturn]] void throw_cannot_record(const std::string& path, const std::string& why) {
  throw base::SetupError("cannot record frames in " + path + ": " + why +
                         "; give VIADUCT_PCAP another file name ({pid} and {port} are filled in)");
}

}  // namespace

PcapWriter::PcapWriter(const std::string& path) {
  // Truncate the file only once the lock is held: it may be another port's recording.
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) throw_cannot_record(path, std::strerror(errno));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    throw_cannot_record(
        path, errno == EWOULDBLOCK ? "another port is writing to it" : std::strerror(errno));
  // A pipe cannot be truncated and need not be: `mkfifo` and a viewer at the other end work.
  struct stat status {};
  if (fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && ftruncate(fd.get(), 0) != 0)
    throw_cannot_record(path, std::strerror(errno));
  file_ = fdopen(fd.get(), "w");
  if (file_ == nullptr) throw_cannot_record(path, std::strerror(errno));
  fd.release();  // fclose() closes it
  const FileHeader header;
  if (std::fwrite(&header, sizeof header, 1, file_) != 1 || std::fflush(file_) != 0) {
    const int error = errno;
    std::fclose(file_);
    throw_cannot_record(path, std::strerror(error));
  }
}

PcapWriter::~PcapWriter() {
  std::fclose(file_);
}

void PcapWriter::write(std::span<const std::byte> frame) {
  if (failed_) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const RecordHeader header{
      static_cast<std::uint32_t>(now.tv_sec), static_cast<std::uint32_t>(now.tv_nsec),
      static_cast<std::uint32_t>(frame.size()), static_cast<std::uint32_t>(frame.size())};
  failed_ = std::fwrite(&header, sizeof header, 1, file_) != 1 ||
            std::fwrite(frame.data(), 1, frame.size(), file_) != frame.size();
  if (!failed_) ++frames_;
}

}  // namespace viaduct::port
