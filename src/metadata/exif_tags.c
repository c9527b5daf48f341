/* SPDX-License-Identifier: MIT
 *
 * The tables of tags: TIFF 6.0, sections 4 to 8 and 20 to 22; EXIF 2.32 and 3.0, 4.6.4 to 4.6.8; the tags that Windows
 * writes (Rating, XPTitle and the like) and those of TIFF/EP, as ExifTool's documentation lists them. Counts are those
 * of the standards. Where these allow any number, or writers differ, they are small. */
#include "metadata/exif_tags.h"

#include "metadata/plain_text.h"

#include <string.h>

/* What a tag holds. Writers differ in the types of numbers, so only the number of numbers counts. */
enum content {
    NUMBERS,   /* of any type, text and bytes included */
    BYTES,     /* numbers of one byte each */
    TEXT,      /* in ASCII, or what else the writer took for it */
    CODED,     /* text behind 8 bytes that name its character set */
    UTF16_TEXT /* bytes of text in UTF-16 */
};

/* The most bytes of a short and of a long text. A JPEG holds no more than 64 KiB of EXIF. */
enum { LINE = 1024, PAGE = 65535 };

struct tag {
    uint16_t tag, most; /* of its values */
    enum content content;
};

/* Of the image and of EXIF. Writers put some into the wrong one of these two directories. */
static const struct tag image_tags[] = {
    {0x000b, LINE, TEXT},       /* ProcessingSoftware */
    {0x0100, 1, NUMBERS},       /* ImageWidth */
    {0x0101, 1, NUMBERS},       /* ImageLength */
    {0x010d, LINE, TEXT},       /* DocumentName */
    {0x010e, PAGE, TEXT},       /* ImageDescription */
    {0x010f, LINE, TEXT},       /* Make */
    {0x0110, LINE, TEXT},       /* Model */
    {0x0112, 1, NUMBERS},       /* Orientation */
    {0x011a, 1, NUMBERS},       /* XResolution */
    {0x011b, 1, NUMBERS},       /* YResolution */
    {0x011d, LINE, TEXT},       /* PageName */
    {0x011e, 1, NUMBERS},       /* XPosition */
    {0x011f, 1, NUMBERS},       /* YPosition */
    {0x0128, 1, NUMBERS},       /* ResolutionUnit */
    {0x0129, 2, NUMBERS},       /* PageNumber */
    {0x0131, LINE, TEXT},       /* Software */
    {0x0132, LINE, TEXT},       /* DateTime */
    {0x013b, PAGE, TEXT},       /* Artist */
    {0x013c, LINE, TEXT},       /* HostComputer */
    {0x013e, 2, NUMBERS},       /* WhitePoint */
    {0x013f, 6, NUMBERS},       /* PrimaryChromaticities */
    {0x0211, 3, NUMBERS},       /* YCbCrCoefficients */
    {0x0212, 2, NUMBERS},       /* YCbCrSubSampling */
    {0x0213, 1, NUMBERS},       /* YCbCrPositioning */
    {0x0214, 6, NUMBERS},       /* ReferenceBlackWhite */
    {0x4746, 1, NUMBERS},       /* Rating */
    {0x4749, 1, NUMBERS},       /* RatingPercent */
    {0x8298, PAGE, TEXT},       /* Copyright */
    {0x829a, 1, NUMBERS},       /* ExposureTime */
    {0x829d, 1, NUMBERS},       /* FNumber */
    {0x8822, 1, NUMBERS},       /* ExposureProgram */
    {0x8824, LINE, TEXT},       /* SpectralSensitivity */
    {0x8827, 4, NUMBERS},       /* PhotographicSensitivity */
    {0x882a, 2, NUMBERS},       /* TimeZoneOffset */
    {0x882b, 1, NUMBERS},       /* SelfTimerMode */
    {0x8830, 1, NUMBERS},       /* SensitivityType */
    {0x8831, 1, NUMBERS},       /* StandardOutputSensitivity */
    {0x8832, 1, NUMBERS},       /* RecommendedExposureIndex */
    {0x8833, 1, NUMBERS},       /* ISOSpeed */
    {0x8834, 1, NUMBERS},       /* ISOSpeedLatitudeyyy */
    {0x8835, 1, NUMBERS},       /* ISOSpeedLatitudezzz */
    {0x9000, 4, NUMBERS},       /* ExifVersion */
    {0x9003, LINE, TEXT},       /* DateTimeOriginal */
    {0x9004, LINE, TEXT},       /* DateTimeDigitized */
    {0x9010, LINE, TEXT},       /* OffsetTime */
    {0x9011, LINE, TEXT},       /* OffsetTimeOriginal */
    {0x9012, LINE, TEXT},       /* OffsetTimeDigitized */
    {0x9101, 4, NUMBERS},       /* ComponentsConfiguration */
    {0x9102, 1, NUMBERS},       /* CompressedBitsPerPixel */
    {0x9201, 1, NUMBERS},       /* ShutterSpeedValue */
    {0x9202, 1, NUMBERS},       /* ApertureValue */
    {0x9203, 1, NUMBERS},       /* BrightnessValue */
    {0x9204, 1, NUMBERS},       /* ExposureBiasValue */
    {0x9205, 1, NUMBERS},       /* MaxApertureValue */
    {0x9206, 1, NUMBERS},       /* SubjectDistance */
    {0x9207, 1, NUMBERS},       /* MeteringMode */
    {0x9208, 1, NUMBERS},       /* LightSource */
    {0x9209, 1, NUMBERS},       /* Flash */
    {0x920a, 1, NUMBERS},       /* FocalLength */
    {0x9211, 1, NUMBERS},       /* ImageNumber */
    {0x9212, LINE, TEXT},       /* SecurityClassification */
    {0x9213, PAGE, TEXT},       /* ImageHistory */
    {0x9214, 4, NUMBERS},       /* SubjectArea */
    {0x9216, 4, NUMBERS},       /* TIFF-EPStandardID */
    {0x9286, PAGE, CODED},      /* UserComment */
    {0x9290, LINE, TEXT},       /* SubSecTime */
    {0x9291, LINE, TEXT},       /* SubSecTimeOriginal */
    {0x9292, LINE, TEXT},       /* SubSecTimeDigitized */
    {0x9400, 1, NUMBERS},       /* Temperature */
    {0x9401, 1, NUMBERS},       /* Humidity */
    {0x9402, 1, NUMBERS},       /* Pressure */
    {0x9403, 1, NUMBERS},       /* WaterDepth */
    {0x9404, 1, NUMBERS},       /* Acceleration */
    {0x9405, 1, NUMBERS},       /* CameraElevationAngle */
    {0x9c9b, PAGE, UTF16_TEXT}, /* XPTitle */
    {0x9c9c, PAGE, UTF16_TEXT}, /* XPComment */
    {0x9c9d, PAGE, UTF16_TEXT}, /* XPAuthor */
    {0x9c9e, PAGE, UTF16_TEXT}, /* XPKeywords */
    {0x9c9f, PAGE, UTF16_TEXT}, /* XPSubject */
    {0xa000, 4, NUMBERS},       /* FlashpixVersion */
    {0xa001, 1, NUMBERS},       /* ColorSpace */
    {0xa002, 1, NUMBERS},       /* PixelXDimension */
    {0xa003, 1, NUMBERS},       /* PixelYDimension */
    {0xa004, 16, TEXT},         /* RelatedSoundFile */
    {0xa20b, 1, NUMBERS},       /* FlashEnergy */
    {0xa20e, 1, NUMBERS},       /* FocalPlaneXResolution */
    {0xa20f, 1, NUMBERS},       /* FocalPlaneYResolution */
    {0xa210, 1, NUMBERS},       /* FocalPlaneResolutionUnit */
    {0xa214, 2, NUMBERS},       /* SubjectLocation */
    {0xa215, 1, NUMBERS},       /* ExposureIndex */
    {0xa217, 1, NUMBERS},       /* SensingMethod */
    {0xa300, 4, NUMBERS},       /* FileSource */
    {0xa301, 4, NUMBERS},       /* SceneType */
    {0xa302, 40, BYTES},        /* CFAPattern: two sides, and up to 6 x 6 colours */
    {0xa401, 1, NUMBERS},       /* CustomRendered */
    {0xa402, 1, NUMBERS},       /* ExposureMode */
    {0xa403, 1, NUMBERS},       /* WhiteBalance */
    {0xa404, 1, NUMBERS},       /* DigitalZoomRatio */
    {0xa405, 1, NUMBERS},       /* FocalLengthIn35mmFilm */
    {0xa406, 1, NUMBERS},       /* SceneCaptureType */
    {0xa407, 1, NUMBERS},       /* GainControl */
    {0xa408, 1, NUMBERS},       /* Contrast */
    {0xa409, 1, NUMBERS},       /* Saturation */
    {0xa40a, 1, NUMBERS},       /* Sharpness */
    {0xa40c, 1, NUMBERS},       /* SubjectDistanceRange */
    {0xa420, LINE, TEXT},       /* ImageUniqueID */
    {0xa430, LINE, TEXT},       /* CameraOwnerName */
    {0xa431, LINE, TEXT},       /* BodySerialNumber */
    {0xa432, 4, NUMBERS},       /* LensSpecification */
    {0xa433, LINE, TEXT},       /* LensMake */
    {0xa434, LINE, TEXT},       /* LensModel */
    {0xa435, LINE, TEXT},       /* LensSerialNumber */
    {0xa436, PAGE, TEXT},       /* ImageTitle */
    {0xa437, LINE, TEXT},       /* Photographer */
    {0xa438, LINE, TEXT},       /* ImageEditor */
    {0xa439, LINE, TEXT},       /* CameraFirmware */
    {0xa43a, LINE, TEXT},       /* RAWDevelopingSoftware */
    {0xa43b, LINE, TEXT},       /* ImageEditingSoftware */
    {0xa43c, LINE, TEXT},       /* MetadataEditingSoftware */
    {0xa460, 1, NUMBERS},       /* CompositeImage */
    {0xa461, 2, NUMBERS},       /* SourceImageNumberOfCompositeImage */
    {0xa462, 128, BYTES},       /* SourceExposureTimesOfCompositeImage */
    {0xa500, 1, NUMBERS},       /* Gamma */
    {0xc614, LINE, TEXT},       /* UniqueCameraModel */
    {0xc62f, LINE, TEXT},       /* CameraSerialNumber */
    {0xfde8, LINE, TEXT},       /* OwnerName, as Camera Raw writes it; the next three too */
    {0xfde9, LINE, TEXT},       /* SerialNumber */
    {0xfdea, LINE, TEXT},       /* Lens */
    {0xfe4c, LINE, TEXT},       /* RawFile */
};

