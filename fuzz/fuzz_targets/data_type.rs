#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_columns::DataType;

fuzz_target!(|text: &str| {
    if let Ok(data_type) = DataType::parse(text) {
        assert_eq!(DataType::parse(&data_type.to_string()), Ok(data_type));
    }
});
