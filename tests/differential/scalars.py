"""Values of the types that hold no others, but for dates and times."""

from __future__ import annotations

import ipaddress
import struct
import uuid
from random import Random

from differential.kind import Kind
from differential.language import Language


class Integer(Kind):
    def __init__(self, bits: int, signed: bool):
        self.name = f"{'Int' if signed else 'UInt'}{bits}"
        self.bits = bits
        self.lowest = -(1 << (bits - 1)) if signed else 0
        self.highest = (1 << (bits - signed)) - 1
        limits = (self.lowest, self.lowest - 1, self.highest + 1, 1 << bits, (1 << bits) + 5, -1)
        self.peculiar = (
            *map(str, limits), "0" + str(self.highest), "+" + str(self.highest), "-0", "--1", "1e2", "1.0", "1.9",
            "1.5e1", " 1",
            "1 ", "0x10", "1'000", "true", "1u", "-", "+",
        )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        # The lowest of the wide ones is left to ClickHouse.
        value = rng.choice((self.lowest + (self.bits > 64), self.highest, 0, 1,
            self.highest >> rng.randrange(self.bits - 1)))
        if rng.random() < 0.6:
            value = rng.randint(self.lowest, self.highest)
        return f'"{value}"' if language is Language.JSON and rng.random() < 0.1 else str(value)


