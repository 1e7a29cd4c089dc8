#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# large.sh - reading a model of 100,000 resources, dispatchables and commands takes linear time: linear searches would
# take minutes instead of a second, so that the limit does not depend on the machine.  Likewise a graph of 10,000 nodes,
# on a small stack.
. "$(dirname "$0")/common.inc"

# large COUNT: resources r0, r1, ..., each filled by a dispatchable of its own
large() {
    awk -v count="$1" 'BEGIN {
        tensor = "{ \"DataType\": \"INT32\", \"Sizes\": [1] }"
        print "{ \"resources\": {"
        for (i = 0; i < count; i++)
            print "\"r" i "\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [0] },"
        print "}, \"dispatchables\": {"
        for (i = 0; i < count; i++)
            print "\"d" i "\": { \"type\": \"FILL_VALUE_CONSTANT\", \"desc\": { \"OutputTensor\": " tensor ", \"ValueDataType\": \"INT32\", \"Value\": 7 } },"
        print "}, \"commands\": ["
        for (i = 0; i < count; i++)
            print "{ \"type\": \"dispatch\", \"dispatchable\": \"d" i "\", \"bindings\": { \"OutputTensor\": \"r" i "\" } },"
        print "{ \"type\": \"print\", \"resource\": \"r" count - 1 "\" }] }"
    }' >"$work/m.json"
}
most=100000
[ -n "${OPJIT_TEST_FILES:-}" ] || most=10000 # sanitizers take eight times the memory
large $most
status=0
(ulimit -t 60; exec "$OPJIT" run --executor interp --no-cache "$work/m.json" >"$work/out" 2>"$work/err") || status=$?
expect_out 'large' "Resource 'r$((most - 1))': 7"

# The last name twice, and a name that is missing.
sed "s/\"r$((most - 1))\": /\"r0\": /" "$work/m.json" >"$work/n.json"
run run "$work/n.json"
expect_status 'name twice' 1
grep -q 'the key "r0" stands twice in one object$' "$work/err" || fail 'name twice'
sed "s/\"OutputTensor\": \"r$((most - 2))\"/\"OutputTensor\": \"nowhere\"/" "$work/m.json" >"$work/n.json"
run run "$work/n.json"
expect_error 'missing name' 1 "$work/n.json: \$.commands[$((most - 2))].bindings.OutputTensor: there is no resource \"nowhere\""

# A chain of 10,000 additions of 1.
awk -v count=10000 'BEGIN {
    tensor = "{ \"DataType\": \"INT32\", \"Sizes\": [1] }"
    print "{ \"resources\": { \"one\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [1] },"
    print "\"sum\": { \"initialValuesDataType\": \"INT32\", \"initialValues\": [0] } }, \"dispatchables\": { \"g\": { \"type\": \"graph\", \"nodes\": {"
    for (i = 0; i < count; i++)
        print "\"n" i "\": { \"type\": \"ELEMENT_WISE_ADD\", \"desc\": { \"ATensor\": " tensor ", \"BTensor\": " tensor ", \"OutputTensor\": " tensor " } },"
    print "}, \"inputs\": { \"x\": [\"n0.ATensor\","
    for (i = 0; i < count; i++)
        print "\"n" i ".BTensor\","
    print "] }, \"edges\": ["
    for (i = 1; i < count; i++)
        print "[\"n" i - 1 ".OutputTensor\", \"n" i ".ATensor\"],"
    print "], \"outputs\": { \"y\": \"n" count - 1 ".OutputTensor\" } } },"
    print "\"commands\": [{ \"type\": \"dispatch\", \"dispatchable\": \"g\", \"bindings\": { \"x\": \"one\", \"y\": \"sum\" } },"
    print "{ \"type\": \"print\", \"resource\": \"sum\" }] }"
}' >"$work/g.json"
status=0
(ulimit -t 60; ulimit -s 1024; exec "$OPJIT" run --executor interp --no-cache "$work/g.json" >"$work/out" 2>"$work/err") || status=$?
expect_out 'large graph' "Resource 'sum': 10001"
finish
