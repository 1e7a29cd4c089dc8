# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that are products of matrices, made of the package's own."""
import itertools as _itertools
import math as _math
from numbers import Integral as _Integral, Real as _Real

import opjit

from ._numpy import _of_one, diagonal, moveaxis, ravel, together
from ._tensor import FLOATS, axes_of

__all__ = ["cross", "dot", "einsum", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vdot", "vecdot"]


def _numbers(name, *tensors):
    """Refuses what is true or false, of which NumPy has other products."""
    if any(x._is_bool for x in tensors):
        raise TypeError(f"{name}: bool, must be numbers: x.astype(...)")
    return tensors


def matmul(a, b):
    """The products of the matrices in the last two dimensions."""
    a, b = _numbers("matmul", *together((a, b)))
    left, right = a.ndim == 1, b.ndim == 1
    a, b = a[None, :] if left else a, b[:, None] if right else b
    if a.dtype in FLOATS:
        head = []
        for m, n in zip(_padded(a.shape[:-2], b.ndim - 2), _padded(b.shape[:-2], a.ndim - 2)):
            head.append(n if m == 1 else m)
        y = opjit.ops.gemm(opjit.broadcast_to(a, (*head, *a.shape[-2:])), opjit.broadcast_to(b, (*head, *b.shape[-2:])),
                           trans_a="NONE", trans_b="NONE", alpha=1, beta=0)
    elif a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: {b.shape[-2]} rows of b, must be {a.shape[-1]} as columns of a")
    else:
        y = _sum(a[..., None] * b[..., None, :, :], -2)
    shape = [*y.shape[:-2]] + ([] if left else [a.shape[-2]]) + ([] if right else [b.shape[-1]])
    return y.reshape(shape or [1]) if left or right else y


def _padded(shape, rank):
    return (1,) * (rank - len(shape)) + tuple(shape)


def _sum(x, axes):
    """The sum in the type of x."""
    return opjit.sum(x, axes).astype(x.dtype)


def outer(a, b):
    """The product of each element of a and each of b."""
    a, b = together((a, b))
    return ravel(a)[:, None] * ravel(b)[None, :]


def kron(a, b):
    """Each element of a, times b."""
    a, b = _numbers("kron", *together((a, b)))
    rank = max(a.ndim, b.ndim)
    sizes = [_padded(x.shape, rank) for x in (a, b)]
    a = a.reshape([n for m in sizes[0] for n in (m, 1)])
    b = b.reshape([n for m in sizes[1] for n in (1, m)])
    return (a * b).reshape([m * n for m, n in zip(*sizes)])


@_of_one
def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of the diagonal."""
    return opjit.sum(diagonal(x, offset, axis1, axis2), -1)


def vecdot(a, b, axis=-1):
    """The sums of the products of elements along the axis."""
    a, b = _numbers("vecdot", *together((a, b)))
    return _sum(a * b, axis)


def vdot(a, b):
    """The sum of the products of all elements, in row-major order."""
    a, b = together((a, b))
    return matmul(ravel(a), ravel(b))


def inner(a, b):
    """The sums of products over both last dimensions."""
    return tensordot(a, b, (-1, -1))


def dot(a, b):
    """The sums of products over the last dimension of a and the one before the last of b; the product with a number."""
    if isinstance(a, _Real) or isinstance(b, _Real):
        return opjit.multiply(a, b)
    a, b = together((a, b))
    return matmul(a, b) if a.ndim <= 2 and b.ndim <= 2 else tensordot(a, b, (-1, max(-2, -b.ndim)))


def cross(a, b, axis=-1):
    """The vectors of three elements along the axis that are vertical to both."""
    a, b = (moveaxis(x, axis, -1) for x in together((a, b)))
    for x in (a, b):
        if x.shape[-1] != 3:
            raise ValueError(f"cross: {x.shape[-1]} elements along the axis, must be 3")
    y = opjit.roll(a, -1, -1) * opjit.roll(b, 1, -1) - opjit.roll(a, 1, -1) * opjit.roll(b, -1, -1)
    return moveaxis(y, -1, axis)


# --- sums of products by labels ---------------------------------------------------------------------------------------
def _arranged(x, labels, wanted):
    """x, whose dimensions have labels, with those that are wanted in that order, of size 1 where it has none."""
    order = [labels.index(label) for label in wanted if label in labels]
    sizes = iter([x.shape[d] for d in order])
    y = x.transpose(order) if order != sorted(order) else x
    return y.reshape([next(sizes) if label in labels else 1 for label in wanted] or [1])


def _summed(x, labels, kept):
    """x and its labels without those that are not kept, which are summed."""
    axes = [d for d, label in enumerate(labels) if label not in kept]
    if not axes:
        return x, labels
    return _sum(x, axes), [label for label in labels if label in kept]


def _contracted(a, left, b, right, kept):
    """The product and its labels: what both have and is not kept is summed."""
    (a, left), (b, right) = _summed(a, left, {*right, *kept}), _summed(b, right, {*left, *kept})
    both = [label for label in left if label in right]
    batch, inside = [x for x in both if x in kept], [x for x in both if x not in kept]
    rows, columns = [x for x in left if x not in right], [x for x in right if x not in left]
    labels = [*batch, *rows, *columns]
    if not inside or not rows and not columns:  # products of elements, or of vectors in batches
        order = left if inside else labels
        return _summed(_arranged(a, left, order) * _arranged(b, right, order), order, labels)
    size = {**dict(zip(right, b.shape)), **dict(zip(left, a.shape))}
    a, b = _arranged(a, left, [*batch, *rows, *inside]), _arranged(b, right, [*batch, *inside, *columns])
    head, m, k, n = ([size[x] for x in group] for group in (batch, rows, inside, columns))
    k = _math.prod(k)
    y = matmul(a.reshape([*head, _math.prod(m), k]), b.reshape([*head, k, _math.prod(n)]))
    return y.reshape([*head, *m, *n] or [1]), labels


def tensordot(a, b, axes=2):
    """The sums of products over axes: so many last ones of a and first ones of b, or (those of a, those of b)."""
    a, b = _numbers("tensordot", *together((a, b)))
    if isinstance(axes, _Integral):
        axes = range(a.ndim - axes, a.ndim), range(axes)
    first, second = axes_of(a, axes[0]), axes_of(b, axes[1])
    if [a.shape[d] for d in first] != [b.shape[d] for d in second]:
        raise ValueError(f"tensordot: sizes {[a.shape[d] for d in first]} of a's axes and "
                         f"{[b.shape[d] for d in second]} of b's, must be the same")
    left, right = [("a", d) for d in range(a.ndim)], [("b", d) for d in range(b.ndim)]
    for d, e in zip(first, second):
        right[e] = left[d]
    kept = [x for x in left if x not in right] + [x for x in right if x not in left]
    y, labels = _contracted(a, left, b, right, set(kept))
    return _arranged(y, labels, kept)


def _labels(subscripts, ranks):
    """The labels of each operand's dimensions, and of the result's; those of ... are numbers, the last one 0."""
    text, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = text.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {len(terms)} groups of labels in {subscripts!r}, must be {len(ranks)} as operands")
    rows = []
    for number, (term, rank) in enumerate(zip(terms, ranks)):
        head, dots, tail = term.partition("...")
        between = rank - len(head) - len(tail)
        if between < 0 or between and not dots or not (head + tail + "a").isalpha():
            raise ValueError(f"einsum: labels {term!r} of operand {number}, which has {rank} dimensions")
        rows.append([*head, *range(between - 1, -1, -1), *tail])
    most = max((len([x for x in row if isinstance(x, int)]) for row in rows), default=0)
    every = [x for row in rows for x in row if isinstance(x, str)]
    if not arrow:
        return rows, [*range(most - 1, -1, -1), *sorted(x for x in set(every) if every.count(x) == 1)]
    head, dots, tail = result.partition("...")
    for label in head + tail:
        if label not in every or (head + tail).count(label) > 1:
            raise ValueError(f"einsum: label {label!r} of the result, must be one of an operand and there once")
    return rows, [*head, *(range(most - 1, -1, -1) if dots else ()), *tail]


def einsum(subscripts, *operands):
    """The sums of products over the labels that the result lacks: einsum("bij,bjk->bik", a, b).  Labels that are there
    twice in a group take the diagonal; without -> the result has those that are there once, in alphabetical order."""
    operands = _numbers("einsum", *together(operands))
    rows, result = _labels(subscripts, [x.ndim for x in operands])
    sizes = {}
    for x, row in zip(operands, rows):
        for label, n in zip(row, x.shape):
            if sizes.setdefault(label, n) != n and 1 not in (n, sizes[label]):
                raise ValueError(f"einsum: label {label!r} has sizes {sizes[label]} and {n}, must be the same")
            sizes[label] = max(n, sizes[label])
    factors = [_without_ones(*_without_twins(x, row), sizes) for x, row in zip(operands, rows)]
    while len(factors) > 1:
        (a, left), (b, right) = _cheapest(factors, result, sizes)
        others = {*result, *(label for _, row in factors for label in row)}
        factors.append(_contracted(a, left, b, right, others))
    return _arranged(*_summed(*factors[0], set(result)), result)


def _cheapest(factors, result, sizes):
    """Takes the two factors whose product has fewest elements more than they have."""
    def size(labels):
        return _math.prod(sizes[label] for label in labels)

    def growth(pair):
        rest = {*result, *(label for n, (_, row) in enumerate(factors) if n not in pair for label in row)}
        left, right = (set(factors[n][1]) for n in pair)
        return size((left | right) & rest) - size(left) - size(right)
    first, second = min(_itertools.combinations(range(len(factors)), 2), key=growth)
    b = factors.pop(second)
    return factors.pop(first), b


def _without_twins(x, labels):
    """The diagonals over dimensions of the same label, and the labels."""
    labels = list(labels)
    for label in [a for n, a in enumerate(labels) if a in labels[:n]]:
        first = labels.index(label)
        second = labels.index(label, first + 1)
        x = diagonal(x, 0, first, second)
        labels = [a for d, a in enumerate(labels) if d not in (first, second)] + [label]
    return x, labels


def _without_ones(x, labels, sizes):
    """x and its labels without dimensions of size 1 that are to be as large as those of another operand."""
    kept = [label for label, n in zip(labels, x.shape) if n == sizes[label]]
    return _arranged(x, labels, kept), kept
