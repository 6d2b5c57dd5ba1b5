/* Every format against blocks converted by the oracle (tests/quant/make_quant_golden.py), the
 * half-precision conversions over their whole range, and the look-ups. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "quant/quant.h"

struct bytes {
    unsigned char *data;
    size_t n, at;
};

static struct bytes read_golden(void)
{
    struct bytes b = {0};
    FILE *f = fopen(TEST_SOURCE_DIR "/tests/golden/quant.gold", "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    b.n = (size_t)ftell(f);
    rewind(f);
    b.data = malloc(b.n);
    assert_non_null(b.data);
    assert_int_equal(fread(b.data, 1, b.n, f), b.n);
    fclose(f);
    return b;
}

static const unsigned char *take(struct bytes *b, size_t n)
{
    assert_true(n <= b->n - b->at);
    b->at += n;
    return b->data + b->at - n;
}

static uint32_t take_u32(struct bytes *b)
{
    uint32_t v;
    memcpy(&v, take(b, 4), 4);
    return v;
}

static bool same_f32(const unsigned char *a, const unsigned char *b)
{
    float x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return memcmp(a, b, 4) == 0 || (isnan(x) && isnan(y));
}

static bool same_f16(const unsigned char *a, const unsigned char *b)
{
    uint16_t x, y;
    memcpy(&x, a, 2);
    memcpy(&y, b, 2);
    return x == y || ((x & 0x7fff) > 0x7c00 && (y & 0x7fff) > 0x7c00);
}

/* One encoded block: scales as numbers (NaN equals NaN), the rest as bytes. */
static bool same_block(const struct quant_row *row, const unsigned char *a, const unsigned char *b)
{
    int skip = 0;
    if (row->block_bytes == 4)
        return same_f32(a, b);
    if (row->gguf_id == 30) {
        float x = quant_bf16_to_f32((uint16_t)(a[0] | a[1] << 8));
        float y = quant_bf16_to_f32((uint16_t)(b[0] | b[1] << 8));
        return memcmp(a, b, 2) == 0 || (isnan(x) && isnan(y));
    }
    for (; skip < (row->flags & QUANT_MIN ? 4 : 2); skip += 2)
        if (!same_f16(a + skip, b + skip))
            return false;
    return memcmp(a + skip, b + skip, (size_t)(row->block_bytes - skip)) == 0;
}

static void check_record(struct bytes *gold, size_t *n, size_t *n_ok, int seen[2][QUANT_N])
{
    uint32_t encode = take_u32(gold);
    enum quant_type type = quant_from_gguf(take_u32(gold));
    size_t n_elem = take_u32(gold);
    assert_true(encode < 2 && type != QUANT_N);
    const struct quant_row *row = quant_row(type);
    size_t n_block = n_elem / (size_t)row->block_elems, bytes = quant_bytes(type, n_elem);
    size_t n_src = encode ? n_elem * 4 : bytes, n_dst = encode ? bytes : n_elem * 4;
    const unsigned char *src = take(gold, n_src), *want = take(gold, n_dst);
    /* Both sides off by one byte, and a canary behind. */
    unsigned char *in = malloc(n_src + 1), *out = malloc(n_dst + 2);
    memcpy(in + 1, src, n_src);
    out[0] = out[n_dst + 1] = 0xa5;
    if (encode)
        row->encode((const float *)(const void *)(in + 1), out + 1, n_elem);
    else
        row->decode(in + 1, (float *)(void *)(out + 1), n_elem);
    assert_int_equal(out[0], 0xa5);
    assert_int_equal(out[n_dst + 1], 0xa5);
    for (size_t i = 0; i < n_block; i++) {
        size_t each = n_dst / n_block;
        const unsigned char *a = out + 1 + i * each, *b = want + i * each;
        bool ok = true;
        for (size_t j = 0; !encode && j < each; j += 4)
            ok = ok && same_f32(a + j, b + j);
        ok = ok && (!encode || same_block(row, a, b));
        *n += 1;
        *n_ok += ok;
        if (!ok)
            printf("%s %s: block %zu differs\n", row->name, encode ? "encode" : "decode", i);
    }
    seen[encode][type] = 1;
    free(in);
    free(out);
}

