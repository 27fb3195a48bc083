"""Wrong inputs: words, values in YAML, texts, tables, arguments."""

import datetime
import math
from pathlib import Path

import numpy as np

_WORDS = r"""
- -- = a= =a é 日本 ../x / . ~ * %s {} [ ${x} $(ls) nan -1 1e309 None null true ' " \ # @x --no-such 1e18 [[]] [1]
"""
WORDS = ["", " ", "\n", "\udcff", "a b", "x" * 5000, "{a: 1}", "\x1b[2J", "\u202e", *_WORDS.split()]
"""Words of a command line."""

_VALUES = "${protocol.nothing} ${oc.env:NOTHING} ${ ../x / é [0,1] all a=b 1e18 ~"
VALUES = [None, True, -1, 0, 1.5, 1e18, math.nan, math.inf, 10**30, datetime.date(2020, 1, 1), b"\xff"]
VALUES += ["", "x", "x y\nz", "y" * 3000, "\x1b[2J", "\x00", *_VALUES.split()]
VALUES += [[], [1], ["x"], [[]], [None], [{}], {}, {"a": 1}, {1: 2}, {None: 1}, {"": ""}]
"""Values in YAML."""

TEXTS = [b"", b"\xff\xfe", b"\x00", b"a: [", b"- x\n", b"3", b"&a [*a]", b"a: *b"]
TEXTS += [b"!!python/object/apply:os.system [ls]", b"--- a\n--- b\n", b"a: 1\na: 2\n", b"{" * 3000, b"[" * 100_000]
TEXTS += [b"%YAML 9.9\n---\na: 1", b"? [a]\n: b\n", b"<<: 3\n", b"a: !!binary zzz", b"a: !!set {x}"]
TEXTS += [b"a: !!timestamp 99999-1-1", b"\xef\xbb\xbfname: mine\n", b"1: 2\n"]
"""Texts that are no document, or none of ours."""

HEADER = b"dataset,split,method,row,mean,variance\n"
TABLES = [b"", b"\n", b",", b"\x00", b"\xff\xfe", b"a,b\n", b"a,b\n1\n", b"a,b\n1,2,3\n", b"a,a\n1,2\n"]
TABLES += [b"a;b\n1;2\n", b'a,b\n"1,2\n', b"a,b\nx,y\n", b"a,b\nnan,1\n", b"a,b\n1e999,1\n", b"PAR1"]
TABLES += [b"PAR1" + bytes(20) + b"PAR1", b"PK\x03\x04" + bytes(30), b"\x93NUMPY\x01\x00", HEADER]
TABLES += [HEADER + b"sinc,x,m,0,1,1\n", HEADER + b"sinc,0,m,0,1,-1\n", HEADER + b"none,0,m,0,1,1\n"]
TABLES += [HEADER + b"sinc,0,../m,0,1,1\n", HEADER + b"sinc,0,m,1e18,1,1\n", HEADER + b"sinc,99,m,0,1,1\n"]
TABLES += [b"dataset,split,method,row,prob_0,prob_1\nwdbc,0,m,0,2,-1\n", HEADER + b"sinc,0,m,0,1,1\n" * 3]
TABLES += [b"a" * 200_000, b"a,b\n" + b"1," * 5000]
"""Tables that nobody can import."""

ARGUMENTS = [None, True, -1, 0, 1.5, math.nan, "", "\x00", "x", "a\nb\x1b[2J", b"x", Path("x")]
ARGUMENTS += [[], [None], {}, {"a": 1}, object(), np.zeros(2)]
"""Arguments of functions."""
