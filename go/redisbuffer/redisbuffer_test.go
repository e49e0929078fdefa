package redisbuffer

import (
	"bufio"
	"bytes"
	"errors"
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
	if err != nil || read.place != "cache:7000" || read.database != 3 || read.user != "joe" || read.password != "p@ss" ||
		read.bucket != "a b" || read.maxBytes != 77 || read.lease != 2500*time.Millisecond {
		t.Fatal(read, err)
	}
	if strings.Contains(read.String(), "p@ss") {
		t.Fatal(read.String())
	}
	read, err = parseAddress("redis://:secret@[::1]:1")
	if err != nil || read.place != "[::1]:1" || read.password != "secret" || read.user != "" || read.bucket != "windrow" {
		t.Fatal(read, err)
	}
	read, err = parseAddress("redis://")
	if err != nil || read.place != "127.0.0.1:6379" {
		t.Fatal(read, err)
	}
}

func TestMistakesAreNamedAndPasswordsAreNot(t *testing.T) {
	for address, word := range map[string]string{
		"rediss://h": "TLS", "http://h": "redis://host", "redis://h:x": "the port", "redis://h/x": "database",
		"redis://h?bucket=": "needs a name", "redis://h?bucket=a{b": "braces", "redis://h?lease=0": "lease",
		"redis://h?leese=1": "it has bucket", "redis://h?bucket=%zz": "percent",
		"redis://:se/cret@h": "", "redis://:se?cret@h/0": "", "redis://joe:secret": "", "redis://:se?lease=cret@h": "",
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
	equal(t, made.unsealed()[0], positions(15, 20))
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
	equal(t, slices.Equal(made.unsealed(), []windrow.Positions{positions(15, 20)}), true)
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
	var kept []uint64
	for len(s.ops) > 0 {
		queued := s.ops[0]
		s.ops = s.ops[1:]
		switch queued := queued.(type) {
		case *appendOp:
			if before, isKept := s.confirm(queued); isKept {
				kept = append(kept, before)
			}
		case *recordOp:
			s.recorded(queued.change)
		}
	}
	return kept
}

func TestWhatWaitsToBeSentIsJoinedAndWhatWasSentIsNot(t *testing.T) {
	s, now := newState(), time.Now()
	equal(t, s.appendCount(2, now)+s.appendCount(3, now), 2)
	equal(t, len(s.ops), 1)
	s.ops[0].(*appendOp).wasSent = true
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
	first := s.ops[0].(*appendOp)
	s.ops = s.ops[1:]
	s.confirm(first)
	var refused []windrow.Positions
	for _, piece := range s.expire(now) {
		refused = append(refused, piece.positions())
	}
	equal(t, slices.Equal(refused, []windrow.Positions{positions(0, 10), positions(10, 20), positions(20, 28)}), true)
	for _, queued := range s.ops {
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

func TestWhatChangedWhileALaneWasRestoredIsRecordedThere(t *testing.T) {
	s, now := newState(), time.Now()
	s.appendCount(40, now)
	s.confirmAll()
	ended, cut := s.seal(), s.seal()
	s.confirmAll()
	had := s.inHand()
	equal(t, len(had.batches), 2)

	equal(t, s.done(ended.ID), nil)
	children, err := s.split(cut.ID, []int{3, 6})
	equal(t, err, nil)
	equal(t, s.done(children[1].ID), nil)
	sealed := s.seal()
	s.restored(newBucket(address{}).lane("l+", "o"), had)
	for _, queued := range s.ops {
		equal(t, queued.(*recordOp).lane, s.own)
	}
	s.confirmAll()
	for _, id := range []windrow.BatchID{children[0].ID, children[2].ID, sealed.ID} {
		if _, err := s.load(id); err != nil {
			t.Fatal(err)
		}
	}
	// As whoever takes the lane over would see it.
	index := s.lanes[s.own].index
	equal(t, len(index.liveBatches()), 3)
	equal(t, slices.Equal(index.unsealed(), []windrow.Positions{positions(30, 40)}), true)
	equal(t, index.entries[0].rows, positions(10, 20))
	equal(t, index.entries[0].openRows, 7)
	for _, id := range []windrow.BatchID{children[0].ID, children[2].ID, sealed.ID} {
		equal(t, s.done(id), nil)
	}
	equal(t, len(index.entries), 1)
	equal(t, len(index.batches), 0)
}

func TestWithdrawalsOfWhatWasNeverSentAreOne(t *testing.T) {
	s, now := newState(), time.Now()
	for range 100 {
		s.appendCount(10, now)
		equal(t, len(s.expire(now)), 1)
	}
	equal(t, len(s.ops), 1)
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
