/* The op table as data, out of ops.def. Only the last operand of an op may be absent. */
#include "graph/graph.h"

enum { PURE = 0, STATE = 1, COMMUTES = 1 };

#define MAY_BE_ABSENT(in) (sizeof(in) > 1 && (in)[sizeof(in) - 2] == '?')
#define N_LETTER(in)      ((int)sizeof(in) - 1 - MAY_BE_ABSENT(in))
#define I(name)           {#name, 'I'},
#define F(name)           {#name, 'F'},

#define OP(name, class, in, out, shape, flags, attr)                                               \
    [OP_##name] = {#name,                                                                          \
                   in,                                                                             \
                   out,                                                                            \
                   N_LETTER(in),                                                                   \
                   N_LETTER(in) - MAY_BE_ABSENT(in),                                               \
                   (int)sizeof(out) - 1,                                                           \
                   (class) == STATE,                                                               \
                   ((flags)&COMMUTES) != 0,                                                        \
                   #shape,                                                                         \
                   (int)(sizeof((struct op_attr[]){attr{0, 0}}) / sizeof(struct op_attr)) - 1,     \
                   {attr}},

static const struct op_row rows[OP_N] = {
#include "graph/ops.def"
};
#undef OP
#undef I
#undef F

const struct op_row *op_row(enum op op)
{
    return op > OP_NONE && op < OP_N ? &rows[op] : NULL;
}

enum op op_from_name(const char *name)
{
    for (enum op op = OP_NONE + 1; op < OP_N; op++) {
        const char *a = rows[op].name, *b = name;
        while (*a && *a == *b)
            a++, b++;
        if (*a == *b)
            return op;
    }
    return OP_NONE;
}

char graph_role(const struct node *n, int i)
{
    const struct op_row *row = op_row(n->op);
    return row && i >= 0 && i < row->n_in ? row->in[i] : 0;
}
