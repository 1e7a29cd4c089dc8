#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what the benchmarks measured as SVG files for the README: plot.py [-o FOLDER] RESULT.json ...

RESULT.json is what bench_generators --json (two plots: by size, by element type), bench_compile --json and bench_gemm
--json write.  Python's own library only.  The numbers are drawn as they are: nothing is averaged or left out but what
--type, --size and the size of the plot leave out.
"""
import argparse
import json
import pathlib
import sys
from html import escape

INK, FAINT, PAPER = "#1f2328", "#d0d7de", "#ffffff"
COLOURS = ["#0969da", "#8c959f", "#bf8700", "#1a7f37"]
FONT = 'font-family="system-ui, sans-serif"'


class Svg:
    """A drawing, grown element by element."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        ]
        self.text(16, 26, title, 16, weight=600)

    def text(self, x, y, text, size=12, anchor="start", weight=400):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'
        )

    def rect(self, x, y, width, height, colour, note=""):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}" '
            f'fill="{colour}">'
            f"<title>{escape(note)}</title></rect>"
        )

    def line(self, x0, y0, x1, y1, colour=FAINT, dashes=""):
        self.parts.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
            f'stroke-dasharray="{dashes}"/>'
        )

    def legend(self, x, y, names):
        for name, colour in zip(names, COLOURS):
            self.rect(x, y - 9, 10, 10, colour)
            self.text(x + 15, y, name)
            x += 30 + 7 * len(name)

    def save(self, path):
        path.write_text("\n".join(self.parts + ["</svg>"]) + "\n")
        print(path)


def round_up(value):
    """The least of 1, 2, 5 times a power of ten that is no smaller: a scale's end."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7.5, 10) if step * power >= value)


def panel(svg, x, y, width, height, title, groups):
    """Bars side by side: groups is a list of (label, [(value, note), ...])."""
    top = round_up(max(value for _, bars in groups for value, _ in bars))
    svg.text(x, y - 8, title, 13, weight=600)
    for i in range(5):
        at = y + height - height * i / 4
        svg.line(x, at, x + width, at)
        svg.text(x - 6, at + 4, f"{top * i / 4:g}", 10, "end")
    step = width / len(groups)
    for i, (label, bars) in enumerate(groups):
        thick = step * 0.7 / len(bars)
        for k, (value, note) in enumerate(bars):
            tall = height * value / top
            svg.rect(x + step * (i + 0.15) + thick * k, y + height - tall, thick * 0.92, tall, COLOURS[k], note)
        svg.text(x + step * (i + 0.5), y + height + 16, label, 11, "middle")


def plot_generators(result, path, dtype):
    """Bytes a second of each generator by size, beside its reference."""
    kinds = ["constant", "sequence", "eye", "triangle"]
    panels = {}
    for row in result["rows"]:
        words = row["case"].split()
        if len(words) == 4 and words[0] in kinds and words[1] == dtype and row["time"] and row["ratio"]:
            rate = row["GB/s"]
            bars = [(rate, f"{rate:.1f} GB/s"),
                    (rate * row["ratio"], f"{row['reference']}: {rate * row['ratio']:.1f} GB/s")]
            panels.setdefault(words[0], []).append((" ".join(words[2:]), bars))
    if not panels:
        sys.exit(f"{path.name}: no generators of type {dtype} in it")
    svg = Svg(760, 560, f"Generators, {dtype}, one thread: GB/s")
    svg.text(16, 44, result["target"], 10)
    svg.legend(480, 26, ["opjit", "best by hand or memset"])
    for i, kind in enumerate(kind for kind in kinds if kind in panels):
        panel(svg, 56 + i % 2 * 370, 90 + i // 2 * 240, 310, 170, kind, panels[kind])
    svg.save(path)


def plot_types(result, path, size):
    """Bytes a second of the generators of one size, by element type."""
    kinds = ["constant", "sequence", "eye"]
    groups = {}
    for row in result["rows"]:
        words = row["case"].split()
        if len(words) == 4 and words[0] in kinds and " ".join(words[2:]) == size and row["time"]:
            groups.setdefault(words[1], {})[words[0]] = (row["GB/s"], f"{words[0]}: {row['GB/s']:.1f} GB/s")
    groups = [(dtype, [bars[kind] for kind in kinds]) for dtype, bars in groups.items() if len(bars) == len(kinds)]
    if not groups:
        sys.exit(f"{path.name}: no generators of {size} in it")
    svg = Svg(760, 290, f"Generators of {size} by element type, one thread: GB/s")
    svg.text(16, 44, result["target"], 10)
    svg.legend(500, 26, kinds)
    panel(svg, 56, 80, 680, 170, "", groups)
    svg.save(path)


def plot_compile(result, path):
    """Where the time of a quick compile goes, and the empty function's."""
    phases = ["lower", "passes", "codegen", "load"]
    rows = {row["case"]: row for row in result["rows"]}
    kinds = [case.split()[2] for case in rows if case.startswith("phase codegen ")]
    if not kinds:
        sys.exit(f"{path.name}: no compile times in it")
    longest = round_up(max(rows[f"compile {kind} quick"]["time"] for kind in kinds) / 1e3)
    svg = Svg(760, 120 + 40 * len(kinds), "Warm compile, quick: microseconds by phase")
    svg.text(16, 44, result["target"], 10)
    svg.legend(400, 26, phases)
    scale = 600 / longest
    for i in range(5):
        at = 110 + 150 * i
        svg.line(at, 64, at, 70 + 40 * len(kinds))
        svg.text(at, 86 + 40 * len(kinds), f"{longest * i / 4:g}", 10, "middle")
    for i, kind in enumerate(kinds):
        total = rows[f"compile {kind} quick"]
        x, y = 110.0, 72 + 40 * i
        svg.text(100, y + 17, kind, 12, "end")
        for phase, colour in zip(phases, COLOURS):
            us = rows[f"phase {phase} {kind}"]["time"] / 1e3
            svg.rect(x, y, us * scale, 24, colour, f"{phase}: {us:.1f} us")
            x += us * scale
        empty = total["time"] / total["ratio"] / 1e3
        svg.line(110 + empty * scale, y - 3, 110 + empty * scale, y + 27, INK, "3 2")
    svg.text(110, 106 + 40 * len(kinds), "dashed: LLVM emitting an empty function, in the same run", 11)
    svg.save(path)


