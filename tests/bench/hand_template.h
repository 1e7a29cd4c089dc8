/* SPDX-License-Identifier: Apache-2.0 */
/* hand_template.h - the body of the yardstick, included by hand.c once per vector width.  Not an ordinary header: it
 * has no include guard on purpose.
 *
 * Expects: HAND(name) the function's name at this width, ISA its target attribute, VEC, WIDTH (bytes), and the
 * operations V_LOAD, V_LOADU, V_STORE, V_STOREU, V_STREAM, V_SET8, V_SET32, V_SET64, V_ADD8, V_ADD32, V_ADD64, V_AND,
 * V_ANDNOT, V_OR, V_SEQUENCE (float bits of fma(float(counter), delta, start)), V_HALVES (two of those as f16). */

/* -O2 leaves loops of eight vectors as they are. */
#define UNROLLED _Pragma("GCC unroll 8")
#define INLINE ISA static inline __attribute__((always_inline))

INLINE void HAND(put)(char *p, VEC v, const bool nt)
{
    if (nt)
        V_STREAM((VEC *)(void *)p, v);
    else
        V_STORE((VEC *)(void *)p, v);
}

INLINE void HAND(put_run)(char *p, size_t bytes, VEC v, const bool nt)
{
    char *const end = p + bytes;

    for (; p + 256 <= end; p += 256)
        UNROLLED
        for (int i = 0; i < 256; i += WIDTH)
            HAND(put)(p + i, v, nt);
    for (; p < end; p += 64)
        UNROLLED
        for (int i = 0; i < 64; i += WIDTH)
            HAND(put)(p + i, v, nt);
}

INLINE void HAND(copy_run)(char *p, const char *q, size_t bytes, const bool nt)
{
    char *const end = p + bytes;

    for (; p + 256 <= end; p += 256, q += 256)
        UNROLLED
        for (int i = 0; i < 256; i += WIDTH)
            HAND(put)(p + i, V_LOAD((const VEC *)(const void *)(q + i)), nt);
    for (; p < end; p += 64, q += 64)
        UNROLLED
        for (int i = 0; i < 64; i += WIDTH)
            HAND(put)(p + i, V_LOAD((const VEC *)(const void *)(q + i)), nt);
}

INLINE VEC HAND(splat)(uint32_t element, uint64_t value)
{
    switch (element) {
    case 1: return V_SET8((char)value);
    case 2: return V_SET32((int)(value & 0xffff) * 0x10001);
    case 4: return V_SET32((int)value);
    default: return V_SET64((long long)value);
    }
}

/* --- fill --------------------------------------------------------------------------------------------------------- */
INLINE void HAND(fill_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const VEC v = HAND(splat)(job->element, job->value);

    HAND(put_run)((char *)job->out + begin * HAND_BLOCK, (end - begin) * HAND_BLOCK, v, nt);
}

/* --- eye: zero, the line with the diagonal, zero ------------------------------------------------------------------ */
/* Reads the line from a strip of zeros with the element in its middle, at the offset that puts it in the right
 * place. */
INLINE void HAND(eye_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    _Alignas(64) char strip[192] = { 0 };
    const size_t row_bytes = job->columns * job->element;
    const VEC zero = V_SET32(0);
    char *row = (char *)job->out + begin * row_bytes;
    uint64_t y = begin % job->matrix_rows;

    memcpy(strip + 64, &job->value, job->element);
    for (uint64_t i = begin; i < end; i++, row += row_bytes, y = y + 1 == job->matrix_rows ? 0 : y + 1) {
        const int64_t x = (int64_t)y + job->begin;
        const size_t at = (size_t)x * job->element, line = at & ~(size_t)63;

        if (x < 0 || (uint64_t)x >= job->columns) {
            HAND(put_run)(row, row_bytes, zero, nt);
            continue;
        }
        HAND(put_run)(row, line, zero, nt);
        UNROLLED
        for (int k = 0; k < 64; k += WIDTH)
            HAND(put)(row + line + k, V_LOADU((const VEC *)(const void *)(strip + 64 - (at - line) + k)), nt);
        HAND(put_run)(row + line + 64, row_bytes - line - 64, zero, nt);
    }
}

/* --- band: copy, boundary, fill, boundary, copy ------------------------------------------------------------------ */
/* One line, bytes [x0, x1) of which belong to the band; both relative to the line and clamped to it.  steps holds 64
 * bytes of 0, 64 of 0xff and 64 of 0: reading it at 64 - x0 gives the bytes at and after x0, at 128 - x1 those
 * before x1. */
