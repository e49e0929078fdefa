package windrow

import "slices"

// Rows are encoded rows: their bytes in ClickHouse's format RowBinary, one after the other, and the length of
// each, so that a batch can be cut between any two.
type Rows struct {
	Bytes   []byte
	Lengths []uint32
}

// Count says how many rows there are.
func (r Rows) Count() int { return len(r.Lengths) }

// HeldBytes says what the rows count for where room is bounded: their bytes, and what is kept to tell them
// apart.
func (r Rows) HeldBytes() int64 { return HeldBytes(len(r.Bytes), len(r.Lengths)) }

// HeldBytes says what so many rows with so many bytes count for where room is bounded.
func HeldBytes(bytes, rows int) int64 { return int64(bytes) + 4*int64(rows) }

// Part gives some of the rows, by their numbers. It copies nothing.
func (r Rows) Part(from, to int) Rows {
	start := byteLength(r.Lengths[:from])
	end := start + byteLength(r.Lengths[from:to])
	return Rows{Bytes: r.Bytes[start:end:end], Lengths: r.Lengths[from:to:to]}
}

// Clone copies the rows.
func (r Rows) Clone() Rows {
	return Rows{Bytes: slices.Clone(r.Bytes), Lengths: slices.Clone(r.Lengths)}
}

// Each gives each row's bytes.
func (r Rows) Each(yield func(row []byte) bool) {
	rest := r.Bytes
	for _, length := range r.Lengths {
		if !yield(rest[:length:length]) {
			return
		}
		rest = rest[length:]
	}
}

// Fitting says how many of the rows, from the first on, fit into so much: at least `least`.
func (r Rows) Fitting(rows, bytes, least int) int {
	if r.Count() <= rows && len(r.Bytes) <= bytes {
		return r.Count()
	}
	count, sum := 0, 0
	for count < min(rows, r.Count()) && sum+int(r.Lengths[count]) <= bytes {
		sum += int(r.Lengths[count])
		count++
	}
	return max(count, min(least, r.Count()))
}

// AreSound says whether the lengths add up to all of the bytes.
func (r Rows) AreSound() bool {
	var sum uint64
	for _, length := range r.Lengths {
		sum += uint64(length)
	}
	return sum == uint64(len(r.Bytes))
}

func (r *Rows) push(added Rows) {
	r.Bytes = append(r.Bytes, added.Bytes...)
	r.Lengths = append(r.Lengths, added.Lengths...)
}

func byteLength(lengths []uint32) int {
	sum := 0
	for _, length := range lengths {
		sum += int(length)
	}
	return sum
}
