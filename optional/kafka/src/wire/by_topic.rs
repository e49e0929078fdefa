//! Partitions under the name of their topic, as most requests and answers list them.

use std::sync::Arc;

use crate::wire::reader::{Read, Reader};
use crate::wire::writer::Writer;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByTopic<P, T = Arc<str>> {
    pub topic: T,
    pub partitions: Vec<P>,
}

impl<P, T: PartialEq> ByTopic<P, T> {
    /// Groups partitions by topic. Topics are in the order of their first partition.
    pub fn collect(partitions: impl IntoIterator<Item = (T, P)>) -> Vec<ByTopic<P, T>> {
        let mut topics: Vec<ByTopic<P, T>> = Vec::new();
        for (topic, partition) in partitions {
            // What comes in is nearly always in order of topics, so the last one is looked at first.
            match topics.iter_mut().rev().find(|known| known.topic == topic) {
                Some(known) => known.partitions.push(partition),
                None => topics.push(ByTopic { topic, partitions: vec![partition] }),
            }
        }
        topics
    }
}

impl<P> ByTopic<P> {
    pub(crate) fn decode_all(
        reader: &mut Reader<'_>,
        partition: impl FnMut(&mut Reader<'_>) -> Read<P>,
    ) -> Read<Vec<ByTopic<P>>> {
        ByTopic::decode_named(reader, |reader| Ok(reader.string()?.into()), partition)
    }

    pub(crate) fn encode_all(topics: &[ByTopic<P>], writer: &mut Writer, partition: impl FnMut(&mut Writer, &P)) {
        ByTopic::encode_named(topics, writer, |writer, topic| writer.string(topic), partition);
    }
}

impl<P, T> ByTopic<P, T> {
    pub(crate) fn decode_named(
        reader: &mut Reader<'_>,
        mut topic: impl FnMut(&mut Reader<'_>) -> Read<T>,
        mut partition: impl FnMut(&mut Reader<'_>) -> Read<P>,
    ) -> Read<Vec<ByTopic<P, T>>> {
        reader.array(|reader| {
            let topic = topic(reader)?;
            let partitions = reader.array(&mut partition)?;
            reader.end_structure()?;
            Ok(ByTopic { topic, partitions })
        })
    }

    pub(crate) fn encode_named(
        topics: &[ByTopic<P, T>],
        writer: &mut Writer,
        mut topic: impl FnMut(&mut Writer, &T),
        mut partition: impl FnMut(&mut Writer, &P),
    ) {
        writer.array(topics, |writer, each| {
            topic(writer, &each.topic);
            writer.array(&each.partitions, &mut partition);
            writer.end_structure();
        });
    }
}