class Float(Kind):
    def __init__(self, bits: int):
        self.name = f"Float{bits}"
        self.layout = "<f" if bits == 32 else "<d"
        self.bits = bits
        self.peculiar = (
            "nan", "NaN", "-nan", "inf", "-inf", "+inf", "Inf", "infinity", "-0", "-0.0", "0.0", "1.", ".1", "+1.5",
            "1e", "1e+",
            "1e5", "1E5", "1e-400", "1e309", "3.5e38", "1.17549435e-38", "4.9e-324", "2.2250738585072014e-308", "01.5",
            "1,5",
            "9007199254740993", "0.1000000000000000055511151231257827", "123456789012345678901234567890", "0x1p3",
            "1e0005",
            "0." + "0" * 330 + "1", "1" * 310, "2.4703282292062327e-324", "16777217", "8388609.5",
            "1.00000017881393432617187499",
        )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        spelling = rng.randrange(5)
        if spelling == 0:
            return str(rng.randint(-1000, 1000))
        if spelling == 1:
            return f"{rng.uniform(-1e6, 1e6):.{rng.randint(1, 9)}f}"
        if spelling == 2:
            return f"{rng.uniform(-10, 10):.{rng.randint(1, 17)}e}".replace("e+", rng.choice(("e", "e+", "E")))
        return self.any_finite(rng)

    def any_finite(self, rng: Random) -> str:
        """Any bits at all, but for those of nan and the infinities."""
        while True:
            value = struct.unpack(self.layout, rng.getrandbits(self.bits).to_bytes(self.bits // 8, "little"))[0]
            if value == value and abs(value) != float("inf"):
                return repr(value)


class Decimal(Kind):
    def __init__(self, precision: int, scale: int, spelling: str = ""):
        self.name = spelling or f"Decimal({precision}, {scale})"
        self.precision, self.scale = precision, scale
        nines = "9" * (precision - scale)
        self.peculiar = (
            nines + "9", nines + ".9", "1" + "0" * (precision - scale), "0." + "9" * (scale + 2),
            "-0." + "0" * scale + "9",
            "-0", "1.", ".5", "+1.5", "1e1", "1.5e-1", "1e-80", "15E1", "00.5", "000001", "1.5.5", "1,5", " 1", "1 ",
            "nan", "inf",
            "9" * (precision + 1), "0." + "0" * 90 + "1", "-",
        )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        whole_digits = rng.randint(0, self.precision - self.scale)
        whole = str(rng.randrange(10**whole_digits)) if whole_digits else "0"
        fraction_digits = rng.randint(0, self.scale)
        fraction = f".{rng.randrange(10**fraction_digits):0{fraction_digits}d}" if fraction_digits else ""
        text = rng.choice(("", "-")) + whole + fraction
        return f'"{text}"' if language is Language.JSON and rng.random() < 0.3 else text


class Bool(Kind):
    name = "Bool"
    peculiar = ("1", "0", "2", "-1", "yes", "no", "on", "off", "Y", "N", "t", "f", "True", "TRUE", "tru", "enabled",
        "1.0", "00", "10")

    def plain(self, rng: Random, language: Language) -> str:
        return rng.choice(("true", "false"))


CHARACTERS = (
    "abcXYZ 0189,:;{}[]()<>&%#@!?*-_=+|~^$`'\"\\/\n\t\r\b\f\0\x01\x1f\x7f"
    "äßéλж中文\u2028\ufeff😀👩\U0010ffff"
)
TEXT_ODDITIES = {
    Language.JSON: (
        '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\u0041"', '"\\u12"', '"\\uzzzz"', '"\\x41"', '"\\a"',
        '"\\\'"', '"\\0"',
        '"a\nb"', '"a\0b"', '"\udcff\udcfe"', '"\udced\udca0\udc80"', '"unended', '"a"b"', "'a'", "abc",
        '{"b": [1, {"c":null}]}', "[1, 2,3]",
        '[ ]', '{ "a" : 1 }', '{"a":1,}', '{a:1}', "12", "-12.50", "1e5", "1E+05", "0.10", "0123", "true", "12abc",
        '"\\', '"\\u', '"a" "b"',
        "-", "1.e", '{"a":"\\q"}', '[{"a":1}{"b":2}]', "99999999999999999999999", "0.1e-7", "[1,\n 2]", '"\\/"',
        '"\\e\\v"',
    ),
    Language.SQL: (
        "'\\u0041'", "'\\x4'", "'\\xzz'", "'\\a\\b\\e\\f\\n\\r\\t\\v\\0'", "'\\z'", "'\\%\\_'", "'\\N'", "'it''s'",
        "''''", "'a\nb'", "'a\0b'",
        "'\udcff\udcfe'", "'unended", "'a'b'", "'a' 'b'", '"a"', "`a`", "abc", "12", "-1.5", "$$a$$", "$x$a'b$x$",
        "x'41'", "X'4142'", "b'01'",
        "'a'||'b'", "concat('a', 'b')", "'\\", "true", "toString(5)", "lower('A')", "'a' -- c\n", "'a' /* c */", "[1]",
        "NULL", "e'a'", "'\\''",
        "'’'", "‘a’",
    ),
}  # fmt: skip


def random_text(rng: Random, longest: int) -> str:
    if rng.random() < 0.5:
        return "".join(rng.choice("abcdefghij klmno0123") for _ in range(rng.randint(0, longest)))
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, longest)))


class String(Kind):
    name = "String"

    def plain(self, rng: Random, language: Language) -> str:
        longest = 300 if rng.random() < 0.03 else 12
        return language.quoted_at_random(rng, random_text(rng, longest))

    def peculiarities(self, language: Language) -> list[str]:
        return list(TEXT_ODDITIES[language])


class FixedString(String):
    def __init__(self, width: int):
        self.name = f"FixedString({width})"
        self.width = width

    def plain(self, rng: Random, language: Language) -> str:
        text = random_text(rng, self.width)
        while len(text.encode()) > self.width:
            text = text[:-1]
        return language.quoted_at_random(rng, text)

    def peculiarities(self, language: Language) -> list[str]:
        too_long = [language.quoted("x" * (self.width + 1)), language.quoted("ä" * self.width), language.quoted("")]
        return [*TEXT_ODDITIES[language], *too_long]


