/* SPDX-License-Identifier: MIT
 *
 * The tables of tags: TIFF 6.0, sections 4 to 8 and 20 to 22; EXIF 2.32 and 3.0, 4.6.4 to 4.6.8; the tags that Windows
 * writes (Rating, XPTitle and the like) and those of TIFF/EP, as ExifTool's documentation lists them. Counts are those
 * of the standards. They are small if a standard allows any number, or if writers differ. */
#include "metadata/metadata_internal.h"

#include <string.h>

/* The content of a tag. Writers differ in the types of numbers, so only their count is checked. */
enum content {
    NUMBERS,   /* numbers of any type; text and bytes count, too */
    BYTES,     /* numbers of one byte each */
    TEXT,      /* in ASCII, or what else the writer took for it */
    CODED,     /* text after CODE_BYTES that name its character set */
    UTF16_TEXT /* bytes of text in UTF-16 */
};

enum { CODE_BYTES = 8 };

/* The tags from FIRST to LAST. */
struct tags {
    uint16_t first, last;
    uint16_t max; /* values of each; a text has the limit of all texts */
    enum content content;
};

/* The tags of the image and of EXIF. Some writers put a tag into the wrong one of these two directories. */
static const struct tags image_tags[] = {
    {0x000b, 0x000b, 0, TEXT},    /* ProcessingSoftware */
    {0x0100, 0x0101, 1, NUMBERS}, /* ImageWidth and ImageLength */
    {0x010d, 0x0110, 0, TEXT},    /* DocumentName, ImageDescription, Make, Model */
    {0x0112, 0x0112, 1, NUMBERS}, /* Orientation */
    {0x011a, 0x011b, 1, NUMBERS}, /* XResolution and YResolution */
    {0x011d, 0x011d, 0, TEXT},    /* PageName */
    {0x011e, 0x011f, 1, NUMBERS}, /* XPosition and YPosition */
    {0x0128, 0x0128, 1, NUMBERS}, /* ResolutionUnit */
    {0x0129, 0x0129, 2, NUMBERS}, /* PageNumber */
    {0x0131, 0x0132, 0, TEXT},    /* Software and DateTime */
    {0x013b, 0x013b, 0, TEXT},    /* Artist */
    {0x013c, 0x013c, 0, TEXT},    /* HostComputer */
    {0x013e, 0x013e, 2, NUMBERS}, /* WhitePoint */
    {0x013f, 0x013f, 6, NUMBERS}, /* PrimaryChromaticities */
    {0x0211, 0x0211, 3, NUMBERS}, /* YCbCrCoefficients */
    {0x0212, 0x0212, 2, NUMBERS}, /* YCbCrSubSampling */
    {0x0213, 0x0213, 1, NUMBERS}, /* YCbCrPositioning */
    {0x0214, 0x0214, 6, NUMBERS}, /* ReferenceBlackWhite */
    {0x4746, 0x4746, 1, NUMBERS}, /* Rating */
    {0x4749, 0x4749, 1, NUMBERS}, /* RatingPercent */
    {0x8298, 0x8298, 0, TEXT},    /* Copyright */
    {0x829a, 0x829a, 1, NUMBERS}, /* ExposureTime */
    {0x829d, 0x829d, 1, NUMBERS}, /* FNumber */
    {0x8822, 0x8822, 1, NUMBERS}, /* ExposureProgram */
    {0x8824, 0x8824, 0, TEXT},    /* SpectralSensitivity */
    {0x8827, 0x8827, 4, NUMBERS}, /* PhotographicSensitivity */
    {0x882a, 0x882a, 2, NUMBERS}, /* TimeZoneOffset */
    {0x882b, 0x882b, 1, NUMBERS}, /* SelfTimerMode */
    {0x8830, 0x8835, 1, NUMBERS}, /* SensitivityType to ISOSpeedLatitudezzz */
    {0x9000, 0x9000, 4, NUMBERS}, /* ExifVersion */
    {0x9003, 0x9004, 0, TEXT},    /* DateTimeOriginal and DateTimeDigitized */
    {0x9010, 0x9012, 0, TEXT},    /* OffsetTime, OffsetTimeOriginal, OffsetTimeDigitized */
    {0x9101, 0x9101, 4, NUMBERS}, /* ComponentsConfiguration */
    {0x9102, 0x9102, 1, NUMBERS}, /* CompressedBitsPerPixel */
    {0x9201, 0x920a, 1, NUMBERS}, /* ShutterSpeedValue to FocalLength */
    {0x9211, 0x9211, 1, NUMBERS}, /* ImageNumber */
    {0x9212, 0x9213, 0, TEXT},    /* SecurityClassification and ImageHistory */
    {0x9214, 0x9214, 4, NUMBERS}, /* SubjectArea */
    {0x9216, 0x9216, 4, NUMBERS}, /* TIFF-EPStandardID */
    {0x9286, 0x9286, 0, CODED},   /* UserComment */
    {0x9290, 0x9292, 0, TEXT},    /* SubSecTime, SubSecTimeOriginal, SubSecTimeDigitized */
    {0x9400, 0x9405, 1, NUMBERS}, /* Temperature, Humidity, Pressure, WaterDepth, Acceleration, CameraElevationAngle */
    {0x9c9b, 0x9c9f, 0, UTF16_TEXT}, /* XPTitle, XPComment, XPAuthor, XPKeywords, XPSubject */
    {0xa000, 0xa000, 4, NUMBERS},    /* FlashpixVersion */
    {0xa001, 0xa003, 1, NUMBERS},    /* ColorSpace, PixelXDimension, PixelYDimension */
    {0xa004, 0xa004, 0, TEXT},       /* RelatedSoundFile */
    {0xa20b, 0xa20b, 1, NUMBERS},    /* FlashEnergy */
    {0xa20e, 0xa210, 1, NUMBERS},    /* FocalPlaneXResolution, FocalPlaneYResolution, FocalPlaneResolutionUnit */
    {0xa214, 0xa214, 2, NUMBERS},    /* SubjectLocation */
    {0xa215, 0xa215, 1, NUMBERS},    /* ExposureIndex */
    {0xa217, 0xa217, 1, NUMBERS},    /* SensingMethod */
    {0xa300, 0xa301, 4, NUMBERS},    /* FileSource and SceneType */
    {0xa302, 0xa302, 40, BYTES},     /* CFAPattern: two sides, and up to 6 x 6 colours */
    {0xa401, 0xa40a, 1, NUMBERS},    /* CustomRendered to Sharpness */
    {0xa40c, 0xa40c, 1, NUMBERS},    /* SubjectDistanceRange */
    {0xa420, 0xa420, 0, TEXT},       /* ImageUniqueID */
    {0xa430, 0xa431, 0, TEXT},       /* CameraOwnerName and BodySerialNumber */
    {0xa432, 0xa432, 4, NUMBERS},    /* LensSpecification */
    {0xa433, 0xa43c, 0, TEXT}, /* LensMake to LensSerialNumber, ImageTitle, Photographer to MetadataEditingSoftware */
    {0xa460, 0xa460, 1, NUMBERS}, /* CompositeImage */
    {0xa461, 0xa461, 2, NUMBERS}, /* SourceImageNumberOfCompositeImage */
    {0xa462, 0xa462, 128, BYTES}, /* SourceExposureTimesOfCompositeImage */
    {0xa500, 0xa500, 1, NUMBERS}, /* Gamma */
    {0xc614, 0xc614, 0, TEXT},    /* UniqueCameraModel */
    {0xc62f, 0xc62f, 0, TEXT},    /* CameraSerialNumber */
    {0xfde8, 0xfdea, 0, TEXT},    /* OwnerName, SerialNumber, Lens, as Camera Raw writes them */
    {0xfe4c, 0xfe4c, 0, TEXT},    /* RawFile, as Camera Raw writes it */
};

