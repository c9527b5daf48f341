#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong calls, and the sentences that answer them: wrong_calls.py ROOT.

Each call raises an exception of a kind that the docs name. Its message says what is wrong and, after a semicolon, what
to do, in words of the package and not of its insides."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, run_tests  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402
import gpuconv.testing  # noqa: E402

# What can stand where an image can, in a folder with bad.png and text.txt. A is an image.
IMAGES = """None; 1; 1.5; 'photo.png'; b'photo'; object(); {}; {1}; print; [[]]; [[1, 2]]; [[1], [1, 2]]; [['a']];
    [[None]]; a.astype('int64'); a.astype('int8'); a.astype('uint32'); a.astype('complex64'); a.astype('U5');
        a.astype(object);
    a.astype('datetime64[s]'); a[0, 0]; a[0, 0, 0]; a[:0]; a[None, None]; numpy.zeros((3, 20, 30), 'uint8');
    numpy.zeros((2, 20, 30, 7), 'uint8'); numpy.ma.masked_array(a, a > 3); numpy.full((5, 5), 1e300);
    numpy.zeros((4, 4), 'longdouble'); numpy.zeros(9, [('x', 'u1')]); pathlib.Path('photo.png')"""
NUMBERS = "None; 'a'; 1.5; []; 2**70; -2**70; object(); numpy.zeros(3); b'1'"
CALLS = {
    "gpuconv.filter(?, 'blur')": IMAGES + "; [a, None]; [a, [a]]; [1.5]",
    "gpuconv.filter([a, a], 'blur', out=?)": "a; [a.copy()]; 1; [a.copy(), 1]; [a.copy(), a[1:].copy()]",
    "gpuconv.encode(?)": IMAGES + "; a.astype('float32'); a > 3; a[None]",
    "gpuconv.compare(a, ?)": "None; 1; b'x'; [[1, 2]]; object(); a.astype('int64'); a[0, 0]; 'bad.png'; 'text.txt'",
    "gpuconv.difference(a, ?)": "None; 1; a[1:]; a.astype('uint16'); a.astype('int64')",
    "gpuconv.filter(a, ?)": """None; 1; {}; {1}; b'blur'; object(); []; [[]]; [[1], [1, 2]]; [['a']]; [[None]];
        ['1']; [1, [2]];
        [[float('nan')]]; [[float('inf')]]; [[1j]]; [[10**12]]; numpy.zeros((2, 2, 2)); numpy.ones((128, 3));
        numpy.array(3);
        'nope'; ''; 'gaussian:x'; 'gaussian:-1'; 'blur,'; 'blur\\0'; './none.txt'; 'text.txt';
        a.astype('U5')[..., 0]; 'resize:0x0'""",
    "gpuconv.filter(a, 'blur', border=?)": "None; 1; []; {}; 'mirror'; b'wrap'; object()",
    "gpuconv.filter(a, 'blur', alpha=?)": "1; []; 'none'",
    "gpuconv.filter(a, 'blur', linear=?)": "None; 1; 'no'; []",
    "gpuconv.filter(a / 255, 'blur', linear=?)": "True",
    "gpuconv.filter(a, 'blur', layout=?)": "1; []; 'HWC'; 'nchw'; 'chw '",
    "gpuconv.filter(photo, 'blur', layout=?)": "'chw'; 'nhw'; []",
    "gpuconv.filter(a[None], 'blur', layout=?)": "'nhw'",
    "gpuconv.filter(a, 'blur', out=?)": """1; 'x'; []; [[1]]; a[1:]; a.tolist(); a.astype('uint16');
        a.astype('int64'); object();
        bytes(a.size); numpy.broadcast_to(a[0], a.shape);
        numpy.frombuffer(bytes(a.size), 'uint8').reshape(a.shape)""",
    "gpuconv.filter(a / 255, 'blur', out=?)": "a; numpy.zeros((2, 2))",
    "gpuconv.filter(a, 'blur', context=?)": "1; 'cpu'; []; gpuconv.Context; closed",
    "gpuconv.filter(a, 'blur', stream=?)": "1; 'a'; -1; 2**70; 1.5",
    "gpuconv.filter(a > 100, ?)": "'blur'",
    "gpuconv.filter(?)": "'blur', a; gpuconv.Filter('blur'), a; a, ['blur', 'edge']; a, 'crop:90x90'; a, 'pad:9x9'",
    "gpuconv.Filter(?)": "None; 1; b'x'; {}; object(); 'nope'; [[1, 'a']]; []",
    "gpuconv.Filter([[1, 2]], scale=?)": "'a'; 0; []; float('nan'); 1j",
    "gpuconv.Filter([[1, 2]], offset=?)": "None; 'a'; 10**9; float('inf'); []",
    "gpuconv.Filter([[1, 2]], anchor=?)": "1; 'a'; (1,); (1, 2, 3); (5, 5); (1.5, 0); (-1, 0); ('a', 'b')",
    "gpuconv.Filter([[1, 2]], absolute=?)": "None; 1; 'no'",
    "gpuconv.Filter('blur', ?)": "scale=2; offset=1; anchor=(0, 0); absolute=True",
    "gpuconv.Filter.parse(?)": """None; 1; b'1 2'; ''; 'x y'; 'scale 0\\n1'; '1 2\\n3'; 'anchor 9 9\\n1';
        '1', None; '1', 5""",
    "gpuconv.Filter('blur').size(?, 5)": NUMBERS + "; 0; -1",
    "gpuconv.Context(?)": NUMBERS + "; -1; 100000; gpu='a'; gpu=-1; gpu=1.5; gpu=2**40; gpu=999",
    "gpuconv.read(?)": """None; 1; 1.5; [1]; {}; object(); b''; b'no image'; 'bad.png'; 'text.txt';
        io.StringIO('text'); a.T; 'a\\0b'""",
    "gpuconv.read('good.png', bits=?)": NUMBERS + "; 7; -8",
    "gpuconv.read('good.png', keep_orientation=?)": "None; 1; 'no'",
    "gpuconv.read('good.png', max_pixels=?)": NUMBERS + "; -1; 10",
    "gpuconv.read('good.png', page=?)": NUMBERS + "; -1; 2",
    "gpuconv.read('good.png', context=?)": "1; 'cpu'",
    "gpuconv.read('good.png', ?)": "device='cpu'; device=0; device='cuda:x'; layout='nhw'; device='cuda', layout='nhw'",
    "gpuconv.read(['good.png', ?])": "'bad.png'; None; 7",
    "gpuconv.encode([a, ?])": "None; 1; a[0, 0]; a.astype(float)",
    "gpuconv.write(['a.png', 'b.png'], ?)": "a; [a]; [a, None]; None",
    "gpuconv.preprocess(?)": """None; 1; 1.5; object(); {}; []; [None]; [[1, 2]]; [a, 5]; b''; b'no image';
        'bad.png'; io.StringIO('text'); a.astype('float32'); a[None]; a[0, 0, 0]; a[:0]; 'a\\0b'; [a, a[1:]];
        numpy.zeros(9)""",
    "gpuconv.preprocess(a, resize=?)": "'a'; 1.5; 0; -1; 2**70; (1, 2, 3); (5, 0); ('a', 5); {}; []",
    "gpuconv.preprocess(a, crop=?)": "'a'; 1.5; 0; -1; 2**70; (1, 2, 3); (5, 0); ('a', 5); {}; []",
    "gpuconv.preprocess(a, resize=9, pad=?)": "'red'; 2**24; 1.5; -1; (1, 2, 3)",
    "gpuconv.preprocess(a, mean=?)": "'a'; None; (1, 2); float('nan'); []; (1, 'b', 3)",
    "gpuconv.preprocess(a, std=?)": "'a'; None; (1, 2); float('inf'); 0; (1, 0, 2)",
    "gpuconv.preprocess(a, ?)": """pad='white'; resize=9, pad=0, crop=9; resize=9, kernel=5;
        resize=9, kernel='box,blur'; crop=9, crop_rule='pillow'; layout='nhw'; layout=None;
        dtype='int8'; dtype=5; dtype='float64'; dtype=object(); dtype='uint8', mean=1; dtype='bfloat16';
        device='gpu'; device='cuda:x'; device=0; rescale='a'; rescale=None; rescale=[1, 2];
        rescale=float('nan'); context=1; context=closed; background='red'; background=2**24; background=1.5;
        keep_orientation='no'; max_pixels=-1; max_pixels='a'""",
    "gpuconv.preprocess.from_config(?)": """None; 1; 'text.txt'; {}; []; {'image_processor_type': 'Qwen2VLProcessor'};
        {'image_processor_type': 'CLIPImageProcessor'}; dict(clip, size=None); dict(clip, size={'longest_edge': 5});
        dict(clip, resample=9); dict(clip, resample='3'); dict(clip, do_pad=True); dict(clip, crop_pct=0.5);
        dict(clip, crop_size={'shortest_edge': 5}); dict(clip, image_mean=None);
        dict(clip, data_format='channels_last')""",
    "gpuconv.preprocess.from_config(?)(a)": """dict(clip, image_std=[0, 1, 1]); dict(clip, size='a');
        dict(clip, size=-1); dict(clip, rescale_factor=None); dict(clip, image_mean=[1, 2])""",
    "gpuconv.encode(a, ?)": """None; 1; ''; 'gif'; '.png'; 'png\\0x'; 'png', quality=90; 'png', lossless=True;
        'jpg', compression=3;
        'png', subsampling=444; 'webp', progressive=True; 'png', background=0; 'jpg', progressive='no';
        'webp', lossless=1""",
    "gpuconv.encode(a, 'jpg', quality=?)": "'90'; 1.5; 101; -1; 2**70; []",
    "gpuconv.encode(a, 'jpg', subsampling=?)": "'444'; '4:2:1'; 1.5; 421; -1; []",
    "gpuconv.encode(a, 'png', compression=?)": "'9'; 1.5; 10; -3; 'best'; {}",
    "gpuconv.encode(a, 'jpg', background=?)": "'red'; '#12345'; '#1234567'; '123456'; -1; 2**24; 2**70; (1, 2, 3)",
    "gpuconv.encode(a, layout=?)": "'nhw'; 'chw'; []",
    "gpuconv.encode(photo, layout=?)": "'chw'",
    "gpuconv.encode(a, metadata=?)": "1; a; 'good.png'; b''",
    "gpuconv.encode(a, context=?)": "1; closed",
    "gpuconv.write(?, a)": "None; 1; 'x'; ''; 'a.gif'; b'\\0.png'; object(); io.BytesIO()",
    "gpuconv.write('a.png', ?)": "None; a, 'gif'; a, 5; a.astype('int64'); 'good.png'",
    "gpuconv.write(io.StringIO(), a, ?)": "'png'",
    "gpuconv.compare(a, a, tolerance=?)": NUMBERS + "; -1",
    "gpuconv.compare(a, a, ?)": """different=-1; different=1.5; different='1'; different='0%'; different='101%';
        different='%'; layout='nhw'; layout='chw'; min_ssim='a'; min_ssim=2; min_psnr=-1; tolerance_yiq=2;
        min_local_ssim=float('nan'); strict_channels=0; ignore_antialiasing='no'; ignore_transparent=None""",
    "gpuconv.compare(a / 255, a / 255, ?)": "-1; '1'; None; float('nan'); min_ssim=0.5; different=3",
    "gpuconv.compare(a, a, context=?)": "1; closed",
    "gpuconv.testing.assert_images_equal(?, a)": "None; 1; [[1, 2]]; 'bad.png'",
    "gpuconv.testing.assert_images_equal(a, a, ?)": "None; -1; '1'",
}

