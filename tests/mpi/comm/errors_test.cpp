#include "libmpi_lite/core/errors.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <set>

#include "tests/mpi/comm/code_of.hpp"

namespace viaduct::mpi {
namespace {

TEST(ErrorClasses, NamesAreThoseOfTheHeader) {
  EXPECT_EQ(error_name(MPI_SUCCESS), "MPI_SUCCESS");
  EXPECT_EQ(error_name(MPI_ERR_RANK), "MPI_ERR_RANK");
  EXPECT_EQ(error_name(MPI_ERR_IN_STATUS), "MPI_ERR_IN_STATUS");
  EXPECT_EQ(error_name(MPI_ERR_INFO_KEY), "MPI_ERR_INFO_KEY");
  EXPECT_EQ(error_name(MPI_ERR_KEYVAL), "MPI_ERR_KEYVAL");
  EXPECT_EQ(error_name(MPI_ERR_NO_MEM), "MPI_ERR_NO_MEM");
  EXPECT_EQ(error_name(MPI_ERR_RMA_SYNC), "MPI_ERR_RMA_SYNC");
  EXPECT_EQ(error_name(MPI_ERR_WIN), "MPI_ERR_WIN");
  EXPECT_EQ(error_name(MPI_ERR_ERRHANDLER), "MPI_ERR_ERRHANDLER");
  EXPECT_EQ(error_name(MPI_ERR_ABI), "MPI_ERR_ABI");
}

TEST(ErrorClasses, EachHasATextOfItsOwn) {
  std::set<std::string> texts;
  for (int code = 0; code <= MPI_ERR_ABI; ++code) {
    EXPECT_EQ(error_class(code), code);
    EXPECT_LT(error_text(code).size(), static_cast<std::size_t>(MPI_MAX_ERROR_STRING));
    EXPECT_TRUE(texts.insert(error_text(code)).second) << error_text(code);
  }
  EXPECT_EQ(error_class(MPI_ERR_LASTCODE), MPI_ERR_LASTCODE);
  EXPECT_EQ(code_of([] { error_class(MPI_ERR_ABI + 1); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([] { error_text(-1); }), MPI_ERR_ARG);
}

TEST(ErrorClasses, ProgramsAddAndRemove) {
  const int* last = last_used_code();
  EXPECT_EQ(*last, MPI_ERR_LASTCODE);
  const int mine = add_error_class(), code = add_error_code(mine),
            other = add_error_code(MPI_ERR_ARG);
  EXPECT_EQ(*last, other);
  EXPECT_EQ(last, last_used_code());
  EXPECT_GT(mine, MPI_ERR_LASTCODE);
  EXPECT_EQ(error_class(mine), mine);
  EXPECT_EQ(error_class(code), mine);
  EXPECT_EQ(error_class(other), MPI_ERR_ARG);
  EXPECT_EQ(error_text(code), "");
  add_error_string(code, "the tea is cold");
  add_error_string(code, "the tea is gone");
  EXPECT_EQ(error_text(code), "the tea is gone");
  EXPECT_EQ(error_text(mine), "");

  EXPECT_EQ(code_of([&] { add_error_code(code); }), MPI_ERR_ARG);  // no class
  EXPECT_EQ(code_of([&] { add_error_code(MPI_SUCCESS); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { add_error_string(MPI_ERR_ARG, "x"); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { add_error_string(mine, std::string(MPI_MAX_ERROR_STRING, 'x')); }),
            MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { remove_error_class(MPI_ERR_ARG); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { remove_error_class(code); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { remove_error_code(mine); }), MPI_ERR_ARG);
  EXPECT_EQ(code_of([&] { remove_error_class(mine); }), MPI_ERR_OTHER);  // it has a code
  EXPECT_EQ(code_of([&] { remove_error_string(other); }), MPI_ERR_ARG);

  remove_error_string(code);
  EXPECT_EQ(error_text(code), "");
  remove_error_code(other);
  EXPECT_EQ(*last, code);
  remove_error_code(code);
  remove_error_class(mine);
  EXPECT_FALSE(is_error_code(mine));
  EXPECT_EQ(*last, MPI_ERR_LASTCODE);
  const int next = add_error_class();
  EXPECT_GT(next, other);  // numbers are not used again
  remove_error_class(next);
}

}  // namespace
}  // namespace viaduct::mpi
