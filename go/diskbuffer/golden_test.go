package diskbuffer_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	windrow "windrow.dev/go"
	"windrow.dev/go/buffertest"
	"windrow.dev/go/diskbuffer"
)

// silent takes what a buffer tells.
type silent struct{}

func (silent) Kept(uint64)                                    {}
func (silent) Refused(windrow.Positions, windrow.Rows, error) {}
func (silent) StoredElsewhere(windrow.Positions, int64)       {}
func (silent) Wake()                                          {}
func limits() windrow.BatchLimits                             { return windrow.BatchLimits{Rows: 100, Bytes: 1 << 20} }
func textRows(texts ...string) (rows windrow.Rows) {
	for _, text := range texts {
		rows.Bytes = append(rows.Bytes, text...)
		rows.Lengths = append(rows.Lengths, uint32(len(text)))
	}
	return rows
}

func fail(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openAt(t testing.TB, folder string, destination *windrow.Destination) windrow.Buffer {
	t.Helper()
	buffer, err := diskbuffer.At(folder, diskbuffer.Options{SegmentBytes: 1}).OpenBuffer(destination, limits())
	fail(t, err)
	buffer.Attach(silent{})
	return buffer
}

// recovered opens a buffer on a folder, and gives the texts of all rows that come back.
func recovered(t testing.TB, folder string) (texts []string, found windrow.LeftOvers) {
	t.Helper()
	buffer := openAt(t, folder, buffertest.Destination())
	found, err := buffer.LeftOvers()
	fail(t, err)
	for _, batch := range found.Batches {
		rows, err := buffer.Load(batch.ID)
		fail(t, err)
		if rows.Count() != int(batch.Rows) {
			t.Fatalf("a batch of %d rows has %d", batch.Rows, rows.Count())
		}
		for row := range rows.Each {
			texts = append(texts, string(row))
		}
	}
	fail(t, buffer.Close())
	return texts, found
}

// The files that the Rust writer's tests keep of each version of the format are read for ever.
func TestFilesOfTheRustWriterAreRead(t *testing.T) {
	folder := copied(t, filepath.Join("testdata", "disk-1"))
	destination := &windrow.Destination{Database: "d", Table: "t"}
	buffer := openAt(t, folder, destination)
	defer func() { fail(t, buffer.Close()) }()
	found, err := buffer.LeftOvers()
	fail(t, err)
	if len(found.Complaints) > 0 || found.DamagedBytes > 0 {
		t.Fatal(found)
	}
	wanted := []struct {
		id    string
		texts []string
	}{
		{"11a1cd69-b469-4458-a256-8c6a761d6e34", []string{"three", ""}},
		{"40e355a7-5cf1-424e-a9f4-a06b7f9ee6ae", []string{"five"}},
		{"6c2ac4e4-9f2d-4a9c-856e-fc2840a64458", []string{"six"}},
		{"", []string{"seven"}},
	}
	if len(found.Batches) != len(wanted) {
		t.Fatal(found.Batches)
	}
	for index, batch := range found.Batches {
		rows, err := buffer.Load(batch.ID)
		fail(t, err)
		var texts []string
		for row := range rows.Each {
			texts = append(texts, string(row))
		}
		id := wanted[index].id
		if !slices.Equal(texts, wanted[index].texts) || id != "" && batch.ID.String() != id {
			t.Errorf("batch %s: %q", batch.ID, texts)
		}
	}
}

// killed is a folder with a log of one segment, as a killed writer leaves it: rows 0 to 9, of which 0 to 3
// are done, and 4 to 6 sealed.
func killed(t testing.TB) (folder, segment string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "buffer")
	buffer, err := diskbuffer.At(folder, diskbuffer.Options{SegmentBytes: 1}).OpenBuffer(
		buffertest.Destination(), windrow.BatchLimits{Rows: 4, Bytes: 1000})
	fail(t, err)
	buffer.Attach(silent{})
	for _, text := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		_, err := buffer.Append(textRows(text))
		fail(t, err)
	}
	first, err := buffer.Seal()
	fail(t, err)
	_, err = buffer.Seal()
	fail(t, err)
	fail(t, buffer.Done(first.ID))
	left := copied(t, folder)
	fail(t, buffer.Close())
	found, err := filepath.Glob(filepath.Join(left, "*", "*.segment"))
	fail(t, err)
	if len(found) != 1 {
		t.Fatal(found)
	}
	return left, found[0]
}

func TestEveryTruncationIsRead(t *testing.T) {
	_, segment := killed(t)
	whole, err := os.ReadFile(segment)
	fail(t, err)
	end := len(whole)
	for whole[end-1] == 0 {
		end--
	}
	all := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for length := 0; length <= end+8; length++ {
		texts, found := recovered(t, folderOf(t, whole[:length]))
		if !isRun(texts, all) {
			t.Fatalf("%d bytes: %q", length, texts)
		}
		if length >= 64 && found.DamagedBytes == 0 {
			t.Fatalf("%d bytes are damage that nobody was told of", len(whole)-length)
		}
	}
}

// isRun says whether the texts stand in all, one behind the other.
func isRun(texts, all []string) bool {
	if len(texts) == 0 {
		return true
	}
	start := slices.Index(all, texts[0])
	return start >= 0 && start+len(texts) <= len(all) && slices.Equal(texts, all[start:start+len(texts)])
}