static const struct tag gps_tags[] = {
    {0x00, 4, NUMBERS},  /* GPSVersionID */
    {0x01, 4, NUMBERS},  /* GPSLatitudeRef */
    {0x02, 3, NUMBERS},  /* GPSLatitude */
    {0x03, 4, NUMBERS},  /* GPSLongitudeRef */
    {0x04, 3, NUMBERS},  /* GPSLongitude */
    {0x05, 2, NUMBERS},  /* GPSAltitudeRef */
    {0x06, 1, NUMBERS},  /* GPSAltitude */
    {0x07, 3, NUMBERS},  /* GPSTimeStamp */
    {0x08, LINE, TEXT},  /* GPSSatellites */
    {0x09, 4, NUMBERS},  /* GPSStatus */
    {0x0a, 4, NUMBERS},  /* GPSMeasureMode */
    {0x0b, 1, NUMBERS},  /* GPSDOP */
    {0x0c, 4, NUMBERS},  /* GPSSpeedRef */
    {0x0d, 1, NUMBERS},  /* GPSSpeed */
    {0x0e, 4, NUMBERS},  /* GPSTrackRef */
    {0x0f, 1, NUMBERS},  /* GPSTrack */
    {0x10, 4, NUMBERS},  /* GPSImgDirectionRef */
    {0x11, 1, NUMBERS},  /* GPSImgDirection */
    {0x12, LINE, TEXT},  /* GPSMapDatum */
    {0x13, 4, NUMBERS},  /* GPSDestLatitudeRef */
    {0x14, 3, NUMBERS},  /* GPSDestLatitude */
    {0x15, 4, NUMBERS},  /* GPSDestLongitudeRef */
    {0x16, 3, NUMBERS},  /* GPSDestLongitude */
    {0x17, 4, NUMBERS},  /* GPSDestBearingRef */
    {0x18, 1, NUMBERS},  /* GPSDestBearing */
    {0x19, 4, NUMBERS},  /* GPSDestDistanceRef */
    {0x1a, 1, NUMBERS},  /* GPSDestDistance */
    {0x1b, LINE, CODED}, /* GPSProcessingMethod */
    {0x1c, LINE, CODED}, /* GPSAreaInformation */
    {0x1d, 32, TEXT},    /* GPSDateStamp */
    {0x1e, 1, NUMBERS},  /* GPSDifferential */
    {0x1f, 1, NUMBERS},  /* GPSHPositioningError */
};

