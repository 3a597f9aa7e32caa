# SPDX-License-Identifier: MIT
# Which tests does a program have? wq_add_test() runs this script after its
# build and passes: program, emulator (empty, or the command that runs the
# program on this machine), name, out, labels, timeout, skip, environment.
execute_process(COMMAND ${emulator} "${program}" --list
  OUTPUT_VARIABLE tests RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${program} --list: ${result}")
endif()

string(STRIP "${tests}" tests)
string(REPLACE ";" "," tests "${tests}")
string(REPLACE "\n" ";" tests "${tests}")
list(FILTER tests EXCLUDE REGEX "^#") # tests that are left out
set(text "")
set(command "")
foreach(word IN LISTS emulator program)
  string(APPEND command " [==[${word}]==]")
endforeach()
foreach(test IN LISTS tests)
  string(APPEND text "add_test(${name}.${test}${command} ${test})
set_tests_properties(${name}.${test} PROPERTIES TIMEOUT ${timeout}
  SKIP_RETURN_CODE ${skip} LABELS [==[${labels}]==]
  ENVIRONMENT [==[${environment}]==])
")
endforeach()
file(WRITE "${out}" "${text}")
