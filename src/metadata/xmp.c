/* SPDX-License-Identifier: MIT
 *
 * XMP: a packet of XML (XML 1.0, without document types). The filter walks over it, checks that it is well-formed, and
 * copies the properties that describe the picture. A property is an attribute or an element directly inside of
 * rdf:Description (XMP specification, part 1, section 7). It is copied as a whole or not at all, so the copy
 * is well-formed too. Around the copied properties, only rdf:Description and the elements that contain it are copied.
 * They count as text. So does each element of a property, because the choice among empty elements could be a code. */
#include "metadata/metadata_internal.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,      /* elements inside of each other */
    NAME_MAX = 256,      /* bytes of a name */
    NAMESPACES_MAX = 64, /* in scope at once; Lightroom declares about 20 */
};

/* The bytes of a packet from START to END. */
struct span {
    size_t start, end;
};

/* The content that the names of a namespace describe. */
enum namespace_kind {
    NAMESPACE_UNKNOWN,
    NAMESPACE_RDF,       /* nothing: these are elements around the properties and their values */
    NAMESPACE_FILE,      /* the picture, its author, its camera ... */
    NAMESPACE_POSITIONS, /* positions in the picture, which are wrong after it was turned */
    NAMESPACE_RIGHTS,    /* the copyright */
    NAMESPACE_PRIVATE,   /* places, persons, and identifiers of files */
    NAMESPACE_OTHER,     /* other content of the file, which is never carried over */
};

/* The decision about a name. The highest one of all names in a property is the property's. */
enum verdict { VERDICT_CARRIED, VERDICT_NEEDS_KEEP_TEXT, VERDICT_LEFT_OUT };

struct filter_state {
    const uint8_t *bytes;
    size_t size, at;
    struct metadata *metadata;
    bool turned;
    struct blob *out;
    struct {
        struct span name;
        size_t begin;                    /* its offset in the output */
        int namespace_count, properties; /* namespaces and properties before the element */
    } open[DEPTH_MAX];                   /* the elements that are open */
    int depth;
    struct {
        struct span prefix;
        enum namespace_kind kind;
    } namespaces[NAMESPACES_MAX];
    int namespace_count;
    bool has_root, no_memory;
    int properties;       /* that were carried */
    int property;         /* the depth of the property that is open; 0 if none is */
    size_t text;          /* bytes of its text so far */
    enum verdict verdict; /* on it so far */
};

/* ---- Characters and names ---- */

static bool copy_to_output(struct filter_state *state, const void *bytes, size_t size)
{
    state->no_memory = !blob_append(state->out, bytes, size);
    return !state->no_memory;
}

static bool copy_span(struct filter_state *state, size_t start, size_t end)
{
    return copy_to_output(state, state->bytes + start, end - start);
}

/* Do the next bytes begin with TEXT? Step over it. */
static bool skip_text(struct filter_state *state, const char *text)
{
    const size_t length = strlen(text);
    if (!bytes_begin(state->bytes + state->at, state->size - state->at, text, length))
        return false;
    state->at += length;
    return true;
}

static bool skip_blank(struct filter_state *state)
{
    const size_t before = state->at;
    while (state->at < state->size && byte_is_blank(state->bytes[state->at]))
        state->at++;
    return state->at > before;
}

/* The offset after the next TEXT, or 0 if there is none. */
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
static bool is_character(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= ' ' && c < 0xd800) || (c >= 0xe000 && c < 0xfffe) ||
           (c >= 0x10000 && c < 0x110000);
}

/* Step over a reference, such as &amp; or &#65;. */
static bool skip_reference(struct filter_state *state)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (skip_text(state, names[i]))
            return true;
    if (!skip_text(state, "&#"))
        return false;
    static const char digits[] = "0123456789abcdef";
    const unsigned base = skip_text(state, "x") ? 16 : 10;
    uint32_t character = 0;
    for (; state->at < state->size && character < 0x110000; state->at++) {
        const char *digit = memchr(digits, tolower(state->bytes[state->at]), base);
        if (digit == NULL)
            break;
        character = character * base + (uint32_t)(digit - digits);
    }
    return is_character(character) && skip_text(state, ";");
}

