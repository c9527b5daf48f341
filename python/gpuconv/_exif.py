# SPDX-License-Identifier: MIT
"""The tags of an EXIF block by their names (CIPA DC-008)."""
import struct
from fractions import Fraction

_NAMES = dict(zip(
    (0x10E, 0x10F, 0x110, 0x112, 0x11A, 0x11B, 0x128, 0x131, 0x132, 0x13B, 0x213, 0x8298, 0x829A, 0x829D, 0x8822,
     0x8827, 0x9000, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012, 0x9201, 0x9202, 0x9203, 0x9204, 0x9205, 0x9206, 0x9207,
     0x9208, 0x9209, 0x920A, 0x9290, 0x9291, 0x9292, 0xA000, 0xA001, 0xA002, 0xA003, 0xA20E, 0xA20F, 0xA210, 0xA217,
     0xA300, 0xA301, 0xA401, 0xA402, 0xA403, 0xA404, 0xA405, 0xA406, 0xA407, 0xA408, 0xA409, 0xA40A, 0xA40C, 0xA431,
     0xA432, 0xA433, 0xA434, 0xA435, 0xA500),
    """ImageDescription Make Model Orientation XResolution YResolution ResolutionUnit Software DateTime Artist
    YCbCrPositioning Copyright ExposureTime FNumber ExposureProgram PhotographicSensitivity ExifVersion
    DateTimeOriginal DateTimeDigitized OffsetTime OffsetTimeOriginal OffsetTimeDigitized ShutterSpeedValue
    ApertureValue BrightnessValue ExposureBiasValue MaxApertureValue SubjectDistance MeteringMode LightSource Flash
    FocalLength SubSecTime SubSecTimeOriginal SubSecTimeDigitized FlashpixVersion ColorSpace PixelXDimension
    PixelYDimension FocalPlaneXResolution FocalPlaneYResolution FocalPlaneResolutionUnit SensingMethod FileSource
    SceneType CustomRendered ExposureMode WhiteBalance DigitalZoomRatio FocalLengthIn35mmFilm SceneCaptureType
    GainControl Contrast Saturation Sharpness SubjectDistanceRange BodySerialNumber LensSpecification LensMake
    LensModel LensSerialNumber Gamma""".split()))
_GPS_NAMES = dict(enumerate(
    """VersionID LatitudeRef Latitude LongitudeRef Longitude AltitudeRef Altitude TimeStamp Satellites Status
    MeasureMode DOP SpeedRef Speed TrackRef Track ImgDirectionRef ImgDirection MapDatum DestLatitudeRef DestLatitude
    DestLongitudeRef DestLongitude DestBearingRef DestBearing DestDistanceRef DestDistance ProcessingMethod
    AreaInformation DateStamp Differential HPositioningError""".split()))
_EXIF, _GPS = 0x8769, 0x8825  # the tags that point to other directories
_KINDS = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 6: "b", 7: "s", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d"}


def parse(block):
    """The tags of a TIFF block, without those that are damaged."""
    order = "<" if block[:2] == b"II" else ">"
    tags = {}
    if len(block) >= 8:
        _read(block, order, struct.unpack_from(order + "I", block, 4)[0], _NAMES, "0x", tags)
    return tags


def _read(block, order, at, names, prefix, tags):
    count = struct.unpack_from(order + "H", block, at)[0] if at + 2 <= len(block) else 0
    for entry in range(at + 2, min(at + 2 + 12 * count, len(block) - 11), 12):
        tag, kind, length = struct.unpack_from(order + "HHI", block, entry)
        form = order + _KINDS.get(kind, "")
        size = struct.calcsize(form) * length
        start = entry + 8 if size <= 4 else struct.unpack_from(order + "I", block, entry + 8)[0]
        if size == 0 or start + size > len(block):
            continue
        content = block[start:start + size]
        if kind in (2, 7):
            value = content if kind == 7 else content.rstrip(b"\0").decode(errors="replace")
        else:
            values = [Fraction(*pair) if len(pair) == 2 and pair[1] else pair[0] if len(pair) == 1 else None
                      for pair in struct.iter_unpack(form, content)]
            value = values[0] if length == 1 else tuple(values)
        if tag in (_EXIF, _GPS) and prefix == "0x" and isinstance(value, int):
            _read(block, order, value, _GPS_NAMES if tag == _GPS else names, "GPS" if tag == _GPS else "", tags)
        else:
            known = ("GPS" if names is _GPS_NAMES else "") + names[tag] if tag in names else f"{tag:#06x}"
            tags[known] = value
