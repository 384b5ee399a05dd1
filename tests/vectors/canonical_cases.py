"""Canonical JSON: numbers of RFC 8785's appendix B, texts, and what must be refused."""

NUMBERS = [
    # Doubles as big-endian hexadecimal digits, and how they are written.
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
    ["3ff0000000000000", "1"],
    ["3fe0000000000000", "0.5"],
    ["3fd5555555555555", "0.3333333333333333"],
    ["3cb0000000000000", "2.220446049250313e-16"],
]

GOOD = [
    {"name": "whole numbers lose their point", "json": "[0.0, 1.0, -0.0, 1e2, 4.50]",
     "canonical": "[0,1,0,100,4.5]"},
    {"name": "keys are sorted, nothing is padded", "json": '{"b": [1, true], "a": null}',
     "canonical": '{"a":null,"b":[1,true]}'},
    {"name": "keys are sorted by UTF-16 code units",
     "json": '{"\\u20ac": 1, "\\r": 2, "\\ufb33": 3, "1": 4, "\\ud83d\\ude00": 5, "\\u0080": 6, '
             '"\\u00f6": 7}',
     "canonical": '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\U0001f600":5,"\ufb33":3}'},
    {"name": "texts are escaped only where they must be",
     "json": '"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/\\u007f"',
     "canonical": '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f"'},
    {"name": "nothing at all", "json": "[[], {}, \"\"]", "canonical": '[[],{},""]'},
]  # fmt: skip

BAD = [
    {"name": "a name stands twice", "json": '{"a":1,"a":1}'},
    {"name": "a constant that JSON does not have", "json": "[NaN]"},
    {"name": "an infinite number", "json": "[Infinity]"},
    {"name": "a number beyond all doubles", "json": "[1e999]"},
    {"name": "a whole number that no double holds", "json": "[9007199254740993]"},
    {"name": "half a character", "json": '["\\ud800"]'},
    {"name": "half a character in a name", "json": '{"\\udc00":1}'},
    {"name": "cut short", "json": '{"a":1'},
    {"name": "a comma too many", "json": "[1,]"},
    {"name": "two values", "json": "1 2"},
    {"name": "nothing", "json": ""},
]
