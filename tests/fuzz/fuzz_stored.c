/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_stored.c - any bytes as what the disk cache has of a model: they are refused, or all that is read of them lies
 * inside of them or of the model. */
#include <stdlib.h>
#include <string.h>

#include "frontend/onnx/model.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t model_bytes[4096];

static bool is_inside(const void *at, uint64_t bytes, const void *begin, uint64_t size)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)begin;
    return offset <= size && bytes <= size - offset;
}

static void check_port(const onnx_model_port *p, const rt_disk_map *map, uint32_t bindings)
{
    test_require(is_inside(p->name, strlen(p->name) + 1, map->content, map->content_size), "a name lies outside");
    test_require(p->rank <= ONNX_RANK && p->binding >= -1 && p->binding < (int32_t)bindings, "binding %d", p->binding);
    for (uint32_t d = 0; d < p->rank; d++)
        test_require(is_inside(p->record->dims[d].name.data, p->record->dims[d].name.size, map->content,
                               map->content_size),
                     "a dimension's name lies outside");
}

static void check_known(const fe_known *known, const rt_disk_map *map)
{
    test_require(is_inside(known->key, known->key_size, map->content, map->content_size), "the key lies outside");
    for (uint32_t i = 0; i < known->constant_count; i++)
        test_require(is_inside(known->constants[i].data, known->constants[i].bytes, map->content, map->content_size) ||
                         is_inside(known->constants[i].data, known->constants[i].bytes, model_bytes,
                                   sizeof model_bytes),
                     "constant %u lies outside", i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_model model;
    fuzz_meter meter;
    if (size < 1)
        return 0;
    uint8_t *const content = malloc(size); /* without what a seed begins with */
    test_require(content != NULL, "no memory");
    memcpy(content, data + 1, size - 1);
    const rt_disk_map map = { content, size - 1, content, size - 1 };
    fuzz_meter_begin(&meter);
    memset(&model, 0, sizeof model);
    model.named.bytes = (wire_bytes){ model_bytes, sizeof model_bytes };
    opjit_rt_arena_init(&model.arena, &meter.memory.allocator);
    if (opjit_onnx_take_stored(&model, &map)) {
        const uint32_t ports = model.input_count + model.output_count;
        for (uint32_t i = 0; i < model.input_count; i++)
            check_port(&model.inputs[i], &map, ports);
        for (uint32_t i = 0; i < model.output_count; i++)
            check_port(&model.outputs[i], &map, ports);
        check_known(&model.stored.known, &map);
    }
    opjit_rt_arena_free(&model.arena);
    fuzz_meter_end(&meter, size, 64u << 20, 256);
    free(content);
    return 0;
}
