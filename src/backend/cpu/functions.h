/* exp, sigmoid, tanh over vectors and sincos in double: the only ones that the cpu backend uses, so
 * that no bit depends on a libm. Polynomials are Taylor's; each step is one written operation. */
#ifndef CPU_FUNCTIONS_H
#define CPU_FUNCTIONS_H

#include "backend/cpu/vec.h"

/* 0 below -86, infinity above 88. Error below 2 ulp. */
INLINE vf v_exp(vf x)
{
    const vf magic = v_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vf t = v_fma(x, v_set(1.44269504f), magic);
    vf n = v_sub(t, magic);
    vf r = v_fnma(n, v_set(0x1.62e4p-1f), x); /* ln 2 in two parts, the first exact */
    r = v_fnma(n, v_set(0x1.7f7d1cp-20f), r);
    vf p = v_set(1.0f / 5040);
    p = v_fma(p, r, v_set(1.0f / 720));
    p = v_fma(p, r, v_set(1.0f / 120));
    p = v_fma(p, r, v_set(1.0f / 24));
    p = v_fma(p, r, v_set(1.0f / 6));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(p, r, v_set(1.0f));
    p = v_fma(p, r, v_set(1.0f));
    p = v_scale_exp(p, t);
    p = v_if_lt(x, v_set(-86.0f), v_set(0.0f), p);
    return v_if_lt(v_set(88.0f), x, v_set(INFINITY), p);
}

/* x / (1 + exp(-x)) */
INLINE vf v_silu(vf x)
{
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), x))));
}

/* 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3) */
INLINE vf v_gelu(vf x)
{
    vf c = v_fma(v_mul(x, x), v_set(0.0713548163f), v_set(1.59576912f)); /* 2 u / x */
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), v_mul(x, c)))));
}

/* Below 0.4 the odd series, else 1 - 2 / (exp(2 |x|) + 1). */
INLINE vf v_tanh(vf x)
{
    vf a = v_abs(x), s = v_mul(x, x);
    vf p = v_set(21844.0f / 6081075);
    p = v_fma(p, s, v_set(-1382.0f / 155925));
    p = v_fma(p, s, v_set(62.0f / 2835));
    p = v_fma(p, s, v_set(-17.0f / 315));
    p = v_fma(p, s, v_set(2.0f / 15));
    p = v_fma(p, s, v_set(-1.0f / 3));
    p = v_fma(v_mul(p, s), a, a);
    vf e = v_exp(v_add(a, a));
    vf big = v_sub(v_set(1.0f), v_div(v_set(2.0f), v_add(e, v_set(1.0f))));
    return v_sign_of(v_if_lt(a, v_set(0.4f), p, big), x);
}

/* Sum of 16 partials as a fixed tree: i with i + 8, then + 4, + 2, + 1. */
INLINE float tree16(const float *p)
{
    float a[8];
    for (int i = 0; i < 8; i++)
        a[i] = p[i] + p[i + 8];
    for (int i = 0; i < 4; i++)
        a[i] = a[i] + a[i + 4];
    return (a[0] + a[2]) + (a[1] + a[3]);
}

/* Sine and cosine of x (|x| < 2^30): reduced by multiples of pi / 2, then Taylor's series. */
INLINE void sincos_f64(double x, float *sine, float *cosine)
{
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = fma(-n, 0x1.921fb54442d18p0, x);
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    const double z = r * r;
    double s = -1.0 / 1307674368000.0, c = -1.0 / 87178291200.0;
    s = fma(s, z, 1.0 / 6227020800.0);
    s = fma(s, z, -1.0 / 39916800.0);
    s = fma(s, z, 1.0 / 362880.0);
    s = fma(s, z, -1.0 / 5040.0);
    s = fma(s, z, 1.0 / 120.0);
    s = fma(s, z, -1.0 / 6.0);
    s = fma(s * z, r, r);
    c = fma(c, z, 1.0 / 479001600.0);
    c = fma(c, z, -1.0 / 3628800.0);
    c = fma(c, z, 1.0 / 40320.0);
    c = fma(c, z, -1.0 / 720.0);
    c = fma(c, z, 1.0 / 24.0);
    c = fma(c, z, -0.5);
    c = fma(c, z, 1.0);
    const int q = (int)((int64_t)n & 3);
    const double a = q & 1 ? c : s, b = q & 1 ? s : c;
    *sine = (float)(q & 2 ? -a : a);
    *cosine = (float)((q + 1) & 2 ? -b : b);
}

#endif
