/* SPDX-License-Identifier: MIT
 *
 * SHA-256: the examples of FIPS 180-4, and messages whose padding just fits in a block or does not. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const uint8_t *bytes, size_t size, const char *expected)
{
    char text[SHA256_TEXT];
    sha256_text(bytes, size, text);
    assert_string_equal(text, expected);
}

static void test_the_examples_of_the_standard(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrst"
         "nopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    check(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check((const uint8_t *)examples[i][0], strlen(examples[i][0]), examples[i][1]);
}

static void test_all_sizes_of_padding(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *hash;
    } cases[] = {
        /* of the letter a, by sha256sum */
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    uint8_t *letters = malloc(1000000);
    assert_non_null(letters);
    memset(letters, 'a', 1000000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(letters, cases[i].size, cases[i].hash);
    free(letters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_examples_of_the_standard),
        cmocka_unit_test(test_all_sizes_of_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
