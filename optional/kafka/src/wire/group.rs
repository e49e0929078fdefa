//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup: membership of a consumer group.
//!
//! The contents of protocols and assignments are for the members alone. The broker passes them on as bytes.

use crate::error_code::KafkaErrorCode;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

/// A request to join, answered when all members have joined or the rebalance time is over.
#[derive(Debug, Clone)]
pub struct JoinGroupRequest {
    pub group: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// Id that the broker has given, or empty the first time.
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: String,
    /// Protocols in order of preference.
    pub protocols: Vec<SupportedProtocol>,
}

#[derive(Debug, Clone)]
pub struct SupportedProtocol {
    pub name: String,
    pub metadata: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct JoinGroupResponse {
    pub error: KafkaErrorCode,
    pub generation_id: i32,
    /// Name of the protocol that all members know, or empty with an error.
    pub protocol_name: String,
    pub leader: String,
    pub member_id: String,
    /// All members, sent to the leader only.
    pub members: Vec<GroupMember>,
}

#[derive(Debug, Clone)]
pub struct GroupMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub metadata: Vec<u8>,
}

impl Request for JoinGroupRequest {
    const API: Api = Api { name: "JoinGroup", key: 11, versions: (6, 7), flexible_from: 6 };
    type Response = JoinGroupResponse;

    fn wait_ms(&self) -> u64 {
        u64::try_from(self.rebalance_timeout_ms).unwrap_or_default()
    }

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(&self.group);
        writer.i32(self.session_timeout_ms);
        writer.i32(self.rebalance_timeout_ms);
        writer.string(&self.member_id);
        writer.nullable_string(self.group_instance_id.as_deref());
        writer.string(&self.protocol_type);
        writer.array(&self.protocols, |writer, protocol| {
            writer.string(&protocol.name);
            writer.bytes(&protocol.metadata);
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for JoinGroupResponse {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Read<Self> {
        let error = KafkaErrorCode(reader.i16()?);
        let generation_id = reader.i32()?;
        if version >= 7 {
            let _protocol_type = reader.nullable_string()?;
        }
        let protocol_name = reader.nullable_string()?.unwrap_or_default();
        let leader = reader.string()?;
        let member_id = reader.string()?;
        let members = reader.array(|reader| {
            let member = GroupMember {
                member_id: reader.string()?,
                group_instance_id: reader.nullable_string()?,
                metadata: reader.owned_bytes()?,
            };
            reader.end_structure()?;
            Ok(member)
        })?;
        reader.end_structure()?;
        Ok(Self { error, generation_id, protocol_name, leader, member_id, members })
    }
}

/// A request for an assignment, answered when the leader has sent its assignments.
#[derive(Debug, Clone)]
pub struct SyncGroupRequest {
    pub group: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: String,
    pub protocol_name: String,
    /// Assignments of all members, sent by the leader only.
    pub assignments: Vec<MemberAssignment>,
}

#[derive(Debug, Clone)]
pub struct MemberAssignment {
    pub member_id: String,
    pub assignment: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct SyncGroupResponse {
    pub error: KafkaErrorCode,
    pub assignment: Vec<u8>,
}

impl Request for SyncGroupRequest {
    const API: Api = Api { name: "SyncGroup", key: 14, versions: (4, 5), flexible_from: 4 };
    type Response = SyncGroupResponse;

    fn encode(&self, writer: &mut Writer, version: i16) {
        writer.string(&self.group);
        writer.i32(self.generation_id);
        writer.string(&self.member_id);
        writer.nullable_string(self.group_instance_id.as_deref());
        if version >= 5 {
            writer.string(&self.protocol_type);
            writer.string(&self.protocol_name);
        }
        writer.array(&self.assignments, |writer, each| {
            writer.string(&each.member_id);
            writer.bytes(&each.assignment);
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for SyncGroupResponse {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Read<Self> {
        let error = KafkaErrorCode(reader.i16()?);
        if version >= 5 {
            let _protocol_type = reader.nullable_string()?;
            let _protocol_name = reader.nullable_string()?;
        }
        let assignment = reader.owned_bytes()?;
        reader.end_structure()?;
        Ok(Self { error, assignment })
    }
}

#[derive(Debug, Clone)]
pub struct HeartbeatRequest {
    pub group: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

#[derive(Debug, Clone)]
pub struct HeartbeatResponse {
    pub error: KafkaErrorCode,
}

impl Request for HeartbeatRequest {
    const API: Api = Api { name: "Heartbeat", key: 12, versions: (4, 4), flexible_from: 4 };
    type Response = HeartbeatResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(&self.group);
        writer.i32(self.generation_id);
        writer.string(&self.member_id);
        writer.nullable_string(self.group_instance_id.as_deref());
        writer.end_structure();
    }
}

impl Decode for HeartbeatResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let response = Self { error: KafkaErrorCode(reader.i16()?) };
        reader.end_structure()?;
        Ok(response)
    }
}

#[derive(Debug, Clone)]
pub struct LeaveGroupRequest {
    pub group: String,
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

#[derive(Debug, Clone)]
pub struct LeaveGroupResponse {
    pub error: KafkaErrorCode,
}

impl Request for LeaveGroupRequest {
    const API: Api = Api { name: "LeaveGroup", key: 13, versions: (4, 4), flexible_from: 4 };
    type Response = LeaveGroupResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(&self.group);
        writer.array(&[self], |writer, leaving| {
            writer.string(&leaving.member_id);
            writer.nullable_string(leaving.group_instance_id.as_deref());
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for LeaveGroupResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let group_error = KafkaErrorCode(reader.i16()?);
        let member_errors = reader.array(|reader| {
            let _member_id = reader.string()?;
            let _group_instance_id = reader.nullable_string()?;
            let error = KafkaErrorCode(reader.i16()?);
            reader.end_structure()?;
            Ok(error)
        })?;
        reader.end_structure()?;
        // One member leaves in a request, so there is at most one error of each kind.
        let error = [group_error]
            .into_iter()
            .chain(member_errors)
            .find(KafkaErrorCode::is_error)
            .unwrap_or(KafkaErrorCode::NONE);
        Ok(Self { error })
    }
}
