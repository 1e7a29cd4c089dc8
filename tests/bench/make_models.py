# SPDX-License-Identifier: Apache-2.0
"""Writes models of equal layers with random weights, for `opjit bench DIR/NAME.onnx`: resnet50, bert (12 layers of
768), chain1000 and chain10000 (products and softmaxes), differ1000 (products, of which no two have one size).

    python3 tests/bench/make_models.py DIR
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Model:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.weights, self.count = [], [], 0

    def name(self):
        self.count += 1
        return "v%d" % self.count

    def constant(self, data):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.array(data), name))
        return name

    def weight(self, *shape, scale=0.02):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=kind + name, **attributes))
        return name

    def save(self, path, dtype, sizes, result):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", dtype, sizes)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def resnet(path):
    m = Model()

    def conv(x, inputs, outputs, size, stride, add=None, relu=True):
        y = m.op("Conv", x, m.weight(outputs, inputs, size, size), m.weight(outputs), kernel_shape=[size, size],
                 pads=[size // 2] * 4, strides=[stride, stride])
        y = m.op("Add", y, add) if add else y
        return m.op("Relu", y) if relu else y

    x = m.op("MaxPool", conv("x", 3, 64, 7, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for group, blocks in enumerate((3, 4, 6, 3)):
        middle = 64 << group
        for block in range(blocks):
            stride = 2 if block == 0 and group > 0 else 1
            residual = x if block else conv(x, channels, 4 * middle, 1, stride, relu=False)
            y = conv(conv(x, channels, middle, 1, 1), middle, middle, 3, stride)
            x = conv(y, middle, 4 * middle, 1, 1, add=residual)
            channels = 4 * middle
    m.op("Gemm", m.op("Flatten", m.op("GlobalAveragePool", x)), m.weight(channels, 1000), m.weight(1000))
    m.save(path, TensorProto.FLOAT, [1, 3, 224, 224], [1, 1000])


def bert(path, layers=12, width=768, heads=12, length=128):
    m = Model()

    def norm(x):
        return m.op("LayerNormalization", x, m.weight(width), m.weight(width), axis=-1, epsilon=1e-12)

    def linear(x, inputs, outputs):
        return m.op("Add", m.op("MatMul", x, m.weight(inputs, outputs)), m.weight(outputs))

    apart = m.constant(np.array([1, length, heads, width // heads], np.int64))
    joined = m.constant(np.array([1, length, width], np.int64))
    scale, half, one, root = (m.constant(np.float32(v)) for v in ((width / heads) ** -0.5, 0.5, 1, 2 ** 0.5))
    x = norm(m.op("Add", m.op("Gather", m.weight(1000, width), "x"), m.weight(1, length, width)))
    for _ in range(layers):
        q, k, v = (m.op("Reshape", linear(x, width, width), apart) for _ in range(3))
        q, k, v = (m.op("Transpose", t, perm=p) for t, p in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        weights = m.op("Softmax", m.op("Mul", m.op("MatMul", q, k), scale), axis=-1)
        attended = m.op("Reshape", m.op("Transpose", m.op("MatMul", weights, v), perm=[0, 2, 1, 3]), joined)
        x = norm(m.op("Add", x, linear(attended, width, width)))
        y = linear(x, width, 4 * width)
        y = m.op("Mul", m.op("Mul", y, m.op("Add", m.op("Erf", m.op("Div", y, root)), one)), half)
        x = norm(m.op("Add", x, linear(y, 4 * width, width)))
    m.save(path, TensorProto.INT64, [1, length], [1, length, width])


def chain(path, nodes, differ):
    m, x, width = Model(), "x", 16
    for i in range(nodes // 2):
        result = 16 + i * 7 % 509 if differ else 16
        x = m.op("Softmax", m.op("MatMul", x, m.weight(width, result)), axis=-1)
        width = result
    m.save(path, TensorProto.FLOAT, [8, 16], [8, width])


def main(folder):
    os.makedirs(folder, exist_ok=True)
    resnet(os.path.join(folder, "resnet50.onnx"))
    bert(os.path.join(folder, "bert.onnx"))
    chain(os.path.join(folder, "chain1000.onnx"), 1000, False)
    chain(os.path.join(folder, "chain10000.onnx"), 10000, False)
    chain(os.path.join(folder, "differ1000.onnx"), 1000, True)


main(sys.argv[1])
