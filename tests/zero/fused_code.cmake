# cmake "-DOBJDUMP=…" "-DOBJECTS=a.o|b.o" -P fused_code.cmake
# Fails if an object fuses a product and a sum, or holds no product of doubles at all.

string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${object} OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
  if(NOT code MATCHES "\tvmulsd ")
    message(SEND_ERROR "${object}: no product of doubles")
  elseif(code MATCHES "\tvfn?m(add|sub)[^\n]*")
    message(SEND_ERROR "${object} fuses a product and a sum: ${CMAKE_MATCH_0}")
  endif()
endforeach()
