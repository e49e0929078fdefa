//! Prints docs/settings.md.

fn main() {
    print!("{}", windrow_settings::reference_markdown());
}
