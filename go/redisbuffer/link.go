package redisbuffer

import (
	"bufio"
	"cmp"
	"crypto/tls"
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

// openLink connects to the server that has the bucket, by way of the first of the address's places that answers.
func openLink(address address) (opened *link, err error) {
	for _, place := range address.places {
		if opened, err = openThrough(address, place); err != nil {
			continue
		}
		if err = opened.loadScripts(); err == nil {
			return opened, nil
		}
		opened.close()
	}
	return nil, err
}

// openThrough asks a Sentinel or a node of a cluster where the bucket is: each time, so that who has moved is found
// by the next connection.
func openThrough(address address, place string) (*link, error) {
	switch {
	case address.sentinel != "":
		return address.openMaster(place)
	case address.isCluster:
		return address.openNode(place)
	}
	return address.open(place, true)
}

func (a address) openMaster(sentinel string) (*link, error) {
	asked, err := a.open(sentinel, false)
	if err != nil {
		return nil, err
	}
	defer asked.close()
	reply, err := asked.ask("SENTINEL", "get-master-addr-by-name", a.sentinel)
	master, isList := reply.([]any)
	if err != nil || !isList || len(master) != 2 {
		return nil, cmp.Or(err, fmt.Errorf("sentinel knows no master called %s", a.sentinel))
	}
	place := net.JoinHostPort(textOf(master[0]), textOf(master[1]))
	opened, err := a.open(place, true)
	if err != nil {
		return nil, err
	}
	// One that was the master a moment ago still answers.
	reply, err = opened.ask("ROLE")
	if role, _ := reply.([]any); err != nil || len(role) == 0 || textOf(role[0]) != "master" {
		opened.close()
		return nil, cmp.Or(err, fmt.Errorf("%s is no master any more", place))
	}
	return opened, nil
}

func (a address) openNode(node string) (*link, error) {
	asked, err := a.open(node, true)
	if err != nil {
		return nil, err
	}
	defer asked.close()
	slot, err := asked.ask("CLUSTER", "KEYSLOT", newBucket(a).lanes)
	if err != nil {
		return nil, err
	}
	slots, err := asked.ask("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	owner := ownerOf(slots, slot)
	if owner == "" {
		return nil, fmt.Errorf("the cluster has no node for slot %v", slot)
	}
	if host, port, _ := net.SplitHostPort(owner); host == "" {
		// A node that does not know its own name is the one that was asked.
		host, _, _ = net.SplitHostPort(node)
		owner = net.JoinHostPort(host, port)
	}
	return a.open(owner, true)
}

// ownerOf finds the master of a slot among ranges: first slot, last slot, its host and port, those of replicas.
func ownerOf(slots, slot any) string {
	number, _ := slot.(int64)
	ranges, _ := slots.([]any)
	for _, each := range ranges {
		of, _ := each.([]any)
		if len(of) < 3 {
			continue
		}
		first, _ := of[0].(int64)
		last, _ := of[1].(int64)
		node, _ := of[2].([]any)
		if first <= number && number <= last && len(node) >= 2 {
			return net.JoinHostPort(textOf(node[0]), fmt.Sprint(node[1]))
		}
	}
	return ""
}

// open connects to one server. isOwn: as the account, in the database that the address names.
func (a address) open(place string, isOwn bool) (*link, error) {
	connection, err := a.dial(place)
	if err != nil {
		return nil, err
	}
	opened := &link{connection: connection, answerLimit: a.answerLimit}
	opened.reader = bufio.NewReaderSize(opened, 64<<10)
	if isOwn {
		err = opened.logIn(a)
	}
	if err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

func (a address) dial(place string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: a.answerLimit}
	if !a.isSecured {
		return dialer.Dial("tcp", place)
	}
	return tls.DialWithDialer(dialer, "tcp", place, &tls.Config{RootCAs: a.authorities, MinVersion: tls.VersionTLS12})
}

// ask sends one command, and takes none of Redis's errors.
func (l *link) ask(parts ...string) (any, error) {
	replies, err := l.exchangeSound(appendCommand(nil, parts...), 1)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
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
