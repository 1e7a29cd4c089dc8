/* SPDX-License-Identifier: Apache-2.0 */
/* test_cli_suggest.c - "did you mean". */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/text/suggest.h"

static const char *const names[] = { "run",          "explain",          "Epsilon", "InputTensor", "Sizes",
                                     "OutputTensor", "ELEMENT_WISE_ADD", "PADDING", "x86-64-v3",   "znver3" };

static const struct {
    const char *given, *want; /* want "": nothing is near */
} rows[] = {
    { "Epsilonn", "; did you mean \"Epsilon\"?" },
    { "epsilno", "; did you mean \"Epsilon\"?" },
    { "rnu", "; did you mean \"run\"?" },
    { "ru", "; did you mean \"run\"?" },
    { "expalin", "; did you mean \"explain\"?" },
    { "add", "; did you mean \"ELEMENT_WISE_ADD\"?" },
    { "Output", "; did you mean \"OutputTensor\"?" },
    { "znver33", "; did you mean \"znver3\"?" },
    { "x86-64-v9", "; did you mean \"x86-64-v3\"?" },
    { "", "" },
    { "pading", "; did you mean \"PADDING\"?" },
    { "dadd", "; did you mean \"ELEMENT_WISE_ADD\"?" },
    { "foo", "" },
    { "Sz", "" },
    { "a name that is far longer than any other one, so that it is not compared at all", "" },
};

START_TEST(nearest)
{
    cli_suggestion s;
    char text[CLI_SUGGEST_TEXT];

    opjit_cli_suggest_begin(&s, rows[_i].given, strlen(rows[_i].given));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        opjit_cli_suggest(&s, names[i], strlen(names[i]));
    ck_assert_str_eq(opjit_cli_suggest_text(&s, "\"", "\"", text), rows[_i].want);
}
END_TEST

/* The given name need not end with a NUL, and the first of equally near names is kept. */
START_TEST(lengths)
{
    cli_suggestion s;

    opjit_cli_suggest_begin(&s, "Sizesss", 6);
    opjit_cli_suggest(&s, "SizesX", 5);
    ck_assert_uint_eq(s.distance, 1);
    ck_assert_uint_eq(s.best_length, 5);
    const char *const first = s.best;
    opjit_cli_suggest(&s, "sizes", 5);
    ck_assert_ptr_eq(s.best, first);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cli.suggest");
    TCase *const tcase = tcase_create("suggest");
    tcase_add_loop_test(tcase, nearest, 0, sizeof rows / sizeof *rows);
    tcase_add_test(tcase, lengths);
    suite_add_tcase(suite, tcase);
    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
