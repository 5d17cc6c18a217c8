# cmake -D FIRST=program -D SECOND=program -P same_output.cmake: fails unless both print the same.
foreach(program FIRST SECOND)
  execute_process(COMMAND "${${program}}" OUTPUT_VARIABLE ${program}_OUTPUT COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT FIRST_OUTPUT STREQUAL SECOND_OUTPUT OR FIRST_OUTPUT STREQUAL "")
  message(FATAL_ERROR "${FIRST} prints\n${FIRST_OUTPUT}\n${SECOND} prints\n${SECOND_OUTPUT}")
endif()
