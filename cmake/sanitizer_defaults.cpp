// What programs built with AddressSanitizer know about leaks without being told in the environment.

/// The leak check of GCC 12 takes heap blocks for the head of a library's thread-local memory when
/// they happen to lie 16 bytes behind the start of a page, and then reads addresses that are none.
extern "C" const char* __lsan_default_options() { return "use_tls=0"; }

/// Pools that others keep for their threads and for a process's whole life.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgomp.so\nleak:libdnnl.so\nleak:libmpi.so\nleak:libopen-pal.so\nleak:libopen-rte."
         "so\n";
}
