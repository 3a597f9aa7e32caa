# SPDX-License-Identifier: MIT
"""Does scripts/docs/header.py read a header as it is meant?"""

import os
import tempfile
import unittest

import documents
import header
import pages

OPENING = "/* license */\n/* x.h: a thing. More. */\n\n"


def read(text):
    with tempfile.NamedTemporaryFile("w", suffix=".h", delete=False,
                                     encoding="utf-8") as file:
        file.write(OPENING + text)
    try:
        return header.read_header(file.name, "wq/x.h", "wq")
    finally:
        os.unlink(file.name)


def entry(text):
    return read(text).entries()[0]


class Header(unittest.TestCase):
    def test_the_opening_comment_is_title_and_text(self):
        one = read("")
        self.assertEqual(one.title, "a thing")
        self.assertEqual(one.blocks[0].text, "More.")

    def test_a_function_has_type_and_parameters(self):
        one = entry("/* Do it. */\nWQ_API WQ_NODISCARD const char *wq_do(\n"
                    "    wq_queue *q, void (*f)(void *ctx, int n));\n")
        function = one.declarations[0]
        self.assertEqual((function.kind, function.name, function.type),
                         ("function", "wq_do", "const char *"))
        self.assertEqual(function.parameters,
                         ["wq_queue *q", "void (*f)(void *ctx, int n)"])

    def test_an_inline_function_is_one_declaration(self):
        one = read("/* Do it. */\nstatic inline int\nwq_do(int n)\n{\n"
                   "    if (n) { return 1; }\n    return 0;\n}\n\n"
                   "/* Do more. */\nWQ_API void wq_more(void);\n")
        self.assertEqual([e.name for e in one.entries()], ["wq_do", "wq_more"])

    def test_declarations_without_comment_share_the_one_before(self):
        one = entry("/* Both. */\nWQ_API int wq_a(void);\n"
                    "WQ_API int wq_b(void);\n")
        self.assertEqual(one.names(), ["wq_a", "wq_b"])

    def test_a_declaration_without_comment_is_an_error_with_its_line(self):
        with self.assertRaisesRegex(header.BadHeader,
                                    r"\.h:4: wq_a has no comment"):
            read("WQ_API int wq_a(void);\n")

    def test_an_internal_name_is_left_out(self):
        self.assertEqual(read("/* Internal: x. */\n#define WQ_IN 1\n\n"
                              "#define WQ__X 2\n").entries(), [])

    def test_a_macro_that_sets_a_size_belongs_to_its_struct(self):
        one = entry("/* How. */\ntypedef struct wq_how {\n    int a; /* A. */\n"
                    "} wq_how;\n\n/* Do. */\nWQ_API int wq_do(void);\n\n"
                    "#define WQ_HOW(...) (&(wq_how){.n = sizeof(wq_how)})\n")
        self.assertEqual(one.names(), ["wq_how", "WQ_HOW"])

    def test_the_comment_of_a_field_is_before_it_or_on_its_line(self):
        members = entry(
            "/* S. */\ntypedef struct wq_s {\n    int a; /* A. */\n"
            "    /* B and C. */\n    int b;\n    int c;\n    int d; /* D. */\n"
            "} wq_s;\n").declarations[0].members
        self.assertEqual([(m.declarations, m.blocks[0].text) for m in members],
                         [(["int a"], "A."), (["int b", "int c"], "B and C."),
                          (["int d"], "D.")])

    def test_constants_of_an_enum_are_names_of_the_entry(self):
        one = entry("/* E. */\nenum wq_e {\n    WQ_A = 1, /* a */\n"
                    "    /* b,\n     * more */\n    WQ_B,\n    WQ_C /* c */\n};\n")
        self.assertEqual(one.names(), ["wq_e", "WQ_A", "WQ_B", "WQ_C"])

    def test_an_enum_can_come_from_a_list_macro(self):
        one = read('/* All. */\n#define WQ_L(X) \\\n    X(WQ_A, 0, "fine") \\\n'
                   '    X(WQ_B, 1, "bad")\n\n/* E. */\n'
                   "typedef enum wq_e { WQ_L(WQ__X) } wq_e;\n").entries()[1]
        self.assertEqual(one.names(), ["wq_e", "WQ_A", "WQ_B"])
        self.assertEqual(one.declarations[0].members[1].blocks[0].text, "bad")


class Comment(unittest.TestCase):
    def blocks(self, *lines):
        return header.read_text("/* " + "\n * ".join(lines) + "\n */")

    def test_paragraphs_and_code_are_apart(self):
        found = self.blocks("One", "two.", "", "    code;", "", "    more;", "",
                            "Three.")
        self.assertEqual([(b.kind, b.text) for b in found],
                         [("text", "One\ntwo."), ("code", "code;\n\nmore;"),
                          ("text", "Three.")])

    def test_errors_are_items(self):
        found = self.blocks("Returns WQ_OK;", "  WQ_A  a", "        and b;",
                            "  the error of f(): c.", "Then more.")
        self.assertEqual(found[1].items, [("WQ_A", "a and b;"),
                                          ("the error of f()", "c.")])
        self.assertEqual(found[2].text, "Then more.")

    def test_errors_that_begin_beside_returns_are_items(self):
        found = self.blocks("Returns WQ_OK  fine;", "        WQ_A   bad.")
        self.assertEqual(found[0].items, [("WQ_OK", "fine;"),
                                          ("WQ_A", "bad.")])

    def test_a_term_may_have_lines_of_its_own(self):
        found = self.blocks("See:", "  one, two,", "  three", "        text",
                            "  four  more")
        self.assertEqual(found[1].items, [("one, two, three", "text"),
                                          ("four", "more")])

    def test_closing_lines_are_labels(self):
        kept, labels = header.take_labels(self.blocks(
            "It does.", "Threads: any.  Blocks: at most", "`t`.  Since: 0.1.",
            "[Q-01 Q-02]"))
        self.assertEqual(kept[0].text, "It does.")
        self.assertEqual(labels, {"Threads": "any", "Blocks": "at most `t`",
                                  "Since": "0.1", "cites": ["Q-01", "Q-02"]})


class Pages(unittest.TestCase):
    def test_the_string_variant_is_on_the_page_of_its_function(self):
        one = read("/* Add. */\nWQ_API int wq_add(void);\n\n"
                   "/* wq_add() of a string. */\nWQ_API int wq_add_str(void);\n")
        found, names = pages.make_pages([one])
        self.assertEqual([p.name for p in found], ["wq_add"])
        self.assertEqual(names["wq_add_str"], "wq_add")

    def test_a_summary_is_the_beginning_of_the_first_sentence(self):
        for text, expected in (
                ("Mark `key` as needing work. More.", "mark key as needing work"),
                ("READY keys: many.", "READY keys"),
                ("Drain: shut down. More.", "shut down"),
                ("Is it there? Yes.", "is it there"),
                ("wq_x() that blocks; else", "wq_x() that blocks")):
            one = entry("/* %s */\nWQ_API int wq_a(void);\n" % text)
            self.assertEqual(pages.summary(one), expected)


if __name__ == "__main__":
    documents.main()
