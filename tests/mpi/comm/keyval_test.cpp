#include "libmpi_lite/core/keyval.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/mpi/comm/code_of.hpp"

namespace viaduct::mpi {
namespace {

// An object of this test: what callbacks get as the handle.
struct Object {
  Attributes attributes;
  MPI_Comm handle() { return reinterpret_cast<MPI_Comm>(this); }
};
Object& object(MPI_Comm handle) {
  return *reinterpret_cast<Object*>(handle);
}

std::vector<std::string> calls;
int copy_result, delete_result, copy_flag;

void* number(std::intptr_t n) {
  return reinterpret_cast<void*>(n);
}
std::string text(const void* value) {
  return std::to_string(reinterpret_cast<std::intptr_t>(value));
}

// The copy is the value plus what extra_state says.
int copy(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  calls.push_back("copy " + text(in));
  *static_cast<void**>(out) =
      number(reinterpret_cast<std::intptr_t>(in) + reinterpret_cast<std::intptr_t>(extra));
  *flag = copy_flag;
  return copy_result;
}
int remove(MPI_Comm, int, void* value, void*) {
  calls.push_back("delete " + text(value));
  return delete_result;
}

class KeyvalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    calls.clear();
    copy_result = delete_result = MPI_SUCCESS;
    copy_flag = 1;
  }
  std::string value(Object& o, int keyval) {
    void* const* v = keys_.get(o.attributes, keyval);
    return v ? text(*v) : "none";
  }
  void copy_all() { keys_.copy_all(a_.attributes, a_.handle(), b_.attributes, b_.handle()); }

  Keyvals<MPI_Comm> keys_;
  Object a_, b_;
  const int key_ = keys_.create(copy, remove, number(100));
};

using Calls = std::vector<std::string>;

TEST_F(KeyvalsTest, SetGetErase) {
  EXPECT_EQ(value(a_, key_), "none");
  keys_.set(a_.attributes, a_.handle(), key_, nullptr);  // a null pointer is a value
  EXPECT_EQ(value(a_, key_), "0");
  keys_.set(a_.attributes, a_.handle(), key_, number(7));
  EXPECT_EQ(value(a_, key_), "7");
  keys_.erase(a_.attributes, a_.handle(), key_);
  EXPECT_EQ(value(a_, key_), "none");
  EXPECT_EQ(calls, (Calls{"delete 0", "delete 7"}));
  EXPECT_EQ(code_of([&] { keys_.erase(a_.attributes, a_.handle(), key_); }), MPI_ERR_KEYVAL);
  EXPECT_EQ(calls.size(), 2u);
}

TEST_F(KeyvalsTest, DeletesNewestFirstAndASetAgainIsNew) {
  const int second = keys_.create(copy, remove, nullptr),
            third = keys_.create(copy, remove, nullptr);
  keys_.set(a_.attributes, a_.handle(), third, number(3));
  keys_.set(a_.attributes, a_.handle(), key_, number(1));
  keys_.set(a_.attributes, a_.handle(), second, number(2));
  keys_.set(a_.attributes, a_.handle(), third, number(4));
  keys_.delete_all(a_.attributes, a_.handle());
  EXPECT_EQ(calls, (Calls{"delete 3", "delete 4", "delete 2", "delete 1"}));
  EXPECT_TRUE(a_.attributes.empty());
}

TEST_F(KeyvalsTest, CopiesAsTheCallbacksSay) {
  const int never = keys_.create(MPI_COMM_NULL_COPY_FN, remove, nullptr);
  const int same = keys_.create(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, nullptr);
  keys_.set(a_.attributes, a_.handle(), same, number(1));
  keys_.set(a_.attributes, a_.handle(), key_, number(2));
  keys_.set(a_.attributes, a_.handle(), never, number(3));
  copy_all();
  EXPECT_EQ(value(b_, same), "1");
  EXPECT_EQ(value(b_, key_), "102");
  EXPECT_EQ(value(b_, never), "none");
  EXPECT_EQ(calls, Calls{"copy 2"});
  copy_flag = 0;
  Object c;
  keys_.copy_all(a_.attributes, a_.handle(), c.attributes, c.handle());
  EXPECT_EQ(value(c, key_), "none");
  EXPECT_EQ(value(c, same), "1");
}

TEST_F(KeyvalsTest, AFailedCopyLeavesNothing) {
  const int later = keys_.create(
      [](MPI_Comm, int, void*, void*, void*, int*) { return MPI_ERR_NO_MEM; }, remove, nullptr);
  keys_.set(a_.attributes, a_.handle(), key_, number(2));
  keys_.set(a_.attributes, a_.handle(), later, number(3));
  EXPECT_EQ(code_of([&] { copy_all(); }), MPI_ERR_NO_MEM);
  EXPECT_TRUE(b_.attributes.empty());
  EXPECT_EQ(calls, (Calls{"copy 2", "delete 102"}));
  EXPECT_EQ(value(a_, key_), "2");
}

TEST_F(KeyvalsTest, AFailedDeleteLeavesTheValue) {
  keys_.set(a_.attributes, a_.handle(), key_, number(2));
  delete_result = 12345;  // no code of MPI
  EXPECT_EQ(code_of([&] { keys_.erase(a_.attributes, a_.handle(), key_); }), MPI_ERR_OTHER);
  EXPECT_EQ(code_of([&] { keys_.set(a_.attributes, a_.handle(), key_, number(3)); }),
            MPI_ERR_OTHER);
  EXPECT_EQ(code_of([&] { keys_.delete_all(a_.attributes, a_.handle()); }), MPI_ERR_OTHER);
  EXPECT_EQ(value(a_, key_), "2");
  delete_result = MPI_SUCCESS;
  keys_.delete_all(a_.attributes, a_.handle());
  keys_.free(key_);
  EXPECT_EQ(keys_.living(), 0u);  // the failures have not spoilt the count
}

