use std::net::{Ipv4Addr, Ipv6Addr};

/// Reads an IPv4 address into the bytes that ClickHouse stores.
pub(super) fn ipv4(text: &[u8]) -> Option<[u8; 4]> {
    let address: Ipv4Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(u32::from(address).to_le_bytes())
}

/// Reads an IPv6 address, or an IPv4 one mapped into it, in network order.
pub(super) fn ipv6(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.to_ipv6_mapped().octets());
    }
    Some(text.parse::<Ipv6Addr>().ok()?.octets())
}

/// Reads a UUID with its hyphens into two 64-bit halves, each little-endian.
pub(super) fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let &[_, _, _, _, _, _, _, _, b'-', _, _, _, _, b'-', _, _, _, _, b'-', _, _, _, _, b'-', ..] = text else {
        return None;
    };
    if text.len() != 36 {
        return None;
    }
    let mut digits = text.iter().filter(|byte| **byte != b'-').map(|byte| char::from(*byte).to_digit(16));
    let mut value = 0u128;
    for _ in 0..32 {
        value = value << 4 | u128::from(digits.next()??);
    }
    if digits.next().is_some() {
        return None;
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&((value >> 64) as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&(value as u64).to_le_bytes());
    Some(bytes)
}
