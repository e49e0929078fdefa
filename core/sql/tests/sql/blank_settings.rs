//! Settings that the backend does not know, taken out of a statement without moving anything else.

use windrow_sql::{blank_settings, classify, Statement};

fn blanked(text: &str) -> Option<String> {
    let bytes = blank_settings(text.as_bytes(), |name| name.starts_with("own_"))?;
    Some(String::from_utf8(bytes).expect("it was text before"))
}

fn squeezed(text: &str) -> Option<String> {
    blanked(text).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn what_is_unwanted_goes_with_its_comma() {
    let cases = [
        ("SETTINGS own_a='x'", ""),
        ("SETTINGS own_a='x', b=1", "SETTINGS b=1"),
        ("SETTINGS b=1, own_a='x'", "SETTINGS b=1"),
        ("SETTINGS b=1, own_a='x', c=2", "SETTINGS b=1 , c=2"),
        ("SETTINGS own_a=1, own_b=2, c=2", "SETTINGS c=2"),
        ("SETTINGS c=2 , own_a=1, own_b=2", "SETTINGS c=2"),
        ("SETTINGS own_a=1,own_b=2", ""),
        ("SETTINGS own_a=1,b=2,own_c=3,d=4,own_e=5", "SETTINGS b=2 ,d=4"),
        ("settings /* why */ own_a = 'it''s, so' -- because\n, b = 1", "settings /* why */ b = 1"),
    ];
    for (clause, expected) in cases {
        for (head, tail) in
            [("INSERT INTO t", "FORMAT CSV\n1,2"), ("insert into table d.t (a, b)", "VALUES (1, 'own_a=1')")]
        {
            let text = format!("{head} {clause} {tail}");
            let result = blanked(&text).expect("there is one");
            assert_eq!(result.len(), text.len(), "{text}: nothing moves");
            let expected: Vec<&str> = [head, expected, tail].into_iter().flat_map(str::split_whitespace).collect();
            assert_eq!(squeezed(&text), Some(expected.join(" ")), "{text}");
            let (Statement::Insert(before), Statement::Insert(after)) =
                (classify(text.as_bytes()), classify(result.as_bytes()))
            else {
                panic!("{text} is no INSERT any more")
            };
            assert_eq!(before.data_start, after.data_start, "{text}");
            assert!(after.settings.iter().all(|(name, _)| !name.starts_with("own_")), "{text}");
        }
    }
}

#[test]
fn statements_without_such_a_setting_stay_as_they_are() {
    for text in [
        "INSERT INTO t SETTINGS b=1 FORMAT CSV\n",
        "INSERT INTO t FORMAT CSV\nSETTINGS own_a=1",
        "INSERT INTO t VALUES ('SETTINGS own_a=1')",
        "SELECT 1 SETTINGS own_a=1",
        "INSERT INTO t SETTINGS own_a=",
        "",
    ] {
        assert_eq!(blanked(text), None, "{text}");
    }
}

#[test]
fn a_statement_cut_anywhere_is_harmless() {
    let text = "INSERT INTO d.t (a, `b`) SETTINGS own_a='x', b=1, own_c=2 FORMAT CSV\n1";
    for end in 0..text.len() {
        let result = blanked(&text[..end]);
        assert!(result.is_none_or(|result| result.len() == end), "cut at {end}");
    }
}