def plot_gemm(result, path):
    """GFLOP/s of square products by size, beside OpenBLAS, oneDNN and a loop of nothing but fma."""
    names = {"OpenBLAS": "OpenBLAS", "oneDNN": "oneDNN", "fma alone": "fma alone (peak)"}
    sizes = {}
    for row in result["rows"]:
        edge = row["case"].removesuffix("^3")
        if edge != row["case"] and edge.isdigit() and row["reference"] in names:
            rate = 2 * int(edge) ** 3 / row["time"]
            sizes.setdefault(edge, {})[row["reference"]] = (rate, rate * row["ratio"])
    groups = []
    for edge, rates in sorted(sizes.items(), key=lambda item: int(item[0])):
        if len(rates) < len(names):
            continue
        ours = rates["fma alone"][0]
        bars = [("opjit", ours)] + [(names[other], rates[other][1]) for other in names]
        groups.append((edge, [(rate, f"{name}: {rate:.0f} GFLOP/s") for name, rate in bars]))
    if not groups:
        sys.exit(f"{path.name}: no square products beside OpenBLAS and oneDNN in it")
    svg = Svg(760, 290, "Products of N × N matrices, f32, one thread: GFLOP/s")
    svg.text(16, 44, result["target"], 10)
    svg.legend(300, 62, ["opjit", *names.values()])
    panel(svg, 56, 84, 680, 166, "", groups)
    svg.save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", metavar="FOLDER", default=".", type=pathlib.Path, help="where the plots go")
    parser.add_argument("--type", default="f32", help="element type of the generators' plot")
    parser.add_argument("--size", default="8 MiB", help="size of the plot by element type")
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.o.mkdir(parents=True, exist_ok=True)
    for file in arguments.results:
        result = json.loads(file.read_text())
        path = arguments.o / f"{result['benchmark']}.svg"
        if result["benchmark"] == "generators":
            plot_generators(result, path, arguments.type)
            plot_types(result, arguments.o / "types.svg", arguments.size)
        elif result["benchmark"] == "compile":
            plot_compile(result, path)
        elif result["benchmark"] == "gemm":
            plot_gemm(result, path)
        else:
            print(f"{file}: nothing to draw of {result['benchmark']}", file=sys.stderr)


if __name__ == "__main__":
    main()