static const struct tag interop_tags[] = {
    {0x0001, 32, TEXT},   /* InteroperabilityIndex */
    {0x0002, 4, NUMBERS}, /* InteroperabilityVersion */
    {0x1000, LINE, TEXT}, /* RelatedImageFileFormat */
    {0x1001, 1, NUMBERS}, /* RelatedImageWidth */
    {0x1002, 1, NUMBERS}, /* RelatedImageLength */
};

/* Left out of every file, in all directories. */
static const uint16_t silent_tags[] = {
    0x00fe, 0x00ff, 0x0102, 0x0103, 0x0106, 0x0107, 0x0108, 0x0109, 0x010a, /* kind, bits, compression, cells ... */
    0x0111, 0x0115, 0x0116, 0x0117, 0x0118, 0x0119, 0x011c, 0x012d, 0x013d, /* strips, planes, curves ... */
    0x0140, 0x0142, 0x0143, 0x0144, 0x0145, 0x0152, 0x0153, 0x015b,         /* palette, tiles, sample format, tables */
    0x014a, 0x0201, 0x0202,                                                 /* directories, and pictures as JPEG */
    0x02bc, 0x83bb, 0x8649, 0x8773,                 /* XMP, IPTC, Photoshop, ICC: other parts of the metadata */
    0x501b, 0xea1c, 0xea1d, 0xc4a5,                 /* GDI+'s thumbnail, padding, print settings */
    0x927c, 0xc634, 0xc635, 0x8895, 0x889b, 0x9999, /* maker's notes, of DNG and of phones, too */
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

size_t exif_type_size(unsigned type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    return type < sizeof sizes ? sizes[type] : type == TYPE_UTF8 ? 1 : 0;
}

static const struct tag *find_tag(enum exif_directory directory, unsigned number)
{
    const struct tag *tags = directory == DIRECTORY_GPS       ? gps_tags
                             : directory == DIRECTORY_INTEROP ? interop_tags
                                                              : image_tags;
    const size_t count = directory == DIRECTORY_GPS       ? LENGTH(gps_tags)
                         : directory == DIRECTORY_INTEROP ? LENGTH(interop_tags)
                                                          : LENGTH(image_tags);
    for (size_t i = 0; i < count; i++)
        if (tags[i].tag == number)
            return &tags[i];
    return NULL;
}

static bool is_silent(unsigned number)
{
    for (size_t i = 0; i < LENGTH(silent_tags); i++)
        if (silent_tags[i] == number)
            return true;
    return false;
}

/* Is the value a text? Some cameras leave anything behind the NUL of a text; *COUNT is then cut. */
static bool is_text(const uint8_t *value, uint32_t *count)
{
    if (plain_text_is(value, *count))
        return true;
    const uint8_t *end = memchr(value, 0, *count);
    if (end == NULL || !plain_text_is(value, (size_t)(end - value)))
        return false;
    *count = (uint32_t)(end - value) + 1;
    return true;
}

static bool is_coded(const uint8_t *value, uint32_t *count)
{
    enum { CODE = 8 };
    static const char codes[][CODE] = {"ASCII\0\0", "JIS\0\0\0\0", "\0\0\0\0\0\0\0"}; /* each literal adds a NUL */
    if (*count >= CODE && memcmp(value, "UNICODE", CODE) == 0)
        return plain_text_is_utf16(value + CODE, *count - CODE);
    for (size_t i = 0; *count >= CODE && i < LENGTH(codes); i++)
        if (memcmp(value, codes[i], CODE) == 0) {
            uint32_t left = *count - CODE;
            const bool done = is_text(value + CODE, &left);
            *count = CODE + left;
            return done;
        }
    return is_text(value, count);
}

enum exif_fate exif_judge(enum exif_directory directory, unsigned tag, unsigned type, uint32_t *count,
                          const uint8_t *value)
{
    const struct tag *known = find_tag(directory, tag);
    if (known == NULL)
        return is_silent(tag) ? EXIF_SILENT : EXIF_UNKNOWN;
    bool carried = *count <= known->most && (known->content == NUMBERS || exif_type_size(type) == 1);
    if (carried && known->content == TEXT)
        carried = is_text(value, count);
    else if (carried && known->content == CODED)
        carried = is_coded(value, count);
    else if (carried && known->content == UTF16_TEXT)
        carried = plain_text_is_utf16(value, *count);
    return carried ? EXIF_CARRIED : EXIF_UNKNOWN;
}
