package redisbuffer

import (
	"bufio"
	"embed"
	"fmt"
	"net"
	"strconv"
	"time"

	windrow "windrow.dev/go"
)

// script is one that runs inside of Redis. It is called by the digest that Redis gives it when a connection
// begins.
type script int

const (
	scriptRegister script = iota
	scriptAppend
	scriptWithdraw
	scriptRecord
	scriptRenew
	scriptSurvey
	scriptAdopt
	scriptLeave
)

var scriptNames = []string{"register", "append", "withdraw", "record", "renew", "survey", "adopt", "leave"}

// scripts are those of the Rust writer: writers in all languages change the same keys by them.
//
//go:embed scripts
var scripts embed.FS

// link is a connection with the scripts loaded.
type link struct {
	connection  net.Conn
	reader      *bufio.Reader
	answerLimit time.Duration
	digests     []string
	// out is used again for each pipeline.
	out []byte
}

func openLink(address address) (*link, error) {
	connection, err := net.DialTimeout("tcp", address.place, address.answerLimit)
	if err != nil {
		return nil, err
	}
	opened := &link{connection: connection, answerLimit: address.answerLimit}
	opened.reader = bufio.NewReaderSize(opened, 64<<10)
	if err = opened.logIn(address); err == nil {
		err = opened.loadScripts()
	}
	if err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

// Read bounds the silence: a large answer may take its time.
func (l *link) Read(into []byte) (int, error) {
	if err := l.connection.SetReadDeadline(time.Now().Add(l.answerLimit)); err != nil {
		return 0, err
	}
	return l.connection.Read(into)
}

func (l *link) close() {
	if l != nil {
		_ = l.connection.Close()
	}
}

func (l *link) logIn(address address) error {
	var out []byte
	count := 1
	if address.password != "" {
		count = 2
		if address.user != "" {
			out = appendCommand(out, "AUTH", address.user, address.password)
		} else {
			out = appendCommand(out, "AUTH", address.password)
		}
	}
	out = appendCommand(out, "SELECT", strconv.Itoa(address.database))
	_, err := l.exchangeSound(out, count)
	return err
}

func (l *link) loadScripts() error {
	var out []byte
	for _, name := range scriptNames {
		source, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			return err
		}
		out = appendCommand(out, "SCRIPT", "LOAD", string(source))
	}
	replies, err := l.exchangeSound(out, len(scriptNames))
	for _, reply := range replies {
		l.digests = append(l.digests, textOf(reply))
	}
	return err
}

// exchangeSound takes none of Redis's errors.
func (l *link) exchangeSound(out []byte, count int) ([]any, error) {
	replies, err := l.exchange(out, count)
	for _, reply := range replies {
		if refused, isRefusal := reply.(refusal); isRefusal {
			return nil, refused
		}
	}
	return replies, err
}

