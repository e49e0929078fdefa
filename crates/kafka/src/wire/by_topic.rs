//! Partitions under the name of their topic, as most requests and answers list them.

use std::sync::Arc;

use crate::wire::reader::{Read, Reader};
use crate::wire::writer::Writer;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByTopic<P> {
    pub topic: Arc<str>,
    pub partitions: Vec<P>,
}

impl<P> ByTopic<P> {
    /// What belongs to one topic is put together; topics are in the order of their first partition.
    pub fn collect(partitions: impl IntoIterator<Item = (Arc<str>, P)>) -> Vec<ByTopic<P>> {
        let mut topics: Vec<ByTopic<P>> = Vec::new();
        for (topic, partition) in partitions {
            // What comes in is nearly always in order of topics, so the last one is looked at first.
            match topics.iter_mut().rev().find(|known| known.topic == topic) {
                Some(known) => known.partitions.push(partition),
                None => topics.push(ByTopic { topic, partitions: vec![partition] }),
            }
        }
        topics
    }

    pub(crate) fn decode_all(
        reader: &mut Reader<'_>,
        mut partition: impl FnMut(&mut Reader<'_>) -> Read<P>,
    ) -> Read<Vec<ByTopic<P>>> {
        reader.array(|reader| {
            let topic = reader.string()?.into();
            let partitions = reader.array(&mut partition)?;
            reader.end_structure()?;
            Ok(ByTopic { topic, partitions })
        })
    }

    pub(crate) fn encode_all(topics: &[ByTopic<P>], writer: &mut Writer, mut partition: impl FnMut(&mut Writer, &P)) {
        writer.array(topics, |writer, each| {
            writer.string(&each.topic);
            writer.array(&each.partitions, &mut partition);
            writer.end_structure();
        });
    }
}
