/* SPDX-License-Identifier: MIT
 *
 * XMP: a packet of XML (XML 1.0, without document types). The filter walks over it, checks that it is well-formed, and
 * copies it. It leaves out a value that is no plain text, with the attribute or the element that directly contains it.
 * The copy stays well-formed, because only whole attributes, elements, comments and processing instructions are left
 * out.
 *
 * Later a few properties of the copy are changed in place, without a parser, so that the rest stays as it is. */
#include "metadata/metadata_internal.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,    /* elements inside of each other */
    NAME_MAX = 256,    /* bytes of a name */
    VALUE_MAX = 65535, /* characters of a value; a JPEG holds no more in a packet */
    PREFIXES_MAX = 16, /* for namespaces of pictures */
    CODE_MIN = 40,     /* letters in a row that are counted: more than an identifier has */
    CODES_MAX = 4096,  /* such letters of all values: a picture may be cut into rows */
};

/* The bytes of a packet from START to END. */
struct span {
    size_t start, end;
};

/* An element that is open. */
struct element {
    struct span name;
    size_t begin;           /* its place in the output */
    struct plain_text text; /* of its own */
    bool left_out;
};

struct filter_state {
    const uint8_t *bytes;
    size_t size, at;
    struct blob *out;
    struct element open[DEPTH_MAX];
    int depth;
    bool has_root, is_empty;            /* the root was met; the last element that was closed is left out */
    struct span prefixes[PREFIXES_MAX]; /* of namespaces of pictures */
    int prefix_count;
    size_t codes;
    bool pictures, unknown, no_memory; /* something was left out; there is not enough memory */
};

/* ---- Characters and names ---- */

static bool copy(struct filter_state *state, struct span span)
{
    state->no_memory = !blob_append(state->out, state->bytes + span.start, span.end - span.start);
    return !state->no_memory;
}

/* Do the bytes at the walk's place begin with TEXT? Step over it. */
static bool skip_text(struct filter_state *state, const char *text)
{
    const size_t length = strlen(text);
    if (!bytes_begin(state->bytes + state->at, state->size - state->at, text, length))
        return false;
    state->at += length;
    return true;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* The place of the first byte from AT on that is not blank. */
static size_t blanks_end(const uint8_t *bytes, size_t size, size_t at)
{
    while (at < size && is_blank(bytes[at]))
        at++;
    return at;
}

static bool skip_blank(struct filter_state *state)
{
    const size_t before = state->at;
    state->at = blanks_end(state->bytes, state->size, state->at);
    return state->at > before;
}

/* The place after the next TEXT, or 0 if there is none. */
static size_t find_past(const struct filter_state *state, const char *text)
{
    const uint8_t *hit = memmem(state->bytes + state->at, state->size - state->at, text, strlen(text));
    return hit != NULL ? (size_t)(hit - state->bytes) + strlen(text) : 0;
}

static bool is_name_byte(uint8_t byte, bool first)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == ':' || byte >= 0x80 ||
           (!first && ((byte >= '0' && byte <= '9') || byte == '-' || byte == '.'));
}

static bool read_name(struct filter_state *state, struct span *name)
{
    name->start = state->at;
    while (state->at < state->size && is_name_byte(state->bytes[state->at], state->at == name->start))
        state->at++;
    name->end = state->at;
    return name->end > name->start && name->end - name->start <= NAME_MAX;
}

/* May XML hold the character? */
static bool is_character(unsigned long c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= ' ' && c < 0xd800) || (c >= 0xe000 && c < 0xfffe) ||
           (c >= 0x10000 && c < 0x110000);
}

