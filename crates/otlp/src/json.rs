pub(crate) fn to_protobuf(_: crate::kind::Signal, _: &[u8]) -> Result<Vec<u8>, String> {
    Err(String::new())
}
