"""The tests that SQLAlchemy has for dialects."""

from sqlalchemy.testing import suite
from sqlalchemy.testing.suite import *  # noqa: F403

#: Tests that no requirement keeps from asking for what ClickHouse doesn't have.
NOT_ASKED = {
    (suite.ComponentReflectionTestExtra, "test_string_length_reflection"): "a String has no length",
    (suite.ArrayTest, "test_literal_complex"): "stores NULL, and an Array is never NULL",
    (suite.ArrayTest, "test_literal_simple"): "stores NULL, and an Array is never NULL",
    (suite.ComputedColumnTest, "test_select_all"): "an asterisk leaves out computed columns",
    (suite.LongNameBlowoutTest, "test_long_convention_name"): "reads back names of indices and constraints",
    (suite.TrueDivTest, "test_truediv_divisor"): "a quotient of Decimals has the scale of the dividend, and overflows",
}
for (_class, _test), _reason in NOT_ASKED.items():
    delattr(_class, _test)
