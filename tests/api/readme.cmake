# readme.cmake - compiles and runs the first C example of the README, as it stands there.
#   cmake -DREADME=<file> -DINCLUDE=<folder> -DLIBRARY=<libopjit> -DWORK=<folder> -DCOMPILER=<cc> -P readme.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${README} text)
string(FIND "${text}" "```c\n" begin)
if(begin EQUAL -1)
    message(FATAL_ERROR "${README} has no C example")
endif()
math(EXPR begin "${begin} + 5")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "```" end)
string(SUBSTRING "${text}" 0 ${end} text)

file(MAKE_DIRECTORY ${WORK})
file(WRITE ${WORK}/example.c "${text}")
cmake_path(GET LIBRARY PARENT_PATH folder)
foreach(command
        "${COMPILER};-std=c11;-Wall;-Wextra;-Wpedantic;-Werror;-I${INCLUDE};${WORK}/example.c;-o;${WORK}/example;${LIBRARY};-Wl,-rpath,${folder}"
        "${WORK}/example")
    execute_process(COMMAND ${command} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${command} gave ${result}")
    endif()
endforeach()
