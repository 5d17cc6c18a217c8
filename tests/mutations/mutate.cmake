# cmake -D PATCH=<a .patch file> -D ROOT=<source folder> -D FOLDER=<result> -P mutate.cmake
# Copies the sources that the patch names to the folder and changes them there.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${PATCH}" lines REGEX "^[+][+][+] b/")
foreach(line IN LISTS lines)
  string(REPLACE "+++ b/" "" file "${line}")
  get_filename_component(folder "${FOLDER}/${file}" DIRECTORY)
  file(COPY "${ROOT}/${file}" DESTINATION "${folder}")
  file(TOUCH "${FOLDER}/${file}")
endforeach()
execute_process(COMMAND patch --batch --forward --strip=1 --no-backup-if-mismatch "--directory=${FOLDER}" "--input=${PATCH}"
  RESULT_VARIABLE code OUTPUT_VARIABLE text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PATCH} no longer fits the sources: make its change anew.\n${text}")
endif()