// exchange sends a pipeline and reads its replies.
func (l *link) exchange(out []byte, count int) ([]any, error) {
	if err := l.connection.SetWriteDeadline(time.Now().Add(l.answerLimit)); err != nil {
		return nil, err
	}
	if _, err := l.connection.Write(out); err != nil {
		return nil, err
	}
	replies := make([]any, 0, count)
	for range count {
		reply, err := readReply(l.reader, 0)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// talk sends what write puts into a pipeline.
func (l *link) talk(bucket bucket, write func(*pipeline)) ([]any, error) {
	p := &pipeline{link: l, bucket: bucket, out: l.out[:0]}
	write(p)
	if cap(p.out) <= 2*flightBytes {
		l.out = p.out
	}
	return l.exchange(p.out, p.count)
}

// verdict is what a script says.
type verdict struct {
	kind verdictKind
	// owner has the lane now; if it is empty, the lane is not there.
	owner string
	// nextRow says how far the lane went, if hasNext.
	nextRow uint64
	hasNext bool
}

type verdictKind int

const (
	isDone verdictKind = iota
	// isFull: the bucket has no room.
	isFull
	// isGap: something in front of it was not taken.
	isGap
	// isLost: somebody else has the lane, or it is not there.
	isLost
)

// judge is for scripts that answer a verdict.
func (l *link) judge(bucket bucket, write func(*pipeline)) ([]verdict, error) {
	replies, err := l.talk(bucket, write)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(replies))
	for index, reply := range replies {
		if verdicts[index], err = verdictOf(reply); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

func verdictOf(reply any) (verdict, error) {
	items, err := listOf(reply)
	if err != nil || len(items) == 0 {
		return verdict{}, fmt.Errorf("redis answers a script with something else than a list: %w", err)
	}
	switch textOf(items[0]) {
	case "OK":
		return verdict{kind: isDone}, nil
	case "FULL":
		return verdict{kind: isFull}, nil
	case "GAP":
		return verdict{kind: isGap}, nil
	case "LOST":
		lost := verdict{kind: isLost}
		if len(items) > 2 {
			lost.owner = textOf(items[1])
			next, err := strconv.ParseUint(textOf(items[2]), 10, 64)
			lost.nextRow, lost.hasNext = next, err == nil
		}
		return lost, nil
	}
	return verdict{}, errGarbled
}

func listOf(reply any) ([]any, error) {
	switch reply := reply.(type) {
	case []any:
		return reply, nil
	case refusal:
		return nil, reply
	}
	return nil, errGarbled
}

// surveyed is a lane as the survey describes it.
type surveyed struct {
	name        string
	leaseLeftMS int64
	owner       string
	process     string
	destination windrow.Destination
}

// survey gives the lanes whose destination can be read.
func (l *link) survey(bucket bucket) ([]surveyed, error) {
	replies, err := l.talk(bucket, func(p *pipeline) { p.survey() })
	if err != nil {
		return nil, err
	}
	items, err := listOf(replies[0])
	var lanes []surveyed
	for ; len(items) >= 5; items = items[5:] {
		leaseLeft, err := strconv.ParseInt(textOf(items[1]), 10, 64)
		lane := surveyed{name: textOf(items[0]), leaseLeftMS: leaseLeft, owner: textOf(items[2]), process: textOf(items[3])}
		if err == nil && lane.destination.UnmarshalBinary([]byte(textOf(items[4]))) == nil {
			lanes = append(lanes, lane)
		}
	}
	return lanes, err
}

// contents is what Redis has of a lane.
type contents struct {
	entries    []sizedEntry
	batches    map[windrow.BatchID]recorded
	complaints []string
}

type sizedEntry struct {
	rows  windrow.Positions
	bytes int64
}

// askedAtOnce bounds how many entries are asked for in one pipeline.
const askedAtOnce = 64

func (l *link) contents(bucket bucket, lane lane) (contents, error) {
	read := contents{batches: map[windrow.BatchID]recorded{}}
	replies, err := l.talk(bucket, func(p *pipeline) {
		p.command("HKEYS", lane.rows)
		p.command("HGETALL", lane.batches)
	})
	if err != nil {
		return read, err
	}
	fields, err := listOf(replies[0])
	if err != nil {
		return read, err
	}
	records, err := listOf(replies[1])
	if err != nil {
		return read, err
	}
	for ; len(records) >= 2; records = records[2:] {
		id, idErr := windrow.ParseBatchID(textOf(records[0]))
		members, isRecord := parseRecorded(textOf(records[1]))
		if idErr != nil || !isRecord {
			read.complaints = append(read.complaints, fmt.Sprintf("Redis, %s: a batch's record can't be read", lane.batches))
			continue
		}
		read.batches[id] = members
	}
	return read, l.sizes(bucket, lane, fields, &read)
}

func (l *link) sizes(bucket bucket, lane lane, fields []any, read *contents) error {
	for len(fields) > 0 {
		asked := fields[:min(len(fields), 16*askedAtOnce)]
		fields = fields[len(asked):]
		sizes, err := l.talk(bucket, func(p *pipeline) {
			for _, field := range asked {
				p.command("HSTRLEN", lane.rows, textOf(field))
			}
		})
		if err != nil {
			return err
		}
		for index, field := range asked {
			rows, isEntry := parseField(textOf(field))
			if !isEntry {
				read.complaints = append(read.complaints, fmt.Sprintf("Redis, %s: no entry is called %s", lane.rows, textOf(field)))
				continue
			}
			size, _ := sizes[index].(int64)
			read.entries = append(read.entries, sizedEntry{rows, size})
		}
	}
	return nil
}

// read gives rows of a lane, cut out of the entries that they lie in. Damage is an error of the buffer.
func (l *link) read(bucket bucket, lane lane, entries []windrow.Positions, rows windrow.Positions) (windrow.Rows, error) {
	var read windrow.Rows
	for len(entries) > 0 {
		asked := entries[:min(len(entries), askedAtOnce)]
		entries = entries[len(asked):]
		command := []string{"HMGET", lane.rows}
		for _, entry := range asked {
			command = append(command, fieldOf(entry))
		}
		replies, err := l.talk(bucket, func(p *pipeline) { p.command(command...) })
		if err != nil {
			return read, err
		}
		items, err := listOf(replies[0])
		if err != nil || len(items) != len(asked) {
			return read, errGarbled
		}
		for index, entry := range asked {
			bytes, _ := items[index].([]byte)
			found, isSound := decodeEntry(bytes)
			if !isSound || uint64(found.Count()) != entry.Count() {
				return read, fmt.Errorf("%w: Redis, %s: entry %d is not there or can't be read", windrow.ErrDamaged, lane.rows, entry.From)
			}
			from, to := max(rows.From, entry.From), min(rows.To, entry.To)
			part := found.Part(int(from-entry.From), int(to-entry.From))
			read.Bytes = append(read.Bytes, part.Bytes...)
			read.Lengths = append(read.Lengths, part.Lengths...)
		}
	}
	if uint64(read.Count()) != rows.Count() {
		return read, fmt.Errorf("%w: Redis, %s: of %d rows %d are there", windrow.ErrDamaged, lane.rows, rows.Count(), read.Count())
	}
	return read, nil
}

// tombstone says how far a lane went that was emptied by another; false if nothing is known of its end.
func (l *link) tombstone(bucket bucket, lane lane) (uint64, bool, error) {
	replies, err := l.talk(bucket, func(p *pipeline) { p.command("GET", lane.tombstone) })
	if err != nil {
		return 0, false, err
	}
	next, parseErr := strconv.ParseUint(textOf(replies[0]), 10, 64)
	return next, parseErr == nil, nil
}
