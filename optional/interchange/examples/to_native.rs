//! Turns payloads of any format that is parsed here into Native blocks, to compare Windrow's readers with a
//! real ClickHouse.
//!
//! `to_native FORMAT [--setting NAME VALUE] [--timezone NAME] [--version MAJOR MINOR] [--frames] COLUMN...`
//! FORMAT is one that windrow-columns or windrow-interchange reads; a column is `--column NAME TYPE` or `--default-column NAME TYPE`.
//!
//! One payload is read from stdin and written to stdout as Native. A payload that the reader leaves to
//! ClickHouse ends with exit code 3 and the reason on stderr. With `--frames`, stdin is many payloads, each
//! after its length (32 bits, little-endian), and each is answered by a status byte (0: Native, 3: reason), a
//! length and that many bytes.

use std::io::{Read, Write};
use std::process::ExitCode;

use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings, SettingEffect};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let name = next("FORMAT")?;
    let format = Format::named(&name)
        .or_else(|| windrow_interchange::format(&name))
        .ok_or_else(|| format!("format {name} is not read here"))?;
    let (mut columns, mut settings, mut frames) = (Vec::new(), ReadSettings::of(format), false);
    while let Ok(argument) = next("") {
        match argument.as_str() {
            "--column" => columns.push(column(next("NAME")?, next("TYPE")?, DefaultKind::None)?),
            "--default-column" => columns.push(column(next("NAME")?, next("TYPE")?, DefaultKind::Default)?),
            "--timezone" => settings.set_server_timezone(&next("NAME")?),
            "--version" => settings.set_server_version(number(next("MAJOR")?)?, number(next("MINOR")?)?),
            "--frames" => frames = true,
            "--setting" => {
                let (name, value) = (next("NAME")?, next("VALUE")?);
                if settings.set(&name, &value) == SettingEffect::NotParsed {
                    eprintln!("setting");
                    return Ok(ExitCode::from(3));
                }
            }
            other => return Err(format!("{other} is no option")),
        }
    }
    let plan = ReadPlan::new(columns, settings);
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).map_err(|error| format!("stdin: {error}"))?;
    if frames {
        return answer_frames(&input, &plan, format);
    }
    match convert(&input, &plan, format) {
        Ok(native) => write(&native).map(|()| ExitCode::SUCCESS),
        Err(reason) => {
            eprintln!("{reason}");
            Ok(ExitCode::from(3))
        }
    }
}

fn answer_frames(mut input: &[u8], plan: &ReadPlan, format: &Format) -> Result<ExitCode, String> {
    let mut output = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let payload = rest.get(..length).ok_or("the last frame is cut off")?;
        let (status, answer) = match convert(payload, plan, format) {
            Ok(native) => (0, native),
            Err(reason) => (3, reason.into_bytes()),
        };
        output.push(status);
        output.extend_from_slice(&(answer.len() as u32).to_le_bytes());
        output.extend_from_slice(&answer);
        input = &rest[length..];
    }
    write(&output).map(|()| ExitCode::SUCCESS)
}

fn convert(payload: &[u8], plan: &ReadPlan, format: &Format) -> Result<Vec<u8>, String> {
    let parsed = (format.read)(payload, plan).map_err(|not_parsed| not_parsed.to_string())?;
    let columns: Vec<&ColumnSpec> = parsed.present.iter().map(|index| &plan.columns()[index]).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
    Ok(parsed.block.encode_native(&names, &types))
}

fn column(name: String, type_text: String, default_kind: DefaultKind) -> Result<ColumnSpec, String> {
    let data_type = DataType::parse(&type_text).map_err(|error| error.to_string())?;
    Ok(ColumnSpec { name, data_type, default_kind })
}

fn number(text: String) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn write(bytes: &[u8]) -> Result<(), String> {
    std::io::stdout().write_all(bytes).map_err(|error| format!("stdout: {error}"))
}
