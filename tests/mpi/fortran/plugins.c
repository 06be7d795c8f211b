/* Loads shared libraries, each in a scope of its own, and calls plugin() in each. Arguments: which.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(NULL, NULL);
  for (int i = 1; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library ? dlsym(library, "plugin_") : NULL;
    if (!symbol) return puts(dlerror()), 1;
    void (*call)(int*);
    *(void**)&call = symbol;
    int good = 0;
    call(&good);
    printf("%s: %s\n", argv[i], good ? "good" : "wrong");
    if (!good) return 1;
  }
  return MPI_Finalize();
}
