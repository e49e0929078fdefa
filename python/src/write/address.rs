//! Conversion of UUIDs and IP addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use pyo3::intern;
use pyo3::prelude::*;

use super::context::Context;
use super::number::{put_big_int, put_checked};
use super::problem::Problem;
use super::value::Value;

/// Writes a UUID object, its text, its number or its 16 bytes; any false value is the UUID of zeros.
/// ClickHouse keeps a UUID as two 64-bit halves.
pub(super) fn put_uuid<'py>(context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
    let number = uuid_number(context, value)?;
    out.extend_from_slice(&((number >> 64) as u64).to_le_bytes());
    out.extend_from_slice(&(number as u64).to_le_bytes());
    Ok(())
}

fn uuid_number<'py>(context: &Context<'py>, value: Value<'py>) -> Result<u128, Problem> {
    if value.is_none() {
        return Ok(0);
    }
    // Safety: the slices are read before any Python code runs.
    if let Some(text) = unsafe { value.utf8() } {
        return uuid_of_text(text);
    }
    // Safety: as above.
    if let Some(bytes) = unsafe { value.raw_bytes() } {
        return match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => Ok(u128::from_be_bytes(bytes)),
            Err(_) if bytes.is_empty() => Ok(0),
            Err(_) => Err(Problem::said("a UUID has 16 bytes")),
        };
    }
    let held = value.held();
    let number = if held.is_instance(context.names.uuid.bind(context.py))? {
        held.getattr(intern!(context.py, "int"))?
    } else {
        held
    };
    if !number.is_instance_of::<pyo3::types::PyInt>() {
        return Err(Problem::said(format!("a {} is no UUID", number.get_type().name()?)));
    }
    let mut little = Vec::with_capacity(16);
    put_big_int(Value::of(&number), 16, false, &mut little)?;
    Ok(little.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

fn uuid_of_text(text: &[u8]) -> Result<u128, Problem> {
    let mut number = 0_u128;
    for (count, byte) in text.iter().filter(|byte| **byte != b'-').enumerate() {
        let digit = (*byte as char).to_digit(16).filter(|_| count < 32);
        let digit = digit.ok_or_else(|| Problem::said("not the text of a UUID"))?;
        number = number << 4 | u128::from(digit);
    }
    Ok(number)
}

/// Writes an address object, its text or its number.
pub(super) fn put_ipv4<'py>(context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
    // Safety: the slice is read before any Python code runs.
    if let Some(text) = unsafe { value.utf8() } {
        let text = std::str::from_utf8(text).unwrap_or("");
        let address: Ipv4Addr = text.parse().map_err(|_| Problem::said("not the text of an IPv4 address"))?;
        out.extend_from_slice(&u32::from(address).to_le_bytes());
        return Ok(());
    }
    if let Some(number) = value.small_int() {
        return put_checked(number, 4, false, out);
    }
    let held = value.held();
    if !held.is_instance(context.names.ipv4.bind(context.py))? {
        return Err(Problem::said(format!("a {} is no IPv4 address", held.get_type().name()?)));
    }
    let number: u32 = held.call_method0(intern!(context.py, "__int__"))?.extract()?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

/// Writes an address in any form that `ipaddress.ip_address` takes. IPv4 addresses are mapped; None is the
/// address of zeros.
pub(super) fn put_ipv6<'py>(context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
    if value.is_none() {
        out.extend_from_slice(&[0; 16]);
        return Ok(());
    }
    // Safety: the slice is read before any Python code runs.
    if let Some(text) = unsafe { value.utf8() }.and_then(|text| std::str::from_utf8(text).ok()) {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            out.extend_from_slice(&address.octets());
            return Ok(());
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            out.extend_from_slice(&address.to_ipv6_mapped().octets());
            return Ok(());
        }
    }
    let address = context.names.ip_address.bind(context.py).call1((value.held(),))?;
    let packed: Vec<u8> = address.getattr(intern!(context.py, "packed"))?.extract()?;
    match <[u8; 4]>::try_from(packed.as_slice()) {
        Ok(v4) => out.extend_from_slice(&Ipv4Addr::from(v4).to_ipv6_mapped().octets()),
        Err(_) if packed.len() == 16 => out.extend_from_slice(&packed),
        Err(_) => return Err(Problem::said("an address has 4 or 16 bytes")),
    }
    Ok(())
}
