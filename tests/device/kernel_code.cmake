# cmake "-DOBJDUMP=…" "-DOBJECTS=a.o|b.o" -P kernel_code.cmake
# Fails unless the x86-64-v4 clone of each kernel holds arithmetic on 512-bit registers, and if any code of the
# kernels fuses a product and a sum.

string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
set(code "")
foreach(object IN LISTS OBJECTS)
  if(object MATCHES "/host_(adam|elementwise|quanta)\\.cpp")
    execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${object} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(APPEND code "${text}")
  endif()
endforeach()
string(REPLACE ";" "," code "${code}")

# kernel and an instruction that its arithmetic needs
foreach(expected adam_clones:vsqrtps adam_clones:vdivps sum_clones:vaddps scale_clones:vmulps
    square_sums_clones:vmulpd hash_clones:vpaddq)
  string(REPLACE ":" ";" expected "${expected}")
  list(GET expected 0 kernel)
  list(GET expected 1 instruction)
  # A function ends at an empty line.
  string(REGEX MATCH "<[^>\n]*${kernel}[^>\n]*\\.arch_x86_64_v4[^>\n]*>:\n([^\n]+\n)+" body "${code}")
  if(body STREQUAL "")
    message(SEND_ERROR "${kernel} has no clone for x86-64-v4")
  elseif(NOT body MATCHES "${instruction} [^\n]*zmm")
    message(SEND_ERROR "${kernel}: the clone for x86-64-v4 has no ${instruction} on 512-bit registers")
  else()
    message(STATUS "${kernel}: ${instruction} on 512-bit registers")
  endif()
endforeach()

if(code MATCHES "\tvfn?m(add|sub)[^\n]*")
  message(SEND_ERROR "a kernel fuses a product and a sum: ${CMAKE_MATCH_0}")
endif()
