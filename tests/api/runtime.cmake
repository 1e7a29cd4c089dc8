# SPDX-License-Identifier: Apache-2.0
# runtime.cmake - the runtime alone is small: its code and constants, and what else it needs to be loaded.
#   cmake -DREADELF=<readelf> -DRUNTIME=<libopjit-runtime> -DDEVICE=<libopjit-device> -P runtime.cmake
cmake_minimum_required(VERSION 3.25)
set(most 111104)

# What `size` calls text: allocated sections that are not written to.
execute_process(COMMAND ${READELF} -SW ${RUNTIME} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +(A|AX|AI|AMS|AM) " sections "${text}")
set(sum 0)
foreach(section IN LISTS sections)
    string(REGEX REPLACE "^[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) .*" "\\1" size "${section}")
    math(EXPR sum "${sum} + 0x${size}")
endforeach()
if(sum EQUAL 0 OR sum GREATER most)
    message(SEND_ERROR "${RUNTIME} has ${sum} bytes of code and constants, at most ${most}")
endif()

foreach(library IN ITEMS ${RUNTIME} ${DEVICE})
    execute_process(COMMAND ${READELF} -d ${library} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${text}")
    foreach(line IN LISTS needed)
        if(NOT line MATCHES "\\[(libc|libffi)\\.so")
            message(SEND_ERROR "${library}: ${line}")
        endif()
    endforeach()
endforeach()
message(STATUS "${sum} bytes")
