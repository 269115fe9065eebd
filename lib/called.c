// SPDX-License-Identifier: Apache-2.0
#include "lib/called.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/word.h"

size_t called_split_port(const char *word, unsigned *ret_port)
{
    size_t len = strlen(word);
    bool bracket = len > 0 && word[len - 1] == ']';
    const char *at = strrchr(word, bracket ? '[' : '/');
    char *end;
    if (at == NULL || at == word || at[1] < '0' || at[1] > '9')
        return 0;
    unsigned long v = strtoul(at + 1, &end, 10);
    if (end != word + len - bracket || v > 254)
        return 0;
    *ret_port = (unsigned)v;
    return (size_t)(at - word);
}

size_t called_split_rail(const char *word, long *ret_rail)
{
    const char *colon = strrchr(word, ':');
    char *end;
    if (colon == NULL || colon == word || colon[1] < '0' || colon[1] > '9' || strlen(colon + 1) > 3)
        return 0;
    *ret_rail = strtol(colon + 1, &end, 10);
    return *end == 0 ? (size_t)(colon - word) : 0;
}

// "gpu-0001 mlx5_3" and "gpu-0001/3" are of the host gpu-0001.
static bool is_of_host(const char *name, const char *host, size_t n)
{
    return n > 0 && strncmp(name, host, n) == 0 && (name[n] == ' ' || name[n] == '/');
}

bool called_node(const struct called *p, const char *word)
{
    char guid[GUID_STR_SIZE];
    uint64_t v;
    long rail;
    if (p->name[0] != 0 && (word_glob(word, p->name) || is_of_host(p->name, word, strlen(word))))
        return true;
    size_t n = called_split_rail(word, &rail);
    if (n > 0)
        return p->rail == rail && is_of_host(p->name, word, n);
    if (strlen(word) > 6 && guid_parse(word, &v) == 0)
        return v == p->guid;
    return strncmp(word, "0x", 2) == 0 && word_glob(word, guid_str(p->guid, guid));
}

bool called_port(const struct called *p, const char *word)
{
    char node[256];
    unsigned port;
    if (called_node(p, word))
        return true;
    size_t n = called_split_port(word, &port);
    if (n == 0 || n >= sizeof(node) || p->port != (int64_t)port)
        return false;
    snprintf(node, sizeof(node), "%.*s", (int)n, word);
    return called_node(p, node);
}