func TestATornTailIsNoDamage(t *testing.T) {
	_, segment := killed(t)
	whole, err := os.ReadFile(segment)
	fail(t, err)
	end := len(whole)
	for whole[end-1] == 0 {
		end--
	}
	// The last record is the one that says that rows 0 to 3 are done: what is torn is as if it had never
	// been.
	for at := end - 1; at >= end-16; at-- {
		torn := slices.Clone(whole)
		torn[at] ^= 0xff
		texts, found := recovered(t, folderOf(t, torn))
		if len(texts) != 10 || found.DamagedBytes != 0 {
			t.Fatalf("%d: %q, %d bytes are damaged", at, texts, found.DamagedBytes)
		}
	}
}

func TestChangedBytesAreNoticedOrHarmless(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	_, segment := killed(t)
	whole, err := os.ReadFile(segment)
	fail(t, err)
	for range 300 {
		changed := slices.Clone(whole)
		for range 1 + random.IntN(3) {
			changed[random.IntN(1200)] = byte(random.Uint32())
		}
		texts, _ := recovered(t, folderOf(t, changed))
		if !isPartOf(texts, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
			t.Fatalf("rows that nobody wrote: %q", texts)
		}
	}
}

// isPartOf says whether all of the texts are there, each once, in order or not.
func isPartOf(texts, all []string) bool {
	seen := map[string]bool{}
	for _, text := range texts {
		if seen[text] || !slices.Contains(all, text) {
			return false
		}
		seen[text] = true
	}
	return true
}

// folderOf makes a buffer's folder with a log of one segment.
func folderOf(t testing.TB, segment []byte) string {
	t.Helper()
	folder := t.TempDir()
	own := filepath.Join(folder, "18ea4c0d66321350-c3e04b82")
	fail(t, os.Mkdir(own, 0o700))
	fail(t, os.WriteFile(filepath.Join(own, "lock"), nil, 0o600))
	fail(t, os.WriteFile(filepath.Join(own, "0000000000000000.segment"), segment, 0o600))
	return folder
}

func TestDamagedSegmentsAreKeptAside(t *testing.T) {
	_, segment := killed(t)
	whole, err := os.ReadFile(segment)
	fail(t, err)
	// In the middle of the rows.
	whole[400] ^= 1
	folder := folderOf(t, whole)
	buffer := openAt(t, folder, buffertest.Destination())
	found, err := buffer.LeftOvers()
	fail(t, err)
	if found.DamagedBytes == 0 || len(found.Complaints) == 0 {
		t.Fatal(found)
	}
	for _, batch := range found.Batches {
		fail(t, buffer.Done(batch.ID))
	}
	fail(t, buffer.Close())
	aside, err := filepath.Glob(filepath.Join(folder, "damaged", "*"))
	fail(t, err)
	if len(aside) != 1 {
		t.Fatal(aside)
	}
}

func TestAFullBufferTakesNothingAndHasRoomAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "buffer")
	options := diskbuffer.Options{SegmentBytes: 16 << 10, MaxDiskBytes: 64 << 10}
	buffer, err := diskbuffer.At(folder, options).OpenBuffer(buffertest.Destination(), limits())
	fail(t, err)
	buffer.Attach(silent{})
	defer func() { fail(t, buffer.Close()) }()
	taken := 0
	for ; err == nil; taken++ {
		_, err = buffer.Append(textRows(string(make([]byte, 1000))))
	}
	if !errors.Is(err, windrow.ErrFull) || taken < 40 {
		t.Fatal(taken, err)
	}
	var tooLarge *windrow.TooLargeError
	if _, err := buffer.Append(textRows(string(make([]byte, 100<<10)))); !errors.As(err, &tooLarge) {
		t.Fatal(err)
	}
	for sealed, err := buffer.Seal(); sealed != nil; sealed, err = buffer.Seal() {
		fail(t, err)
		fail(t, buffer.Done(sealed.ID))
	}
	_, err = buffer.Append(textRows("there is room again"))
	fail(t, err)
}

func TestLogsOfOtherTablesAndOfTheLivingAreLeftAlone(t *testing.T) {
	folder, _ := killed(t)
	other := openAt(t, folder, &windrow.Destination{Database: "d", Table: "other"})
	defer func() { fail(t, other.Close()) }()
	found, err := other.LeftOvers()
	fail(t, err)
	living := openAt(t, folder, buffertest.Destination())
	defer func() { fail(t, living.Close()) }()
	if texts, _ := recovered(t, folder); len(found.Batches)+len(texts) > 0 {
		t.Fatal(found, texts)
	}
}

// FuzzRecover reads whatever stands in a segment.
func FuzzRecover(f *testing.F) {
	_, segment := killed(f)
	whole, err := os.ReadFile(segment)
	fail(f, err)
	f.Add(whole[:2048])
	f.Add(whole[:700])
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if len(bytes) > 1<<16 {
			return
		}
		_, _ = recoveredOrError(t, folderOf(t, bytes))
	})
}

// recoveredOrError is for bytes of which nothing is known: a version of a later release is an error.
func recoveredOrError(t testing.TB, folder string) (windrow.LeftOvers, error) {
	buffer := openAt(t, folder, buffertest.Destination())
	defer func() { fail(t, buffer.Close()) }()
	found, err := buffer.LeftOvers()
	for _, batch := range found.Batches {
		if rows, err := buffer.Load(batch.ID); err == nil && (!rows.AreSound() || rows.Count() != int(batch.Rows)) {
			t.Fatal("a batch has other rows than it says")
		}
	}
	return found, err
}
