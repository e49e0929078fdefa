package windrow

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestCodesTellRowsFromCircumstances(t *testing.T) {
	for _, example := range []struct {
		code int
		text string
		kind FailureKind
	}{
		{469, "Constraint `c` for table d.t is violated at row 2.", BadValues},
		{252, "Too many partitions for single INSERT block (more than 100).", BadValues},
		{252, "Too many parts (3000)", Passing},
		{60, "Table d.t does not exist", Refused},
		{117, "Type of 'a' must be Int64, not Int32: (while reading header): While executing", Refused},
		{469, "Constraint `c` is violated: while pushing to view d.v", MaybeStored},
		{469, "Column values: s = 'an error: while pushing to view d.v'.", BadValues},
		{209, "x", Passing}, {241, "x", Passing}, {243, "x", Passing}, {319, "x", Passing}, {394, "x", Passing},
		{216, "x", Passing}, {1002, "x", Passing},
	} {
		equal(t, Classify(&Exception{Code: example.code, Text: example.text}).Kind, example.kind)
	}
	equal(t, Classify(errors.New("connection reset")).Kind, Passing)
}

func TestTheRowOfAnErrorIsAHint(t *testing.T) {
	row := func(code int, text string) int { return (&Exception{Code: code, Text: text}).Row() }
	violated := "Constraint `c` for table d.t is violated at row 8. Column values: s = ' is violated at row 3'."
	equal(t, row(469, violated), 8)
	equal(t, row(27, "Cannot parse input: '(at row 5)': (at row 12)\n: While executing"), 12)
	for _, text := range []string{"at row 7", " is violated at row ", "(at row x)", "(at row 99999999999999999999999)"} {
		equal(t, row(469, text)+row(27, text), 0)
	}
}

func TestWaitsGrowToALimit(t *testing.T) {
	backoff := Backoff{First: 100 * time.Millisecond, Longest: time.Second}
	for failed, full := range map[int]time.Duration{1: 100, 2: 200, 4: 800, 5: 1000, 500: 1000} {
		pause, isAgain := backoff.Again(Failure{}, Attempts{Failed: failed, Survives: true})
		if full *= time.Millisecond; !isAgain || pause < full/2 || pause > full {
			t.Errorf("%d: %v", failed, pause)
		}
	}
}

func TestRetriesEndByNumberAndTime(t *testing.T) {
	again := func(backoff Backoff, attempts Attempts) bool {
		_, isAgain := backoff.Again(Failure{}, attempts)
		return isAgain
	}
	equal(t, again(Backoff{MaxAttempts: 3}, Attempts{Failed: 2}), true)
	equal(t, again(Backoff{MaxAttempts: 3}, Attempts{Failed: 3}), false)
	equal(t, again(Backoff{}, Attempts{Failed: 9, Elapsed: MemoryRetry, Survives: true}), true)
	equal(t, again(Backoff{}, Attempts{Failed: 9, Elapsed: MemoryRetry}), false)
}

func TestADestinationIsReadBackAndEveryTruncationIsRefused(t *testing.T) {
	events := Destination{Database: "d", Table: "t`", Columns: []string{"a", "b c"}, Types: []string{"Int32", "Array(String)"}}
	equal(t, events.InsertStatement(), "INSERT INTO `d`.`t\\`` (`a`, `b c`) FORMAT RowBinaryWithNamesAndTypes")
	equal(t, string(events.Header()), "\x02\x01a\x03b c\x05Int32\x0dArray(String)")
	bytes, _ := events.MarshalBinary()
	var read Destination
	if err := read.UnmarshalBinary(bytes); err != nil || !slices.Equal(read.Types, events.Types) || read.Table != "t`" {
		t.Fatal(read, err)
	}
	for end := range bytes {
		if read.UnmarshalBinary(bytes[:end]) == nil {
			t.Error(end)
		}
	}
	if read.UnmarshalBinary(append(bytes, 0)) == nil {
		t.Error("more than a destination")
	}
}

func TestIDsAreUUIDsAndAreReadBack(t *testing.T) {
	text := "01234567-89ab-4def-8123-456789abcdef"
	id, err := ParseBatchID(text)
	if err != nil || id.String() != text {
		t.Fatal(id, err)
	}
	for _, wrong := range []string{"", "0123456789ab4def8123456789abcdef", "01234567-89ab-4def-8123-456789abcdeg"} {
		if _, err := ParseBatchID(wrong); err == nil {
			t.Error(wrong)
		}
	}
	if random := NewBatchID().String(); random[14] != '4' || random == NewBatchID().String() {
		t.Error(random)
	}
}

func TestBodiesThatAreNoExceptions(t *testing.T) {
	for _, body := range []string{"", "Ok.\n", "Code: x", "Code: ", "\x00", "<html>502 Bad Gateway</html>"} {
		if exceptionOf("", []byte(body)) != nil {
			t.Errorf("%q", body)
		}
	}
	equal(t, exceptionOf("241", []byte("too much\n")).Code, 241)
	equal(t, exceptionOf("", []byte("Code: 60. DB::Exception: x\n")).Code, 60)
}

func TestAnAddressIsReadAndItsPasswordIsNotShown(t *testing.T) {
	store, err := HTTP("http://joe:se%40cret@host:8123/db")
	if err != nil || store.password != "se@cret" || store.String() != "http://host:8123/db" {
		t.Fatal(store, err)
	}
	for _, wrong := range []string{"", "host:8123", "ftp://secret@h", "http://a:sec%ret@h"} {
		if _, err := HTTP(wrong); err == nil || len(err.Error()) > 100 {
			t.Error(wrong, err)
		}
	}
}

func FuzzDestination(f *testing.F) {
	bytes, _ := (&Destination{Database: "d", Table: "t", Columns: []string{"a"}, Types: []string{"Int8"}}).MarshalBinary()
	f.Add(bytes)
	f.Fuzz(func(t *testing.T, data []byte) {
		var read Destination
		if read.UnmarshalBinary(data) != nil {
			return
		}
		if again, _ := read.MarshalBinary(); !slices.Equal(again, data) {
			t.Error("it is read otherwise than it is written")
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x01d\x02id\x06UInt64\x00"))
	f.Add([]byte("Code: 469. DB::Exception: Constraint `c` for table d.t is violated at row 8. (VIOLATED_CONSTRAINT)"))
	f.Add([]byte("Code: 27. DB::Exception: Cannot parse: (at row 3): While executing: while pushing to view `d`.`v`"))
	f.Fuzz(func(t *testing.T, data []byte) {
		columns, err := readColumns(data)
		if err == nil && 4*len(columns) > len(data) {
			t.Error("more columns than bytes for them:", len(columns))
		}
		if read := exceptionOf("", data); read != nil && (read.Row() < 0 || read.isOfAView() && len(read.Text) > len(data)) {
			t.Error(read.Row(), read.Text)
		}
	})
}
