// Package buffertest checks buffers and retry policies of a program's own against what a writer expects of
// them.
//
//	func TestMyBuffer(t *testing.T) {
//		buffertest.Run(t, func(t *testing.T) buffertest.Place { return newPlace(t) })
//	}
package buffertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	windrow "windrow.dev/go"
)

// Place is where buffers are opened, one after the other or several at once.
type Place interface {
	// Opener opens a buffer in the place.
	Opener() windrow.Opener
	// Killed gives the place as the next process finds it, if the process that has opened the buffers so far
	// were killed now. It is not called for buffers that don't survive.
	Killed(t *testing.T) Place
}

// Destination is the table that the suite's rows are for.
func Destination() *windrow.Destination {
	return &windrow.Destination{Database: "d", Table: "t", Columns: []string{"s"}, Types: []string{"String"}}
}

// Run checks a buffer. Each test gets a new, empty place.
func Run(t *testing.T, newPlace func(t *testing.T) Place) {
	tests := map[string]func(*testing.T, Place){
		"BatchesAreInOrderAndWithinTheirLimits": batchesAreInOrder,
		"LargeRowsGoAlone":                      largeRowsGoAlone,
		"ABatchStaysTheSameUntilItIsDone":       aBatchStaysTheSame,
		"PiecesTakeTheBatchsPlace":              piecesTakeTheBatchsPlace,
		"NothingIsTakenAfterTheEnd":             nothingIsTakenAfterTheEnd,
		"AppendsMayComeFromManyGoroutines":      appendsFromManyGoroutines,
		"WhatAKilledProcessLeftComesBackOnce":   whatAKilledProcessLeft,
		"KillsLoseNothingWhateverTheSizesAre":   killsLoseNothing,
		"RandomOperations":                      randomOperations,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, newPlace(t)) })
	}
}

// patience is how long a test waits for a buffer's word before it fails.
const patience = 20 * time.Second

// opened is a buffer under test, with what it has told.
type opened struct {
	t      *testing.T
	buffer windrow.Buffer

	mu   sync.Mutex
	kept uint64
	told chan struct{}
}

func open(t *testing.T, place Place, limits windrow.BatchLimits) *opened {
	t.Helper()
	return openClosedBy(t, place, limits, func(closes func()) { closes() })
}

