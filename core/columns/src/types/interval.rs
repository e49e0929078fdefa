/// The unit of time that an Interval counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl IntervalUnit {
    const ALL: [IntervalUnit; 11] = [
        IntervalUnit::Nanosecond,
        IntervalUnit::Microsecond,
        IntervalUnit::Millisecond,
        IntervalUnit::Second,
        IntervalUnit::Minute,
        IntervalUnit::Hour,
        IntervalUnit::Day,
        IntervalUnit::Week,
        IntervalUnit::Month,
        IntervalUnit::Quarter,
        IntervalUnit::Year,
    ];

    /// Returns the unit of a type as ClickHouse spells it, `IntervalSecond` and so on.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        IntervalUnit::ALL.into_iter().find(|unit| unit.type_name() == name)
    }

    pub(super) fn type_name(self) -> &'static str {
        match self {
            IntervalUnit::Nanosecond => "IntervalNanosecond",
            IntervalUnit::Microsecond => "IntervalMicrosecond",
            IntervalUnit::Millisecond => "IntervalMillisecond",
            IntervalUnit::Second => "IntervalSecond",
            IntervalUnit::Minute => "IntervalMinute",
            IntervalUnit::Hour => "IntervalHour",
            IntervalUnit::Day => "IntervalDay",
            IntervalUnit::Week => "IntervalWeek",
            IntervalUnit::Month => "IntervalMonth",
            IntervalUnit::Quarter => "IntervalQuarter",
            IntervalUnit::Year => "IntervalYear",
        }
    }
}