/* Read a reference, such as &amp; or &#65; at the walk's place. */
static bool read_reference(struct filter_state *state, size_t end, struct plain_text *text)
{
    enum { LONGEST = 16 };
    static const struct {
        const char *name;
        char character;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char number[LONGEST + 1] = "", *rest;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (skip_text(state, names[i].name)) {
            plain_text_add(text, (uint8_t)names[i].character);
            return state->at <= end;
        }
    if (!skip_text(state, "&#"))
        return false;
    const int base = skip_text(state, "x") ? 16 : 10;
    for (size_t i = 0; i < LONGEST && state->at < end && state->bytes[state->at] != ';'; i++)
        number[i] = (char)state->bytes[state->at++];
    if (strspn(number, base == 16 ? "0123456789abcdefABCDEF" : "0123456789") != strlen(number) ||
        !skip_text(state, ";"))
        return false;
    const unsigned long character = strtoul(number, &rest, base);
    if (rest == number || !is_character(character))
        return false;
    plain_text_add(text, (uint32_t)character);
    return true;
}

/* Read characters up to END, with references if REFERENCES says so, and add them to TEXT. */
static bool read_characters(struct filter_state *state, size_t end, bool references, struct plain_text *text)
{
    while (state->at < end) {
        const uint8_t *bytes = state->bytes + state->at;
        const uint8_t *stop = references ? memchr(bytes, '&', end - state->at) : NULL;
        const size_t length = stop != NULL ? (size_t)(stop - bytes) : end - state->at;
        for (size_t i = 0; i < length; i++)
            if (bytes[i] < ' ' && !is_blank(bytes[i]))
                return false;
        plain_text_add_bytes(text, bytes, length);
        state->at += length;
        if (stop != NULL && !read_reference(state, end, text))
            return false;
    }
    return true;
}

/* Is a value plain text? Otherwise it is noted as unknown. Letters that may be a row of a picture are counted. */
static bool is_value(struct filter_state *state, const struct plain_text *text)
{
    if (text->longest >= CODE_MIN)
        state->codes += text->longest;
    const bool known =
        text->size <= VALUE_MAX && plain_text_holds(text) && (text->longest < CODE_MIN || state->codes <= CODES_MAX);
    state->unknown = state->unknown || !known;
    return known;
}

/* ---- Names that are left out ---- */

static bool span_is(const struct filter_state *state, struct span span, const char *text)
{
    return span.end - span.start == strlen(text) && memcmp(state->bytes + span.start, text, strlen(text)) == 0;
}

static bool spans_are_equal(const struct filter_state *state, struct span a, struct span b)
{
    return a.end - a.start == b.end - b.start &&
           memcmp(state->bytes + a.start, state->bytes + b.start, a.end - a.start) == 0;
}

/* Split a name at its colon. A name without one has an empty prefix. */
static void split_name(const struct filter_state *state, struct span name, struct span *prefix, struct span *local)
{
    const uint8_t *colon = memchr(state->bytes + name.start, ':', name.end - name.start);
    const size_t at = colon != NULL ? (size_t)(colon - state->bytes) : name.start;
    *prefix = (struct span){name.start, at};
    *local = (struct span){colon != NULL ? at + 1 : at, name.end};
}

/* Is this the name of a picture, or of segments that are not carried over? */
static bool is_left_out(struct filter_state *state, struct span name)
{
    struct span prefix, local;
    split_name(state, name, &prefix, &local);
    bool picture = span_is(state, local, "Thumbnails");
    for (int i = 0; i < state->prefix_count; i++)
        picture = picture || spans_are_equal(state, state->prefixes[i], prefix);
    state->pictures = state->pictures || picture;
    return picture || span_is(state, local, "HasExtendedXMP");
}

/* Does an attribute declare a namespace? */
static bool is_declaration(const struct filter_state *state, struct span name, struct span *prefix)
{
    struct span first;
    split_name(state, name, &first, prefix);
    if (span_is(state, name, "xmlns")) { /* for names without a prefix */
        prefix->start = prefix->end;
        return true;
    }
    return span_is(state, first, "xmlns");
}

/* Note a prefix if it is declared for a namespace of thumbnails, or of the pictures that phones add. */
static bool note_prefix(struct filter_state *state, struct span prefix, struct span value)
{
    static const char *const namespaces[] = {"http://ns.adobe.com/xap/1.0/g/img/",
                                             "http://ns.google.com/photos/1.0/image/",
                                             "http://ns.google.com/photos/1.0/depthmap/"};
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        if (span_is(state, value, namespaces[i])) {
            if (state->prefix_count == PREFIXES_MAX)
                return false;
            state->prefixes[state->prefix_count++] = prefix;
        }
    return true;
}

/* ---- Markup ---- */

/* Read an attribute: a name, and a value between quotation marks. */
static bool read_attribute(struct filter_state *state, struct span *name, struct span *value, struct plain_text *text)
{
    if (!read_name(state, name))
        return false;
    skip_blank(state);
    if (!skip_text(state, "="))
        return false;
    skip_blank(state);
    const uint8_t quote = state->at < state->size ? state->bytes[state->at] : 0;
    if (quote != '"' && quote != '\'')
        return false;
    value->start = ++state->at;
    const uint8_t *end = memchr(state->bytes + state->at, quote, state->size - state->at);
    if (end == NULL)
        return false;
    value->end = (size_t)(end - state->bytes);
    if (memchr(state->bytes + value->start, '<', value->end - value->start) != NULL ||
        !read_characters(state, value->end, true, text))
        return false;
    state->at++;
    return true;
}

/* Read the attributes of a tag. First note the namespaces that they declare; then, with COPIED, copy those that are
 * kept. */
static bool read_attributes(struct filter_state *state, bool copied)
{
    for (;;) {
        const size_t before = state->at;
        struct span name, value, prefix;
        struct plain_text text = {0};
        const bool apart = skip_blank(state);
        if (state->at < state->size && (state->bytes[state->at] == '>' || state->bytes[state->at] == '/'))
            return !copied || copy(state, (struct span){before, state->at});
        if (!apart || !read_attribute(state, &name, &value, &text))
            return false;
        const bool declares = is_declaration(state, name, &prefix);
        if (!copied) {
            if (declares && !(plain_text_holds(&text) && note_prefix(state, prefix, value)))
                return false;
            continue;
        }
        const bool kept = declares || (is_value(state, &text) && !is_left_out(state, name));
        if (kept && !copy(state, (struct span){before, state->at}))
            return false;
    }
}

/* Close the innermost element. It disappears from the output if it is left out, or if its own text is no plain text. */
static void close_element(struct filter_state *state)
{
    struct element *element = &state->open[--state->depth];
    state->is_empty = element->left_out || !is_value(state, &element->text); /* what counts is the root, the last one */
    if (state->is_empty)
        state->out->size = element->begin;
}

static bool read_start_tag(struct filter_state *state)
{
    const size_t start = state->at++;
    if (state->depth == DEPTH_MAX || (state->depth == 0 && state->has_root))
        return false;
    state->has_root = true;
    struct element *element = &state->open[state->depth++];
    *element = (struct element){.begin = state->out->size};
    if (!read_name(state, &element->name) || !read_attributes(state, false))
        return false;
    element->left_out = is_left_out(state, element->name);
    state->at = element->name.end;
    if (!copy(state, (struct span){start, state->at}) || !read_attributes(state, true))
        return false;
    const struct span end = {state->at, state->at + 1 + (state->bytes[state->at] == '/')};
    const bool empty = skip_text(state, "/");
    if (!skip_text(state, ">") || !copy(state, end))
        return false;
    if (empty)
        close_element(state);
    return true;
}

static bool read_end_tag(struct filter_state *state)
{
    const size_t start = state->at;
    struct span name;
    state->at += 2;
    if (state->depth == 0 || !read_name(state, &name))
        return false;
    skip_blank(state);
    if (!spans_are_equal(state, name, state->open[state->depth - 1].name) || !skip_text(state, ">") ||
        !copy(state, (struct span){start, state->at}))
        return false;
    close_element(state);
    return true;
}

/* Read a comment or a processing instruction up to END. It is kept if it is plain text. */
static bool read_aside(struct filter_state *state, const char *end)
{
    const size_t start = state->at, after = find_past(state, end);
    struct plain_text text = {0};
    return after > 0 && read_characters(state, after, false, &text) &&
           (!is_value(state, &text) || copy(state, (struct span){start, after}));
}

/* Read what stands between tags: characters, or a CDATA section. Outside of the root there may only be blanks. */
static bool read_content(struct filter_state *state, bool cdata)
{
    const size_t start = state->at;
    struct plain_text outside = {0}, *text = state->depth > 0 ? &state->open[state->depth - 1].text : &outside;
    const uint8_t *tag = memchr(state->bytes + start, '<', state->size - start);
    const size_t end = cdata ? find_past(state, "]]>") : tag != NULL ? (size_t)(tag - state->bytes) : state->size;
    return end > 0 && (!cdata || state->depth > 0) && read_characters(state, end, !cdata, text) && outside.size == 0 &&
           copy(state, (struct span){start, end});
}

static bool read_packet(struct filter_state *state)
{
    if (!text_is_utf8(state->bytes, state->size))
        return false;
    if (skip_text(state, "\xef\xbb\xbf") && !copy(state, (struct span){0, state->at}))
        return false;
    while (state->at < state->size) {
        const uint8_t *bytes = state->bytes + state->at;
        const size_t left = state->size - state->at;
        const bool done = bytes[0] != '<'                            ? read_content(state, false)
                          : bytes_begin(bytes, left, "</", 2)        ? read_end_tag(state)
                          : bytes_begin(bytes, left, "<?", 2)        ? read_aside(state, "?>")
                          : bytes_begin(bytes, left, "<!--", 4)      ? read_aside(state, "-->")
                          : bytes_begin(bytes, left, "<![CDATA[", 9) ? read_content(state, true)
                                                                     : read_start_tag(state);
        if (!done)
            return false;
    }
    return state->has_root && state->depth == 0;
}

/* Copy the packet of SIZE bytes to OUT, without what is not known to be text. OUT stays empty if nothing is left, or if
 * the packet is not well-formed. METADATA note what was left out. Returns false if there is not enough memory. */
static bool filter_packet(struct metadata *metadata, const uint8_t *bytes, size_t size, struct blob *out)
{
    struct filter_state state = {.bytes = bytes, .size = size, .out = out};
    const bool done = read_packet(&state);
    if (state.no_memory)
        return false;
    if (!done || state.is_empty)
        blob_free(out);
    if (!done)
        return metadata_drop(metadata, METADATA_XMP, METADATA_DAMAGED);
    if (state.pictures)
        metadata_drop(metadata, METADATA_XMP, METADATA_PICTURES);
    if (state.unknown)
        metadata_drop(metadata, METADATA_XMP, METADATA_UNKNOWN);
    return true;
}

bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    struct blob packet = {0};
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    if (metadata->xmp.size > 0)
        return true;
    if (size > METADATA_PART_MAX)
        return metadata_drop(metadata, METADATA_XMP, METADATA_TOO_LARGE);
    const bool done = filter_packet(metadata, bytes, size, &packet) &&
                      metadata_add(metadata, METADATA_XMP, &metadata->xmp, packet.bytes, packet.size);
    blob_free(&packet);
    return done;
}

