//! Writes the rows of a request as a Native block, for a test that compares them with the rows of the
//! collector's exporter: `otlp_block KIND ENCODING`. Standard input has a line for each column (its name, a
//! tab, its type), an empty line and the request. The first line on standard output has the names of the
//! block's columns, in SQL.

use std::io::{Read, Write};

use bytes::Bytes;
use windrow_otlp::{decode, Encoding, Kind, Layout, Limits};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, encoding] = &arguments[..] else { panic!("otlp_block KIND ENCODING") };
    let kind = Kind::ALL.into_iter().find(|known| known.as_str() == kind).expect("a kind");
    let encoding = match encoding.as_str() {
        "protobuf" => Encoding::Protobuf,
        "json" => Encoding::Json,
        other => panic!("{other} is no encoding"),
    };
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).expect("columns and a request");
    let end = input.windows(2).position(|pair| pair == b"\n\n").expect("an empty line");
    let columns = String::from_utf8(input[..end].to_vec()).expect("columns are UTF-8");
    let column = |line: &str| line.split_once('\t').map(|(name, of)| (name.to_owned(), of.to_owned())).expect("a type");
    let columns: Vec<(String, String)> = columns.lines().map(column).collect();
    let layout = Layout::new(kind, &columns).unwrap_or_else(|error| panic!("{error}"));
    let payload = Bytes::from(input).slice(end + 2..);
    let request =
        decode(kind.signal(), encoding, &payload, &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let block = request.block(&layout);
    let names: Vec<String> = layout.columns().map(|name| format!("`{name}`")).collect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", names.join(", ")).expect("somebody reads");
    if block.rows() > 0 {
        out.write_all(&block.native()).expect("somebody reads");
    }
    if let Some(because) = block.rejected_because {
        eprintln!("{} rejected: {because}", block.rejected);
    }
}
