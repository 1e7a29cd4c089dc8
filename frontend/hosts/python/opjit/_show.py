# SPDX-License-Identifier: Apache-2.0
"""What kernels tell of themselves as text."""


def text(kernel):
    """The repr of a kernel."""
    def ports(rows):
        return ", ".join(f"{name}: {dtype} [{', '.join(map(str, shape))}]" for name, dtype, shape in rows)
    return f"opjit.Kernel({ports(kernel.inputs)} -> {ports(kernel.outputs)})"


def stages(graph, level):
    """The IR after each pass and how each loop is done."""
    return "".join(f"== {stage}\n{text}" for stage, text in graph.explain(level))


def explain(kernel):
    return stages(kernel.graph, kernel.info["level"])


def ir(kernel):
    """The IR that goes to code generation."""
    return kernel.graph.artifact("ir", kernel.info["level"], "kernel").decode()


def asm(kernel):
    """The assembly of the same code."""
    return kernel.graph.artifact("asm", kernel.info["level"], "kernel").decode()


# --- pictures ---------------------------------------------------------------------------------------------------------
_NODES, _CELLS, _BYTES = 60, 48, 64 << 20  # of a picture; of a probe's arrays


def _box(x, y, width, height, text, fill):
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="#555"/>'
            f'<text x="{x + width / 2}" y="{y + height / 2 + 4}" text-anchor="middle">{text}</text>')


def _escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def graph_svg(kernel):
    """(svg, width, height) of the graph: nodes below what they read."""
    nodes = kernel.graph.nodes()
    depth = {i: 1 for i, (_, reads) in enumerate(nodes) if not reads}  # constants come last
    for i, (_, reads) in enumerate(nodes):  # operators in the order of adding: what they read comes before
        depth[i] = max((depth.get(r, 0) for r in reads), default=0) + 1
    inputs = sorted({r for _, reads in nodes for r in reads if r >= len(nodes)})
    depth.update((r, 0) for r in inputs)
    shown = sorted(depth, key=lambda i: (depth[i], i))[:_NODES]
    names = {r: (f"{kernel.inputs[n][0]} {list(kernel.inputs[n][2])}" if n < len(kernel.inputs) else "input")
             for n, r in enumerate(inputs)}
    rows, place = {}, {}
    for i in shown:
        row = rows.setdefault(depth[i], [])
        place[i] = (10 + 210 * len(row), 10 + 54 * depth[i])
        row.append(i)
    parts = []
    for i in shown:
        if i < len(nodes):
            for r in nodes[i][1]:
                if r in place:
                    parts.append(f'<path d="M{place[r][0] + 100} {place[r][1] + 30}L{place[i][0] + 100} {place[i][1]}" '
                                 'stroke="#555"/>')
    for i in shown:
        parts.append(_box(*place[i], 200, 30, _escape(names[i] if i in names else nodes[i][0].lower()),
                          "#e8f0fe" if i in names else "#fff"))
    width = 10 + 210 * max((len(row) for row in rows.values()), default=1)
    height = 10 + 54 * (max(rows, default=0) + 1)
    if len(depth) > len(shown):
        parts.append(f'<text x="10" y="{height + 12}">and {len(depth) - len(shown)} more</text>')
        height += 20
    return "".join(parts), width, height


def filled(kernel):
    """Of the first result's first matrix: which elements are the same for different inputs, that is, filled; and its
    values.  None where that takes too much memory, or NumPy is missing."""
    try:
        import numpy
    except ImportError:
        return None
    if kernel.dims:
        return None
    size = sum(numpy.dtype(t).itemsize * int(numpy.prod(s, dtype=object)) for _, t, s in kernel.inputs + kernel.outputs)
    if size > _BYTES or not kernel.outputs:
        return None
    results = []
    for seed in (1, 2):
        random = numpy.random.default_rng(seed)
        arrays = [random.integers(1, 100, shape).astype(dtype) for _, dtype, shape in kernel.inputs]
        result = kernel(*arrays)
        results.append(result[0] if isinstance(result, tuple) else result)
    same = (results[0] == results[1]) | ((results[0] != results[0]) & (results[1] != results[1]))
    return tuple(x.reshape((-1,) + x.shape[-2:])[0] if x.ndim > 2 else numpy.atleast_2d(x) for x in (same, results[0]))


def svg(kernel):
    """The graph, and the first matrix of the first result: what is filled is dark, 0 light grey, what inputs decide
    white."""
    parts, width, height = graph_svg(kernel)
    found = filled(kernel)
    if found is not None:
        same, values = found
        rows, columns = min(same.shape[0], _CELLS), min(same.shape[1], _CELLS)
        cells = []
        for r in range(rows):
            for c in range(columns):
                at = (r * same.shape[0] // rows, c * same.shape[1] // columns)
                fill = "#fff" if not same[at] else "#ddd" if values[at] == 0 else "#357"
                cells.append(f'<rect x="{10 + 8 * c}" y="{height + 10 + 8 * r}" width="8" height="8" fill="{fill}" '
                             'stroke="#ccc" stroke-width=".5"/>')
        parts += "".join(cells)
        parts += (f'<text x="10" y="{height + 8 * rows + 26}">{_escape(kernel.outputs[0][0])}: {int(same.sum())} of '
                  f'{same.size} elements of a matrix are filled</text>')
        width, height = max(width, 20 + 8 * columns, 340), height + 8 * rows + 36
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="11" fill="#000">{parts}</svg>')
