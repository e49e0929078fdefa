//! `intHash32` and `intHash64`: hashes of whole numbers.

const SALT_32: u64 = 0x75d9_543d_e018_bf45;
const SALT_64: u64 = 0x4cf2_d2ba_ae6d_a887;

/// Returns ClickHouse's `intHash64`. A signed number is given in its 64-bit form.
pub fn int_hash64(number: u64) -> u64 {
    finish(number ^ SALT_64)
}

/// Returns ClickHouse's `intHash32`: Thomas Wang's hash of 64 bits to 32, with rotations in place of its shifts.
pub fn int_hash32(number: u64) -> u32 {
    let mut key = number ^ SALT_32;
    key = (!key).wrapping_add(key << 18);
    key ^= key.rotate_right(31);
    key = key.wrapping_mul(21);
    key ^= key.rotate_right(11);
    key = key.wrapping_add(key << 6);
    key ^= key.rotate_right(22);
    key as u32
}

/// Performs the last step of MurmurHash3.
pub(crate) fn finish(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}