static const struct tags gps_tags[] = {
    {0x00, 0x01, 4, NUMBERS}, /* GPSVersionID and GPSLatitudeRef */
    {0x02, 0x02, 3, NUMBERS}, /* GPSLatitude */
    {0x03, 0x03, 4, NUMBERS}, /* GPSLongitudeRef */
    {0x04, 0x04, 3, NUMBERS}, /* GPSLongitude */
    {0x05, 0x05, 2, NUMBERS}, /* GPSAltitudeRef */
    {0x06, 0x06, 1, NUMBERS}, /* GPSAltitude */
    {0x07, 0x07, 3, NUMBERS}, /* GPSTimeStamp */
    {0x08, 0x08, 0, TEXT},    /* GPSSatellites */
    {0x09, 0x0a, 4, NUMBERS}, /* GPSStatus and GPSMeasureMode */
    {0x0b, 0x0b, 1, NUMBERS}, /* GPSDOP */
    {0x0c, 0x0c, 4, NUMBERS}, /* GPSSpeedRef */
    {0x0d, 0x0d, 1, NUMBERS}, /* GPSSpeed */
    {0x0e, 0x0e, 4, NUMBERS}, /* GPSTrackRef */
    {0x0f, 0x0f, 1, NUMBERS}, /* GPSTrack */
    {0x10, 0x10, 4, NUMBERS}, /* GPSImgDirectionRef */
    {0x11, 0x11, 1, NUMBERS}, /* GPSImgDirection */
    {0x12, 0x12, 0, TEXT},    /* GPSMapDatum */
    {0x13, 0x13, 4, NUMBERS}, /* GPSDestLatitudeRef */
    {0x14, 0x14, 3, NUMBERS}, /* GPSDestLatitude */
    {0x15, 0x15, 4, NUMBERS}, /* GPSDestLongitudeRef */
    {0x16, 0x16, 3, NUMBERS}, /* GPSDestLongitude */
    {0x17, 0x17, 4, NUMBERS}, /* GPSDestBearingRef */
    {0x18, 0x18, 1, NUMBERS}, /* GPSDestBearing */
    {0x19, 0x19, 4, NUMBERS}, /* GPSDestDistanceRef */
    {0x1a, 0x1a, 1, NUMBERS}, /* GPSDestDistance */
    {0x1b, 0x1c, 0, CODED},   /* GPSProcessingMethod and GPSAreaInformation */
    {0x1d, 0x1d, 0, TEXT},    /* GPSDateStamp */
    {0x1e, 0x1f, 1, NUMBERS}, /* GPSDifferential and GPSHPositioningError */
};

