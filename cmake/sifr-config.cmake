# find_package(sifr) -> sifr::sifr. The static libraries need these at the user's link.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
include("${CMAKE_CURRENT_LIST_DIR}/sifr_targets.cmake")
