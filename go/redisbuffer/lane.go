package redisbuffer

import (
	"encoding/binary"
	"strconv"
	"time"

	windrow "windrow.dev/go"
)

// tombstoneLife is how long word of an emptied lane stays, for an owner that was thought dead and comes back.
const tombstoneLife = 24 * time.Hour

// noLimit is more bytes than any bucket has, exact in Lua's numbers.
const noLimit = "9007199254740992"

// bucket has the keys that all lanes of a bucket share. The braces keep it in one slot of a Redis Cluster.
type bucket struct {
	lanes      string
	bytes      string
	lanePrefix string
	maxBytes   string
	leaseMS    string
}

// lane is one writer's rows within a bucket, and whose they are now.
type lane struct {
	name      string
	owner     string
	lane      string
	rows      string
	batches   string
	tombstone string
}

func newBucket(address address) bucket {
	prefix := "{windrow:" + address.bucket + "}"
	return bucket{
		lanes: prefix + ":lanes", bytes: prefix + ":bytes", lanePrefix: prefix + ":lane:",
		maxBytes: strconv.FormatInt(address.maxBytes, 10), leaseMS: strconv.FormatInt(address.lease.Milliseconds(), 10),
	}
}

func (b bucket) lane(name, owner string) lane {
	key := b.lanePrefix + name
	return lane{name, owner, key, key + ":rows", key + ":batches", key + ":gone"}
}

// pipeline is commands of one bucket.
type pipeline struct {
	link   *link
	bucket bucket
	out    []byte
	count  int
}

func (p *pipeline) command(parts ...string) {
	p.out = appendCommand(p.out, parts...)
	p.count++
}

func (p *pipeline) call(script script, keys []string, arguments ...string) {
	p.begin(script, keys, len(arguments))
	for _, argument := range arguments {
		p.out = appendPart(p.out, argument)
	}
}

func (p *pipeline) begin(script script, keys []string, arguments int) {
	p.out = appendHead(p.out, 3+len(keys)+arguments)
	p.out = appendPart(p.out, "EVALSHA")
	p.out = appendPart(p.out, p.link.digests[script])
	p.out = appendPart(p.out, strconv.Itoa(len(keys)))
	for _, key := range keys {
		p.out = appendPart(p.out, key)
	}
	p.count++
}

func decimal(number uint64) string { return strconv.FormatUint(number, 10) }

func (p *pipeline) register(lane lane, process string, destination []byte) {
	p.call(scriptRegister, []string{p.bucket.lanes, lane.lane},
		lane.name, lane.owner, process, string(destination), p.bucket.leaseMS)
}

func (p *pipeline) append(lane lane, added piece) { p.entry(lane, p.bucket.maxBytes, added) }

// appendAgain: the bucket had room for these rows before Redis forgot them.
func (p *pipeline) appendAgain(lane lane, again *againOp) {
	if again.isBatch {
		p.entry(lane, noLimit, again.piece, again.batch.String(), recorded{rows: again.positions()}.String())
		return
	}
	p.entry(lane, noLimit, again.piece)
}

func (p *pipeline) entry(lane lane, limit string, added piece, batch ...string) {
	p.begin(scriptAppend, []string{lane.lane, lane.rows, p.bucket.bytes, lane.batches}, 5+len(batch))
	for _, argument := range []string{lane.owner, limit, decimal(added.first), strconv.Itoa(added.rows.Count())} {
		p.out = appendPart(p.out, argument)
	}
	p.out = appendNumber(p.out, '$', entryBytes(added.rows))
	p.out = append(appendEntry(p.out, added.rows), "\r\n"...)
	for _, argument := range batch {
		p.out = appendPart(p.out, argument)
	}
}

func (p *pipeline) withdraw(lane lane, rows windrow.Positions) {
	p.call(scriptWithdraw, []string{lane.lane, lane.rows, p.bucket.bytes}, lane.owner, decimal(rows.From), decimal(rows.Count()))
}

func (p *pipeline) record(lane lane, serial uint64, change change) {
	arguments := []string{lane.owner, decimal(serial), strconv.Itoa(len(change.writes))}
	for _, write := range change.writes {
		arguments = append(arguments, write.id.String(), write.recorded.String())
	}
	arguments = append(arguments, strconv.Itoa(len(change.forgets)))
	for _, id := range change.forgets {
		arguments = append(arguments, id.String())
	}
	for _, entry := range change.releases {
		arguments = append(arguments, fieldOf(entry))
	}
	p.call(scriptRecord, []string{lane.lane, lane.rows, lane.batches, p.bucket.bytes}, arguments...)
}

func (p *pipeline) renew(lane lane) {
	p.call(scriptRenew, []string{p.bucket.lanes, lane.lane}, lane.name, lane.owner, p.bucket.leaseMS)
}

func (p *pipeline) survey() { p.call(scriptSurvey, []string{p.bucket.lanes}, p.bucket.lanePrefix) }

func (p *pipeline) adopt(lane lane, formerOwner, process string, isDead bool) {
	p.call(scriptAdopt, []string{p.bucket.lanes, lane.lane},
		lane.name, formerOwner, lane.owner, process, p.bucket.leaseMS, flag(isDead))
}

// leave: a lane that is void goes with what is in it.
func (p *pipeline) leave(lane lane, isVoid bool) {
	p.call(scriptLeave, []string{p.bucket.lanes, lane.lane, lane.rows, lane.batches, lane.tombstone, p.bucket.bytes},
		lane.name, lane.owner, strconv.FormatInt(tombstoneLife.Milliseconds(), 10), flag(isVoid))
}

func flag(isSet bool) string {
	if isSet {
		return "1"
	}
	return "0"
}

// An entry is rows as they lie in Redis: version, number of rows, the length of each, their bytes. Numbers
// are little-endian.

const (
	entryVersion   = 1
	entryHeadBytes = 5
)

func entryBytes(rows windrow.Rows) int { return entryHeadBytes + 4*rows.Count() + len(rows.Bytes) }

func appendEntry(out []byte, rows windrow.Rows) []byte {
	out = binary.LittleEndian.AppendUint32(append(out, entryVersion), uint32(rows.Count()))
	for _, length := range rows.Lengths {
		out = binary.LittleEndian.AppendUint32(out, length)
	}
	return append(out, rows.Bytes...)
}

// decodeEntry gives false for what appendEntry does not write.
func decodeEntry(entry []byte) (windrow.Rows, bool) {
	if len(entry) < entryHeadBytes || entry[0] != entryVersion {
		return windrow.Rows{}, false
	}
	count := uint64(binary.LittleEndian.Uint32(entry[1:]))
	entry = entry[entryHeadBytes:]
	if 4*count > uint64(len(entry)) {
		return windrow.Rows{}, false
	}
	rows := windrow.Rows{Bytes: entry[4*count:], Lengths: make([]uint32, count)}
	for index := range rows.Lengths {
		rows.Lengths[index] = binary.LittleEndian.Uint32(entry[4*index:])
	}
	return rows, rows.AreSound()
}
