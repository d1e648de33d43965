// What programs built with AddressSanitizer know about leaks without being told in the environment.

/// The leak check of GCC 12 takes heap blocks for the head of a library's thread-local memory when
/// they happen to lie 16 bytes behind the start of a page, and then reads addresses that are none.
extern "C" const char* __lsan_default_options() { return "use_tls=0:print_suppressions=0"; }

/// What others keep for a process's whole life, and what threads of the pool hold, which are alive
/// when the check is made.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgomp.so\n"
         "leak:libdnnl.so\n"
         "leak:libjpeg.so\n"
         "leak:__cxa_thread_atexit_impl\n"
         "leak:pthread_setspecific\n"
         "leak:_dl_map_object_deps\n"
         "leak:_dl_resize_dtv\n"
         "leak:_dlerror_run\n"
         "leak:_dl_exception_create\n"
         "leak:add_to_global_resize\n";
}

/// Asked for by name when linking: what is above would not be missed.
extern "C" const int dais_sanitizer_defaults = 1;
