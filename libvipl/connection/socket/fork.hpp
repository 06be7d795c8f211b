// What a child process of fork() inherits of its parent's NICs: nothing.
//
// Without this the child would keep its parent's TCP connections open, so that the other sides
// would not notice the end of the parent. The parent's threads, on which every function relies, do
// not exist in the child either. So pthread_atfork() closes all file descriptors of the library in
// the child at once, and the parent's handles are invalid there.
//
// All functions may be called by any thread and take no lock.
#pragma once

namespace viaduct::vipl {

// Marks a descriptor that the library has opened: children close it, until it is disowned.
void close_in_children(int fd);
void forget_fd(int fd);

// The number of forks between the process that first used the library and this one. An object
// remembers the number when it is made; if the number is another one now, the object belongs to a
// parent process.
unsigned forks();

}  // namespace viaduct::vipl
