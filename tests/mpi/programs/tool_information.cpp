// The tool information interface: before MPI_Init, between it and MPI_Finalize, and behind that.
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "job.hpp"

namespace {

// Outside of MPI there is no rank to name, and nobody to add up failures.
int failures_outside = 0;
void expect(bool good, const char* what, int line) {
  if (good) return;
  ++failures_outside;
  std::cerr << __FILE__ << ":" << line << ": not true: " << what << std::endl;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

using Expect = std::function<void(bool, const char*, int)>;

// A string by the rules of the interface: first its length, then all of it, then a part.
template <class Get>
std::string text_of(Get get) {
  int length = 0;
  get(nullptr, &length);
  std::vector<char> all(static_cast<std::size_t>(length) + 1, '#');
  get(all.data(), &length);
  char part[4] = {'#', '#', '#', '#'};
  int three = 3;
  get(part, &three);
  const std::string text(all.data());
  const bool right = static_cast<int>(text.size()) + 1 == length && three == length &&
                     all.back() == '#' && part[3] == '#' && text.compare(0, 2, part) == 0;
  get(all.data(), nullptr);  // is ignored
  return right ? text : "wrong: " + text;
}

struct ControlVariable {
  std::string name, meaning;
};

ControlVariable control_variable(int index) {
  const auto get = [&](char* name, int* name_length, char* meaning, int* meaning_length) {
    return MPI_T_cvar_get_info(index, name, name_length, nullptr, nullptr, nullptr, meaning,
                               meaning_length, nullptr, nullptr);
  };
  return {text_of([&](char* out, int* length) { get(out, length, nullptr, nullptr); }),
          text_of([&](char* out, int* length) { get(nullptr, nullptr, out, length); })};
}

class Control {
 public:
  explicit Control(const char* name) {
    int index = -1, count = 0;
    MPI_T_cvar_get_index(name, &index);
    MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &count);
    value_.resize(static_cast<std::size_t>(count));
  }
  ~Control() { MPI_T_cvar_handle_free(&handle_); }
  std::string value() {
    return MPI_T_cvar_read(handle_, value_.data()) == MPI_SUCCESS ? value_.data() : "unreadable";
  }
  int set(const char* value) { return MPI_T_cvar_write(handle_, value); }

 private:
  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  std::vector<char> value_;
};

// Nothing but MPI_T_init_thread works before it.
void not_initialized() {
  int n;
  MPI_T_pvar_session session;
  EXPECT(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_category_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_event_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_pvar_session_create(&session) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

void starts() {
  int provided = -1;
  EXPECT(MPI_T_init_thread(MPI_THREAD_MULTIPLE + 1, &provided) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, nullptr) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS);
  EXPECT(provided >= MPI_THREAD_FUNNELED);
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
  EXPECT(MPI_T_finalize() == MPI_SUCCESS);  // one is left
}

void control_variables_have_names() {
  int number = 0;
  EXPECT(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number > 20);
  std::set<std::string> names;
  for (int i = 0; i < number; ++i) {
    const ControlVariable variable = control_variable(i);
    EXPECT(variable.name.compare(0, 8, "VIADUCT_") == 0);
    EXPECT(!variable.meaning.empty() && variable.meaning.compare(0, 6, "wrong:") != 0);
    EXPECT(names.insert(variable.name).second);
    int index = -1, verbosity = 0, bind = 0, scope = 0;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    EXPECT(MPI_T_cvar_get_index(variable.name.c_str(), &index) == MPI_SUCCESS && index == i);
    EXPECT(MPI_T_cvar_get_info(i, nullptr, nullptr, &verbosity, &type, &enumeration, nullptr,
                               nullptr, &bind, &scope) == MPI_SUCCESS);
    EXPECT(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
    EXPECT(type == MPI_CHAR && enumeration == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT &&
           scope == MPI_T_SCOPE_ALL);
  }
  int index, length = 0;
  char name[8];
  for (const int wrong : {-1, number, INT_MAX})
    EXPECT(MPI_T_cvar_get_info(wrong, name, &length, nullptr, nullptr, nullptr, nullptr, nullptr,
                               nullptr, nullptr) == MPI_T_ERR_INVALID_INDEX);
  EXPECT(MPI_T_cvar_get_index("VIADUCT_NO_SUCH_THING", &index) == MPI_T_ERR_INVALID_NAME);
  EXPECT(MPI_T_cvar_get_index(nullptr, &index) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_cvar_get_index("VIADUCT_STATS", nullptr) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_cvar_get_num(nullptr) == MPI_T_ERR_INVALID);
}

void control_variables_are_the_environment() {
  ::unsetenv("VIADUCT_EAGER_SHM");
  Control eager("VIADUCT_EAGER_SHM");
  EXPECT(eager.value() == "16384");  // the default
  EXPECT(eager.set("8192") == MPI_SUCCESS);
  EXPECT(eager.value() == "8192");
  EXPECT(std::strcmp(std::getenv("VIADUCT_EAGER_SHM"), "8192") == 0);
  EXPECT(eager.set("plenty") == MPI_T_ERR_INVALID);
  EXPECT(eager.set(std::string(100'000, '9').c_str()) == MPI_T_ERR_INVALID);
  EXPECT(eager.value() == "8192");
  ::setenv("VIADUCT_EAGER_SHM", "4096", 1);
  EXPECT(eager.value() == "4096");
  EXPECT(eager.set(nullptr) == MPI_T_ERR_INVALID);
  ::unsetenv("VIADUCT_EAGER_SHM");
  EXPECT(eager.set("x") == MPI_T_ERR_INVALID && std::getenv("VIADUCT_EAGER_SHM") == nullptr);

  MPI_T_cvar_handle handle;
  int count;
  EXPECT(MPI_T_cvar_handle_alloc(-1, nullptr, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
  EXPECT(MPI_T_cvar_handle_alloc(0, nullptr, nullptr, &count) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_cvar_handle_alloc(0, nullptr, &handle, &count) == MPI_SUCCESS);
  const MPI_T_cvar_handle old = handle;
  char value[8192];
  EXPECT(MPI_T_cvar_read(handle, value) == MPI_SUCCESS);
  EXPECT(MPI_T_cvar_read(handle, nullptr) == MPI_T_ERR_INVALID);
  EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
  EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE);
  EXPECT(MPI_T_cvar_read(old, value) == MPI_T_ERR_INVALID_HANDLE);
  EXPECT(MPI_T_cvar_write(old, "1") == MPI_T_ERR_INVALID_HANDLE);
}

void nothing_to_measure_yet() {
  int number = -1, categories = -1, stamp = -1;
  EXPECT(MPI_T_pvar_get_num(&number) == MPI_SUCCESS && number == 0);
  EXPECT(MPI_T_category_get_num(&categories) == MPI_SUCCESS && categories == 3);
  EXPECT(MPI_T_category_changed(&stamp) == MPI_SUCCESS);
}

struct Measured {
  std::string name;
  int index, variable_class;
};
std::vector<Measured> performance_variables() {
  std::vector<Measured> all;
  int number = 0;
  MPI_T_pvar_get_num(&number);
  for (int i = 0; i < number; ++i) {
    int variable_class = 0;
    const auto get = [&](char* out, int* length) {
      MPI_T_pvar_get_info(i, out, length, nullptr, &variable_class, nullptr, nullptr, nullptr,
                          nullptr, nullptr, nullptr, nullptr, nullptr);
    };
    const std::string name = text_of(get);
    all.push_back({name, i, variable_class});
  }
  return all;
}

void describes_performance_variables() {
  std::set<std::string> names;
  for (const Measured& v : performance_variables()) {
    CHECK(names.insert(v.name).second);
    CHECK(v.variable_class == MPI_T_PVAR_CLASS_COUNTER ||
          v.variable_class == MPI_T_PVAR_CLASS_LEVEL);
    int index = -1, readonly = 0, continuous = 0, atomic = 1, bind = 0, verbosity = 0, length = 0;
    MPI_Datatype type;
    CHECK_EQ(MPI_T_pvar_get_index(v.name.c_str(), v.variable_class, &index), MPI_SUCCESS);
    CHECK_EQ(index, v.index);
    CHECK_EQ(MPI_T_pvar_get_index(v.name.c_str(), MPI_T_PVAR_CLASS_TIMER, &index),
             MPI_T_ERR_INVALID_NAME);
    CHECK_EQ(MPI_T_pvar_get_info(v.index, nullptr, nullptr, &verbosity, nullptr, &type, nullptr,
                                 nullptr, &length, &bind, &readonly, &continuous, &atomic),
             MPI_SUCCESS);
    CHECK(length > 1);  // there is a description
    CHECK(type == MPI_UNSIGNED_LONG_LONG && readonly && continuous && !atomic);
  }
  int index;
  CHECK(names.size() > 5);
  CHECK_EQ(MPI_T_pvar_get_index("no_such", MPI_T_PVAR_CLASS_COUNTER, &index),
           MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_pvar_get_info(-1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                               nullptr, nullptr, nullptr, nullptr, nullptr),
           MPI_T_ERR_INVALID_INDEX);
}

// The sum of all variables with that end of their names.
unsigned long long sum_of(MPI_T_pvar_session session, const std::string& end) {
  unsigned long long sum = 0;
  for (const Measured& v : performance_variables()) {
    if (v.name.size() < end.size() || v.name.substr(v.name.size() - end.size()) != end) continue;
    MPI_T_pvar_handle handle;
    int count = 0;
    unsigned long long value = ~0ull;
    CHECK_EQ(MPI_T_pvar_handle_alloc(session, v.index, nullptr, &handle, &count), MPI_SUCCESS);
    CHECK_EQ(count, 1);
    CHECK_EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_handle_free(session, &handle), MPI_SUCCESS);
    CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    sum += value;
  }
  return sum;
}

void counts_messages() {
  constexpr int kMessages = 10, kBytes = 100;
  MPI_T_pvar_session session;
  CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  const auto all_messages = [&] {
    return sum_of(session, "_transfer_eager_messages") +
           sum_of(session, "_transfer_write_messages");
  };
  const auto all_bytes = [&] {
    return sum_of(session, "_transfer_eager_bytes") + sum_of(session, "_transfer_write_bytes");
  };
  const unsigned long long messages = all_messages(), bytes = all_bytes();
  const int next = (job::rank() + 1) % job::size();
  for (int i = 0; i < kMessages; ++i) {
    char out[kBytes] = {}, in[kBytes];
    MPI_Sendrecv(out, kBytes, MPI_CHAR, next, 0, in, kBytes, MPI_CHAR, MPI_ANY_SOURCE, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  CHECK_EQ(all_messages() - messages, 1ull * kMessages);
  CHECK_EQ(all_bytes() - bytes, 1ull * kMessages * kBytes);
  CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
  CHECK(session == MPI_T_PVAR_SESSION_NULL);
}

void refuses_wrong_uses() {
  MPI_T_pvar_session session, other;
  MPI_T_pvar_handle handle, old;
  int count;
  unsigned long long value = 7;
  CHECK_EQ(MPI_T_pvar_session_create(nullptr), MPI_T_ERR_INVALID);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_session_create(&other);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, INT_MAX, nullptr, &handle, &count),
           MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_pvar_handle_alloc(nullptr, 0, nullptr, &handle, &count),
           MPI_T_ERR_INVALID_SESSION);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, 0, nullptr, nullptr, &count), MPI_T_ERR_INVALID);
  MPI_T_pvar_handle_alloc(session, 0, nullptr, &handle, &count);
  CHECK_EQ(MPI_T_pvar_start(session, handle), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_stop(session, handle), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_write(session, handle, &value), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_reset(session, handle), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_readreset(session, handle, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
  CHECK_EQ(value, 7ull);
  CHECK_EQ(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_pvar_read(other, handle, &value), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_pvar_read(session, handle, nullptr), MPI_T_ERR_INVALID);
  old = handle;
  MPI_T_pvar_session_free(&session);  // and its handles
  CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_T_ERR_INVALID_SESSION);
  CHECK_EQ(MPI_T_pvar_read(other, old, &value), MPI_T_ERR_INVALID_HANDLE);
  MPI_T_pvar_session_free(&other);
  Control eager("VIADUCT_EAGER_SHM");
  CHECK_EQ(eager.set("1024"), MPI_T_ERR_CVAR_SET_NEVER);
}

// Each variable is in one category.
void sorts_into_categories(int stamp_before) {
  int stamp = -1, number = 0, control = 0, performance = 0;
  CHECK_EQ(MPI_T_category_changed(&stamp), MPI_SUCCESS);
  CHECK(stamp > stamp_before);
  MPI_T_category_get_num(&number);
  CHECK(number > 3);
  std::set<int> seen_control, seen_performance;
  for (int i = 0; i < number; ++i) {
    int controls = -1, performances = -1, parts = -1, events = -1, index = -1;
    const std::string name = text_of([&](char* out, int* length) {
      MPI_T_category_get_info(i, out, length, nullptr, nullptr, &controls, &performances, &parts);
    });
    CHECK_EQ(MPI_T_category_get_index(name.c_str(), &index), MPI_SUCCESS);
    CHECK_EQ(index, i);
    CHECK_EQ(parts, 0);
    CHECK_EQ(MPI_T_category_get_num_events(i, &events), MPI_SUCCESS);
    CHECK_EQ(events, 0);
    CHECK(controls + performances > 0);
    std::vector<int> indices(static_cast<std::size_t>(controls + performances) + 1, -1);
    CHECK_EQ(MPI_T_category_get_cvars(i, controls, indices.data()), MPI_SUCCESS);
    for (int k = 0; k < controls; ++k) seen_control.insert(indices[static_cast<std::size_t>(k)]);
    CHECK_EQ(MPI_T_category_get_pvars(i, performances, indices.data()), MPI_SUCCESS);
    for (int k = 0; k < performances; ++k)
      seen_performance.insert(indices[static_cast<std::size_t>(k)]);
    CHECK_EQ(indices.back(), -1);
    CHECK_EQ(MPI_T_category_get_categories(i, 1, indices.data()), MPI_SUCCESS);
    CHECK_EQ(MPI_T_category_get_events(i, 1, indices.data()), MPI_SUCCESS);
  }
  MPI_T_cvar_get_num(&control);
  MPI_T_pvar_get_num(&performance);
  CHECK_EQ(seen_control.size(), static_cast<std::size_t>(control));
  CHECK_EQ(seen_performance.size(), static_cast<std::size_t>(performance));
  CHECK_EQ(MPI_T_category_get_index("no such", &control), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_category_get_cvars(number, 1, &control), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_category_get_cvars(0, 1, nullptr), MPI_T_ERR_INVALID);
}

void has_no_events() {
  int number = -1, length = 0;
  MPI_T_event_registration registration = nullptr;
  MPI_Count stamp;
  CHECK_EQ(MPI_T_event_get_num(&number), MPI_SUCCESS);
  CHECK_EQ(number, 0);
  CHECK_EQ(MPI_T_source_get_num(&number), MPI_SUCCESS);
  CHECK_EQ(number, 0);
  CHECK_EQ(MPI_T_event_get_index("any", &number), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_event_handle_alloc(0, nullptr, MPI_INFO_NULL, &registration),
           MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_event_handle_free(registration, nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_event_read(nullptr, 0, &stamp), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_source_get_timestamp(0, &stamp), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, nullptr, &length),
           MPI_T_ERR_INVALID_HANDLE);
}

void after_finalize(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long value;
  EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_T_ERR_NOT_ACCESSIBLE);
  EXPECT(!performance_variables().empty());
  EXPECT(Control("VIADUCT_STATS").value() != "unreadable");
  EXPECT(MPI_T_finalize() == MPI_SUCCESS);
  not_initialized();
}

}  // namespace

int main(int argc, char** argv) {
  not_initialized();
  starts();
  control_variables_have_names();
  control_variables_are_the_environment();
  nothing_to_measure_yet();
  int stamp = 0;
  MPI_T_category_changed(&stamp);
  MPI_Init(&argc, &argv);
  job::section("before MPI_Init");
  CHECK_EQ(failures_outside, 0);
  job::section("performance variables are described");
  describes_performance_variables();
  job::section("they count messages");
  counts_messages();
  job::section("wrong uses are refused");
  refuses_wrong_uses();
  job::section("each variable is in one category");
  sorts_into_categories(stamp);
  job::section("there are no events");
  has_no_events();
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  int count;
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, 0, nullptr, &handle, &count);
  const int failed = job::report();
  after_finalize(session, handle);
  return failed || failures_outside != 0;
}