static const struct tags interop_tags[] = {
    {0x0001, 0x0001, 0, TEXT},    /* InteroperabilityIndex */
    {0x0002, 0x0002, 4, NUMBERS}, /* InteroperabilityVersion */
    {0x1000, 0x1000, 0, TEXT},    /* RelatedImageFileFormat */
    {0x1001, 0x1002, 1, NUMBERS}, /* RelatedImageWidth and RelatedImageLength */
};

/* Left out of every file, in all directories. */
static const uint16_t silent_tags[] = {
    0x00fe, 0x00ff, 0x0102, 0x0103, 0x0106, 0x0107, 0x0108, 0x0109, 0x010a, /* kind, bits, compression, cells ... */
    0x0111, 0x0115, 0x0116, 0x0117, 0x0118, 0x0119, 0x011c, 0x012d, 0x013d, /* strips, planes, curves ... */
    0x0140, 0x0142, 0x0143, 0x0144, 0x0145, 0x0152, 0x0153, 0x015b,         /* palette, tiles, sample format, tables */
    0x014a, 0x0201, 0x0202, 0x935c,                                         /* directories, pictures as JPEG, layers */
    0x02bc, 0x83bb, 0x8649, 0x8773, /* XMP, IPTC, Photoshop, ICC: other parts of the metadata */
    0x501b, 0xea1c, 0xea1d, 0xc4a5, /* GDI+'s thumbnail, padding, print settings */
};

/* Maker's notes, of DNG and of phones, too. */
static const uint16_t maker_tags[] = {0x927c, 0xc634, 0xc635, 0x8895, 0x889b, 0x9999};

