//! Hashes that ClickHouse 26.7.2 computed: of the bytes `(i * i * 7 + i * 13 + n) % 251`, `i < n`, for lengths that the
//! functions treat differently.

use windrow_compression::hash::{
    cityhash128, cityhash64, combine_cityhash64, int_hash32, int_hash64, murmurhash3_64, siphash64, xxh3, xxhash32,
    xxhash64,
};

/// Expected hashes: `cityHash64`, `sipHash64`, `xxHash64`, `xxh3` and `murmurHash3_64`, then `xxHash32`.
const HASHES: &[(usize, [u64; 5], u32)] = &[
    (
        0,
        [
            0x9ae1_6a3b_2f90_404f,
            0x1e92_4b9d_7377_00d7,
            0xef46_db37_51d8_e999,
            0x2d06_8005_38d3_94c2,
            0x0000_0000_0000_0000,
        ],
        0x02cc_5d05,
    ),
    (
        1,
        [
            0x6209_312a_69a5_6947,
            0x667d_d540_1e6f_d800,
            0x8a41_2781_1b21_e730,
            0xe12e_f9d2_eb86_ceeb,
            0x0d46_3b74_c07a_9993,
        ],
        0x3892_f731,
    ),
    (
        2,
        [
            0x1e76_5526_60d6_071c,
            0x9b00_6361_62dc_ce14,
            0x0330_3f51_2cdf_1509,
            0x226a_6fe8_9865_0564,
            0xb2e5_bf17_6e8c_9068,
        ],
        0x7dc1_2561,
    ),
    (
        3,
        [
            0x4033_3057_e76f_2990,
            0x4644_579f_c84d_fb7a,
            0x6f3c_ce4c_08b6_11f1,
            0x2fd1_e2af_b724_fc1f,
            0x0144_00cf_a120_20e5,
        ],
        0x4cf3_6722,
    ),
    (
        4,
        [
            0xa18e_39d1_ec26_1135,
            0x51fe_004e_2781_ad8d,
            0x0b42_20e1_597b_e596,
            0x153d_706a_4d10_c5c3,
            0xdb0c_c461_5804_1642,
        ],
        0xfee2_1dd2,
    ),
    (
        7,
        [
            0x051b_7b79_99a9_4f11,
            0x0ca6_6421_2c4d_98e0,
            0x5994_5d33_2ec5_0189,
            0xc7c4_36f4_011f_ece7,
            0x9f2b_5e4d_06cd_d971,
        ],
        0xbe52_d214,
    ),
    (
        8,
        [
            0xc48d_4d3f_8e16_c1b0,
            0xf9ba_5970_9d2d_03fd,
            0x7591_ed54_cb34_2588,
            0x3dde_443f_1cb7_196a,
            0x1db7_5f14_38a3_4032,
        ],
        0x3751_e5a6,
    ),
    (
        9,
        [
            0xaa76_ae8b_f458_8b92,
            0xecdd_1036_f107_9eed,
            0x63ef_295c_04e0_9a36,
            0xf658_a826_9dce_34a2,
            0xad51_4b16_c349_019d,
        ],
        0x4937_5ca9,
    ),
    (
        15,
        [
            0x491b_6e94_8344_54d8,
            0x8e97_6ea4_e440_7dca,
            0x6d92_6f50_2a27_b3e7,
            0x01e5_338b_34be_2988,
            0x141b_a8d1_02b4_3d59,
        ],
        0x14bf_f2e9,
    ),
    (
        16,
        [
            0xb054_1440_2ab9_ee73,
            0x8b83_9f9c_84cc_636a,
            0x3b8c_6a23_d608_035c,
            0xb95a_313a_8d09_6e76,
            0x0da3_26bf_ed98_e713,
        ],
        0x680b_c9b7,
    ),
    (
        17,
        [
            0xa57b_b45b_df5f_debe,
            0x5451_0dda_c29e_abc1,
            0x1e0b_0aad_023e_ffab,
            0x0949_aeea_30bb_89cb,
            0xcb6c_38b5_a9d2_3fd5,
        ],
        0x0908_56e7,
    ),
    (
        31,
        [
            0x7f2b_4dac_2033_a0f7,
            0xa8a7_0b12_1be6_9f7d,
            0xd955_2e77_08f5_448d,
            0x70d6_df78_c4c6_36e5,
            0x39ff_25f0_80e4_abae,
        ],
        0x3e30_ccaf,
    ),
    (
        32,
        [
            0xfa5c_f0ac_a909_8d74,
            0xffe5_ee86_54f1_cadb,
            0x2554_81f1_8ab6_96e6,
            0xa99b_0b22_5b02_8060,
            0x7bef_104b_c8ae_3177,
        ],
        0xdcd2_03d3,
    ),
    (
        33,
        [
            0xba14_1b02_ed39_adea,
            0xf87f_9fe9_435f_5c20,
            0x44a6_2291_cd19_011e,
            0xc308_7130_9a02_a1d2,
            0x607e_bcde_2501_8cd6,
        ],
        0x93fd_8a85,
    ),
    (
        63,
        [
            0x70bb_f4d2_ba1e_3205,
            0x6a21_e195_94a9_549f,
            0xf5bd_8cc0_0e7f_b32a,
            0xbf48_2947_4c09_d6ca,
            0xe83c_0387_e674_7f0d,
        ],
        0xd9a1_fdd6,
    ),
    (
        64,
        [
            0xa447_b077_8fd2_fac2,
            0x8360_0d5e_61c2_bd1e,
            0xf28a_b0a1_deac_e82e,
            0x61fd_795d_67a2_1350,
            0xc3be_7588_2da2_4f83,
        ],
        0xa83e_8bca,
    ),
    (
        65,
        [
            0xd518_065a_abfa_f044,
            0x6650_e2b1_2264_aa06,
            0xf196_8d09_dca7_6f71,
            0x47b7_ec17_073d_79cf,
            0x7370_0c8a_2434_8e6e,
        ],
        0x5ea9_b83f,
    ),
    (
        127,
        [
            0xffd4_3fcc_3798_e706,
            0x87ed_b92b_7277_2b87,
            0x5fdc_ba62_b69d_92c4,
            0x61e9_2d0e_7963_1fb6,
            0xf044_912a_6dac_2c66,
        ],
        0x6464_c102,
    ),
    (
        128,
        [
            0x4637_7573_b250_0617,
            0x0d30_03d8_6281_9a42,
            0xe3bc_7c2b_610e_5927,
            0xbb89_a83b_181f_f37b,
            0x1e8a_ab32_f494_e123,
        ],
        0xae0b_fcf1,
    ),
    (
        129,
        [
            0xf27d_af5f_2ec7_fcb7,
            0xb3a3_54e3_40fd_7244,
            0x4549_42c5_cfec_d999,
            0x3fda_9a1e_52e2_6f5c,
            0x0f33_0860_330c_79c7,
        ],
        0x5107_31ae,
    ),
    (
        240,
        [
            0xdd80_31e8_0941_2455,
            0xd052_90e4_8b0c_643e,
            0xf74c_8471_8d5e_f18d,
            0x05e1_7590_e0ef_b6f1,
            0x20fa_5ac2_b080_d2b7,
        ],
        0x7bd1_09ea,
    ),
    (
        241,
        [
            0x74f1_5841_550e_3829,
            0x096f_6009_dac3_cc66,
            0xd0a7_ca58_aa7d_4726,
            0x7e36_dffe_032c_9e2b,
            0xef9b_9db7_06a0_a5a3,
        ],
        0xfc46_a19b,
    ),
    (
        300,
        [
            0x016a_2ab5_bbdc_6215,
            0xeb63_f720_bb24_2736,
            0x6e05_9855_328d_9664,
            0x8bee_2d5b_0b9c_aefc,
            0x26a1_f6e2_46dd_027d,
        ],
        0x268a_7597,
    ),
];

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * i * 7 + i * 13 + length) % 251) as u8).collect()
}