/* Step over characters up to END, with references if REFERENCES says so. */
static bool skip_characters(struct filter_state *state, size_t end, bool references)
{
    while (state->at < end) {
        const uint8_t byte = state->bytes[state->at];
        if (references && byte == '&') {
            if (!skip_reference(state))
                return false;
        } else if (byte < ' ' && !byte_is_blank(byte)) {
            return false;
        } else {
            state->at++;
        }
    }
    return state->at == end;
}

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

/* ---- Namespaces ---- */

/* The kind of a namespace. The first text that its name contains decides. */
static enum namespace_kind find_kind(const struct filter_state *state, struct span name)
{
    static const struct {
        const char *text;
        enum namespace_kind kind;
    } kinds[] = {
        {"adobe:ns:meta/", NAMESPACE_RDF},
        {"http://www.w3.org/1999/02/22-rdf-syntax-ns#", NAMESPACE_RDF},
        {"http://ns.adobe.com/hdr-gain-map/", NAMESPACE_OTHER},
        {"http://ns.adobe.com/xap/1.0/g/img/", NAMESPACE_OTHER}, /* thumbnails */
        {"http://ns.adobe.com/xmp/note/", NAMESPACE_OTHER},      /* the other segments of an extended packet */
        {"http://ns.apple.com/", NAMESPACE_OTHER},               /* gain maps, depths, mattes */
        {"http://purl.org/dc/terms/", NAMESPACE_OTHER},          /* a manifest of C2PA in the file */
        {"http://ns.google.com/photos/1.0/panorama/", NAMESPACE_POSITIONS},
        {".com/photos/", NAMESPACE_OTHER}, /* films, gain maps, depths, directories, of Google and others */
        {"http://ns.microsoft.com/photo/1.2/", NAMESPACE_POSITIONS}, /* faces */
        {"http://www.metadataworkinggroup.com/schemas/regions/", NAMESPACE_POSITIONS},
        {"http://purl.org/dc/elements/", NAMESPACE_FILE},
        {"http://ns.adobe.com/xap/1.0/rights/", NAMESPACE_RIGHTS},
        {"http://ns.adobe.com/xap/1.0/mm/", NAMESPACE_PRIVATE},    /* identifiers and a history */
        {"http://ns.adobe.com/xap/1.0/sType/", NAMESPACE_PRIVATE}, /* what these are made of */
        {"http://ns.adobe.com/xap/", NAMESPACE_FILE},              /* xmp and more */
        {"http://ns.adobe.com/xmp/sType/", NAMESPACE_FILE},
        {"http://ns.adobe.com/exif/", NAMESPACE_FILE},
        {"http://ns.adobe.com/tiff/", NAMESPACE_FILE},
        {"http://ns.adobe.com/photoshop/", NAMESPACE_FILE},
        {"http://ns.adobe.com/lightroom/", NAMESPACE_FILE}, /* keywords */
        {"http://cipa.jp/exif/", NAMESPACE_FILE},
        {"http://iptc.org/std/Iptc4xmp", NAMESPACE_FILE},
        {"http://ns.useplus.org/ldf/", NAMESPACE_RIGHTS},
        {"http://creativecommons.org/ns#", NAMESPACE_RIGHTS},
        {"http://ns.microsoft.com/photo/", NAMESPACE_FILE},
        {"http://www.digikam.org/ns/", NAMESPACE_FILE},
        {"http://www.metadataworkinggroup.com/schemas/", NAMESPACE_FILE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (bytes_contain(state->bytes + name.start, name.end - name.start, kinds[i].text))
            return kinds[i].kind;
    return NAMESPACE_UNKNOWN;
}

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

static enum namespace_kind kind_of_prefix(const struct filter_state *state, struct span prefix)
{
    for (int i = state->namespace_count - 1; i >= 0; i--)
        if (spans_are_equal(state, state->namespaces[i].prefix, prefix))
            return state->namespaces[i].kind;
    return span_is(state, prefix, "xml") ? NAMESPACE_RDF : NAMESPACE_UNKNOWN;
}

static bool is_one_of(const struct filter_state *state, struct span local, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && !span_is(state, local, names[i]))
        i++;
    return i < count;
}

/* What a property says, by its namespace and its name. */
static enum metadata_class class_of(const struct filter_state *state, enum namespace_kind kind, struct span local)
{
    static const char *const persons[] = {"creator",
                                          "Artist",
                                          "Author",
                                          "OwnerName",
                                          "CameraOwnerName",
                                          "CaptionWriter",
                                          "CreatorContactInfo",
                                          "Credit",
                                          "SerialNumber",
                                          "LensSerialNumber",
                                          "BodySerialNumber",
                                          "ImageUniqueID",
                                          "PersonInImage",
                                          "City",
                                          "State",
                                          "Country",
                                          "CountryCode",
                                          "Location",
                                          "LocationCreated",
                                          "LocationShown",
                                          "AuthorsPosition"};
    static const char *const rights[] = {"rights", "Copyright"};
    if (kind == NAMESPACE_RIGHTS || is_one_of(state, local, rights, 2))
        return METADATA_COPYRIGHT;
    const bool is_place = local.end - local.start > 3 && memcmp(state->bytes + local.start, "GPS", 3) == 0;
    const bool is_private = kind == NAMESPACE_PRIVATE || kind == NAMESPACE_POSITIONS ||
                            is_one_of(state, local, persons, sizeof persons / sizeof *persons);
    return is_place ? METADATA_GPS : is_private ? METADATA_PRIVATE : METADATA_PUBLIC;
}

static enum verdict judge(const struct filter_state *state, enum namespace_kind kind, struct span local)
{
    static const char *const positions[] = {"Orientation",     "ImageWidth",  "ImageLength",     "PixelXDimension",
                                            "PixelYDimension", "SubjectArea", "SubjectLocation", "ImageRegion"};
    const bool turns =
        kind == NAMESPACE_POSITIONS || is_one_of(state, local, positions, sizeof positions / sizeof *positions);
    const bool strips = kind != NAMESPACE_RDF && metadata_strips(state->metadata, class_of(state, kind, local));
    if (kind == NAMESPACE_OTHER || (turns && state->turned) || strips)
        return VERDICT_LEFT_OUT;
    return kind == NAMESPACE_UNKNOWN && !state->metadata->keep_text ? VERDICT_NEEDS_KEEP_TEXT : VERDICT_CARRIED;
}

/* Note the namespace that a prefix is declared for, until the innermost element is closed. A carried one is text. */
static bool record_namespace(struct filter_state *state, struct span prefix, struct span value)
{
    enum namespace_kind kind = find_kind(state, value);
    if (state->namespace_count == NAMESPACES_MAX)
        return false;
    if (judge(state, kind, (struct span){0}) == VERDICT_CARRIED &&
        !metadata_take_text(state->metadata, METADATA_XMP, value.end - prefix.start))
        kind = NAMESPACE_UNKNOWN;
    state->namespaces[state->namespace_count].prefix = prefix;
    state->namespaces[state->namespace_count++].kind = kind;
    return true;
}

/* Add a name to the property that is open, with TEXT bytes. */
static void add_to_property(struct filter_state *state, enum verdict verdict, size_t text)
{
    state->text += text;
    state->verdict = verdict > state->verdict ? verdict : state->verdict;
}

/* Is a property of TEXT bytes carried, whose names have VERDICT? Then its text counts. */
static bool take_property(struct filter_state *state, enum verdict verdict, size_t text)
{
    if (verdict == VERDICT_NEEDS_KEEP_TEXT)
        metadata_drop(state->metadata, METADATA_XMP, METADATA_NEEDS_KEEP_TEXT);
    return verdict == VERDICT_CARRIED && metadata_take_text(state->metadata, METADATA_XMP, text);
}

/* ---- Markup ---- */

/* Read an attribute: a name, and a value between quotation marks. */
static bool read_attribute(struct filter_state *state, struct span *name, struct span *value)
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
        !skip_characters(state, value->end, true))
        return false;
    state->at++;
    return true;
}

