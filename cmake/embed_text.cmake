# Writes OUTPUT, a C++ file that holds the files named in LISTING (one a line) by their bare names.
file(STRINGS ${LISTING} files)
file(WRITE ${OUTPUT}.new "#include \"backends/cuda/text.h\"\n\nnamespace dais::cuda {\n"
  "std::span<const Text> texts() {\n  static constexpr Text all[] = {\n")
foreach(path IN LISTS files)
  cmake_path(GET path FILENAME name)
  file(READ "${path}" contents)
  file(APPEND ${OUTPUT}.new "{\"${name}\", R\"dais_text(")
  file(APPEND ${OUTPUT}.new "${contents}")
  file(APPEND ${OUTPUT}.new ")dais_text\"},\n")
endforeach()
file(APPEND ${OUTPUT}.new "  };\n  return all;\n}\n}  // namespace dais::cuda\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
