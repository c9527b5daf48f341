/* SPDX-License-Identifier: MIT
 *
 * Mathematical functions whose symbols got a new version in glibc 2.29. These take their place when a program is
 * linked, and call the old version, which glibc still has: the program runs with older ones, too. Both versions return
 * the same numbers. */
#ifdef __aarch64__
#define OLDEST "GLIBC_2.17"
#else
#define OLDEST "GLIBC_2.2.5"
#endif
#define USE_OLD(name) __asm__(".symver old_" #name "," #name "@" OLDEST)

double exp(double x);
double exp2(double x);
double log(double x);
double log2(double x);
double pow(double x, double y);
double old_exp(double x);
double old_exp2(double x);
double old_log(double x);
double old_log2(double x);
double old_pow(double x, double y);
USE_OLD(exp);
USE_OLD(exp2);
USE_OLD(log);
USE_OLD(log2);
USE_OLD(pow);

double exp(double x)
{
    return old_exp(x);
}

double exp2(double x)
{
    return old_exp2(x);
}

double log(double x)
{
    return old_log(x);
}

double log2(double x)
{
    return old_log2(x);
}

double pow(double x, double y)
{
    return old_pow(x, y);
}