/* Copy an attribute with its property, or as one, if its NAME is carried. */
static bool copy_attribute(struct filter_state *state, struct span name, struct span value)
{
    struct span prefix, local;
    split_name(state, name, &prefix, &local);
    const enum namespace_kind kind = prefix.start == prefix.end ? NAMESPACE_RDF /* it has no namespace */
                                                                : kind_of_prefix(state, prefix);
    const enum verdict verdict = judge(state, kind, local);
    const size_t end = value.end + 1, size = end - name.start;
    if (state->property > 0)
        add_to_property(state, verdict, size);
    else if (take_property(state, verdict, size))
        state->properties += kind != NAMESPACE_RDF;
    else
        return true;
    return copy_to_output(state, " ", 1) && copy_span(state, name.start, end);
}

static bool copy_declaration(struct filter_state *state, struct span name, struct span prefix, struct span value)
{
    return judge(state, kind_of_prefix(state, prefix), (struct span){0}) != VERDICT_CARRIED ||
           (copy_to_output(state, " ", 1) && copy_span(state, name.start, value.end + 1));
}

/* Read the attributes of a tag. First note the namespaces that they declare; then, with COPIED, copy those
 * that are carried. */
static bool read_attributes(struct filter_state *state, bool copied)
{
    for (;;) {
        struct span name, value, prefix;
        const bool apart = skip_blank(state);
        if (state->at < state->size && (state->bytes[state->at] == '>' || state->bytes[state->at] == '/'))
            return true;
        if (!apart || !read_attribute(state, &name, &value))
            return false;
        const bool declares = is_declaration(state, name, &prefix);
        const bool done = !copied    ? !declares || record_namespace(state, prefix, value)
                          : declares ? copy_declaration(state, name, prefix, value)
                                     : copy_attribute(state, name, value);
        if (!done)
            return false;
    }
}

