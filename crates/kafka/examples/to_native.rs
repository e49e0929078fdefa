//! Turns messages into Native blocks, for comparing what is made of them with a real ClickHouse.
//!
//! `to_native FORMAT [--schema FILE MESSAGE] [--map COLUMN FIELD] [--setting NAME VALUE] COLUMN...`, where a column is
//! `--column NAME TYPE`. Messages are read from stdin, each behind its length (32 bits, little-endian). Each is
//! answered by a byte (0: Native, 1: ClickHouse would surely refuse it, 2: it may read it), a length and that many
//! bytes: the block, or the reason.

use std::io::{Read, Write};

use windrow_columns::{ColumnSpec, DataType, DefaultKind, ReadSettings};
use windrow_kafka::messages::{
    Headers, Mapping, Message, MessageFormat, MessagePlan, MessageReader, SchemaSource, Unread,
};

fn main() {
    if let Err(message) = run() {
        eprintln!("{message}");
        std::process::exit(2);
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let name = next("FORMAT")?;
    let (mut schema, mut message_name) = (None, None);
    let (mut columns, mut mapping, mut settings) = (Vec::new(), Mapping::default(), ReadSettings::default());
    settings.set_server_timezone("UTC");
    while let Ok(option) = next("option") {
        match option.as_str() {
            "--schema" => {
                schema = Some(std::fs::read_to_string(next("FILE")?).map_err(|error| error.to_string())?);
                message_name = Some(next("MESSAGE")?);
            }
            "--map" => mapping.columns.push((next("COLUMN")?, next("FIELD")?)),
            "--setting" => drop(settings.set(&next("NAME")?, &next("VALUE")?)),
            "--column" => columns.push(ColumnSpec {
                name: next("NAME")?,
                data_type: DataType::parse(&next("TYPE")?).map_err(|error| error.to_string())?,
                default_kind: DefaultKind::None,
            }),
            other => return Err(format!("there is no option {other}")),
        }
    }
    let source = SchemaSource { text: schema.as_deref(), message: message_name.as_deref() };
    let format = MessageFormat::new(&name, source).map_err(|error| error.to_string())?;
    let plan = MessagePlan::new(format, columns, &mapping, settings).map_err(|error| error.to_string())?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    while let Some(value) = frame(&mut input) {
        let (status, answer) = answer(&plan, &value);
        let length = u32::try_from(answer.len()).map_err(|_| "the answer is too long")?;
        let sent = output.write_all(&[&[status][..], &length.to_le_bytes(), &answer].concat());
        sent.and_then(|()| output.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn frame(input: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length).ok()?;
    let mut value = vec![0; u32::from_le_bytes(length) as usize];
    input.read_exact(&mut value).ok()?;
    Some(value)
}

fn answer(plan: &MessagePlan, value: &[u8]) -> (u8, Vec<u8>) {
    let mut reader = MessageReader::new(plan, "topic", 0);
    let message = Message { offset: 0, timestamp_ms: 0, key: None, value: Some(value), headers: Headers::default() };
    match reader.read(&message) {
        Ok(_) => {
            let Some(run) = reader.finish().pop() else { return (0, Vec::new()) };
            let written = || run.present.iter().map(|index| &plan.written()[index]);
            let names: Vec<&str> = written().map(|column| column.name.as_str()).collect();
            let types: Vec<DataType> = written().map(|column| column.data_type.clone()).collect();
            (0, run.block.encode_native(&names, &types))
        }
        Err(Unread::Refused(error)) => (if error.certain { 1 } else { 2 }, error.text.into_bytes()),
        Err(missing) => (2, missing.to_string().into_bytes()),
    }
}