TEST_F(KeyvalsTest, AFreedKeyLivesUntilItsLastValueGoes) {
  keys_.set(a_.attributes, a_.handle(), key_, number(2));
  copy_all();
  keys_.free(key_);
  EXPECT_NO_THROW(keys_.free(key_)) << "it is still attached";
  EXPECT_EQ(value(a_, key_), "2");  // who has kept the number may use it
  Object c, d;
  EXPECT_EQ(code_of([&] { keys_.set(c.attributes, c.handle(), key_, nullptr); }), MPI_ERR_KEYVAL);
  keys_.copy_all(a_.attributes, a_.handle(), c.attributes, c.handle());
  keys_.delete_all(a_.attributes, a_.handle());
  keys_.delete_all(b_.attributes, b_.handle());
  EXPECT_EQ(keys_.living(), 1u);
  EXPECT_EQ(value(c, key_), "102");
  keys_.erase(c.attributes, c.handle(), key_);
  EXPECT_EQ(keys_.living(), 0u);
  EXPECT_EQ(code_of([&] { value(c, key_); }), MPI_ERR_KEYVAL);
  EXPECT_EQ(calls.back(), "delete 102");
}

TEST_F(KeyvalsTest, SettingAFreshValueManyTimesHoldsTheKeyOnce) {
  for (int i = 0; i < 10; ++i) keys_.set(a_.attributes, a_.handle(), key_, number(i));
  keys_.free(key_);
  EXPECT_EQ(keys_.living(), 1u);
  keys_.erase(a_.attributes, a_.handle(), key_);
  EXPECT_EQ(keys_.living(), 0u);
}

TEST_F(KeyvalsTest, KeysOfOneKindAreNotKeysOfTheOther) {
  Attributes of_a_type;
  EXPECT_EQ(code_of([&] { type_keyvals.set(of_a_type, MPI_DATATYPE_NULL, key_, nullptr); }),
            MPI_ERR_KEYVAL);
  const int type_key = type_keyvals.create(nullptr, nullptr, nullptr);
  EXPECT_EQ(code_of([&] { value(a_, type_key); }), MPI_ERR_KEYVAL);
  EXPECT_EQ(code_of([&] { value(a_, MPI_KEYVAL_INVALID); }), MPI_ERR_KEYVAL);
  type_keyvals.free(type_key);
}

// Callbacks may do to the object what they want.
Keyvals<MPI_Comm>* reentered;
int other_key;

TEST_F(KeyvalsTest, ADeleteCallbackMayDeleteOtherAttributes) {
  reentered = &keys_;
  other_key = key_;
  const int greedy = keys_.create(
      MPI_COMM_DUP_FN,
      [](MPI_Comm comm, int, void*, void*) {
        calls.push_back("greedy");
        reentered->erase(object(comm).attributes, comm, other_key);
        return MPI_SUCCESS;
      },
      nullptr);
  keys_.set(a_.attributes, a_.handle(), key_, number(1));
  keys_.set(a_.attributes, a_.handle(), greedy, number(2));
  keys_.delete_all(a_.attributes, a_.handle());
  EXPECT_EQ(calls, (Calls{"greedy", "delete 1"}));
  keys_.free(key_);
  keys_.free(greedy);
  EXPECT_EQ(keys_.living(), 0u);
}

TEST_F(KeyvalsTest, ACallbackMayFreeItsOwnKey) {
  reentered = &keys_;
  const int suicidal = keys_.create(
      MPI_COMM_DUP_FN,
      [](MPI_Comm, int keyval, void* value, void*) {
        calls.push_back("last words " + text(value));
        if (value == number(1)) reentered->free(keyval);
        return MPI_SUCCESS;
      },
      nullptr);
  keys_.set(a_.attributes, a_.handle(), suicidal, number(1));
  keys_.set(a_.attributes, a_.handle(), suicidal, number(2));
  EXPECT_EQ(value(a_, suicidal), "2");
  keys_.delete_all(a_.attributes, a_.handle());
  EXPECT_EQ(calls, (Calls{"last words 1", "last words 2"}));
  keys_.free(key_);
  EXPECT_EQ(keys_.living(), 0u);
}

TEST_F(KeyvalsTest, ACopyCallbackMayDeleteWhatIsCopied) {
  reentered = &keys_;
  other_key = keys_.create(copy, remove, number(100));
  const int greedy = keys_.create(
      [](MPI_Comm comm, int keyval, void*, void* in, void* out, int* flag) {
        reentered->erase(object(comm).attributes, comm, other_key);
        reentered->erase(object(comm).attributes, comm, keyval);
        reentered->free(keyval);
        *static_cast<void**>(out) = in;
        *flag = 1;
        return MPI_SUCCESS;
      },
      nullptr, nullptr);
  keys_.set(a_.attributes, a_.handle(), greedy, number(1));
  keys_.set(a_.attributes, a_.handle(), other_key, number(2));
  copy_all();
  EXPECT_EQ(calls, Calls{"delete 2"});
  EXPECT_TRUE(a_.attributes.empty());
  EXPECT_TRUE(b_.attributes.empty());
}

}  // namespace
}  // namespace viaduct::mpi
