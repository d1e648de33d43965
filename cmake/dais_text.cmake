# Embeds the texts that are compiled on the user's machine, so that the binary needs no other file:
# kernels (ops/*/*.cu), the headers that they include by bare name (backends/cuda/device/*.cuh, and
# ops/*/*.cuh, which the CPU includes, too), and the header with which the emulated device compiles
# them (backends/cuda/emulated/text/*.h).
file(GLOB texts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*.cu
  ${CMAKE_SOURCE_DIR}/src/ops/*/*.cuh
  ${CMAKE_SOURCE_DIR}/src/backends/cuda/device/*.cuh
  ${CMAKE_SOURCE_DIR}/src/backends/cuda/emulated/text/*.h)
set(embedded ${CMAKE_BINARY_DIR}/generated/cuda_text.cpp)
string(REPLACE ";" "\n" listing "${texts}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/cuda_text.list CONTENT "${listing}\n")
add_custom_command(OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DLISTING=${CMAKE_BINARY_DIR}/generated/cuda_text.list
    -DOUTPUT=${embedded} -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${texts} ${CMAKE_BINARY_DIR}/generated/cuda_text.list
    ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
target_sources(dais_engine PRIVATE ${embedded})
