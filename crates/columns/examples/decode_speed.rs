//! How fast a result is decoded: `decode_speed FILE [PUSH_BYTES]`, with a file that holds the answer to a query in
//! Native.

use std::time::Instant;

use windrow_columns::results::BlockDecoder;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file with a result in Native");
    let push_bytes = arguments.next().map_or(256 << 10, |bytes| bytes.parse().expect("a number of bytes"));
    let result = std::fs::read(path).expect("a readable file");
    for _ in 0..5 {
        let (mut rows, mut blocks, start) = (0, 0, Instant::now());
        let mut decoder = BlockDecoder::new();
        for piece in result.chunks(push_bytes) {
            decoder.push(piece);
            while let Some(block) = decoder.next().expect("a sound result") {
                rows += block.rows;
                blocks += 1;
            }
        }
        decoder.finish().expect("a whole result");
        let seconds = start.elapsed().as_secs_f64();
        println!("{rows} rows in {blocks} blocks, {:.3} s, {:.2} GB/s", seconds, result.len() as f64 / seconds / 1e9);
    }
}
