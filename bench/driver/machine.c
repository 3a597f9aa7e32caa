/* SPDX-License-Identifier: MIT */
/* machine.c: on which machine, and with which versions? */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <wq/version.h>

#include "driver.h"

enum { MOST_FACTS = 16 };

static struct {
    char name[60], value[200];
} facts[MOST_FACTS];
static size_t n_facts;

static void
add_fact(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    if (n_facts == MOST_FACTS || !*value)
        return;
    (void)snprintf(facts[n_facts].name, sizeof facts[0].name, "%s", name);
    (void)snprintf(facts[n_facts].value, sizeof facts[0].value, "%s", value);
    n_facts++;
}

/* The text after the colon in the line of `file` that begins with `key`, or the
 * first line if `key` is NULL. */
static void
first_line(const char *file, const char *key, char value[200])
{
    char  line[400];
    FILE *f = fopen(file, "r");

    *value = '\0';
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *colon = key ? strchr(line, ':') : NULL;
        if (key && (strncmp(line, key, strlen(key)) != 0 || !colon))
            continue;
        (void)snprintf(value, 200, "%.199s", colon ? colon + 2 : line);
        break;
    }
    if (f)
        (void)fclose(f);
}

/* The length of "6.1" in a release such as 6.1.0-18-amd64. */
static int
major_and_minor(const char *release)
{
    size_t n = strspn(release, "0123456789");

    if (release[n] == '.')
        n += 1 + strspn(release + n + 1, "0123456789");
    return (int)n;
}

static void
add_system(void)
{
    struct utsname u;
    char           text[600];

    first_line("/proc/cpuinfo", "model name", text);
    add_fact(NULL, "processor", text);
    (void)snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    add_fact(NULL, "processors", text);
    if (!uname(&u)) {
        (void)snprintf(text, sizeof text, "%s %.*s %s", u.sysname,
                       major_and_minor(u.release), u.release, u.machine);
        add_fact(NULL, "kernel", text);
    }
    first_line("/proc/loadavg", NULL, text);
    add_fact(NULL, "load before", text);
}

static void
add_compiler(void)
{
#ifdef __clang__
    add_fact(NULL, "compiler", __VERSION__);
#else
    add_fact(NULL, "compiler", "gcc " __VERSION__);
#endif
#ifndef __OPTIMIZE__
    add_fact(NULL, "warning", "built without optimisation");
#endif
}

void
read_machine(void)
{
    static const char *const version[3] = {"--version"};
    char                     wq[40];

    add_system();
    add_compiler();
    (void)snprintf(wq, sizeof wq, "%d.%d.%d", WQ_VERSION_MAJOR,
                   WQ_VERSION_MINOR, WQ_VERSION_PATCH);
    add_fact(NULL, "wq", wq);
    for (size_t p = 0; p < n_peers; p++) {
        if (!is_there(&peers[p]) || (p && peers[p].arg && peers[p - 1].arg))
            continue; /* the Go program reports both of its sides */
        (void)run_program(peers[p].program, version, 0, add_fact, NULL);
    }
}

const char *
machine_fact(size_t i, const char **value)
{
    if (i >= n_facts)
        return NULL;
    *value = facts[i].value;
    return facts[i].name;
}
