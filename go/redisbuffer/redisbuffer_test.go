package redisbuffer

import (
	"bufio"
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	windrow "windrow.dev/go"
)

func equal[T comparable](t *testing.T, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("found %v, wanted %v", found, wanted)
	}
}

func TestAnAddressIsReadWithItsOptions(t *testing.T) {
	read, err := parseAddress("redis://joe:p%40ss@cache:7000/3?bucket=a%20b&lease=2.5&max_bytes=77")
	if err != nil || !slices.Equal(read.places, []string{"cache:7000"}) || read.database != 3 || read.user != "joe" || read.password != "p@ss" ||
		read.bucket != "a b" || read.maxBytes != 77 || read.lease != 2500*time.Millisecond {
		t.Fatal(read, err)
	}
	if strings.Contains(read.String(), "p@ss") {
		t.Fatal(read.String())
	}
	read, err = parseAddress("redis://:secret@[::1]:1")
	if err != nil || !slices.Equal(read.places, []string{"[::1]:1"}) || read.password != "secret" || read.user != "" || read.bucket != "windrow" {
		t.Fatal(read, err)
	}
	read, err = parseAddress("redis://")
	if err != nil || !slices.Equal(read.places, []string{"127.0.0.1:6379"}) {
		t.Fatal(read, err)
	}
}