INLINE void HAND(seam)(char *p, const char *q, int64_t x0, int64_t x1, const char *steps, VEC v, const bool nt)
{
    const size_t first = x0 < 0 ? 0 : x0 > 64 ? 64 : (size_t)x0, last = x1 < 0 ? 0 : x1 > 64 ? 64 : (size_t)x1;

    UNROLLED
    for (int k = 0; k < 64; k += WIDTH) {
        const VEC from = V_LOADU((const VEC *)(const void *)(steps + 64 - first + k));
        const VEC to = V_LOADU((const VEC *)(const void *)(steps + 128 - last + k));
        const VEC inside = V_AND(from, to), old = V_LOAD((const VEC *)(const void *)(q + k));

        HAND(put)(p + k, V_OR(V_AND(inside, v), V_ANDNOT(inside, old)), nt);
    }
}

INLINE void HAND(band_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    _Alignas(64) char steps[192] = { 0 };
    const size_t row_bytes = job->columns * job->element;
    const VEC v = HAND(splat)(job->element, job->value);
    char *row = (char *)job->out + begin * row_bytes;
    const char *from = (const char *)job->in + begin * row_bytes;
    uint64_t y = begin % job->matrix_rows;

    memset(steps + 64, 0xff, 64);
    for (uint64_t i = begin; i < end;
         i++, row += row_bytes, from += row_bytes, y = y + 1 == job->matrix_rows ? 0 : y + 1) {
        const int64_t x0 = hand_clamp((int64_t)y + job->begin, job->columns) * job->element;
        const int64_t x1 = hand_clamp((int64_t)y + job->end, job->columns) * job->element;
        const int64_t outer = x0 & ~INT64_C(63), inner = (x0 + 63) & ~INT64_C(63);
        const int64_t last = x1 & ~INT64_C(63), stop = (x1 + 63) & ~INT64_C(63);

        if (x0 >= x1) {
            HAND(copy_run)(row, from, row_bytes, nt);
            continue;
        }
        HAND(copy_run)(row, from, (size_t)outer, nt);
        if (outer == last) {
            HAND(seam)(row + outer, from + outer, x0 - outer, x1 - outer, steps, v, nt);
        } else {
            if (outer != inner)
                HAND(seam)(row + outer, from + outer, x0 - outer, 64, steps, v, nt);
            HAND(put_run)(row + inner, (size_t)(last - inner), v, nt);
            if (last != stop)
                HAND(seam)(row + last, from + last, 0, x1 - last, steps, v, nt);
        }
        HAND(copy_run)(row + stop, from + stop, row_bytes - (size_t)stop, nt);
    }
}

/* The ends of a long run are vectors that overlap its whole ones; short runs are stored element by element. */
INLINE void HAND(put_bytes)(char *p, size_t bytes, uint32_t element, uint64_t value, VEC v)
{
    if (bytes < WIDTH) {
        for (size_t k = 0; k < bytes; k += element)
            memcpy(p + k, &value, element);
        return;
    }
    for (size_t k = 0; k + WIDTH <= bytes; k += WIDTH)
        V_STOREU((VEC *)(void *)(p + k), v);
    V_STOREU((VEC *)(void *)(p + bytes - WIDTH), v);
}

ISA static void HAND(band_in_place)(const hand_job *job, uint64_t begin, uint64_t end)
{
    const size_t row_bytes = job->columns * job->element;
    const VEC v = HAND(splat)(job->element, job->value);
    char *row = (char *)job->out + begin * row_bytes;
    uint64_t y = begin % job->matrix_rows;

    for (uint64_t i = begin; i < end; i++, row += row_bytes, y = y + 1 == job->matrix_rows ? 0 : y + 1) {
        const int64_t x0 = hand_clamp((int64_t)y + job->begin, job->columns) * job->element;
        const int64_t x1 = hand_clamp((int64_t)y + job->end, job->columns) * job->element;

        if (x0 < x1) {
            if (job->element == 4) /* the common size, with the constant where the compiler sees it */
                HAND(put_bytes)(row + x0, (size_t)(x1 - x0), 4, job->value, v);
            else
                HAND(put_bytes)(row + x0, (size_t)(x1 - x0), job->element, job->value, v);
        }
    }
}

