/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - events of compiles: what they say in fields, and how their lines name what was compiled. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

char opjit_fe_lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

fe_label opjit_fe_label(const char *name, const fe_tensor *shape, const rt_target *target)
{
    fe_label label;
    size_t used = 0;

    while (name[used] != '\0' && used < 64) {
        label.text[used] = opjit_fe_lower_case(name[used]);
        used++;
    }
    used += (size_t)snprintf(label.text + used, sizeof label.text - used, ",%s,",
                             shape == NULL ? "u8" : opjit_rt_dtype_short(shape->dtype));
    for (uint32_t i = 0; shape != NULL && i < shape->rank && used < sizeof label.text; i++)
        used += (size_t)snprintf(label.text + used, sizeof label.text - used, "%s%u", i == 0 ? "" : "x",
                                 (unsigned)shape->sizes[i]);
    /* Of the target no more than its name: its tuning has commas, and is the same for all kernels of a context. */
    if (used < sizeof label.text)
        snprintf(label.text + used, sizeof label.text - used, ",%.*s", (int)strcspn(target->text, ",+"), target->text);
    return label;
}

/* An event with what it says of the unit's kernel. */
static opjit_event event_of(const fe_unit *unit, opjit_event_kind kind, opjit_event_subject subject)
{
    return (opjit_event){ .kind = kind,
                          .subject = (uint32_t)subject,
                          .level = unit->options.level,
                          .compile_id = unit->compile_id,
                          .key_hi = unit->key.hi,
                          .key_lo = unit->key.lo,
                          .name = unit->name,
                          .target = unit->options.target->text };
}

static fe_label label_of(const fe_unit *unit)
{
    return opjit_fe_label(unit->graph.label, opjit_fe_graph_shape(&unit->graph), unit->options.target);
}

OUT_OF_LINE void opjit_fe_report_compile(const fe_unit *unit, opjit_event_subject subject, uint64_t bytes,
                                         const rt_kernel_times *times)
{
    const char *const how = subject == OPJIT_EVENT_INTERPRETED         ? "interpreted"
                            : subject == OPJIT_EVENT_ARTIFACT          ? "artifact"
                            : unit->options.level == OPJIT_LEVEL_QUICK ? "quick"
                                                                       : "peak";
    opjit_event event;

    if (!rt_wants_events(unit->core))
        return;
    event = event_of(unit, OPJIT_EVENT_COMPILE, subject);
    event.nodes = unit->node_names;
    event.node_count = unit->node_names == NULL ? 0 : unit->graph.node_count;
    event.bytes = bytes;
    event.total_ms = times->compile_ms;
    event.lower_ms = times->lower_ms;
    event.passes_ms = times->passes_ms;
    event.codegen_ms = times->codegen_ms;
    opjit_rt_event(unit->core, &event, "compile,%s,%s,lower=%.3f,passes=%.3f,codegen=%.3f,direct=%u/%u,total=%.3f%s%s",
                   label_of(unit).text, how, times->lower_ms, times->passes_ms, times->codegen_ms, times->direct,
                   times->modules, times->compile_ms, unit->refused[0] == '\0' ? "" : ",refused=", unit->refused);
}

OUT_OF_LINE void opjit_fe_report_image(const fe_unit *unit, bool found, uint64_t bytes, const rt_kernel_times *times)
{
    if (!found) {
        opjit_fe_report_compile(unit, OPJIT_EVENT_CODE, bytes, times);
    } else if (rt_wants_events(unit->core)) {
        const opjit_event event = event_of(unit, OPJIT_EVENT_HIT, OPJIT_EVENT_DISK_CACHE);
        opjit_rt_event(unit->core, &event, "hit,%s,disk", label_of(unit).text);
    }
}