func TestMistakesAreNamedAndPasswordsAreNot(t *testing.T) {
	for address, word := range map[string]string{
		"rediss:/h": "redis://host", "redis://a,b": "several hosts", "redis://a?sentinel=": "name of a master",
		"redis://a?sentinel=m&cluster=true": "not both", "redis://a/1?cluster=true": "database 0",
		"redis://a?cluster=yes": "true", "redis://a?ca_file=x": "rediss", "rediss://a?ca_file=/nowhere": "/nowhere", "http://h": "redis://host", "redis://h:x": "the port", "redis://h/x": "database",
		"redis://h?bucket=": "needs a name", "redis://h?bucket=a{b": "braces", "redis://h?lease=0": "lease",
		"redis://h?leese=1": "it has bucket", "redis://h?bucket=%zz": "percent",
		"redis://:se/cret@h": "", "redis://:se?cret@h/0": "", "redis://joe:secret": "", "redis://:se?lease=cret@h": "", "redis://:se?ca_file=cret@h": "",
	} {
		_, err := parseAddress(address)
		if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func replyOf(text string) (any, error) { return readReply(bufio.NewReader(strings.NewReader(text)), 0) }

func TestRepliesAreReadAndEveryTruncationIsAnError(t *testing.T) {
	text := "*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$5\r\na\r\nbc\r\n$-1\r\n*1\r\n$0\r\n\r\n"
	read, err := replyOf(text)
	wanted := []any{[]byte("OK"), refusal("ERR no"), int64(-7), []byte("a\r\nbc"), nil, []any{[]byte{}}}
	if err != nil || !reflect.DeepEqual(read, wanted) {
		t.Fatal(read, err)
	}
	for end := range text {
		if read, err := replyOf(text[:end]); err == nil {
			t.Errorf("%d: %v", end, read)
		}
	}
	for _, garbled := range []string{"\r\n", "?\r\n", ":x\r\n", "$-2\r\n", "$9999999999\r\n", "*-2\r\n", "$1\r\nabc", strings.Repeat("*1\r\n", 20)} {
		if _, err := replyOf(garbled); !errors.Is(err, errGarbled) {
			t.Errorf("%q: %v", garbled, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("*2\r\n+OK\r\n$3\r\nabc\r\n"))
	f.Add([]byte("$536870912\r\nabc"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		reply, err := readReply(bufio.NewReader(bytes.NewReader(data)), 0)
		if err == nil {
			_, _ = verdictOf(reply)
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add(appendEntry(nil, windrow.Rows{Bytes: []byte("abbccc"), Lengths: []uint32{1, 2, 3}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if rows, isSound := decodeEntry(data); isSound && !bytes.Equal(appendEntry(nil, rows), data) {
			t.Error("it is read otherwise than it is written")
		}
	})
}

// What Redis has in names and small values, and what a user writes.
func FuzzText(f *testing.F) {
	for _, text := range []string{"7:3", "D0-5", "boot/pid:[1]/77/123", "redis://joe:p%40ss@cache:7000/3?bucket=a&lease=2.5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if rows, isField := parseField(text); isField && rows.From >= rows.To {
			t.Error("no rows", rows)
		}
		if read, isRecord := parseRecorded(text); isRecord {
			again, _ := parseRecorded(read.String())
			equal(t, again, read)
		}
		if read, err := parseAddress(text); err == nil && (read.bucket == "" || read.lease <= 0) {
			t.Error(read)
		}
		_ = isDead(text)
	})
}

func TestEntriesAreReadBackAndEveryTruncationIsRefused(t *testing.T) {
	rows := windrow.Rows{Bytes: []byte("abbccc"), Lengths: []uint32{1, 2, 3}}
	entry := appendEntry(nil, rows)
	equal(t, len(entry), entryBytes(rows))
	if read, isSound := decodeEntry(entry); !isSound || !reflect.DeepEqual(read, rows) {
		t.Fatal(read)
	}
	for end := range entry {
		if _, isSound := decodeEntry(entry[:end]); isSound {
			t.Error(end)
		}
	}
}

func TestRecordsAndFieldsAreReadBackAndNothingElseIs(t *testing.T) {
	equal(t, recorded{positions(0, 5), true}.String(), "D0-5")
	read, isRecord := parseRecorded("D0-5")
	equal(t, isRecord && read == recorded{positions(0, 5), true}, true)
	for _, wrong := range []string{"", "L", "X1-2", "L2-1", "L1-1", "L1", "L1-2,", "Lé"} {
		if _, isRecord := parseRecorded(wrong); isRecord {
			t.Error(wrong)
		}
	}
	field, isField := parseField(fieldOf(positions(7, 10)))
	equal(t, isField && field == positions(7, 10), true)
	for _, wrong := range []string{"", "1", "1:0", "1:-1", "18446744073709551615:2", "a:b"} {
		if _, isField := parseField(wrong); isField {
			t.Error(wrong)
		}
	}
}

func positions(from, to uint64) windrow.Positions { return windrow.Positions{From: from, To: to} }

func id(number byte) windrow.BatchID { return windrow.BatchID{15: number} }

func index() *laneIndex {
	made := newLaneIndex()
	for _, rows := range []windrow.Positions{positions(0, 10), positions(10, 15), positions(15, 20)} {
		made.addEntry(rows)
	}
	return made
}

func TestABatchReleasesWhatItHadAndNothingElse(t *testing.T) {
	made := index()
	made.seal(id(1), positions(0, 15))
	equal(t, slices.Equal(made.unsealed(), []windrow.Positions{positions(15, 20)}), true)
	wanted := change{forgets: []windrow.BatchID{id(1)}, releases: []windrow.Positions{positions(0, 10), positions(10, 15)}}
	if found := made.markDone(id(1)); !reflect.DeepEqual(found, wanted) {
		t.Fatal(found)
	}
	equal(t, made.markDone(id(1)).isEmpty(), true)
}

func TestHalvesShareAnEntryUntilBothAreDone(t *testing.T) {
	made := index()
	made.seal(id(1), positions(0, 10))
	made.split(id(1), []namedRecord{{id(2), recorded{rows: positions(0, 5)}}, {id(3), recorded{rows: positions(5, 10)}}})
	first := made.markDone(id(2))
	wanted := change{writes: []namedRecord{{id(2), recorded{positions(0, 5), true}}}}
	if !reflect.DeepEqual(first, wanted) {
		t.Fatal(first)
	}
	second := made.markDone(id(3))
	wanted = change{forgets: []windrow.BatchID{id(2), id(3)}, releases: []windrow.Positions{positions(0, 10)}}
	if !reflect.DeepEqual(second, wanted) {
		t.Fatal(second)
	}
}

func TestWhatACrashLeftIsToldApart(t *testing.T) {
	made := index()
	made.addRecorded(id(2), recorded{positions(0, 5), true})
	made.addRecorded(id(3), recorded{positions(5, 12), false})
	equal(t, made.tidy().isEmpty(), true)
	equal(t, slices.Equal(made.liveBatches(), []windrow.BatchID{id(3)}), true)
	// Also the rest of an entry in which a batch became full.
	equal(t, slices.Equal(made.unsealed(), []windrow.Positions{positions(12, 15), positions(15, 20)}), true)
	equal(t, slices.Equal(made.entriesOf(positions(5, 12)), []windrow.Positions{positions(0, 10), positions(10, 15)}), true)
	equal(t, slices.Equal(made.markDone(id(3)).releases, []windrow.Positions{positions(0, 10)}), true)
}

func newState() *state {
	made := &state{limits: windrow.BatchLimits{Rows: 10, Bytes: 100}, batches: map[windrow.BatchID]*batch{}}
	made.enterOwn(newBucket(address{}).lane("l", "o"))
	return made
}

func (s *state) appendCount(rows int, deadline time.Time) uint64 {
	lengths := make([]uint32, rows)
	for index := range lengths {
		lengths[index] = 1
	}
	return s.append(windrow.Rows{Bytes: make([]byte, rows), Lengths: lengths}, deadline)
}

// confirmAll does what Redis would do with all that is queued.
func (s *state) confirmAll() []uint64 {
	var outcome settlement
	var kept []uint64
	for !s.queue.isEmpty() {
		for _, queued := range s.queue.takeFlight(false) {
			outcome.hasKept = false
			s.wasDone(queued, &outcome)
			if outcome.hasKept {
				kept = append(kept, outcome.keptBefore)
			}
		}
	}
	return kept
}

func TestWhatWaitsToBeSentIsJoinedAndWhatWasSentIsNot(t *testing.T) {
	s, now := newState(), time.Now()
	equal(t, s.appendCount(2, now)+s.appendCount(3, now), 2)
	equal(t, len(s.queue.rows), 1)
	s.queue.rows[0].(*appendOp).wasSent = true
	equal(t, s.appendCount(1, now), 5)
	equal(t, slices.Equal(s.confirmAll(), []uint64{5, 6}), true)
}

func TestALargeAppendIsKeptWithItsLastPiece(t *testing.T) {
	s := newState()
	s.appendCount(25, time.Now())
	equal(t, slices.Equal(s.confirmAll(), []uint64{25}), true)
	equal(t, s.open(), windrow.OpenRows{Rows: 25, FullBatches: 2})
}

func TestWhatExpiresIsRefusedWholeAndWithdrawn(t *testing.T) {
	s, now := newState(), time.Now()
	s.appendCount(25, now)
	s.appendCount(3, now.Add(time.Minute))
	first := s.queue.rows[0].(*appendOp)
	s.queue.rows = s.queue.rows[1:]
	s.confirm(first)
	var refused []windrow.Positions
	for _, piece := range s.expire(now) {
		refused = append(refused, piece.positions())
	}
	equal(t, slices.Equal(refused, []windrow.Positions{positions(0, 10), positions(10, 20), positions(20, 28)}), true)
	for _, queued := range s.queue.rows {
		if _, isWithdrawal := queued.(*withdrawOp); !isWithdrawal {
			t.Fatal(queued)
		}
	}
	equal(t, s.open().Rows, 0)
}

func TestBatchesAreNeverCutOverAGap(t *testing.T) {
	s, now := newState(), time.Now()
	s.appendCount(14, now)
	s.confirmAll()
	s.appendCount(3, now)
	equal(t, len(s.expire(now)), 1)
	s.appendCount(5, now.Add(time.Minute))
	s.confirmAll()
	var sealed []windrow.Positions
	var first windrow.BatchID
	for batch := s.seal(); batch != nil; batch = s.seal() {
		if len(sealed) == 0 {
			first = batch.ID
		}
		sealed = append(sealed, batch.Positions)
	}
	equal(t, slices.Equal(sealed, []windrow.Positions{positions(0, 10), positions(10, 14), positions(17, 22)}), true)
	_, err := s.load(first)
	equal(t, err, windrow.ErrNotYet)
	s.confirmAll()
	rows, err := s.load(first)
	equal(t, err, nil)
	equal(t, rows.Count(), 10)
}

// positionsAgain is what is queued to be written again, or skipped.
func (s *state) positionsAgain() []windrow.Positions {
	var found []windrow.Positions
	for _, queued := range s.queue.again {
		switch queued := queued.(type) {
		case *againOp:
			found = append(found, queued.positions())
		case *skipOp:
			found = append(found, queued.rows)
		}
	}
	return found
}

func TestWhatRedisHasForgottenIsWrittenAgainAndWhatFollowsIsRecordedBehindIt(t *testing.T) {
	s, now := newState(), time.Now()
	s.appendCount(40, now)
	s.confirmAll()
	ended, cut := s.seal(), s.seal()
	s.confirmAll()
	equal(t, s.done(ended.ID), nil)
	sealed := s.seal()
	s.appendCount(3, now.Add(time.Minute))
	s.moveTo(newBucket(address{}).lane("l+", "o"), loss{kind: isForgotten})
	wanted := []windrow.Positions{positions(0, 10), positions(10, 20), positions(20, 30), positions(30, 40)}
	equal(t, slices.Equal(s.positionsAgain(), wanted), true)
	_, err := s.load(sealed.ID)
	equal(t, err, windrow.ErrNotYet)

	children, err := s.split(cut.ID, []int{3, 6})
	equal(t, err, nil)
	equal(t, s.done(children[1].ID), nil)
	last := s.seal()
	s.confirmAll()
	live := []windrow.BatchID{children[0].ID, children[2].ID, sealed.ID, last.ID}
	for _, id := range live {
		if _, err := s.load(id); err != nil {
			t.Fatal(err)
		}
	}
	// As whoever takes the lane over would see it.
	index := s.lanes[s.own].index
	equal(t, slices.Equal(index.liveBatches(), live), true)
	equal(t, slices.Equal(index.unsealed(), []windrow.Positions{positions(40, 43)}), true)
	for _, id := range live {
		equal(t, s.done(id), nil)
	}
	equal(t, slices.Equal(index.entriesOf(positions(0, 43)), []windrow.Positions{positions(40, 43)}), true)
}

func TestALaneThatAnotherTakesWhileItIsWrittenAgainIsOneThatWasLost(t *testing.T) {
	s := newState()
	s.appendCount(30, time.Now())
	s.confirmAll()
	first := s.seal()
	s.confirmAll()
	second := s.seal()
	s.moveTo(newBucket(address{}).lane("l+", "o"), loss{kind: isForgotten})
	// The first batch is there when the lane is lost.
	s.lanes[1].isGone = true
	s.moveTo(newBucket(address{}).lane("l++", "o"), loss{kind: isTaken, before: 10})
	wanted := []windrow.Positions{positions(0, 10), positions(10, 20), positions(20, 30)}
	equal(t, slices.Equal(s.positionsAgain(), wanted), true)
	if _, err := s.load(first.ID); err != nil {
		t.Fatal("both know its id, and both send it", err)
	}
	equal(t, len(s.givenAway), 0)
	equal(t, s.batches[second.ID].lane, 2)
}

func TestEveryRowIsTakenByAnotherOrWrittenAgain(t *testing.T) {
	for before := range uint64(46) {
		s, now := newState(), time.Now()
		s.appendCount(17, now)
		s.appendCount(9, now)
		s.confirmAll()
		s.seal()
		s.confirmAll()
		s.seal()
		s.appendCount(19, now.Add(time.Minute))
		s.lanes[0].isGone = true
		s.moveTo(newBucket(address{}).lane("l+", "o"), loss{kind: isTaken, before: before})
		var found []windrow.Positions
		for _, given := range s.givenAway {
			for _, rows := range given.rows {
				found = append(found, rows.positions)
			}
		}
		for _, batch := range s.batches {
			found = append(found, batch.members)
		}
		for _, piece := range append(slices.Clone(s.waiting), s.half...) {
			found = append(found, piece.positions())
		}
		for _, queued := range s.queue.rows {
			found = append(found, queued.(*appendOp).positions())
		}
		rows := make([]int, 45)
		for _, positions := range found {
			for row := positions.From; row < positions.To; row++ {
				rows[row]++
			}
		}
		equal(t, slices.Equal(rows, slices.Repeat([]int{1}, 45)), true)
	}
}

func TestABatchWhoseLaneIsGoneIsNotCut(t *testing.T) {
	s := newState()
	s.appendCount(10, time.Now())
	s.confirmAll()
	sealed := s.seal()
	s.confirmAll()
	s.lanes[0].isGone = true
	_, err := s.split(sealed.ID, []int{5})
	equal(t, err, windrow.ErrNotYet)
	s.moveTo(newBucket(address{}).lane("l+", "o"), loss{kind: isTaken, before: 10})
	_, err = s.load(sealed.ID)
	equal(t, err, nil)
	_, err = s.split(sealed.ID, []int{5})
	equal(t, err, windrow.ErrUnknownBatch)
	_, err = s.load(sealed.ID)
	equal(t, err, windrow.ErrUnknownBatch)
	equal(t, s.givenAway[0].rows[0].positions, positions(0, 10))
}

func TestRecordsGoBeforeRowsThatFindNoRoom(t *testing.T) {
	s, now := newState(), time.Now()
	s.appendCount(10, now)
	s.confirmAll()
	sealed := s.seal()
	for range 200 {
		s.append(windrow.Rows{Bytes: make([]byte, 90_000), Lengths: []uint32{90_000}}, now)
	}
	flight := s.queue.takeFlight(true)
	equal(t, len(flight), 2)
	equal(t, flight[0].(*recordOp).change.writes[0].id, sealed.ID)
	s.queue.putBack(flight)
	equal(t, len(s.queue.takeFlight(true)), 2)
	s.isFull = true
	s.appendCount(1, now)
	equal(t, s.open().FullBatches, 0)
	s.confirmAll()
	equal(t, s.open().FullBatches > 0, true)
}

// Whatever is recorded: each row of an entry is in a batch or unsealed, and when all of them are done all is
// released.
func TestNoRowIsOverlooked(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	for range 2000 {
		made := newLaneIndex()
		there := map[uint64]bool{}
		for at := uint64(0); at < 150; {
			at += random.Uint64N(3) * random.Uint64N(5)
			end := at + 1 + random.Uint64N(19)
			made.addEntry(positions(at, end))
			at = end
		}
		at := uint64(0)
		for number := range 1 + random.IntN(20) {
			at += random.Uint64N(3) * random.Uint64N(9)
			end := at + 1 + random.Uint64N(24)
			made.addRecorded(id(byte(number)), recorded{positions(at, end), random.IntN(2) == 0})
			at = end
		}
		made.tidy()
		for _, entry := range made.entries {
			for row := entry.rows.From; row < entry.rows.To; row++ {
				there[row] = true
			}
		}
		for _, batch := range made.batches {
			for row := batch.rows.From; row < batch.rows.To; row++ {
				delete(there, row)
			}
		}
		for number, rows := range made.unsealed() {
			for row := rows.From; row < rows.To; row++ {
				equal(t, there[row], true)
				delete(there, row)
			}
			made.seal(windrow.BatchID{1: 1, 14: byte(number)}, rows)
		}
		equal(t, len(there), 0)
		for _, batch := range made.liveBatches() {
			made.markDone(batch)
		}
		equal(t, len(made.entries)+len(made.batches), 0)
	}
}

func TestWithdrawalsOfWhatWasNeverSentAreOne(t *testing.T) {
	s, now := newState(), time.Now()
	for range 100 {
		s.appendCount(10, now)
		equal(t, len(s.expire(now)), 1)
	}
	equal(t, len(s.queue.rows), 1)
}

func TestWhoRanHereAndIsGoneIsDead(t *testing.T) {
	own := ownIdentity()
	equal(t, isDead(own), false)
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	place, _, _ := strings.Cut(own, "/"+strconv.Itoa(os.Getpid())+"/")
	identity := place + "/" + strconv.Itoa(child.Process.Pid) + "/" + startTime(child.Process.Pid)
	equal(t, isDead(identity), false)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	equal(t, isDead(identity), true)
	for _, other := range []string{"", "elsewhere/4000000/77", "boot/pid:[1]/4000000/77", "x/y"} {
		equal(t, isDead(other), false)
	}
}
