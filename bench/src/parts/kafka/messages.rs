//! What is in the topics: the article's aggregated views, as each format writes them, made from a row's number alone.

use std::io::Write;

/// The schema of the article's table, in the types that protobuf has.
pub const SCHEMA: &str = "syntax = \"proto3\"; message Stats { uint32 event_date = 1; uint32 event_datetime = 2; \
    uint32 property_id = 3; string video_title = 4; uint64 total_view_count = 5; }";
pub const SCHEMA_MESSAGE: &str = "Stats";

const PROPERTIES: u64 = 50;
const TITLES_OF_A_PROPERTY: u64 = 20;
/// So that rows of one time, property and title are there to be aggregated.
const SECONDS: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The messages of `ProtobufSingle`, which nobody looks into.
    RawBlob,
    JsonEachRow,
    ProtobufSingle,
    /// Many rows in a message, each with its length before it.
    Protobuf,
}

pub const ROWS_OF_A_LONG_MESSAGE: u64 = 500;

impl Format {
    /// As ClickHouse and the settings call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::RawBlob => "RawBLOB",
            Format::JsonEachRow => "JSONEachRow",
            Format::ProtobufSingle => "ProtobufSingle",
            Format::Protobuf => "Protobuf",
        }
    }

    /// As the page calls it.
    pub fn title(self) -> String {
        match self {
            Format::Protobuf => format!("Protobuf, {ROWS_OF_A_LONG_MESSAGE} rows a message"),
            other => other.name().to_owned(),
        }
    }

    pub fn rows_per_message(self) -> u64 {
        match self {
            Format::Protobuf => ROWS_OF_A_LONG_MESSAGE,
            _ => 1,
        }
    }

    pub fn needs_schema(self) -> bool {
        matches!(self, Format::ProtobufSingle | Format::Protobuf)
    }

    /// What the topic holds: two formats can read one.
    pub fn topic(self) -> &'static str {
        match self {
            Format::RawBlob | Format::ProtobufSingle => "protobuf-single",
            Format::JsonEachRow => "json-each-row",
            Format::Protobuf => "protobuf",
        }
    }

    /// The value of a message.
    pub fn write(self, hour: Hour, message: u64, out: &mut Vec<u8>) {
        match self {
            Format::JsonEachRow => Row::number(message).write_json(hour, out),
            Format::RawBlob | Format::ProtobufSingle => Row::number(message).write_protobuf(hour, out),
            Format::Protobuf => {
                let mut row = Vec::new();
                for number in message * ROWS_OF_A_LONG_MESSAGE..(message + 1) * ROWS_OF_A_LONG_MESSAGE {
                    row.clear();
                    Row::number(number).write_protobuf(hour, &mut row);
                    push_varint(out, row.len() as u64);
                    out.extend_from_slice(&row);
                }
            }
        }
    }
}

/// The views of all rows up to a number, as the tables have to add them up.
pub fn views_of(rows: u64) -> u64 {
    (0..rows).map(|number| Row::number(number).views).sum()
}

/// In which all rows are: the article's table has a partition for each hour, and drops rows that are a day old.
#[derive(Debug, Clone, Copy)]
pub struct Hour {
    /// Seconds since 1970.
    pub began: u64,
}

impl Hour {
    pub fn of(now: std::time::SystemTime) -> Hour {
        let seconds = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Hour { began: seconds - seconds % 3600 }
    }

    fn day(self) -> u64 {
        self.began / 86_400
    }
}

struct Row {
    property: u64,
    title: u64,
    second: u64,
    views: u64,
}

impl Row {
    fn number(number: u64) -> Row {
        // Spreads neighbours, by the multiplier of Knuth's hash.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        Row {
            property: spread % PROPERTIES,
            title: (spread >> 8) % TITLES_OF_A_PROPERTY,
            second: (spread >> 16) % SECONDS,
            views: 1 + (spread >> 24) % 9,
        }
    }

    fn write_title(&self, out: &mut Vec<u8>) {
        let (season, episode) = (self.title / 10 + 1, self.title % 10 + 1);
        let _ = write!(out, "Show {}, season {season}, episode {episode}", self.property);
    }

    fn write_json(&self, hour: Hour, out: &mut Vec<u8>) {
        let (year, month, day) = date(hour.day());
        let (of_day, second) = (hour.began % 86_400 / 3600, self.second);
        // Writing into memory does not fail.
        let _ = write!(
            out,
            "{{\"event_date\":\"{year:04}-{month:02}-{day:02}\",\
             \"event_datetime\":\"{year:04}-{month:02}-{day:02} {of_day:02}:00:{second:02}\",\
             \"property_id\":{},\"video_title\":\"",
            self.property
        );
        self.write_title(out);
        let _ = write!(out, "\",\"total_view_count\":{}}}", self.views);
    }

    fn write_protobuf(&self, hour: Hour, out: &mut Vec<u8>) {
        let numbers = [(1, hour.day()), (2, hour.began + self.second), (3, self.property)];
        for (field, value) in numbers {
            push_field(out, field, value);
        }
        out.push(4 << 3 | 2);
        // A title is shorter than 128 bytes.
        let length_at = out.len();
        out.push(0);
        self.write_title(out);
        out[length_at] = (out.len() - length_at - 1) as u8;
        push_field(out, 5, self.views);
    }
}

/// Left out where it is 0, as proto3 does.
fn push_field(out: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        out.push(field << 3);
        push_varint(out, value);
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Year, month and day of a day since 1970, in UTC.
fn date(day: u64) -> (u64, u64, u64) {
    // Years that begin in March, in cycles of 400, as in Hinnant's `civil_from_days`.
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Hour = Hour { began: 1_732_287_600 };

    #[test]
    fn dates_are_the_calendars() {
        let days = [0, 59, 11_016, 11_017, 20_049, 47_540];
        let dates = [(1970, 1, 1), (1970, 3, 1), (2000, 2, 29), (2000, 3, 1), (2024, 11, 22), (2100, 2, 28)];
        assert_eq!(days.map(date), dates);
    }

    #[test]
    fn a_message_is_one_row_as_the_format_has_it() {
        let mut json = Vec::new();
        Format::JsonEachRow.write(HOUR, 7, &mut json);
        let row: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(row["event_date"], "2024-11-22");
        assert_eq!(row["event_datetime"].as_str().unwrap()[..17], *"2024-11-22 15:00:");
        assert_eq!(row["total_view_count"], views_of(8) - views_of(7));
        let mut single = Vec::new();
        Format::ProtobufSingle.write(HOUR, 0, &mut single);
        // Number 0 is all zeros, but for its day, its hour, its title and its view.
        let mut expected = b"\x08\xD1\x9C\x01\x10\xF0\xB8\x82\xBA\x06\x22\x1BShow 0, season 1, episode 1".to_vec();
        expected.extend_from_slice(b"\x28\x01");
        assert_eq!(single, expected);
    }

    #[test]
    fn a_long_message_is_its_rows_with_their_lengths() {
        let (mut long, mut expected) = (Vec::new(), Vec::new());
        Format::Protobuf.write(HOUR, 3, &mut long);
        for number in 1500..2000 {
            let mut row = Vec::new();
            Format::ProtobufSingle.write(HOUR, number, &mut row);
            expected.push(row.len() as u8);
            expected.extend_from_slice(&row);
        }
        assert_eq!(long, expected);
    }
}
