# One function for every library, test and fuzzer, so that a room's CMakeLists.txt only names its files.

set(SIFR_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")
option(SIFR_FUZZ "Build the fuzzers on libFuzzer (clang only); otherwise they replay their corpora" OFF)
# Binaries of the whole build lie together: build/<preset>/bin/.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endif()
find_program(SIFR_CCACHE ccache)
if(SIFR_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SIFR_CCACHE}")
endif()

# A test that hangs ends after this many seconds, unless it names its own time; with sanitizers later.
if(SIFR_SANITIZE)
  set(SIFR_TEST_TIMEOUT 900)
else()
  set(SIFR_TEST_TIMEOUT 300)
endif()

# What every target of ours is built with.
function(sifr_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  # g++ 12 reports every "text" + std::string as overlapping memory at -O3 (its bug 105651). To clang -Wconversion
  # also means signs.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>)
  # Before all others: the user's tree may have a `device/` or `comm/` of its own.
  target_include_directories(${target} BEFORE PRIVATE "${PROJECT_SOURCE_DIR}")
  if(SIFR_SANITIZE)
    # With sanitizers g++ 12 takes std::function's and std::regex's members for uninitialised, and clang 14 cannot
    # vectorise loops that ask for it.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
      $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
    target_compile_options(${target} PRIVATE -fsanitize=${SIFR_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${SIFR_SANITIZE})
  endif()
  if(SIFR_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# For loops that must give the same bits on every CPU: no contraction; sqrt as an instruction.
set(SIFR_KERNEL_OPTIONS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)

# sifr_add_library(name SOURCES … [KERNELS …] PUBLIC_HEADERS … DEPENDS … PRIVATE_DEPENDS …)
# KERNELS are built with SIFR_KERNEL_OPTIONS.
function(sifr_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;KERNELS;PUBLIC_HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target sifr_${name})
  add_library(${target} STATIC ${arg_SOURCES} ${arg_KERNELS})
  add_library(sifr::${name} ALIAS ${target})
  sifr_configure(${target})
  # Scalars of an update are computed outside of kernels: they must not depend on the CPU either.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_PUBLIC_HEADERS})
  # An installed sifr does not ask its user for libraries of which only our sources see the headers.
  list(TRANSFORM arg_PRIVATE_DEPENDS REPLACE "^(nlohmann_json|Boost|CLI11)::.*" "$<BUILD_INTERFACE:\\0>")
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
  if(arg_KERNELS)
    set_source_files_properties(${arg_KERNELS} PROPERTIES COMPILE_OPTIONS "${SIFR_KERNEL_OPTIONS}")
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
  target_link_libraries(sifr INTERFACE ${libraries})
  if(SIFR_INSTALL)
    include(sifr_install)
  endif()
endfunction()

# The label of the tests of a folder is the folder's name, and what the build is told by its name.
get_filename_component(SIFR_BUILD_NAME "${CMAKE_BINARY_DIR}" NAME)

# sifr_add_test(name SOURCES … DEPENDS … [LABELS …] [TIMEOUT seconds]): one Catch2 executable for a room;
# every test case becomes a ctest of its own name. Slow ones are left out under sanitizers (see CONTRIBUTING.md).
function(sifr_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${SIFR_TEST_TIMEOUT})
  endif()
  get_filename_component(room "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  add_executable(${name} ${arg_SOURCES})
  sifr_configure(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} sifr_test_main)
  if(SIFR_FUZZ OR (SIFR_SANITIZE AND "slow" IN_LIST arg_LABELS))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  catch_discover_tests(${name} EXTRA_ARGS --warn NoTests TEST_PREFIX "${SIFR_BUILD_NAME} ${name}: "
    PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_REGULAR_EXPRESSION "\\[skipped\\]")
  # catch_discover_tests cannot pass a list, so the labels are set after it.
  set(labels_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
  file(WRITE "${labels_file}" "if(${name}_TESTS)
  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${room};${arg_LABELS}\")
endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels_file}")
endfunction()

# sifr_add_command_test(name COMMAND … [LABELS …] [TIMEOUT seconds] [PROCESSORS n]): a ctest that runs a program; it
# passes with exit code 0, and counts as skipped where it prints [skipped] and the reason.
function(sifr_add_command_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;PROCESSORS" "COMMAND;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${SIFR_TEST_TIMEOUT})
  endif()
  if(SIFR_FUZZ AND NOT "fuzz" IN_LIST arg_LABELS)
    return()
  endif()
  get_filename_component(room "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(test "${SIFR_BUILD_NAME} ${name}")
  add_test(NAME "${test}" COMMAND ${arg_COMMAND} COMMAND_EXPAND_LISTS)
  set_tests_properties("${test}" PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${room};${arg_LABELS}"
    SKIP_REGULAR_EXPRESSION "\\[skipped\\]")
  if(arg_PROCESSORS)
    set_tests_properties("${test}" PROPERTIES PROCESSORS ${arg_PROCESSORS})
  endif()
endfunction()

# sifr_add_fuzzer(name SOURCE file DEPENDS … CORPUS folder [SECONDS n]): a source that defines
# LLVMFuzzerTestOneInput. With SIFR_FUZZ its ctest searches for n seconds from the corpus; otherwise it replays
# the corpus, so that an input that once failed stays a test of every build.
function(sifr_add_fuzzer name)
  cmake_parse_arguments(arg "" "SOURCE;CORPUS;SECONDS" "DEPENDS" ${ARGN})
  if(NOT arg_SECONDS)
    set(arg_SECONDS 20)
  endif()
  set(corpus "${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS}")
  add_executable(${name} ${arg_SOURCE})
  sifr_configure(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  if(SIFR_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}_found")
    file(MAKE_DIRECTORY "${found}")
    set(command ${name} -seed=1 -max_total_time=${arg_SECONDS} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
      "-artifact_prefix=${found}/" "${found}" "${corpus}")
  else()
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/replay_corpus.cpp")
    set(command ${name} "${corpus}")
  endif()
  math(EXPR timeout "${arg_SECONDS} + 60")
  sifr_add_command_test("${name}: no input of the corpus crashes" COMMAND ${command} LABELS fuzz TIMEOUT ${timeout})
  add_dependencies(sifr_fuzzers ${name})
endfunction()
