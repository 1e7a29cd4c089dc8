/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the library's entry points, the factory of providers and a provider's options. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

#define EXPORT __attribute__((visibility("default")))

/* A context that providers with one folder and one target share, and with it its kernels. */
typedef struct shared_context {
    struct shared_context *next;
    opjit_context *context;
    uint32_t users;
    char cache_dir[1024], target[OPJIT_TARGET_TEXT];
} shared_context;

typedef struct factory {
    ort_ep_factory base;
    ort_api api;
    const char *version;  /* the host's */
    bool one_group;       /* a provider's */
    pthread_mutex_t lock; /* of contexts */
    shared_context *contexts;
} factory;

ort_status *opjit_ort_fail(const ort_api *api, int code, const char *format, ...)
{
    char text[400] = "opjit: ";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + 7, sizeof text - 7, format, arguments);
    va_end(arguments);
    return api->CreateStatus(code, text);
}

void opjit_ort_warn(const provider *p, const char *format, ...)
{
    char text[900] = "opjit: ";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + 7, sizeof text - 7, format, arguments);
    va_end(arguments);
    ort_status *const status = p->api->Logger_LogMessage(p->logger, ORT_WARNING, text, __FILE__, __LINE__, "opjit");
    if (status != NULL)
        p->api->ReleaseStatus(status);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* "batch=1,sequence=128" */
static ort_status *read_dims(const ort_api *api, const char *text, provider_options *out)
{
    while (*text != '\0') {
        claim_dim *const dim = &out->dims[out->dim_count];
        const char *const sign = strchr(text, '=');
        char *end = NULL;
        const long long size = sign == NULL ? 0 : strtoll(sign + 1, &end, 10);
        if (out->dim_count == CLAIM_DIMS || sign == NULL || (size_t)(sign - text) >= sizeof dim->name || size < 1 ||
            size > INT32_MAX || (*end != '\0' && *end != ','))
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT,
                                  "option dims: \"%.80s\", must be NAME=SIZE, at most %d of them with commas between",
                                  text, CLAIM_DIMS);
        memcpy(dim->name, text, (size_t)(sign - text));
        dim->name[sign - text] = '\0';
        dim->size = size;
        out->dim_count++;
        text = *end == ',' ? end + 1 : end;
    }
    return NULL;
}

static ort_status *read_option(const ort_api *api, const char *key, const char *value, provider_options *out)
{
    char *end = NULL;
    if (strcmp(key, "claim") == 0) {
        if (strcmp(value, "gain") != 0 && strcmp(value, "all") != 0)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "option claim: \"%.80s\", must be gain or all", value);
        out->claim = value[0] == 'a' ? CLAIM_ALL : CLAIM_GAIN;
    } else if (strcmp(key, "level") == 0) {
        if (strcmp(value, "auto") != 0 && strcmp(value, "quick") != 0 && strcmp(value, "peak") != 0)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "option level: \"%.80s\", must be auto, quick or peak",
                                  value);
        out->level = value[0] == 'a' ? OPJIT_LEVEL_AUTO : value[0] == 'q' ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
    } else if (strcmp(key, "threads") == 0) {
        const long threads = strtol(value, &end, 10);
        if (end == value || *end != '\0' || threads < 0 || threads > 64)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "option threads: \"%.80s\", must be 0 to 64", value);
        out->threads = (uint32_t)threads;
    } else if (strcmp(key, "cache_dir") == 0) {
        if (strlen(value) >= sizeof out->cache_dir)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "option cache_dir: %zu bytes, must be fewer than %zu",
                                  strlen(value), sizeof out->cache_dir);
        strcpy(out->cache_dir, value);
    } else if (strcmp(key, "target") == 0) {
        opjit_error error;
        if (opjit_target_runs_here(value, &error) != OPJIT_OK ||
            opjit_target_get_text(value, out->target, &error) != OPJIT_OK)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "option target: %s", error.message);
    } else if (strcmp(key, "dims") == 0) {
        return read_dims(api, value, out);
    } else {
        return opjit_ort_fail(
            api, ORT_INVALID_ARGUMENT,
            "there is no option \"%.80s\": claim, level, threads, cache_dir, dims and target are taken", key);
    }
    return NULL;
}

