package windrow

import "errors"

// FailureKind says what may be concluded from a failed attempt.
type FailureKind int

const (
	// Passing means that it may pass, or that it isn't known what became of the attempt: the same rows are
	// sent again under the same id.
	Passing FailureKind = iota
	// BadValues means some row's values; nothing of the batch is stored. It is narrowed down until the guilty
	// rows are known.
	BadValues
	// Refused means the table, its columns or the account, not the rows; nothing of the batch is stored. It
	// won't pass by itself: with a buffer that survives it is tried again, with another one the rows are
	// handed over.
	Refused
	// MaybeStored means that it won't pass, and rows may be stored, since it was a view of the table that
	// failed.
	MaybeStored
)

// Failure is why an attempt to store a batch failed.
type Failure struct {
	Kind FailureKind
	// Row is the row, counted from 1, that the error names, or 0. It is a hint.
	Row int
	Err error
}

// Classify says what may be concluded from an error of Store.Insert.
//
// ClickHouse takes a block through its table's expressions and constraints before anything of it is kept, and
// hands it to the views of the table then: an error of a view may come when the table has the rows. All other
// errors that are not known to be for good are taken for passing: a repeat under the same id is harmless, a
// row that is given up too early is not.
func Classify(err error) Failure {
	var exception *Exception
	if !errors.As(err, &exception) {
		return Failure{Kind: Passing, Err: err}
	}
	return Failure{Kind: kindOf(exception), Row: exception.Row(), Err: err}
}

func kindOf(exception *Exception) FailureKind {
	switch {
	case passingCodes[exception.Code] && !exception.isAboutPartitions():
		return Passing
	case exception.isOfTheStructure():
		return Refused
	case valueCodes[exception.Code] && exception.isOfAView():
		return MaybeStored
	case valueCodes[exception.Code] || exception.isAboutPartitions():
		return BadValues
	case refusingCodes[exception.Code]:
		return Refused
	default:
		return Passing
	}
}