func openClosedBy(t *testing.T, place Place, limits windrow.BatchLimits, run func(func())) *opened {
	t.Helper()
	buffer, err := place.Opener().OpenBuffer(Destination(), limits)
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{t: t, buffer: buffer, told: make(chan struct{})}
	buffer.Attach(o)
	t.Cleanup(func() {
		run(func() {
			if err := buffer.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	return o
}

func (o *opened) tell() {
	close(o.told)
	o.told = make(chan struct{})
}

// Kept is told by the buffer.
func (o *opened) Kept(before uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = max(o.kept, before)
	o.tell()
}

// Refused is told by the buffer.
func (o *opened) Refused(positions windrow.Positions, _ windrow.Rows, err error) {
	o.t.Errorf("rows %v were refused: %v", positions, err)
}

// StoredElsewhere is told by the buffer.
func (o *opened) StoredElsewhere(windrow.Positions, int64) {}

// Wake is told by the buffer.
func (o *opened) Wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell()
}

// until asks again whenever the buffer has told something.
func (o *opened) until(what string, isSo func() bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		o.mu.Lock()
		told := o.told
		o.mu.Unlock()
		if isSo() {
			return
		}
		select {
		case <-told:
		case <-ctx.Done():
			o.t.Fatalf("it did not come to pass: %s", what)
		}
	}
}

func encoded(texts ...string) windrow.Rows {
	var rows windrow.Rows
	for _, text := range texts {
		rows.Bytes = append(rows.Bytes, text...)
		rows.Lengths = append(rows.Lengths, uint32(len(text)))
	}
	return rows
}

func textsOf(rows windrow.Rows) []string {
	var texts []string
	for row := range rows.Each {
		texts = append(texts, string(row))
	}
	return texts
}

// append appends rows and waits until they are kept.
func (o *opened) append(texts ...string) uint64 {
	o.t.Helper()
	appended, err := o.buffer.Append(encoded(texts...))
	if err != nil {
		o.t.Fatal(err)
	}
	if appended.Kept == windrow.KeptLater {
		o.until("rows are kept", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.kept >= appended.First+uint64(len(texts))
		})
	}
	return appended.First
}

func (o *opened) seal() *windrow.Sealed {
	o.t.Helper()
	sealed, err := o.buffer.Seal()
	if err != nil {
		o.t.Fatal(err)
	}
	return sealed
}

func (o *opened) load(id windrow.BatchID) []string {
	o.t.Helper()
	var rows windrow.Rows
	o.until("a batch can be loaded", func() bool {
		var err error
		rows, err = o.buffer.Load(id)
		if err != nil && !errors.Is(err, windrow.ErrNotYet) {
			o.t.Fatal(err)
		}
		return err == nil
	})
	if !rows.AreSound() {
		o.t.Fatal("the lengths of the rows don't add up")
	}
	return textsOf(rows)
}

func (o *opened) done(id windrow.BatchID) {
	o.t.Helper()
	if err := o.buffer.Done(id); err != nil {
		o.t.Fatal(err)
	}
}

func (o *opened) leftOvers() []windrow.Sealed {
	o.t.Helper()
	found, err := o.buffer.LeftOvers()
	if err != nil {
		o.t.Fatal(err)
	}
	if len(found.Complaints) > 0 || found.DamagedBytes > 0 {
		o.t.Fatalf("%d bytes are damaged: %q", found.DamagedBytes, found.Complaints)
	}
	return found.Batches
}

func (o *opened) unknown(id windrow.BatchID) {
	o.t.Helper()
	if _, err := o.buffer.Load(id); !errors.Is(err, windrow.ErrUnknownBatch) {
		o.t.Fatalf("Load of a batch that is not there answers %v", err)
	}
}

func same[T comparable](t *testing.T, what string, found, wanted []T) {
	t.Helper()
	if !slices.Equal(found, wanted) {
		t.Fatalf("%s: found %v, wanted %v", what, found, wanted)
	}
}

func batchesAreInOrder(t *testing.T, place Place) {
	o := open(t, place, windrow.BatchLimits{Rows: 3, Bytes: 1000})
	if o.seal() != nil || o.buffer.Open().Rows != 0 {
		t.Fatal("something waits in an empty buffer")
	}
	same(t, "positions", []uint64{o.append("a"), o.append("b", "c", "d"), o.append("e")}, []uint64{0, 1, 4})
	if found := o.buffer.Open(); found.Rows != 5 || o.buffer.NextPosition() != 5 {
		t.Fatalf("%v wait of 5 rows", found)
	}
	var texts []string
	next := uint64(0)
	for sealed := o.seal(); sealed != nil; sealed = o.seal() {
		rows := o.load(sealed.ID)
		if sealed.Positions.From != next || sealed.Positions.Count() != sealed.Rows || len(rows) != int(sealed.Rows) {
			t.Fatalf("a batch of %d rows: %+v", len(rows), sealed)
		}
		if len(rows) > 3 {
			t.Fatalf("a batch has %d rows, and may have 3", len(rows))
		}
		next = sealed.Positions.To
		texts = append(texts, rows...)
		o.done(sealed.ID)
	}
	same(t, "rows", texts, []string{"a", "b", "c", "d", "e"})
}

func largeRowsGoAlone(t *testing.T, place Place) {
	o := open(t, place, windrow.BatchLimits{Rows: 100, Bytes: 10})
	large := string(bytes.Repeat([]byte("x"), 30))
	o.append("aaaa", "bbbb", "cccc")
	o.append(large)
	o.append("")
	var texts []string
	for sealed := o.seal(); sealed != nil; sealed = o.seal() {
		rows := o.load(sealed.ID)
		sum := 0
		for _, row := range rows {
			sum += len(row)
		}
		if sum > 10 && len(rows) > 1 {
			t.Fatalf("a batch of several rows has %d bytes, and may have 10", sum)
		}
		texts = append(texts, rows...)
		o.done(sealed.ID)
	}
	same(t, "rows", texts, []string{"aaaa", "bbbb", "cccc", large, ""})
}

func aBatchStaysTheSame(t *testing.T, place Place) {
	o := open(t, place, windrow.BatchLimits{Rows: 2, Bytes: 1000})
	o.append("a", "b", "c")
	first := o.seal()
	same(t, "rows", o.load(first.ID), []string{"a", "b"})
	o.append("d", "e", "f")
	same(t, "rows that are loaded again", o.load(first.ID), []string{"a", "b"})
	if first.HeldBytes != encoded("a", "b").HeldBytes() {
		t.Fatalf("two rows of a byte hold %d bytes", first.HeldBytes)
	}
	o.done(first.ID)
	o.unknown(first.ID)
	if err := o.buffer.Done(first.ID); !errors.Is(err, windrow.ErrUnknownBatch) {
		t.Fatalf("Done for a second time answers %v", err)
	}
}

func piecesTakeTheBatchsPlace(t *testing.T, place Place) {
	o := open(t, place, windrow.BatchLimits{Rows: 100, Bytes: 1000})
	o.append("before")
	o.done(o.seal().ID)
	o.append("a", "bb", "ccc", "dddd")
	parent := o.seal()
	o.load(parent.ID)
	pieces, err := o.buffer.Split(parent.ID, []int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	o.unknown(parent.ID)
	wanted := [][]string{{"a"}, {"bb", "ccc"}, {"dddd"}}
	at, held := parent.Positions.From, int64(0)
	for index, piece := range pieces {
		same(t, "rows of a piece", o.load(piece.ID), wanted[index])
		if piece.Positions.From != at || piece.Positions.Count() != piece.Rows {
			t.Fatalf("piece %d: %+v", index, piece)
		}
		at, held = piece.Positions.To, held+piece.HeldBytes
		o.done(piece.ID)
	}
	if at != parent.Positions.To || held != parent.HeldBytes {
		t.Fatalf("the pieces end at %d and hold %d bytes; the batch was %+v", at, held, parent)
	}
}

func nothingIsTakenAfterTheEnd(t *testing.T, place Place) {
	buffer, err := place.Opener().OpenBuffer(Destination(), windrow.BatchLimits{Rows: 10, Bytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	buffer.Attach(&opened{t: t, told: make(chan struct{})})
	if err := buffer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := buffer.Append(encoded("a")); !errors.Is(err, windrow.ErrClosed) {
		t.Fatalf("Append to a closed buffer answers %v", err)
	}
}

func appendsFromManyGoroutines(t *testing.T, place Place) {
	const goroutines, each = 4, 300
	o := open(t, place, windrow.BatchLimits{Rows: 50, Bytes: 1000})
	var group sync.WaitGroup
	for at := range goroutines {
		group.Go(func() {
			for n := range each {
				if _, err := o.buffer.Append(encoded(string([]byte{byte(at), byte(n), byte(n >> 8)}))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[string]bool{}
	drain := func() {
		for sealed := o.seal(); sealed != nil; sealed = o.seal() {
			for _, row := range o.load(sealed.ID) {
				if seen[row] {
					t.Fatalf("row %q is in two batches", row)
				}
				seen[row] = true
			}
			o.done(sealed.ID)
		}
	}
	drain()
	group.Wait()
	o.until("all rows were in a batch", func() bool {
		drain()
		return len(seen) == goroutines*each
	})
}

// whatAKilledProcessLeft: batches that are done stay done, others come back as they were, and rows in no
// batch in new ones.
func whatAKilledProcessLeft(t *testing.T, place Place) {
	o := open(t, place, windrow.BatchLimits{Rows: 2, Bytes: 1000})
	if !o.buffer.Survives() {
		return
	}
	o.append("a", "b", "c", "d", "e", "f", "g")
	stored, cut, sealed := o.seal(), o.seal(), o.seal()
	for _, batch := range []*windrow.Sealed{stored, cut, sealed} {
		o.load(batch.ID)
	}
	o.done(stored.ID)
	pieces, err := o.buffer.Split(cut.ID, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	o.load(pieces[1].ID)
	o.done(pieces[0].ID)
	o.append("h")

	killed := place.Killed(t)
	next := open(t, killed, windrow.BatchLimits{Rows: 2, Bytes: 1000})
	found := next.leftOvers()
	byID := map[windrow.BatchID][]string{}
	var texts []string
	for _, batch := range found {
		rows := next.load(batch.ID)
		byID[batch.ID] = rows
		texts = append(texts, rows...)
		if batch.Positions.Count() != 0 || batch.HeldBytes != 0 || int(batch.Rows) != len(rows) {
			t.Fatalf("a batch of another process, with %d rows: %+v", len(rows), batch)
		}
	}
	same(t, "rows of the piece", byID[pieces[1].ID], []string{"d"})
	same(t, "rows of the batch", byID[sealed.ID], []string{"e", "f"})
	slices.Sort(texts)
	same(t, "all rows", texts, []string{"d", "e", "f", "g", "h"})
	if again := next.leftOvers(); len(again) > 0 {
		t.Fatalf("%d batches are given twice", len(again))
	}
	for id := range byID {
		next.done(id)
	}
	// When a later row is kept, so is what was said before it.
	next.append("last")
	last := open(t, killed.Killed(t), windrow.BatchLimits{Rows: 2, Bytes: 1000})
	texts = nil
	for _, batch := range last.leftOvers() {
		texts = append(texts, last.load(batch.ID)...)
	}
	same(t, "rows that are left when batches are done", texts, []string{"last"})
}

// killsLoseNothing: calls don't divide the batches, batches are left in every state, and each process is killed
// in its turn. The next one finds each row once, and batches under their ids with the rows that they had.
func killsLoseNothing(t *testing.T, place Place) {
	const processes = 6
	// One that is cut off takes a while to close.
	var closing sync.WaitGroup
	t.Cleanup(closing.Wait)
	random := seeded(t)
	left := leftRows{rows: map[string]bool{}, batches: map[windrow.BatchID][]string{}}
	number := 0
	for range processes {
		o := openClosedBy(t, place, windrow.BatchLimits{Rows: 1 + random.IntN(12), Bytes: 30 + random.IntN(300)}, closing.Go)
		if !o.buffer.Survives() {
			return
		}
		ids := left.check(o)
		for range 3 + random.IntN(8) {
			var call []string
			for range 1 + random.IntN(30) {
				number++
				call = append(call, fmt.Sprintf("%d %s", number, bytes.Repeat([]byte("x"), random.IntN(20))))
			}
			left.appended(call)
			o.append(call...)
			for sealed := o.seal(); sealed != nil && random.IntN(3) > 0; sealed = o.seal() {
				left.batches[sealed.ID] = o.load(sealed.ID)
				ids = append(ids, sealed.ID)
			}
			random.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
			for len(ids) > 2 {
				id := ids[0]
				ids = ids[1:]
				if rows := len(left.batches[id]); rows > 1 && random.IntN(3) == 0 {
					ids = append(ids, left.split(o, id, 1+random.IntN(rows-1))...)
				} else {
					left.done(o, id)
				}
			}
		}
		// When a later row is kept, so is what was said before it.
		number++
		left.appended([]string{fmt.Sprint(number)})
		o.append(fmt.Sprint(number))
		place = place.Killed(t)
	}
	o := openClosedBy(t, place, windrow.BatchLimits{Rows: 5, Bytes: 1000}, closing.Go)
	for _, id := range left.check(o) {
		left.done(o, id)
	}
	o.append("last")
	left.appended([]string{"last"})
	left.check(open(t, place.Killed(t), windrow.BatchLimits{Rows: 5, Bytes: 1000}))
}

// leftRows are rows that are not done, and the batches whose members are known.
type leftRows struct {
	rows    map[string]bool
	batches map[windrow.BatchID][]string
}

func (l leftRows) appended(rows []string) {
	for _, row := range rows {
		l.rows[row] = true
	}
}

// check compares what a process finds of those before it, and gives its batches.
func (l leftRows) check(o *opened) []windrow.BatchID {
	o.t.Helper()
	var ids []windrow.BatchID
	seen := map[string]bool{}
	for _, batch := range o.leftOvers() {
		rows := o.load(batch.ID)
		if known, isKnown := l.batches[batch.ID]; isKnown {
			same(o.t, "rows of a batch that was known", rows, known)
		}
		l.batches[batch.ID] = rows
		ids = append(ids, batch.ID)
		for _, row := range rows {
			if seen[row] || !l.rows[row] {
				o.t.Fatalf("row %q comes back although it is done, or twice", row)
			}
			seen[row] = true
		}
	}
	if len(seen) != len(l.rows) {
		o.t.Fatalf("%d rows come back, of %d that are not done", len(seen), len(l.rows))
	}
	return ids
}

func (l leftRows) done(o *opened, id windrow.BatchID) {
	o.done(id)
	for _, row := range l.batches[id] {
		delete(l.rows, row)
	}
	delete(l.batches, id)
}

func (l leftRows) split(o *opened, id windrow.BatchID, cut int) []windrow.BatchID {
	o.t.Helper()
	pieces, err := o.buffer.Split(id, []int{cut})
	if err != nil {
		o.t.Fatal(err)
	}
	delete(l.batches, id)
	var ids []windrow.BatchID
	for _, piece := range pieces {
		l.batches[piece.ID] = o.load(piece.ID)
		ids = append(ids, piece.ID)
	}
	return ids
}

func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomOperations compares the buffer with a list of rows and a map of batches.
func randomOperations(t *testing.T, place Place) {
	random := seeded(t)
	o := open(t, place, windrow.BatchLimits{Rows: 7, Bytes: 200})
	var rows []string
	sealedBefore := uint64(0)
	batches := map[windrow.BatchID]windrow.Sealed{}
	var ids []windrow.BatchID
	enter := func(sealed windrow.Sealed) {
		batches[sealed.ID] = sealed
		ids = append(ids, sealed.ID)
		same(t, "rows", o.load(sealed.ID), rows[sealed.Positions.From:sealed.Positions.To])
	}
	for range 300 {
		switch choice := random.IntN(10); {
		case choice < 4:
			var added []string
			for range 1 + random.IntN(12) {
				added = append(added, string(bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(40))))
			}
			o.append(added...)
			rows = append(rows, added...)
		case choice < 7:
			if sealed := o.seal(); sealed != nil {
				if sealed.Positions.From != sealedBefore {
					t.Fatalf("a batch begins at %d, the one before ended at %d", sealed.Positions.From, sealedBefore)
				}
				sealedBefore = sealed.Positions.To
				enter(*sealed)
			}
		case len(ids) == 0:
		default:
			at := random.IntN(len(ids))
			batch := batches[ids[at]]
			ids = slices.Delete(ids, at, at+1)
			if choice < 9 || batch.Rows < 2 {
				o.done(batch.ID)
				continue
			}
			pieces, err := o.buffer.Split(batch.ID, []int{1 + random.IntN(int(batch.Rows)-1)})
			if err != nil {
				t.Fatal(err)
			}
			for _, piece := range pieces {
				enter(piece)
			}
		}
	}
	for _, id := range ids {
		o.done(id)
	}
}

// RunRetryPolicy checks that a policy answers for every kind of failure, from several goroutines, and never
// with a wait that is negative or longer than an hour.
func RunRetryPolicy(t *testing.T, policy windrow.RetryPolicy) {
	var group sync.WaitGroup
	for _, kind := range []windrow.FailureKind{windrow.Passing, windrow.Refused} {
		for _, survives := range []bool{true, false} {
			group.Go(func() {
				for failed := 1; failed <= 1000; failed++ {
					failure := windrow.Failure{Kind: kind, Err: errors.New("away")}
					attempts := windrow.Attempts{Failed: failed, Elapsed: time.Duration(failed) * time.Second, Survives: survives}
					if pause, isAgain := policy.Again(failure, attempts); isAgain && (pause < 0 || pause > time.Hour) {
						t.Errorf("after %d attempts it waits %v", failed, pause)
					}
				}
			})
		}
	}
	group.Wait()
}
