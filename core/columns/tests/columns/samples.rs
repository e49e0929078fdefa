//! Payloads that use every type and many forms, and random ones.

/// Every type, nested in each way.
pub const COLUMNS: &[&str] = &[
    "id UInt64",
    "i8 Int8",
    "u256 UInt256",
    "f Float64",
    "f32 Float32",
    "ok Bool",
    "s String",
    "fs FixedString(4)",
    "d Date",
    "d32 Date32",
    "dt DateTime('Europe/Berlin')",
    "dt64 DateTime64(3, 'UTC')",
    "dec Decimal(20, 3)",
    "u UUID",
    "v4 IPv4",
    "v6 IPv6",
    "e Enum8('x' = -1, 'y' = 2)",
    "n Nullable(Int16)",
    "lc LowCardinality(Nullable(String))",
    "arr Array(Array(Nullable(String)))",
    "m Map(String, Array(UInt8))",
    "t Tuple(a UInt8, b Tuple(UInt8, String))",
    "opt= UInt8",
];

pub const JSON: &str = r#"{"id":1,"i8":-8,"u256":12345678901234567890123,"f":1.5e-3,"f32":"0.1","ok":true,"s":"a\"\u00e9\ud83d\ude00b",
"fs":"ab","d":"2024-02-29","d32":"1900-01-01","dt":"2024-07-02 03:04:05","dt64":"2024-01-02T03:04:05.123Z","dec":-12.5,
"u":"61f0c404-5cb3-11e7-907b-a6006ad3dba0","v4":"1.2.3.4","v6":"2001:db8::1","e":"x","n":null,"lc":"low","arr":[["a",null],[]],
"m":{"k":[1,2],"l":[]},"t":{"b":[7,"seven"],"a":1},"unknown":[{"x":[true,null,1.5]}]} , {"id":2,"s":"second","arr":[[],["z"]],"n":5}
{"s":"","id":3,"m":{"":[0]}}"#;

pub const VALUES: &str = r"(1,-8,12345678901234567890123,1.5e-3,0.1,true,'it''s \'a\x41\n','ab','2024-02-29','1900-01-01',
 '2024-07-02 03:04:05','2024-01-02T03:04:05.123Z',-12.5,'61f0c404-5cb3-11e7-907b-a6006ad3dba0','1.2.3.4','2001:db8::1','x',
 NULL,'low',[['a',NULL],[]],{'k':[1,2],'l':[]},(1,(7,'seven')),DEFAULT) , (2,'5',0,0,0,0,'','','2000-01-01','2000-01-01',1,2,3,
 '61f0c404-5cb3-11e7-907b-a6006ad3dba0','0.0.0.0','::','y',5,NULL,[],{},(0,(0,'')),default);";

/// Returns a random object with some of the columns.
pub fn random_json_row(random: &mut fastrand::Rng) -> String {
    let text = |random: &mut fastrand::Rng| {
        let letters: String =
            (0..random.usize(..6)).map(|_| random.choice(["a", "é", "\\n", "\\\"", "z"]).unwrap()).collect();
        format!("\"{letters}\"")
    };
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let mut members = vec![format!("\"id\":{}", random.u64(..))];
    if random.bool() {
        members.push(format!("\"s\":{}", text(random)));
    }
    if random.bool() {
        members.push(format!("\"n\":{}", if random.bool() { "null".to_string() } else { random.i16(..).to_string() }));
    }
    if random.bool() {
        let inner = |random: &mut fastrand::Rng| list((0..random.usize(..3)).map(|_| text(random)).collect());
        members.push(format!("\"arr\":{}", list((0..random.usize(..4)).map(|_| inner(random)).collect())));
    }
    if random.bool() {
        let pair = |random: &mut fastrand::Rng| format!("{}:[{}]", text(random), random.u8(..));
        let pairs: Vec<String> = (0..random.usize(..4)).map(|_| pair(random)).collect();
        members.push(format!("\"m\":{{{}}}", pairs.join(",")));
    }
    if random.bool() {
        members.push(format!("\"t\":{{\"a\":{},\"b\":[1,{}]}}", random.u8(..), text(random)));
    }
    format!("{{{}}}", members.join(","))
}

/// Changes, removes, repeats or inserts a few bytes.
pub fn mutate(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut mutated = bytes.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=mutated.len());
        let interesting = b"{}[]()\",:;'\\ 0159.-+eEtfnuNDx\n\0\xff\x80\x01";
        match random.u8(..5) {
            0 if at < mutated.len() => mutated[at] = interesting[random.usize(..interesting.len())],
            1 if at < mutated.len() => mutated[at] = random.u8(..),
            2 => mutated.insert(at, interesting[random.usize(..interesting.len())]),
            3 => drop(mutated.drain(at..(at + random.usize(..9)).min(mutated.len()))),
            _ => {
                let end = (at + random.usize(..9)).min(mutated.len());
                let repeated = mutated[at..end].to_vec();
                mutated.splice(at..at, repeated);
            }
        }
    }
    mutated
}
