/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - whether a group gains: two sessions of its model, one by the host's kernels and one by this provider, run
 * in turns on one thread, in its processor time, which other programs change little, and, unless the provider is to use
 * one alone, on as many as it may use or the host's default, by the clock. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/hosts/onnxruntime/provider.h"

enum { TURNS_LEAST = 3, TURNS_MOST = 60 };
static const double budget = 0.06;             /* seconds for the turns of both */
static const double gain = 0.93;               /* the most of the host's time that is a gain: of the least times, */
static const double steady = 0.97;             /* and of the times of at least half of the turns */
static const double lost = 1.15, clear = 0.75; /* outside of these one turn tells enough */

typedef struct trial {
    const provider *p;
    const graph *g;
    const group *nodes;
    const bytes *model;
    ort_env *env;
    ort_memory_info *memory;
    arena room;
    ort_value **inputs;
    const char **input_names, **output_names;
    ort_session *sessions[2]; /* the host's, ours */
    clockid_t clock;
} trial;

static double seconds(const trial *t)
{
    struct timespec now;
    clock_gettime(t->clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ort_status *no_memory(const trial *t)
{
    return opjit_ort_fail(t->p->api, ORT_FAIL, "there is no memory");
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* Fills an input: numbers from 0 to 1 of FLOAT, 1 of bool, zeros of others, which are indices at times. */
static void fill(void *data, size_t size, int type)
{
    if (type == ORT_BOOL)
        memset(data, 1, size);
    for (size_t i = 0; type == 1 && i < size / sizeof(float); i++)
        ((float *)data)[i] = (float)(i * 2654435761u % 1021) / 1021.0f;
}

static ort_status *make_inputs(trial *t, const shape *shapes)
{
    const ort_api *const api = t->p->api;
    for (uint32_t i = 0; i < t->nodes->input_count; i++) {
        const graph_value *const v = &t->g->values[t->nodes->inputs[i]];
        int64_t dims[ORT_RANK] = { 0 };
        size_t count = 1;
        for (uint32_t d = 0; d < shapes[i].rank; d++) {
            dims[d] = (int64_t)shapes[i].sizes[d];
            count *= (size_t)shapes[i].sizes[d];
        }
        static const unsigned char sizes[] = { 0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8 };
        const size_t size = v->type < (int)sizeof sizes ? sizes[v->type] : 8;
        void *const data = opjit_ort_allocate(&t->room, count, size);
        if (data == NULL)
            return no_memory(t);
        fill(data, count * size, v->type);
        t->input_names[i] = v->name;
        ORT_TRY(api->CreateTensorWithDataAsOrtValue(t->memory, data, count * size, dims, shapes[i].rank, v->type,
                                                    &t->inputs[i]));
    }
    for (uint32_t i = 0; i < t->nodes->output_count; i++)
        t->output_names[i] = t->g->values[t->nodes->outputs[i]].name;
    return NULL;
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

static ort_status *add_provider(const trial *t, ort_session_options *options)
{
    static const char *const levels[] = { "auto", "quick", "peak" };
    const ort_api *const api = t->p->api;
    const char *keys[5] = { "claim", "level", "threads" };
    char threads[] = { (char)('0' + t->p->options.threads / 10 % 10), (char)('0' + t->p->options.threads % 10), '\0' };
    const char *values[5] = { "all", levels[t->p->options.level], threads };
    const ort_ep_device *const *devices = NULL;
    size_t count = 0, used = 3;
    if (t->p->options.cache_dir[0] != '\0') {
        keys[used] = "cache_dir";
        values[used++] = t->p->options.cache_dir;
    }
    if (t->p->options.target[0] != '\0') {
        keys[used] = "target";
        values[used++] = t->p->options.target;
    }
    ORT_TRY(api->GetEpDevices(t->env, &devices, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(api->EpDevice_EpName(devices[i]), ORT_PROVIDER) == 0)
            return api->SessionOptionsAppendExecutionProvider_V2(options, t->env, &devices[i], 1, keys, values, used);
    return opjit_ort_fail(api, ORT_FAIL, "the provider is not registered any more");
}

static ort_status *open_session(const trial *t, bool ours, int threads, ort_session **out)
{
    const ort_api *const api = t->p->api;
    ort_session_options *options = NULL;
    ORT_TRY(api->CreateSessionOptions(&options));
    ort_status *status = api->SetSessionLogSeverityLevel(options, ORT_ERROR);
    if (status == NULL)
        status = api->SetIntraOpNumThreads(options, threads);
    if (status == NULL && ours)
        status = add_provider(t, options);
    if (status == NULL)
        status = api->CreateSessionFromArray(t->env, t->model->data, t->model->size, options, out);
    api->ReleaseSessionOptions(options);
    return status;
}

/* One run; its time in *out. */
static ort_status *run(const trial *t, ort_session *session, double *out)
{
    const ort_api *const api = t->p->api;
    const uint32_t count = t->nodes->output_count;
    ort_value **const outputs = calloc((size_t)count + 1, sizeof *outputs);
    if (outputs == NULL)
        return no_memory(t);
    const double begin = seconds(t);
    ort_status *const status = api->Run(session, NULL, t->input_names, (const ort_value *const *)t->inputs,
                                        t->nodes->input_count, t->output_names, count, outputs);
    *out = seconds(t) - begin;
    for (uint32_t i = 0; i < count; i++)
        if (outputs[i] != NULL)
            api->ReleaseValue(outputs[i]);
    free(outputs);
    return status;
}

/* Runs one of the sessions once, or twice where that is quick; *out_least: the less time. */
static ort_status *run_turn(const trial *t, int who, double *out_least)
{
    double time;
    ORT_TRY(run(t, t->sessions[who], out_least));
    if (*out_least >= budget / 10)
        return NULL;
    ORT_TRY(run(t, t->sessions[who], &time));
    *out_least = time < *out_least ? time : *out_least;
    return NULL;
}

/* Runs of one session and of the other in turns: ours gains if its least time says so, and most turns do. */
static ort_status *race(const trial *t, bool *out)
{
    double least[2] = { 1e30, 1e30 }, times[2], end;
    int turns = 0, won = 0;
    for (int who = 0; who < 2; who++)
        ORT_TRY(run(t, t->sessions[who], &times[who]));
    end = seconds(t) + budget;
    while (turns < TURNS_MOST && (turns < TURNS_LEAST || seconds(t) < end)) {
        for (int who = 0; who < 2; who++) {
            ORT_TRY(run_turn(t, who, &times[who]));
            least[who] = times[who] < least[who] ? times[who] : least[who];
        }
        turns++;
        won += times[1] <= steady * times[0];
        if (least[1] > lost * least[0] || (least[1] < clear * least[0] && seconds(t) > end))
            break;
    }
    *out = least[1] <= gain * least[0] && 2 * won >= turns;
    return NULL;
}

static ort_status *race_on(trial *t, int threads, bool *out)
{
    const ort_api *const api = t->p->api;
    ort_status *status = NULL;
    *out = false;
    t->clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    for (int who = 0; who < 2 && status == NULL; who++)
        status = open_session(t, who == 1, threads, &t->sessions[who]);
    if (status == NULL)
        status = race(t, out);
    for (int who = 0; who < 2; who++) {
        if (t->sessions[who] != NULL)
            api->ReleaseSession(t->sessions[who]);
        t->sessions[who] = NULL;
    }
    return status;
}

static ort_status *try_both(trial *t, const shape *shapes, bool *out)
{
    const ort_api *const api = t->p->api;
    t->inputs = opjit_ort_allocate(&t->room, t->nodes->input_count, sizeof *t->inputs);
    t->input_names = opjit_ort_allocate(&t->room, t->nodes->input_count, sizeof *t->input_names);
    t->output_names = opjit_ort_allocate(&t->room, t->nodes->output_count, sizeof *t->output_names);
    if (t->inputs == NULL || t->input_names == NULL || t->output_names == NULL)
        return no_memory(t);
    ORT_TRY(api->CreateEnv(ORT_ERROR, "opjit", &t->env)); /* the one that there is */
    ORT_TRY(api->CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &t->memory));
    ORT_TRY(make_inputs(t, shapes));
    ORT_TRY(race_on(t, 1, out));
    if (*out && t->p->options.threads != 1)
        ORT_TRY(race_on(t, (int)t->p->options.threads, out));
    return NULL;
}

bool opjit_ort_measure(const provider *p, const graph *g, const group *nodes, const bytes *model, const shape *shapes,
                       bool *out)
{
    const ort_api *const api = p->api;
    trial t = { .p = p, .g = g, .nodes = nodes, .model = model };
    ort_status *const status = try_both(&t, shapes, out);
    for (uint32_t i = 0; i < nodes->input_count && t.inputs != NULL; i++)
        if (t.inputs[i] != NULL)
            api->ReleaseValue(t.inputs[i]);
    if (t.memory != NULL)
        api->ReleaseMemoryInfo(t.memory);
    if (t.env != NULL)
        api->ReleaseEnv(t.env);
    opjit_ort_free(&t.room);
    if (status != NULL) /* values that fit no input, for example: so nothing is known */
        api->ReleaseStatus(status);
    return status == NULL;
}