/* Names of persons and of their computers and files, serial numbers, and identifiers of pictures. */
static const uint16_t private_tags[] = {
    0x013b, 0x013c, 0x9c9d, 0x9211,         /* Artist, HostComputer, XPAuthor, ImageNumber */
    0xa420, 0xa430, 0xa431, 0xa435,         /* ImageUniqueID, CameraOwnerName, BodySerialNumber, LensSerialNumber */
    0xa437, 0xa438, 0xc62f, 0xfde8, 0xfde9, /* Photographer, ImageEditor, CameraSerialNumber, OwnerName, SerialNumber */
    0xfe4c,                                 /* RawFile */
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const struct tags *find_tag(enum exif_directory directory, unsigned number)
{
    const struct tags *tags = directory == DIRECTORY_GPS       ? gps_tags
                              : directory == DIRECTORY_INTEROP ? interop_tags
                                                               : image_tags;
    const size_t count = directory == DIRECTORY_GPS       ? LENGTH(gps_tags)
                         : directory == DIRECTORY_INTEROP ? LENGTH(interop_tags)
                                                          : LENGTH(image_tags);
    for (size_t i = 0; i < count; i++)
        if (number >= tags[i].first && number <= tags[i].last)
            return &tags[i];
    return NULL;
}

static bool has_tag(const uint16_t *tags, size_t count, unsigned number)
{
    size_t i = 0;
    while (i < count && tags[i] != number)
        i++;
    return i < count;
}

static enum metadata_class class_of(enum exif_directory directory, unsigned number)
{
    enum { COPYRIGHT = 0x8298 };
    return directory == DIRECTORY_GPS                            ? METADATA_GPS
           : has_tag(private_tags, LENGTH(private_tags), number) ? METADATA_PRIVATE
           : number == COPYRIGHT                                 ? METADATA_COPYRIGHT
                                                                 : METADATA_PUBLIC;
}

/* Judge a text after its first CODE bytes. Some cameras leave other bytes after the NUL of a text, or many NULs; ENTRY
 * then becomes shorter. */
static enum exif_action judge_text(const struct metadata *metadata, size_t code, struct tiff_entry *entry)
{
    const uint8_t *text = entry->value + code;
    size_t size = entry->size - code;
    const uint8_t *end = memchr(text, 0, size);
    if (end != NULL && !(metadata_is_text(text, size) && metadata_text_fits(metadata, size)))
        size = (size_t)(end - text) + 1;
    entry->count = entry->size = code + size;
    return !metadata_is_text(text, size) ? EXIF_UNKNOWN : !metadata_text_fits(metadata, size) ? EXIF_LONG : EXIF_TEXT;
}

enum exif_action exif_judge(const struct metadata *metadata, enum exif_directory directory, struct tiff_entry *entry)
{
    const struct tags *known = find_tag(directory, entry->tag);
    const bool are_bytes = entry->size == entry->count;
    if (metadata_strips(metadata, class_of(directory, entry->tag)))
        return EXIF_SILENT;
    if (known == NULL)
        return has_tag(maker_tags, LENGTH(maker_tags), entry->tag)     ? EXIF_MAKER
               : has_tag(silent_tags, LENGTH(silent_tags), entry->tag) ? EXIF_SILENT
                                                                       : EXIF_UNKNOWN;
    if (known->content == NUMBERS && entry->count > known->max && entry->type != TIFF_TYPE_ASCII &&
        entry->type != TIFF_TYPE_UNDEFINED) { /* some writers repeat a number: the first ones count */
        entry->size = entry->size / entry->count * known->max;
        entry->count = known->max;
    }
    if (known->content == NUMBERS || known->content == BYTES)
        return entry->count <= known->max && (known->content == NUMBERS || are_bytes) ? EXIF_CARRIED : EXIF_UNKNOWN;
    if (!are_bytes)
        return EXIF_UNKNOWN;
    const size_t code = known->content == CODED && entry->size >= CODE_BYTES ? CODE_BYTES : 0;
    if (known->content == UTF16_TEXT || (code > 0 && memcmp(entry->value, "UNICODE", CODE_BYTES) == 0))
        return metadata_text_fits(metadata, entry->size) ? EXIF_TEXT : EXIF_LONG;
    return judge_text(metadata, code, entry);
}
