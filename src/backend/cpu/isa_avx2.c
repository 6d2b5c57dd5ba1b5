/* The avx2 level. */
#include "backend/cpu/gemm_avx2.h"

#include "backend/cpu/gemm_impl.h"

#include "backend/cpu/attention_impl.h"
#include "backend/cpu/spin_impl.h"
#include "backend/cpu/vec_impl.h"

#define gemm_F32  gemm_float
#define gemm_F16  gemm_float
#define gemm_BF16 gemm_float
#define ISA_TABLE cpu_isa_avx2
#define ISA_LEVEL CPU_AVX2
#include "backend/cpu/isa_table.h"
