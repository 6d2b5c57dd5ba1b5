#include "sinter.h"

#include <stdio.h>

int main(void)
{
    printf("sinter %s\n", "0.1.0");
    return 0;
}