static void golden(void **state)
{
    (void)state;
    struct bytes gold = read_golden();
    size_t n = 0, n_ok = 0;
    int seen[2][QUANT_N] = {0};
    assert_memory_equal(take(&gold, 4), "SQG1", 4);
    for (uint32_t i = take_u32(&gold); i > 0; i--)
        check_record(&gold, &n, &n_ok, seen);
    assert_int_equal(gold.at, gold.n);
    for (int i = 0; i < QUANT_N; i++) { /* a row without golden data is not tested: refuse it */
        const struct quant_row *row = quant_row((enum quant_type)i);
        assert_true(seen[0][i]);
        assert_int_equal(seen[1][i], row->encode != NULL);
        assert_int_equal(row->encode != NULL, (row->flags & QUANT_ENCODE) != 0);
    }
    printf("quant: %zu/%zu\n", n_ok, n);
    assert_int_equal(n_ok, n);
    free(gold.data);
}

/* Value of a finite half, from the definition. */
static double half_value(unsigned h)
{
    int e = (int)(h >> 10 & 31);
    double v = ldexp((h & 0x3ff) + (e ? 1024 : 0), (e ? e : 1) - 25);
    return h & 0x8000 ? -v : v;
}

static void halves(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float x = quant_f16_to_f32((uint16_t)h);
        if ((h & 0x7fff) > 0x7c00) {
            assert_true(isnan(x));
            assert_true(isnan(quant_f16_to_f32(quant_f32_to_f16(x))));
            continue;
        }
        if ((h & 0x7fff) < 0x7c00)
            assert_true((double)x == half_value(h));
        assert_int_equal(quant_f32_to_f16(x), h);
        if ((h & 0x7fff) >= 0x7c00)
            continue;
        /* The midpoint to the next half goes to the even one, its neighbours to the nearer. */
        unsigned up = h + 1;
        double next = (up & 0x7fff) == 0x7c00 ? (h & 0x8000 ? -65536.0 : 65536.0) : half_value(up);
        float mid = (float)((half_value(h) + next) / 2);
        assert_int_equal(quant_f32_to_f16(mid), h & 1 ? up : h);
        assert_int_equal(quant_f32_to_f16(nextafterf(mid, h & 0x8000 ? 1 : -1)), h);
        assert_int_equal(quant_f32_to_f16(nextafterf(mid, h & 0x8000 ? -1e9f : 1e9f)), up);
    }
    for (unsigned h = 0; h < 65536; h++) {
        float x = quant_bf16_to_f32((uint16_t)h);
        if (isnan(x))
            assert_true(isnan(quant_bf16_to_f32(quant_f32_to_bf16(x))));
        else
            assert_int_equal(quant_f32_to_bf16(x), h);
    }
}

static void lookups(void **state)
{
    (void)state;
    int elems, bytes;
    for (int i = 0; i < QUANT_N; i++) {
        const struct quant_row *row = quant_row((enum quant_type)i);
        assert_int_equal(quant_from_gguf(row->gguf_id), i);
        assert_int_equal(quant_from_name(row->name), i);
        assert_string_equal(quant_gguf_name(row->gguf_id), row->name);
        assert_true(quant_gguf_block(row->gguf_id, &elems, &bytes));
        assert_int_equal(elems, row->block_elems);
        assert_int_equal(bytes, row->block_bytes);
    }
    assert_int_equal(quant_from_name("q4_k"), QUANT_Q4_K);
    assert_int_equal(quant_from_name("q4"), QUANT_N);
    assert_int_equal(quant_from_gguf(16), QUANT_N);
    assert_string_equal(quant_gguf_name(16), "IQ2_XXS");
    assert_string_equal(quant_gguf_name(39), "MXFP4");
    assert_string_equal(quant_gguf_name(40), "NVFP4");
    assert_string_equal(quant_gguf_name(41), "Q1_0");
    assert_string_equal(quant_gguf_name(42), "Q2_0");
    for (uint32_t id = 0; id <= 42; id++) /* no id up to the last one is without a name */
        assert_non_null(quant_gguf_name(id));
    assert_null(quant_gguf_name(43));
    assert_null(quant_gguf_name(UINT32_MAX));
    assert_false(quant_gguf_block(43, &elems, &bytes));
    assert_int_equal(quant_bytes(QUANT_Q6_K, 512), 420);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(halves),
        cmocka_unit_test(lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
