// What a child of fork() has of its parent's NICs: nothing.
//
// It would keep its parent's connections open, so that nobody would notice the end of the parent;
// and its parent's threads, which every function counts on, are not there. So in the child the
// library's own descriptors are closed at once, and handles of the parent are none.
#pragma once

namespace viaduct::vipl {

// A descriptor that the library has opened is closed in children, until it is disowned.
void own_descriptor(int fd);
void disown_descriptor(int fd);

// How often the process was forked since the library was first used: whoever was made when the
// number was another one is the parent's.
unsigned forks();

}  // namespace viaduct::vipl
