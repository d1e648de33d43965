# cmake --install: the library as dais::dais for find_package(dais), the program, the headers of the
# public API with the few they need, and shell completion.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(dais_engine PROPERTIES EXPORT_NAME dais)
set_target_properties(dais_base PROPERTIES EXPORT_NAME base)
set_target_properties(dais_cuda_api PROPERTIES EXPORT_NAME cuda_api)
set_target_properties(dais_devices PROPERTIES EXPORT_NAME devices)
install(TARGETS dais_engine dais_cuda_api dais_devices dais_base EXPORT dais
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/dais DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES src/base/error.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dais/base)
install(FILES src/devices/sample.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dais/devices)
install(FILES src/ir/dtype.h src/ir/float_formats.h src/ir/tensor.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dais/ir)
if(TARGET dais)
  install(TARGETS dais RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES tools/completion.bash RENAME dais
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/dais)
install(EXPORT dais NAMESPACE dais:: FILE dais-targets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/dais-config.cmake.in dais-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(dais-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dais-config.cmake ${CMAKE_BINARY_DIR}/dais-config-version.cmake
  DESTINATION ${package_folder})
