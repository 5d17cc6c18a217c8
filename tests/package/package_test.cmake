# cmake -D WAY=find_package|add_subdirectory|command_line -D ROOT= -D BUILD= -D FOLDER= -D COMPILER= -D LAUNCHER= -P package_test.cmake
# Builds and runs the consumer under consumer/, in a scratch FOLDER, as a user's own project would be.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
if(NOT WAY STREQUAL add_subdirectory)
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${FOLDER}/prefix")
endif()
if(WAY STREQUAL command_line) # of docs/porting.md
  file(GLOB libraries "${FOLDER}/prefix/lib*/libsifr_engine.a" "${FOLDER}/prefix/lib*/*/libsifr_engine.a")
  cmake_path(GET libraries PARENT_PATH libraries)
  run("${COMPILER}" -std=c++20 -O3 "-I${FOLDER}/prefix/include/sifr" "${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp"
    -o "${FOLDER}/consumer" "-L${libraries}" -lsifr_engine -lsifr_zero -lsifr_comm -lsifr_device -lsifr_config_schema
    -lfmt -pthread)
  run("${FOLDER}/consumer" "${CMAKE_CURRENT_LIST_DIR}/consumer/ds_config.json")
  return()
endif()
if(WAY STREQUAL add_subdirectory) # without a build type that is said
  foreach(type "" Release)
    execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${FOLDER}/notice${type}"
        -D "SIFR_SOURCE=${ROOT}" -D "CMAKE_CXX_COMPILER=${COMPILER}" -D "CMAKE_BUILD_TYPE=${type}"
      ERROR_VARIABLE notices OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    if("${type}" STREQUAL "" AND NOT notices MATCHES "pass -D CMAKE_BUILD_TYPE=Release" OR type AND notices)
      message(FATAL_ERROR "build type '${type}': ${notices}")
    endif()
  endforeach()
endif()
run("${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${FOLDER}/build" -D "WAY=${WAY}"
  -D "SIFR_SOURCE=${ROOT}" -D "CMAKE_PREFIX_PATH=${FOLDER}/prefix" -D CMAKE_BUILD_TYPE=Release
  -D "CMAKE_CXX_COMPILER=${COMPILER}" -D "CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
  -D CMAKE_COMPILE_WARNING_AS_ERROR=ON
  -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON) # the library does not need what the program does
run("${CMAKE_COMMAND}" --build "${FOLDER}/build" --parallel 2)
run("${FOLDER}/build/consumer" "${CMAKE_CURRENT_LIST_DIR}/consumer/ds_config.json")