/* --- sequences ---------------------------------------------------------------------------------------------------- */
INLINE void HAND(sequence_f32_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    char *p = (char *)job->out + begin * HAND_BLOCK;
    VEC counter = V_ADD32(V_LOADU((const VEC *)(const void *)hand_count32), V_SET32((int)(begin * (HAND_BLOCK / 4))));

    for (char *const stop = (char *)job->out + end * HAND_BLOCK; p < stop; p += HAND_BLOCK) {
        UNROLLED
        for (int k = 0; k < (int)HAND_BLOCK; k += WIDTH)
            HAND(put)(p + k, V_SEQUENCE(V_ADD32(counter, V_SET32(k / 4)), (float)job->delta, (float)job->start), nt);
        counter = V_ADD32(counter, V_SET32(HAND_BLOCK / 4));
    }
}

INLINE void HAND(sequence_f16_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const float start = (float)job->start, delta = (float)job->delta;
    char *p = (char *)job->out + begin * HAND_BLOCK;
    VEC counter = V_ADD32(V_LOADU((const VEC *)(const void *)hand_count32), V_SET32((int)(begin * (HAND_BLOCK / 2))));

    for (char *const stop = (char *)job->out + end * HAND_BLOCK; p < stop; p += HAND_BLOCK) {
        UNROLLED
        for (int k = 0; k < (int)HAND_BLOCK; k += WIDTH) {
            const VEC low = V_ADD32(counter, V_SET32(k / 2)), high = V_ADD32(low, V_SET32(WIDTH / 4));

            HAND(put)(p + k, V_HALVES(V_SEQUENCE(low, delta, start), V_SEQUENCE(high, delta, start)), nt);
        }
        counter = V_ADD32(counter, V_SET32(HAND_BLOCK / 2));
    }
}

INLINE void HAND(sequence_u8_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const int start = (int)job->start, delta = (int)job->delta;
    char *p = (char *)job->out + begin * HAND_BLOCK;
    uint8_t first[WIDTH];
    VEC v;

    for (int i = 0; i < WIDTH; i++)
        first[i] = (uint8_t)((unsigned)start + (unsigned)delta * ((unsigned)begin * HAND_BLOCK + (unsigned)i));
    v = V_LOADU((const VEC *)(const void *)first);
    for (char *const stop = (char *)job->out + end * HAND_BLOCK; p < stop; p += HAND_BLOCK) /* delta * 256 is 0 */
        UNROLLED
        for (int k = 0; k < (int)HAND_BLOCK; k += WIDTH)
            HAND(put)(p + k, V_ADD8(v, V_SET8((char)((unsigned)delta * (unsigned)k))), nt);
}

INLINE void HAND(sequence_i64_)(const hand_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const uint64_t start = (uint64_t)(int64_t)job->start, delta = (uint64_t)(int64_t)job->delta;
    char *p = (char *)job->out + begin * HAND_BLOCK;
    uint64_t first[WIDTH / 8];
    VEC v;

    for (unsigned i = 0; i < WIDTH / 8; i++)
        first[i] = start + delta * (begin * (HAND_BLOCK / 8) + i);
    v = V_LOADU((const VEC *)(const void *)first);
    for (char *const stop = (char *)job->out + end * HAND_BLOCK; p < stop; p += HAND_BLOCK) {
        UNROLLED
        for (int k = 0; k < (int)HAND_BLOCK; k += WIDTH)
            HAND(put)(p + k, V_ADD64(v, V_SET64((long long)(delta * (uint64_t)(k / 8)))), nt);
        v = V_ADD64(v, V_SET64((long long)(delta * (HAND_BLOCK / 8))));
    }
}

/* --- both kinds of stores ----------------------------------------------------------------------------------------- */
#define BOTH(name)                                                                        \
    ISA static void HAND(name)(const hand_job *job, uint64_t begin, uint64_t end)         \
    {                                                                                     \
        if (job->mode == HAND_NT) {                                                       \
            HAND(name##_)(job, begin, end, true);                                         \
            _mm_sfence();                                                                 \
        } else {                                                                          \
            HAND(name##_)(job, begin, end, false);                                        \
        }                                                                                 \
    }
BOTH(fill)
BOTH(eye)
BOTH(band)
BOTH(sequence_f32)
BOTH(sequence_f16)
BOTH(sequence_u8)
BOTH(sequence_i64)

static const hand HAND(functions) = { HAND_NAME, HAND(fill), HAND(eye), HAND(band), HAND(band_in_place),
                                      HAND(sequence_f32), HAND(sequence_f16), HAND(sequence_u8), HAND(sequence_i64) };
#undef BOTH
#undef INLINE
#undef UNROLLED