/* ---- Changes in place ---- */

/* A property in a packet: an attribute name="value" or an element <name>value</name>. */
struct property {
    size_t value, value_end; /* in quotes or between tags */
    size_t start, end;       /* of all of it */
};

/* Find the property NAME from *AT on, and move *AT past it. */
static bool find_property(const struct blob *xmp, const char *name, size_t *at, struct property *found)
{
    const size_t length = strlen(name);
    const uint8_t *hit;
    while (*at < xmp->size && (hit = memmem(xmp->bytes + *at, xmp->size - *at, name, length)) != NULL) {
        const size_t start = (size_t)(hit - xmp->bytes), next = blanks_end(xmp->bytes, xmp->size, start + length);
        *at = start + length;
        if (start == 0 || next == xmp->size)
            continue;
        const bool element = xmp->bytes[start - 1] == '<' && xmp->bytes[next] == '>';
        const size_t quote = blanks_end(xmp->bytes, xmp->size, next + 1);
        if (!element && (!is_blank(xmp->bytes[start - 1]) || xmp->bytes[next] != '=' || quote == xmp->size ||
                         (xmp->bytes[quote] != '"' && xmp->bytes[quote] != '\'')))
            continue;
        const size_t value = element ? next + 1 : quote + 1;
        const uint8_t *end = memchr(xmp->bytes + value, element ? '<' : xmp->bytes[quote], xmp->size - value);
        if (end == NULL)
            return false;
        const size_t value_end = (size_t)(end - xmp->bytes), left = xmp->size - value_end;
        *at = value_end;
        if (element &&
            (left < length + 3 || end[1] != '/' || memcmp(end + 2, name, length) != 0 || end[length + 2] != '>'))
            continue;
        *found = (struct property){
            .value = value,
            .value_end = value_end,
            .start = element ? start - 1 : start,
            .end = value_end + (element ? length + 3 : 1),
        };
        *at = found->end;
        return true;
    }
    return false;
}

void xmp_remove(struct blob *xmp, const char *name)
{
    struct property found;
    for (size_t at = 0; find_property(xmp, name, &at, &found);)
        memset(xmp->bytes + found.start, ' ', found.end - found.start);
}

void xmp_set_digit(struct blob *xmp, const char *name, char digit)
{
    struct property found;
    for (size_t at = 0; find_property(xmp, name, &at, &found);)
        if (found.value_end - found.value == 1)
            xmp->bytes[found.value] = (uint8_t)digit;
}