/* Is this an element around properties? */
static bool is_frame(const struct filter_state *state, enum namespace_kind kind, struct span local)
{
    return kind == NAMESPACE_RDF && (span_is(state, local, "xmpmeta") || span_is(state, local, "xapmeta") ||
                                     span_is(state, local, "RDF") || span_is(state, local, "Description"));
}

/* Open an element. It begins a property if it is not in one, and no element around them. */
static void open_element(struct filter_state *state, struct span name)
{
    struct span prefix, local;
    split_name(state, name, &prefix, &local);
    const enum namespace_kind kind = kind_of_prefix(state, prefix);
    const bool item = kind == NAMESPACE_RDF && span_is(state, local, "li"); /* many short keywords are a short text */
    const size_t size = item ? 1 : name.end - name.start;
    if (state->property == 0 && is_frame(state, kind, local) && metadata_take_text(state->metadata, METADATA_XMP, size))
        return;
    if (state->property == 0) {
        state->property = state->depth;
        state->text = 0;
        state->verdict = VERDICT_CARRIED;
    }
    add_to_property(state, judge(state, kind, local), size);
}

/* Close the innermost element. It disappears from the output if it is or contains no property that is carried. */
static void close_element(struct filter_state *state)
{
    const int depth = state->depth--;
    state->namespace_count = state->open[depth - 1].namespace_count;
    if (state->property == depth) {
        state->property = 0;
        state->properties += take_property(state, state->verdict, state->text);
    }
    if (state->property == 0 && state->properties == state->open[depth - 1].properties)
        state->out->size = state->open[depth - 1].begin;
}

