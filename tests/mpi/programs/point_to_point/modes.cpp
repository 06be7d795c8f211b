// Blocking, nonblocking and persistent operations in all modes; MPI_PROC_NULL; MPI_Sendrecv.
#include <cstdlib>

#include "sections.hpp"

namespace p2p {
namespace {

struct ModeCalls {
  const char* name;
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*init)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
};
const ModeCalls kModes[] = {{"standard", MPI_Send, MPI_Isend, MPI_Send_init},
                            {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init},
                            {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init},
                            {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init}};

class Buffered {  // a buffer for buffered sends, while it lives
 public:
  explicit Buffered(int bytes) : memory_(static_cast<std::size_t>(bytes)) {
    MPI_Buffer_attach(memory_.data(), bytes);
  }
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;
  ~Buffered() {
    void* address = nullptr;
    int size = 0;
    MPI_Buffer_detach(&address, &size);
    CHECK(address == memory_.data());
    CHECK_EQ(size, static_cast<int>(memory_.size()));
  }

 private:
  std::vector<char> memory_;
};

// The receive is posted before the sender starts, as ready mode wants.
template <class Send>
void exchange(int bytes, int tag, Send send) {
  const std::vector<char> out = pattern(bytes, job::rank());
  std::vector<char> in(out.size() + 1, 'x');
  MPI_Request request;
  MPI_Status status = scrambled();
  MPI_Irecv(in.data(), bytes + 1, MPI_CHAR, before(), tag, MPI_COMM_WORLD, &request);
  MPI_Request told;
  MPI_Isend(nullptr, 0, MPI_CHAR, before(), 901, MPI_COMM_WORLD, &told);
  await(next(), 901);
  send(out.data(), bytes, tag);
  MPI_Wait(&request, &status);
  MPI_Wait(&told, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQ(status.MPI_SOURCE, before());
  CHECK_EQ(status.MPI_TAG, tag);
  CHECK_EQ(status.MPI_ERROR, 4712);  // calls that return one status leave it alone (section 3.2.5)
  CHECK_EQ(count_of(status), bytes);
  CHECK_EQ(in.back(), 'x');
  in.pop_back();
  CHECK(in == pattern(bytes, before()));
}

void all_modes() {
  for (const ModeCalls& mode : kModes) {
    job::section(std::string(mode.name) + " mode: blocking, nonblocking, persistent");
    const Buffered buffer(8 << 20);
    for (const int bytes : kSizes) {
      exchange(bytes, 1, [&](const char* data, int count, int tag) {
        mode.send(data, count, MPI_CHAR, next(), tag, MPI_COMM_WORLD);
      });
      exchange(bytes, 2, [&](const char* data, int count, int tag) {
        MPI_Request request;
        mode.start(data, count, MPI_CHAR, next(), tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == MPI_REQUEST_NULL);
      });
      exchange(bytes, 3, [&](const char* data, int count, int tag) {
        MPI_Request request;
        mode.init(data, count, MPI_CHAR, next(), tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request != MPI_REQUEST_NULL);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
      });
    }
  }
}

void persistent() {
  job::section("persistent requests are started again and again, MPI_Startall");
  int out[2], in[2];
  MPI_Request requests[4];
  for (int i = 0; i < 2; ++i) {
    MPI_Recv_init(&in[i], 1, MPI_INT, before(), i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send_init(&out[i], 1, MPI_INT, next(), i, MPI_COMM_WORLD, &requests[2 + i]);
  }
  for (int round = 0; round < 100; ++round) {
    out[0] = 1000 * job::rank() + round;
    out[1] = -out[0];
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(in[0], 1000 * before() + round);
    CHECK_EQ(in[1], -in[0]);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

// Each time it is another process that sends, and the receive is there before.
void persistent_from_anybody() {
  const int kBytes = job::share_of(1 << 20);
  job::section("a persistent receive from MPI_ANY_SOURCE is started again and again");
  std::vector<char> in(kBytes);
  MPI_Request request;
  MPI_Recv_init(in.data(), kBytes, MPI_CHAR, MPI_ANY_SOURCE, 14, MPI_COMM_WORLD, &request);
  for (int round = 1; round <= 4; ++round) {
    const int to = (job::rank() + round) % job::size();
    const int from = (job::rank() + round * (job::size() - 1)) % job::size();
    MPI_Status status;
    in.assign(in.size(), 'x');
    MPI_Start(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::vector<char> out = pattern(kBytes, job::rank() + 100 * round);
    MPI_Request send;
    MPI_Isend(out.data(), kBytes, MPI_CHAR, to, 14, MPI_COMM_WORLD, &send);
    MPI_Wait(&request, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK_EQ(status.MPI_SOURCE, from);
    CHECK(in == pattern(kBytes, from + 100 * round));
  }
  MPI_Request_free(&request);
}

// A synchronous send is complete only when its receive has begun (section 3.4).
void synchronous() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, 5);
    std::vector<char> in(out.size());
    MPI_Request send, receive;
    MPI_Issend(out.data(), bytes, MPI_CHAR, next(), 7, MPI_COMM_WORLD, &send);
    int flag = 0;
    for (int i = 0; i < 50; ++i) MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Request told;
    MPI_Isend(nullptr, 0, MPI_CHAR, next(), 902, MPI_COMM_WORLD, &told);
    await(before(), 902);  // it has looked at its send
    MPI_Irecv(in.data(), bytes, MPI_CHAR, before(), 7, MPI_COMM_WORLD, &receive);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&told, MPI_STATUS_IGNORE);
    CHECK(in == out);
  }
}

bool is_from_nobody(const MPI_Status& status) {
  return status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG &&
         count_of(status) == 0;
}

void no_process() {
  int value = 17, flag = 0;
  MPI_Status status = scrambled();
  MPI_Request request;
  MPI_Message message;
  for (const ModeCalls& mode : kModes) {
    CHECK_EQ(mode.send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD), MPI_SUCCESS);
    mode.start(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    mode.init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Request_free(&request);
  }
  // With no type either, as programs leave it.
  for (const auto& mode : kModes)
    CHECK_EQ(mode.send(nullptr, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD),
             MPI_SUCCESS);
  CHECK_EQ(MPI_Recv(nullptr, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status),
           MPI_SUCCESS);
  CHECK(is_from_nobody(status));
  CHECK_EQ(MPI_Sendrecv(nullptr, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, nullptr, 0,
                        MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status),
           MPI_SUCCESS);
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(is_from_nobody(status));
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
  status = scrambled();
  MPI_Wait(&request, &status);
  CHECK(is_from_nobody(status));
  MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  status = scrambled();
  MPI_Wait(&request, &status);
  CHECK(is_from_nobody(status));
  MPI_Request_free(&request);
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  CHECK(is_from_nobody(status));
  status = scrambled();
  MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
  CHECK(flag && is_from_nobody(status));
  status = scrambled();
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC && is_from_nobody(status));
  status = scrambled();
  MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
  CHECK(message == MPI_MESSAGE_NULL && is_from_nobody(status));
  MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK(flag && message == MPI_MESSAGE_NO_PROC);
  MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
  status = scrambled();
  MPI_Wait(&request, &status);
  CHECK(message == MPI_MESSAGE_NULL && is_from_nobody(status));
  CHECK_EQ(value, 17);
}

void sendrecv() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, job::rank());
    std::vector<char> in(out.size());
    MPI_Status status = scrambled();
    MPI_Sendrecv(out.data(), bytes, MPI_CHAR, next(), 4, in.data(), bytes, MPI_CHAR, before(),
                 MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(in == pattern(bytes, before()));
    CHECK_EQ(status.MPI_SOURCE, before());
    CHECK_EQ(status.MPI_TAG, 4);
    CHECK_EQ(count_of(status), bytes);
    std::vector<char> both = out;
    MPI_Sendrecv_replace(both.data(), bytes, MPI_CHAR, next(), 5, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
                         &status);
    CHECK(both == pattern(bytes, before()));
    CHECK_EQ(status.MPI_SOURCE, before());
  }
  // With nobody on one side or both.
  int mine = job::rank(), theirs = -1;
  const int last = job::size() - 1;
  const int up = job::rank() == last ? MPI_PROC_NULL : job::rank() + 1;
  const int down = job::rank() == 0 ? MPI_PROC_NULL : job::rank() - 1;
  MPI_Sendrecv(&mine, 1, MPI_INT, up, 6, &theirs, 1, MPI_INT, down, 6, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQ(theirs, job::rank() == 0 ? -1 : job::rank() - 1);
  MPI_Sendrecv_replace(&mine, 1, MPI_INT, up, 6, down, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(mine, job::rank() == 0 ? 0 : job::rank() - 1);
}

// Every second int of an array is replaced; the others stay.
void sendrecv_replace_strided() {
  constexpr int kItems = 30000;
  MPI_Datatype every_second;
  MPI_Type_vector(kItems, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  std::vector<int> data(2 * kItems, job::rank());
  MPI_Sendrecv_replace(data.data(), 1, every_second, next(), 8, before(), 8, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  int wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i)
    wrong += data[i] != (i % 2 == 0 ? before() : job::rank());
  CHECK_EQ(wrong, 0);
  MPI_Type_free(&every_second);
}

MPI_Datatype bytes_at(MPI_Aint place, int count) {
  MPI_Datatype type;
  MPI_Type_create_hindexed(1, &count, &place, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  return type;
}

// The buffer is a null pointer, and all of the address is in the type.
void at_bottom() {
  for (const int bytes : kSizes) {
    const std::vector<char> out = pattern(bytes, job::rank());
    std::vector<char> in(out.size());
    MPI_Aint out_at, in_at;
    MPI_Get_address(out.data(), &out_at);
    MPI_Get_address(in.data(), &in_at);
    MPI_Datatype from = bytes_at(out_at, bytes), into = bytes_at(in_at, bytes);
    MPI_Sendrecv(MPI_BOTTOM, 1, from, next(), 9, MPI_BOTTOM, 1, into, before(), 9, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(in == pattern(bytes, before()));
    MPI_Type_free(&from);
    MPI_Type_free(&into);
  }
  // Nothing, from nowhere.
  MPI_Datatype elsewhere = bytes_at(-4, 4);
  MPI_Sendrecv(nullptr, 0, elsewhere, next(), 9, nullptr, 0, elsewhere, before(), 9, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&elsewhere);
}

}  // namespace

void modes() {
  all_modes();
  persistent();
  persistent_from_anybody();
  job::section("a synchronous send is not complete before its receive is there");
  synchronous();
  job::section("MPI_PROC_NULL: every call returns at once and changes nothing");
  no_process();
  job::section("MPI_Sendrecv and MPI_Sendrecv_replace");
  sendrecv();
  sendrecv_replace_strided();
  job::section("buffers at MPI_BOTTOM");
  at_bottom();
}

}  // namespace p2p