# Words of Python, NumPy, ctypes and C. Some of their exceptions would be of the right kinds.
INSIDES = re.compile(
    r"unhashable|argument \d|ArgumentError|NULL|<U|\[\('|enum |object (is|has)|must be|expected str|not supported|"
    r"subscriptable|unpack|attribute|iterable|codec can't|convert|__|positional|keyword|set to 0|uses_gpu|<.* at 0x|"
    r"dtype\(|invalid literal|bytes-like|reserved|ctypes", re.I)
ALLOWED = re.compile(r"convert floats to linear light|image\.convert\(")
# What to do, or a reason that says it.
ADVICE = re.compile(r"; |expected|, for example|asked for|is not a|fit in 32 bits|No such file|without CUDA|no NVIDIA driver|counted from 0")


def split(text):
    """The values of TEXT, which semicolons part."""
    return [value.strip() for value in text.split(";")]


def test_wrong_calls():
    import io  # noqa: F401
    a = numpy.random.default_rng(1).integers(0, 256, (20, 30, 3), "uint8")
    pathlib.Path("bad.png").write_bytes(b"\x89PNG\r\n\x1a\nbad")
    pathlib.Path("text.txt").write_text("words, not taps")
    gpuconv.write("good.png", a)
    photo = gpuconv.read("good.png")
    closed = gpuconv.Context()
    closed.close()
    clip = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": 9, "resample": 3,
            "do_center_crop": True, "crop_size": 9, "do_normalize": True, "image_mean": [0.5], "image_std": [0.5]}
    gpuconv.preprocess.from_config(clip)(photo)
    names = dict(globals(), a=a, photo=photo, closed=closed, io=io, clip=clip)
    faults, count = [], 0
    for call, values in CALLS.items():
        for value in split(values):
            text = call.replace("?", value)
            count += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", gpuconv.ImageWarning)
                    eval(text, names)
            except (ValueError, TypeError, gpuconv.GpuError) as error:
                said = str(error)
                bad = INSIDES.search(ALLOWED.sub("", said))
                if bad or not 15 < len(said) < 400 or "\n" in said or not ADVICE.search(said):
                    faults.append(f"{text}: {type(error).__name__}: {said}")
                elif "-v" in sys.argv:
                    print(f"{text}: {type(error).__name__}: {said}")
            except BaseException as error:
                faults.append(f"{text}: {type(error).__name__}: {error}")
            else:
                faults.append(f"{text}: nothing was raised")
    assert not faults, f"{len(faults)} of {count} wrong calls:\n" + "\n".join(faults)
    assert count >= 200, count
    print(f"{count} wrong calls")


def test_missing_library():
    """A package whose library cannot be loaded says what to do."""
    shutil.copytree(ROOT / "python/gpuconv", "gpuconv")
    pathlib.Path("gpuconv/libgpuconv.so.0").write_bytes(b"none")
    done = subprocess.run([sys.executable, "-c", "import gpuconv"], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH="."))
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the library of gpuconv cannot be loaded: ") and "; install both" in last, last


run_tests(globals())
