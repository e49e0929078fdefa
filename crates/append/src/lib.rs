//! Ordered appends: numbered batches that come in any order over many connections and land in order, all or nothing.
