//! Prints the settings that bear on reading as the code knows them, `name<TAB>default in hexadecimal`: a test compares
//! them with a real ClickHouse's.

fn main() {
    for setting in windrow_columns::reading_settings() {
        let default: String = setting.default.bytes().map(|byte| format!("{byte:02x}")).collect();
        println!("{}\t{default}", setting.name);
    }
}