static bool read_start_tag(struct filter_state *state)
{
    const size_t start = state->at++;
    if (state->depth == DEPTH_MAX || (state->depth == 0 && state->has_root))
        return false;
    state->has_root = true;
    state->open[state->depth].begin = state->out->size;
    state->open[state->depth].namespace_count = state->namespace_count;
    state->open[state->depth].properties = state->properties;
    struct span *name = &state->open[state->depth++].name;
    if (!read_name(state, name) || !read_attributes(state, false))
        return false;
    open_element(state, *name);
    state->at = name->end;
    if (!copy_span(state, start, name->end) || !read_attributes(state, true))
        return false;
    const bool empty = skip_text(state, "/");
    if (!skip_text(state, ">") || !copy_to_output(state, empty ? "/>" : ">", 1 + empty))
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
        !copy_span(state, start, name.end) || !copy_to_output(state, ">", 1))
        return false;
    close_element(state);
    return true;
}

/* Step over a comment or a processing instruction up to END. */
static bool skip_aside(struct filter_state *state, const char *end)
{
    const size_t after = find_past(state, end);
    return after > 0 && skip_characters(state, after, false);
}

/* Read what stands between tags: characters, or a CDATA section. It is copied with its property, unless it is blank. */
static bool read_content(struct filter_state *state, bool cdata)
{
    const size_t start = state->at;
    const uint8_t *tag = memchr(state->bytes + start, '<', state->size - start);
    const size_t end = cdata ? find_past(state, "]]>") : tag != NULL ? (size_t)(tag - state->bytes) : state->size;
    skip_blank(state);
    const bool blank = state->at == end;
    if (end == 0 || !skip_characters(state, end, !cdata) || (!blank && state->depth == 0))
        return false;
    if (blank || state->property == 0)
        return true;
    state->text += end - start;
    return copy_span(state, start, end);
}

static bool read_packet(struct filter_state *state)
{
    if (!text_is_utf8(state->bytes, state->size))
        return false;
    skip_text(state, "\xef\xbb\xbf");
    while (state->at < state->size) {
        const uint8_t *bytes = state->bytes + state->at;
        const size_t left = state->size - state->at;
        const bool done = bytes[0] != '<'                            ? read_content(state, false)
                          : bytes_begin(bytes, left, "</", 2)        ? read_end_tag(state)
                          : bytes_begin(bytes, left, "<?", 2)        ? skip_aside(state, "?>")
                          : bytes_begin(bytes, left, "<!--", 4)      ? skip_aside(state, "-->")
                          : bytes_begin(bytes, left, "<![CDATA[", 9) ? read_content(state, true)
                                                                     : read_start_tag(state);
        if (!done)
            return false;
    }
    return state->has_root && state->depth == 0;
}

bool xmp_rebuild(struct metadata *metadata, const uint8_t *bytes, size_t size, bool turned, struct blob *xmp)
{
    static const char head[] = "<?xpacket begin=\"\xef\xbb\xbf\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>";
    static const char tail[] = "<?xpacket end=\"w\"?>";
    const struct metadata before = *metadata;
    struct filter_state state = {.bytes = bytes, .size = size, .metadata = metadata, .turned = turned, .out = xmp};
    *xmp = (struct blob){0};
    if (size == 0)
        return true;
    const bool done = copy_to_output(&state, head, sizeof head - 1) && read_packet(&state) &&
                      copy_to_output(&state, tail, sizeof tail - 1);
    if (!done || state.properties == 0)
        blob_free(xmp);
    if (!done) {
        *metadata = before;
        metadata_drop(metadata, METADATA_XMP, METADATA_DAMAGED);
    }
    return !state.no_memory;
}
