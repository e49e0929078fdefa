use std::fmt;
use std::str::FromStr;

/// The id by which the server knows an append: a UUID of the client's choice. A client that lost its
/// connection asks by it what became of the append, and goes on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AppendId(u128);

impl AppendId {
    pub fn random() -> AppendId {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        let (version, variant) = (0x4 << 76, 0x2 << 62);
        AppendId(u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | version | variant)
    }
}

impl fmt::Display for AppendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
    }
}

impl FromStr for AppendId {
    type Err = String;

    fn from_str(text: &str) -> Result<AppendId, String> {
        let wrong = || format!("'{text}' is no UUID");
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u128::from_str_radix(&digits, 16).map(AppendId).map_err(|_| wrong())
    }
}