#[test]
fn bytes_have_the_hashes_that_clickhouse_computes() {
    for (length, expected, expected_32) in HASHES {
        let bytes = pattern(*length);
        let hashes = [cityhash64, siphash64, xxhash64, xxh3, murmurhash3_64].map(|hash| hash(&bytes));
        assert_eq!((hashes, xxhash32(&bytes)), (*expected, *expected_32), "length {length}");
    }
}

#[test]
fn hashes_of_several_strings_are_combined() {
    assert_eq!(combine_cityhash64(cityhash64(b"a"), cityhash64(b"b")), 7_468_329_322_676_821_011);
}

#[test]
fn numbers_have_the_hashes_that_clickhouse_computes() {
    for (number, expected, expected_32) in [
        (0, 4_761_183_170_873_013_810, 4_249_604_106),
        (1, 10_577_349_846_663_553_072, 1_343_103_100),
        (255, 8_055_013_221_972_926_055, 4_243_176_437),
        (u64::MAX, 14_600_443_904_207_254_319, 3_545_659_993),
        (1_000_000_000_000_000_000, 1_156_315_559_886_137_123, 4_135_583_137),
    ] {
        assert_eq!((int_hash64(number), int_hash32(number)), (expected, expected_32), "{number}");
    }
}

/// CityHash128 of short inputs. `golden/city-short.txt` has the hashes in hexadecimal, as a block would hold
/// them, by the Python package `clickhouse-cityhash` (CityHash 1.0.2 in C++). Hashes in blocks are tested
/// where blocks are read.
#[test]
fn cityhash128_of_lengths_that_no_block_has() {
    for (length, expected) in include_str!("../golden/city-short.txt").lines().take(17).enumerate() {
        let hash: String = cityhash128(&pattern(length)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, expected, "length {length}");
    }
}
