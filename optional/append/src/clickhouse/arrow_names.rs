//! The names of the columns of an Arrow IPC stream: for texts of errors only.

use arrow_ipc::root_as_message;

const CONTINUATION: [u8; 4] = [0xFF; 4];

pub(super) fn of_stream(stream: &[u8]) -> Option<Vec<String>> {
    let rest = stream.strip_prefix(&CONTINUATION)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let message = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let schema = root_as_message(message).ok()?.header_as_schema()?;
    Some(schema.fields()?.iter().filter_map(|field| field.name().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use arrow_ipc::writer::StreamWriter;

    #[test]
    fn names_are_found_and_damage_is_no_panic() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("a", values.clone()), ("b c", values)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let stream = writer.into_inner().unwrap();
        assert_eq!(of_stream(&stream), Some(vec!["a".to_owned(), "b c".to_owned()]));
        for end in 0..stream.len() {
            of_stream(&stream[..end]);
        }
        for at in 0..stream.len().min(400) {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = stream.clone();
                damaged[at] ^= flip;
                of_stream(&damaged);
            }
        }
    }
}
