# One function for every library and every test, so that a room's CMakeLists.txt only names its files.

set(SIFR_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")
# Binaries of the whole build lie together: build/<preset>/bin/.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endif()
find_program(SIFR_CCACHE ccache)
if(SIFR_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SIFR_CCACHE}")
endif()

# What every target of ours is built with.
function(sifr_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  if(SIFR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SIFR_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${SIFR_SANITIZE})
  endif()
endfunction()

# sifr_add_library(name SOURCES … [KERNELS …] PUBLIC_HEADERS … DEPENDS … PRIVATE_DEPENDS …)
# KERNELS are sources whose loops must give the same bits on every CPU: no contraction.
function(sifr_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;KERNELS;PUBLIC_HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target sifr_${name})
  add_library(${target} STATIC ${arg_SOURCES} ${arg_KERNELS})
  add_library(sifr::${name} ALIAS ${target})
  sifr_configure(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_PUBLIC_HEADERS})
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
  if(arg_KERNELS)
    set_source_files_properties(${arg_KERNELS} PROPERTIES
      COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math;-ffp-contract=off")
  endif()
  set_property(GLOBAL APPEND PROPERTY SIFR_LIBRARIES ${target})
endfunction()

# The target that users link: sifr::sifr.
function(sifr_add_umbrella)
  get_property(libraries GLOBAL PROPERTY SIFR_LIBRARIES)
  add_library(sifr INTERFACE)
  add_library(sifr::sifr ALIAS sifr)
  target_sources(sifr INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES "${PROJECT_SOURCE_DIR}/sifr.hpp" "${PROJECT_SOURCE_DIR}/sifr_error.hpp" "${PROJECT_SOURCE_DIR}/sifr_version.hpp")
  set_target_properties(sifr PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(sifr INTERFACE sifr::engine)
  if(SIFR_INSTALL)
    include(sifr_install)
  endif()
endfunction()

# sifr_add_test(name SOURCES … DEPENDS … [LABELS …] [TIMEOUT seconds]): one Catch2 executable for a room;
# every test case becomes a ctest of its own name.
function(sifr_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  sifr_configure(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} sifr_test_main)
  catch_discover_tests(${name} EXTRA_ARGS --warn NoTests TEST_PREFIX "${name}: "
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_REGULAR_EXPRESSION "\\[skipped\\]")
endfunction()
