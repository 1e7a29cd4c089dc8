# SPDX-License-Identifier: Apache-2.0
# tuning.cmake - reads codegen/tuning.def: each number has a unit, a machine, and a benchmark that there is.
#   cmake -DROOT=<source folder> -P tuning.cmake
cmake_minimum_required(VERSION 3.25)

file(READ ${ROOT}/codegen/tuning.def text)
string(REPLACE ";" "," text "${text}") # else a list is cut there
string(REGEX MATCHALL "TUNING\\([^\"]*\"[^\"]*\", \"[^\"]*\", \"[^\"]*\",[ \n]*\"[^\"]*\"\\)" rows "${text}")
string(REGEX MATCHALL "\nTUNING\\(" begins "${text}")
list(LENGTH rows count)
list(LENGTH begins all)
if(NOT count EQUAL all OR count EQUAL 0)
    message(SEND_ERROR "${count} of ${all} rows of tuning.def have name, value, unit, benchmark, machine and meaning")
endif()
foreach(row IN LISTS rows)
    string(REGEX MATCH "TUNING\\(([A-Z_0-9]+), [^\"]*\"([^\"]+)\", \"([^\"]+)\", \"([^\"]+)\"" fields "${row}")
    if(fields STREQUAL "")
        message(SEND_ERROR "tuning.def: an empty field in ${row}")
    elseif(NOT EXISTS ${ROOT}/tests/bench/${CMAKE_MATCH_3}.c AND NOT EXISTS ${ROOT}/tests/bench/${CMAKE_MATCH_3}.py)
        message(SEND_ERROR
                "tuning.def: ${CMAKE_MATCH_1} was chosen with ${CMAKE_MATCH_3}, which tests/bench does not have")
    endif()
endforeach()
message(STATUS "${count} numbers")