/* What a session says of context models, among other things. */
static ort_status *read_session_option(const ort_api *api, const char *key, const char *value, provider_options *out)
{
    if (strcmp(key, "ep.context_enable") == 0) {
        out->writes_context = strcmp(value, "1") == 0;
    } else if (strcmp(key, "ep.context_embed_mode") == 0) {
        out->embeds_context = strcmp(value, "1") == 0;
    } else if (strcmp(key, "ep.context_file_path") == 0) {
        if (strlen(value) >= sizeof out->context_path)
            return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "ep.context_file_path: %zu bytes, must be fewer than %zu",
                                  strlen(value), sizeof out->context_path);
        strcpy(out->context_path, value);
    }
    return NULL;
}

ort_status *opjit_ort_options(const ort_api *api, const ort_session_options *session, provider_options *out)
{
    static const char prefix[] = "ep.opjitexecutionprovider."; /* before a provider's options among a session's */
    const char *const *keys = NULL, *const *values = NULL;
    ort_pairs *pairs = NULL;
    size_t count = 0;
    ort_status *status = NULL;
    *out = (provider_options){ .claim = CLAIM_GAIN };
    if (session == NULL)
        return NULL;
    ORT_TRY(api->GetSessionOptionsConfigEntries(session, &pairs));
    api->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count && status == NULL; i++)
        if (strncmp(keys[i], prefix, sizeof prefix - 1) == 0)
            status = read_option(api, keys[i] + sizeof prefix - 1, values[i], out);
        else
            status = read_session_option(api, keys[i], values[i], out);
    api->ReleaseKeyValuePairs(pairs);
    return status;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static opjit_status take_context(factory *f, const provider_options *given, opjit_context **out, opjit_error *error)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_status status = OPJIT_OK;
    pthread_mutex_lock(&f->lock);
    shared_context *s = f->contexts;
    while (s != NULL && (strcmp(s->cache_dir, given->cache_dir) != 0 || strcmp(s->target, given->target) != 0))
        s = s->next;
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        options.cache_dir = given->cache_dir[0] == '\0' ? NULL : given->cache_dir;
        options.target = given->target[0] == '\0' ? NULL : given->target;
        *error = (opjit_error){ .status = OPJIT_OUT_OF_MEMORY, .message = "there is no memory" };
        status = s == NULL ? OPJIT_OUT_OF_MEMORY : opjit_context_create(&options, &s->context, error);
        if (status == OPJIT_OK) {
            strcpy(s->cache_dir, given->cache_dir);
            strcpy(s->target, given->target);
            s->next = f->contexts;
            f->contexts = s;
        } else {
            free(s);
        }
    }
    if (status == OPJIT_OK) {
        s->users++;
        *out = s->context;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

static void give_context(factory *f, opjit_context *context)
{
    pthread_mutex_lock(&f->lock);
    for (shared_context **at = &f->contexts; *at != NULL; at = &(*at)->next) {
        shared_context *const s = *at;
        if (s->context != context)
            continue;
        if (--s->users == 0) {
            *at = s->next;
            opjit_context_destroy(s->context);
            free(s);
        }
        break;
    }
    pthread_mutex_unlock(&f->lock);
}

/* --- a provider --------------------------------------------------------------------------------------------------- */

static const char *provider_name(const ort_ep *ep)
{
    (void)ep;
    return ORT_PROVIDER;
}

static ort_status *provider_claim(ort_ep *ep, const ort_graph *host, ort_support_info *support)
{
    return opjit_ort_claim((provider *)ep, host, support);
}

static void provider_release(ort_ep *ep, ort_compute_info **infos, size_t count)
{
    (void)ep;
    for (size_t i = 0; i < count; i++)
        opjit_ort_release_compute(infos[i]);
}

static ort_status *provider_compile(ort_ep *ep, const ort_graph **graphs, const ort_node **fused, size_t count,
                                    ort_compute_info **out, ort_node **out_context_nodes)
{
    ort_status *status = NULL;
    provider *const p = (provider *)ep;
    size_t made = 0;
    while (made < count && status == NULL) {
        ort_node **const context_node = p->options.writes_context ? &out_context_nodes[made] : NULL;
        status = opjit_ort_compile(p, graphs[made], fused[made], &out[made], context_node);
        made += status == NULL;
    }
    if (status != NULL) {
        provider_release(ep, out, made);
        memset(out, 0, count * sizeof *out);
    }
    return status;
}

static const char *describe_context(ort_ep *ep, const ort_graph *host)
{
    provider *const p = (provider *)ep;
    (void)host;
    opjit_ort_write_compatibility(opjit_context_target(p->context), p->compatibility, sizeof p->compatibility);
    return p->compatibility;
}

static ort_status *create_provider(ort_ep_factory *base, const ort_hardware_device *const *devices,
                                   const ort_pairs *const *metadata, size_t count, const ort_session_options *options,
                                   const ort_logger *logger, ort_ep **out)
{
    factory *const f = (factory *)base;
    opjit_error error;
    (void)devices;
    (void)metadata;
    (void)count;
    *out = NULL;
    provider *const p = calloc(1, sizeof *p);
    if (p == NULL)
        return opjit_ort_fail(&f->api, ORT_FAIL, "there is no memory");
    p->ep = (ort_ep){ .version = ORT_VERSION,
                      .GetName = provider_name,
                      .GetCapability = provider_claim,
                      .Compile = provider_compile,
                      .ReleaseNodeComputeInfos = provider_release,
                      .GetCompiledModelCompatibilityInfo = describe_context };
    p->api = &f->api;
    p->logger = logger;
    p->host_version = f->version;
    p->one_group = f->one_group;
    ort_status *status = opjit_ort_options(&f->api, options, &p->options);
    if (status == NULL && take_context(f, &p->options, &p->context, &error) != OPJIT_OK)
        status = opjit_ort_fail(&f->api, ORT_FAIL, "%s", error.message);
    if (status != NULL)
        free(p);
    else
        *out = &p->ep;
    return status;
}

static void release_provider(ort_ep_factory *base, ort_ep *ep)
{
    provider *const p = (provider *)ep;
    if (p == NULL)
        return;
    give_context((factory *)base, p->context);
    free(p);
}

/* --- the factory -------------------------------------------------------------------------------------------------- */

static const char *factory_name(const ort_ep_factory *f)
{
    (void)f;
    return ORT_PROVIDER;
}

static const char *factory_vendor(const ort_ep_factory *f)
{
    (void)f;
    return "opjit";
}

static uint32_t factory_vendor_id(const ort_ep_factory *f)
{
    (void)f;
    return 0; /* of no PCI vendor */
}

static const char *factory_version(const ort_ep_factory *f)
{
    (void)f;
    return opjit_version();
}

static ort_status *judge_context(ort_ep_factory *f, const ort_hardware_device *const *devices, size_t count,
                                 const char *info, int *out)
{
    (void)f;
    (void)devices;
    (void)count;
    *out = opjit_ort_read_compatibility(info);
    return NULL;
}

static ort_status *find_devices(ort_ep_factory *base, const ort_hardware_device *const *devices, size_t count,
                                ort_ep_device **out, size_t most, size_t *out_count)
{
    const ort_api *const api = &((factory *)base)->api;
    *out_count = 0;
    for (size_t i = 0; i < count && *out_count < most; i++) {
        if (api->HardwareDevice_Type(devices[i]) != ORT_DEVICE_CPU)
            continue;
        ORT_TRY(api->CreateEpDevice(base, devices[i], NULL, NULL, &out[*out_count]));
        ++*out_count;
    }
    return NULL;
}

static ort_status *no_allocator(ort_ep_factory *f, const ort_memory_info *memory, const ort_pairs *options, void **out)
{
    (void)f;
    (void)memory;
    (void)options;
    *out = NULL; /* the host's */
    return NULL;
}

static void release_allocator(ort_ep_factory *f, void *allocator)
{
    (void)f;
    (void)allocator;
}

static ort_status *no_transfer(ort_ep_factory *f, void **out)
{
    (void)f;
    *out = NULL;
    return NULL;
}

static bool is_stream_aware(const ort_ep_factory *f)
{
    (void)f;
    return false;
}

static ort_status *no_stream(ort_ep_factory *f, const void *device, const ort_pairs *options, void **out)
{
    (void)f;
    (void)device;
    (void)options;
    *out = NULL;
    return NULL;
}

#define NOT_HERE(index, result, name, parameters)
static ort_api read_api(const ort_function *table)
{
    ort_api api = { 0 };
#define SLOT(index, result, name, parameters) api.name = (result(*) parameters)table[index];
#define EP_SLOT NOT_HERE
#define EDITOR_SLOT NOT_HERE
#include "frontend/hosts/onnxruntime/slots.def"
#undef EP_SLOT
#undef SLOT
    const ort_function *const of_providers = api.GetEpApi();
#define SLOT NOT_HERE
#define EP_SLOT(index, result, name, parameters) api.name = (result(*) parameters)of_providers[index];
#include "frontend/hosts/onnxruntime/slots.def"
#undef EDITOR_SLOT
#undef EP_SLOT
    const ort_function *const of_editor = api.GetModelEditorApi();
#define EP_SLOT NOT_HERE
#define EDITOR_SLOT(index, result, name, parameters) \
    api.name = of_editor == NULL ? NULL : (result(*) parameters)of_editor[index];
#include "frontend/hosts/onnxruntime/slots.def"
#undef EDITOR_SLOT
#undef EP_SLOT
#undef SLOT
    return api;
}

EXPORT ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                                     ort_ep_factory **out, size_t most, size_t *out_count);
EXPORT ort_status *ReleaseEpFactory(ort_ep_factory *f);

ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                              ort_ep_factory **out, size_t most, size_t *out_count)
{
    const ort_function *const table = base->GetApi(ORT_VERSION);
    (void)name;
    (void)logger;
    *out_count = 0;
    if (table == NULL || most == 0) /* a host before 1.23, which has logged it */
        return NULL;
    const ort_api api = read_api(table);
    factory *const f = calloc(1, sizeof *f);
    if (f == NULL)
        return opjit_ort_fail(&api, ORT_FAIL, "there is no memory");
    f->api = api;
    f->version = base->GetVersionString();
    f->one_group = strncmp(f->version, "1.23.", 5) == 0;
    f->base = (ort_ep_factory){ .version = ORT_VERSION,
                                .GetName = factory_name,
                                .GetVendor = factory_vendor,
                                .GetSupportedDevices = find_devices,
                                .CreateEp = create_provider,
                                .ReleaseEp = release_provider,
                                .GetVendorId = factory_vendor_id,
                                .GetVersion = factory_version,
                                .ValidateCompiledModelCompatibilityInfo = judge_context,
                                .CreateAllocator = no_allocator,
                                .ReleaseAllocator = release_allocator,
                                .CreateDataTransfer = no_transfer,
                                .IsStreamAware = is_stream_aware,
                                .CreateSyncStreamForDevice = no_stream };
    pthread_mutex_init(&f->lock, NULL);
    out[(*out_count)++] = &f->base;
    return NULL;
}

ort_status *ReleaseEpFactory(ort_ep_factory *base)
{
    factory *const f = (factory *)base;
    if (f == NULL)
        return NULL;
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}
