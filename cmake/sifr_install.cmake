# Install rules: headers under include/sifr with the rooms' layout, and a package for find_package(sifr).
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sifr")
install(TARGETS ${libraries} sifr EXPORT sifr_targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sifr")
install(EXPORT sifr_targets NAMESPACE sifr:: DESTINATION "${package_folder}")

# fmt's names carry its major version, which the libraries are bound to.
string(REGEX MATCH "^[0-9]+" fmt_major "${fmt_VERSION}")
math(EXPR fmt_next_major "${fmt_major} + 1")
configure_file("${CMAKE_CURRENT_LIST_DIR}/sifr-config.cmake.in" "${PROJECT_BINARY_DIR}/sifr-config.cmake" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sifr-config.cmake" DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sifr-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sifr-config-version.cmake" DESTINATION "${package_folder}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
