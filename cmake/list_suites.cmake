# Writes a CTest file with one test per suite of a GoogleTest program.
# Input: PROGRAM, FOLDER (where tests run), OUTPUT, and GROUP, the first part of the tests' names and
# their label (unit when it is not given).
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing
  RESULT_VARIABLE status WORKING_DIRECTORY ${FOLDER})
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed: ${status}")
endif()

# Type and value notes ("# TypeParam = ...") may hold semicolons and brackets: drop them first.
string(REGEX REPLACE "[ ]*#[^\n]*" "" listing "${listing}")
string(REGEX MATCHALL "(^|\n)[A-Za-z_0-9/]+\\." suites "${listing}")
if(NOT GROUP)
  set(GROUP unit)
endif()
set(text "")
foreach(suite ${suites})
  string(REGEX REPLACE "^\n?(.*)\\.$" "\\1" suite "${suite}")
  set(labels ${GROUP})
  if(suite MATCHES "Threads(/|$)")
    string(APPEND labels ";threads")
  endif()
  string(APPEND text "add_test([[${GROUP}/${suite}]] [[${PROGRAM}]] --gtest_brief=1"
    " [[--gtest_filter=${suite}.*]])\n"
    "set_tests_properties([[${GROUP}/${suite}]] PROPERTIES LABELS [[${labels}]] TIMEOUT 600"
    " WORKING_DIRECTORY [[${FOLDER}]])\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