class Uuid(Kind):
    name = "UUID"
    peculiar = (
        "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "61F0C404-5CB3-11E7-907B-A6006AD3DBA0",
        "61f0c4045cb311e7907ba6006ad3dba0", "61f0c404-5cb3-11e7-907b",
        "{61f0c404-5cb3-11e7-907b-a6006ad3dba0}", "61f0c404-5cb3-11e7-907b-a6006ad3dbg0",
        "61f0c404-5cb3-11e7-907b-a6006ad3dba00", "0",
        "61f0c404-5cb3-11e7907b-a6006ad3dba0-", "61f0c404 5cb3 11e7 907b a6006ad3dba0",
        "61f0c40-45cb3-11e7-907b-a6006ad3dba0",
        "61f0c4045cb3-11e7-907b-a6006ad3dba0",
    )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        text = str(uuid.UUID(int=rng.getrandbits(128)))
        return language.quoted(rng.choice((text, text, text.upper())))


class Ipv4(Kind):
    name = "IPv4"
    peculiar = (
        "0.0.0.0", "255.255.255.255", "256.0.0.1", "1.2.3", "1.2.3.4.5", "1.2.3.04", "001.2.3.4", "1.2.3.4 ",
        " 1.2.3.4", "::ffff:1.2.3.4", "::1", "16909060",
        "1.2.3.-4", "1..2.3", "0x7f.1", "localhost", "1.2.3.4/8", "",
    )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        return language.quoted(str(ipaddress.IPv4Address(rng.getrandbits(32))))


class Ipv6(Kind):
    name = "IPv6"
    peculiar = (
        "::", "::1", "1::", "::ffff:1.2.3.4", "::1.2.3.4", "1.2.3.4", "2001:db8::ff00:42:8329", "2001:DB8::FF",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9",
        "1::2::3", ":::", "fe80::1%eth0", "12345::", "g::", "1:2:3:4:5:6:1.2.3.4", "::ffff:1.2.3.256", "01:02::",
        "[::1]", "::1/64", "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "001.2.3.4", "::ffff:0:0", "0", "", "::1 ", "1:2:3:4:5:6:7:8:",
        "0000:0000:0000:0000:0000:0000:0000:0001",
        "00000::1", "::00001", "1.2.3", "::1.2.3", "::1.2.3.04",
    )  # fmt: skip

    def plain(self, rng: Random, language: Language) -> str:
        bits = rng.getrandbits(128) & rng.choice(((1 << 128) - 1, 0xFFFF << 112 | 0xFFFF, 0xFFFF << 64 | 0xFFFF_FFFF))
        address = ipaddress.IPv6Address(bits)
        return language.quoted(rng.choice((address.compressed, address.exploded, address.compressed.upper())))


class Enumeration(Kind):
    def __init__(self, name: str, values: dict[str, int]):
        listed = ", ".join(f"{Language.SQL.quoted(text)} = {number}" for text, number in values.items())
        self.name = f"{name}({listed})"
        self.values = values
        self.peculiar = (*(text.upper() for text in values), *map(str, values.values()), "missing", "", "1", "3", "77",
            "-1", "300", "70000", "1.0")

    def plain(self, rng: Random, language: Language) -> str:
        text, number = rng.choice(list(self.values.items()))
        return str(number) if language is Language.JSON and rng.random() < 0.1 else language.quoted(text)


INTEGERS = tuple(Integer(bits, signed) for bits in (8, 16, 32, 64, 128, 256) for signed in (False, True))
FLOATS = (Float(32), Float(64))
DECIMALS = (
    Decimal(9, 2), Decimal(9, 9, "Decimal32(9)"), Decimal(18, 4), Decimal(18, 0, "Decimal64(0)"), Decimal(38, 10),
    Decimal(38, 38), Decimal(76, 20),
    Decimal(76, 0, "Decimal256(0)"), Decimal(5, 3),
)  # fmt: skip
TEXTS = (String(), FixedString(1), FixedString(12))
OTHERS = (
    Bool(), Uuid(), Ipv4(), Ipv6(), Enumeration("Enum8", {"red": 1, "green": 2, "it's": -7, "": 5}),
    Enumeration("Enum16", {"first": 300, "second": -300, "77": 4, "ünï": 0}),
)  # fmt: skip
SCALARS = (*INTEGERS, *FLOATS, *DECIMALS, *TEXTS, *OTHERS)
