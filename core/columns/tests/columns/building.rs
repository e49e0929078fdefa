//! Columns that are handed over whole: those that fit make a block, others are refused.

use windrow_columns::{
    BlockBuilder, ColumnData, ColumnSpec, DataType, DefaultKind, NotParsedReason, ReadPlan, ReadSettings, StringData,
};

fn plan(columns: &[(&str, &str, DefaultKind)]) -> ReadPlan {
    let columns = columns.iter().map(|(name, data_type, default_kind)| ColumnSpec {
        name: (*name).to_owned(),
        data_type: DataType::parse(data_type).unwrap(),
        default_kind: *default_kind,
    });
    ReadPlan::new(columns.collect(), ReadSettings::default())
}

fn strings(values: &[&str]) -> ColumnData {
    let mut data = StringData::with_capacity(values.len(), 16);
    values.iter().for_each(|value| data.push(value.as_bytes()));
    assert_eq!(data.rows(), values.len());
    ColumnData::Strings(data)
}

#[test]
fn columns_of_several_batches_make_one_block() {
    let plan = plan(&[
        ("n", "Nullable(UInt16)", DefaultKind::None),
        ("m", "Map(LowCardinality(String), Array(UInt8))", DefaultKind::None),
        ("d", "String", DefaultKind::Default),
    ]);
    let mut builder = BlockBuilder::new(&plan, 0).unwrap();
    for _ in 0..2 {
        let inner = ColumnData::Fixed(vec![7, 0, 0, 0]);
        builder.put(0, ColumnData::Nullable { nulls: vec![0, 1], inner: Box::new(inner) }, 2).unwrap();
        let value = ColumnData::Array { offsets: vec![2], inner: Box::new(ColumnData::Fixed(vec![1, 2])) };
        let pairs = ColumnData::Tuple(vec![strings(&["k"]), value]);
        builder.put(1, ColumnData::Array { offsets: vec![0, 1], inner: Box::new(pairs) }, 2).unwrap();
        builder.end_rows(2).unwrap();
    }
    let parsed = builder.finish().unwrap();
    assert_eq!((parsed.block.rows(), parsed.block.columns()), (4, 2));
    assert!(!parsed.present.contains(2));
    let types: Vec<DataType> = plan.columns()[..2].iter().map(|column| column.data_type.clone()).collect();
    let native = parsed.block.encode_native(&["n", "m"], &types);
    let values = b"\0\x01\0\x01\x07\0\0\0\x07\0\0\0";
    assert!(native.windows(values.len()).any(|window| window == values), "{native:?}");
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let kinds = ["UInt32", "String", "Nullable(UInt8)", "Array(UInt8)", "Tuple(UInt8, String)"];
    let good = [
        ColumnData::Fixed(vec![0; 4]),
        strings(&["x"]),
        ColumnData::Nullable { nulls: vec![0], inner: Box::new(ColumnData::Fixed(vec![1])) },
        ColumnData::Array { offsets: vec![3], inner: Box::new(ColumnData::Fixed(vec![1, 2, 3])) },
        ColumnData::Tuple(vec![ColumnData::Fixed(vec![1]), strings(&["x"])]),
    ];
    for (right, kind) in kinds.iter().enumerate() {
        let plan = plan(&[("v", kind, DefaultKind::None)]);
        for (index, data) in good.iter().enumerate() {
            let put = BlockBuilder::new(&plan, 0).unwrap().put(0, data.clone(), 1);
            assert_eq!(put.is_ok(), index == right, "{kind}: {data:?}");
            assert!(BlockBuilder::new(&plan, 0).unwrap().put(0, data.clone(), 2).is_err(), "{kind}: too few rows");
        }
        let empty = ColumnData::empty(&plan.columns()[0].data_type);
        assert_eq!(std::mem::discriminant(&empty), std::mem::discriminant(&good[right]));
    }
    let bad = [
        ("Nullable(UInt8)", ColumnData::Nullable { nulls: vec![2], inner: Box::new(ColumnData::Fixed(vec![1])) }),
        ("Array(UInt8)", ColumnData::Array { offsets: vec![3], inner: Box::new(ColumnData::Fixed(vec![1, 2])) }),
        ("Array(UInt8)", ColumnData::Array { offsets: vec![u64::MAX], inner: Box::new(ColumnData::Fixed(vec![])) }),
    ];
    for (kind, data) in bad {
        let plan = plan(&[("v", kind, DefaultKind::None)]);
        assert!(BlockBuilder::new(&plan, 0).unwrap().put(0, data.clone(), 1).is_err(), "{kind}: {data:?}");
    }
}

#[test]
fn a_default_is_wanted_by_all_rows_or_by_none() {
    let plan = plan(&[("a", "UInt8", DefaultKind::None), ("d", "UInt8", DefaultKind::Default)]);
    let mut builder = BlockBuilder::new(&plan, 0).unwrap();
    builder.put(0, ColumnData::Fixed(vec![1]), 1).unwrap();
    builder.put_nulls(1, 1).unwrap();
    builder.end_rows(1).unwrap();
    builder.put(0, ColumnData::Fixed(vec![2]), 1).unwrap();
    assert_eq!(builder.put(1, ColumnData::Fixed(vec![2]), 1), Err(NotParsedReason::MixedDefaults));

    let without_default = self::plan(&[("a", "UInt8", DefaultKind::None), ("b", "UInt8", DefaultKind::None)]);
    let mut builder = BlockBuilder::new(&without_default, 0).unwrap();
    assert!(builder.put(0, ColumnData::Fixed(vec![1]), 1).is_ok());
    assert_eq!(builder.put(0, ColumnData::Fixed(vec![1]), 1), Err(NotParsedReason::DuplicateField));
    assert_eq!(builder.end_rows(usize::MAX), Err(NotParsedReason::Value));
}
