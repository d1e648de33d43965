# Compiler options shared by every target, and dais_sources(): the sources of one folder.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(DAIS_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1")  # compiles in two thirds of the time, and reports name more lines
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(dais_options INTERFACE)
# Kernels promise the same bits whichever instruction set runs: no contraction behind our back.
target_compile_options(dais_options INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND
   (DAIS_SANITIZE OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
  # What GCC guesses along data flow differs from release to release, and more with sanitizers: it
  # is shown, but stops nobody's build.
  target_compile_options(dais_options INTERFACE -Wno-error=maybe-uninitialized
    -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=restrict)
endif()
if(DAIS_SANITIZE)
  target_compile_options(dais_options INTERFACE -fsanitize=${DAIS_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(dais_options INTERFACE -fsanitize=${DAIS_SANITIZE})
endif()
if(DAIS_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Boost.Asio has fences beside its atomics; GCC warns that the sanitizer does not follow them.
  target_compile_options(dais_options INTERFACE -Wno-tsan)
endif()
if(DAIS_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_library(dais_sanitizer_defaults STATIC ${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cpp)
  target_link_options(dais_options INTERFACE LINKER:-u,dais_sanitizer_defaults)
  target_link_libraries(dais_options INTERFACE $<BUILD_INTERFACE:dais_sanitizer_defaults>)
endif()
if(DAIS_SANITIZE MATCHES thread OR CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # libgomp is not built for ThreadSanitizer, and clang has another OpenMP than oneDNN; teams of
  # std::thread serve the sanitizer, the fuzzers and clang-tidy.
  target_compile_definitions(dais_options INTERFACE DAIS_STD_THREADS)
else()
  # Not linked with: base/threads.cpp opens libgomp at run time, after setting it up.
  target_compile_options(dais_options INTERFACE -fopenmp)
endif()

if(DAIS_FUZZERS)
  target_compile_options(dais_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(DAIS_TEST_SOURCES "" CACHE INTERNAL "unit tests found beside the sources")

# Adds src/<folder>/**.cpp to the engine; *_test.cpp go to the test program.
function(dais_sources folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  dais_add(${sources})
endfunction()

# Sorts sources by their file-name suffix: _test.cpp, _simd.cpp (once per instruction set), others.
function(dais_add)
  foreach(source ${ARGN})
    if(source MATCHES "_test\\.cpp$")
      set(DAIS_TEST_SOURCES ${DAIS_TEST_SOURCES} ${source} CACHE INTERNAL "")
    elseif(source MATCHES "_simd\\.cpp$")
      dais_simd_source(${source})
    else()
      target_sources(dais_engine PRIVATE ${source})
    endif()
  endforeach()
endfunction()

# One object per instruction set. Each sees DAIS_ISA (its namespace) and a level macro.
# GCC 12 takes the undefined vectors inside its own AVX-512 intrinsics for uninitialised variables.
set(DAIS_ISA_plain_FLAGS "")
set(DAIS_ISA_avx2_FLAGS -mavx2 -mfma -mf16c)
set(DAIS_ISA_avx512_FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512cd -mavx512bw -mavx512dq -mavx512vl
  -mavx512vnni -mprefer-vector-width=512 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
set(DAIS_ISA_amx_FLAGS ${DAIS_ISA_avx512_FLAGS} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16)
set(DAIS_ISA_LEVEL_plain 0)
set(DAIS_ISA_LEVEL_avx2 1)
set(DAIS_ISA_LEVEL_avx512 2)
set(DAIS_ISA_LEVEL_amx 3)
function(dais_simd_source source)
  cmake_path(GET source STEM stem)
  foreach(isa plain avx2 avx512 amx)
    set(object simd_${stem}_${isa})
    add_library(${object} OBJECT ${source})
    target_link_libraries(${object} PRIVATE dais_options)
    target_include_directories(${object} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    # GCC takes the undefined operands inside its own vector headers for mistakes of ours. Nobody
    # reads errno or floating-point flags, and loops with selections need that to vectorise.
    target_compile_options(${object} PRIVATE -O3 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Wno-uninitialized
      -fno-math-errno -fno-trapping-math
      ${DAIS_ISA_${isa}_FLAGS})
    target_compile_definitions(${object} PRIVATE DAIS_ISA=${isa}
      DAIS_ISA_LEVEL=${DAIS_ISA_LEVEL_${isa}})
    target_sources(dais_engine PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
endfunction()
